//! A key that ends a run.
//!
//! The terminal hands keys over one by one, without showing them, while this listens. Signals stay as they are: Ctrl-C and Ctrl-Z do what they do.

use std::{io, os::fd::AsFd, sync::Mutex};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getpgrp,
    termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr},
};

/// The earlier settings of the terminal, while keys are listened to.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Listens to keys until it is dropped.
#[derive(Debug)]
pub(super) struct Keys(());

impl Keys {
    /// Listens, if standard input is a terminal, and this process the one that it talks to.
    pub(super) fn listen() -> Option<Self> {
        let input = io::stdin();
        if !isatty(&input) || !is_in_front(&input) {
            return None;
        }
        let before = tcgetattr(&input).ok()?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        let mut kept = BEFORE.lock().ok()?;
        tcsetattr(&input, OptionalActions::Now, &now).ok()?;
        *kept = Some(before);
        Some(Self(()))
    }

    /// Returns whether `q` was typed since the last call. Never waits.
    pub(super) fn end_was_typed(&mut self) -> bool {
        let input = io::stdin();
        // Whoever reads in the background is stopped by the system.
        if !is_in_front(&input) {
            return false;
        }
        let mut waiting = [PollFd::new(&input, PollFlags::IN)];
        if !matches!(poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
            || !waiting[0].revents().contains(PollFlags::IN)
        {
            return false;
        }
        let mut typed = [0; 64];
        rustix::io::read(&input, &mut typed).is_ok_and(|length| typed[..length].contains(&b'q'))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Gives the terminal back as it was. Whoever ends the process at once, without dropping [`Live`](super::Live), calls this before.
pub fn restore_terminal() {
    if let Ok(mut kept) = BEFORE.lock()
        && let Some(before) = kept.take()
        && is_in_front(io::stdin())
    {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

fn is_in_front(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}
