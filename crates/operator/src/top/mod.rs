//! `seawall top`: what happens now, why the origin is asked, and what that costs it; drawn anew each second.
//!
//! The answers of the server are shown, and nothing is counted here. A thread of its own asks, so that a slow answer does not hold up the keys.
//!
//! | what | bounded by |
//! |---|---|
//! | seconds that curves show | an hour |
//! | requests in the list | 500 |
//! | answers that wait to be shown | one |

mod ansi;
mod history;
mod panels;
mod picture;
mod screen;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::{
    io::{self, stdout},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use admin_api::{Moment, Seen};
use ratatui::{
    DefaultTerminal, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        event::{self, Event},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

use self::{
    picture::{Answer, Picture, Questions},
    screen::{Follows, Screen},
};
use crate::{
    admin_client::{AdminClient, AdminError},
    foreign::visible_json,
};

/// The time from one round of questions to the next.
const EACH: Duration = Duration::from_secs(1);

/// The longest wait for a key: then it is looked whether an answer or a signal has come.
const KEY_WAIT: Duration = Duration::from_millis(100);

/// The rows of each list in a picture for a pipe.
const ROWS: u16 = 10;

/// The width of a picture for a pipe, and the least and most that somebody gets who wants another one.
const WIDTH: (u16, u16, u16) = (100, 20, 400);

/// Says why there is nothing to see.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// The admin API gave no answer.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The terminal does not do what it must.
    #[error("the terminal cannot be used: --once shows one picture without it")]
    Terminal(#[from] io::Error),
}

/// Holds all that is known at a moment, for programs.
#[derive(Debug, serde::Serialize)]
struct SeenAndMoment {
    seen: Seen,
    moment: Moment,
}

/// Asks once, and returns the answers as JSON: `seen`, which are sums since counting began, and `moment`, the last second.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn json(client: AdminClient, site: Option<String>) -> Result<String, AdminError> {
    let Answer { seen, moment, .. } = Questions::new(client, site).ask()?;
    let json = serde_json::to_string_pretty(&SeenAndMoment { seen, moment }).expect("its keys are text");
    Ok(visible_json(&json) + "\n")
}

/// Asks once, and returns the picture as text, so many columns wide.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn once(client: AdminClient, site: Option<String>, width: Option<u16>, colour: bool) -> Result<String, AdminError> {
    let picture = ask_first(&mut Questions::new(client, site))?;
    let (usual, least, most) = WIDTH;
    Ok(ansi::lines(&view::whole(&picture, width.unwrap_or(usual).clamp(least, most), ROWS), colour))
}

fn ask_first(questions: &mut Questions) -> Result<Picture, AdminError> {
    let address = questions.address();
    Ok(Picture::new(address, questions.ask()?))
}

/// Shows pictures on the terminal until somebody ends it by a key, or `is_over` says so.
///
/// # Errors
/// When the server cannot be asked the first time, or the terminal does not do what it must. Later the picture says that no answer came.
pub fn watch(client: AdminClient, site: Option<String>, colour: bool, is_over: impl Fn() -> bool) -> Result<(), TopError> {
    let mut questions = Questions::new(client, site);
    let picture = ask_first(&mut questions)?;
    let asking = Questioner::start(questions)?;
    let mut terminal = RawTerminal::take()?;
    Ok(show(&mut terminal.0, picture, &asking, colour, is_over)?)
}

fn show(
    terminal: &mut DefaultTerminal,
    mut live: Picture,
    asking: &Questioner,
    colour: bool,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let mut screen = Screen::default();
    // The picture that stands still, while what is new is taken all the same.
    let mut still: Option<Picture> = None;
    let mut draws = true;
    while !is_over() {
        draws |= asking.take(&mut live) && still.is_none();
        let picture = still.as_ref().unwrap_or(&live);
        if draws {
            terminal.draw(|frame| {
                view::draw(frame.buffer_mut(), picture, &screen);
                if !colour {
                    view::without_colour(frame.buffer_mut());
                }
            })?;
            draws = false;
        }
        if !event::poll(KEY_WAIT)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) => match screen.key(key, picture) {
                Follows::End => return Ok(()),
                Follows::Draw => draws = true,
                Follows::Site(site) => {
                    screen.is_paused = false;
                    asking.about(site);
                    draws = true;
                }
                Follows::Nothing => {}
            },
            Event::Resize(..) => draws = true,
            _ => {}
        }
        if screen.is_paused != still.is_some() {
            still = screen.is_paused.then(|| live.clone());
        }
    }
    Ok(())
}

/// A terminal that was taken: dropping this gives it back as it was, also when something panics.
struct RawTerminal(DefaultTerminal);

impl RawTerminal {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let entered = execute!(stdout(), EnterAlternateScreen).and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        give_back();
    }
}

/// Gives the terminal back. One that is gone cannot be given back, and nobody is there to be told.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen);
}

/// The thread that asks the server.
#[derive(Debug)]
struct Questioner {
    /// The channel that names the site to ask about from now on.
    about: SyncSender<Option<String>>,
    answers: Receiver<Result<Answer, AdminError>>,
}

impl Questioner {
    fn start(mut questions: Questions) -> io::Result<Self> {
        let (about, wanted) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        thread::Builder::new().name("questions".to_owned()).spawn(move || {
            let mut next = Instant::now() + EACH;
            loop {
                match wanted.recv_timeout(next.saturating_duration_since(Instant::now())) {
                    Ok(site) => questions.about(site),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                // Rounds keep their pace: a second that took longer is followed by a shorter wait.
                next = (next + EACH).max(Instant::now());
                let answered = questions.ask();
                // A site that is gone after a reload leaves all together.
                if matches!(&answered, Err(AdminError::Refused { status: 404, .. })) {
                    questions.about(None);
                }
                if answer.send(answered).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { about, answers })
    }

    /// Asks about another site. While it already was told to, another wish is too much.
    fn about(&self, site: Option<String>) {
        let _ = self.about.try_send(site);
    }

    /// Takes the answers that have come into a picture, and tells whether there was one.
    fn take(&self, picture: &mut Picture) -> bool {
        let mut has_come = false;
        loop {
            match self.answers.try_recv() {
                Ok(Ok(answer)) => picture.take(answer),
                Ok(Err(error)) => picture.trouble = Some(format!("no answer: {}", error.problem())),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return has_come,
            }
            has_come = true;
        }
    }
}
