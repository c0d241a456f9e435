//! Knows how long something has to be wrong until it is an alert, and how long it has to be right until that is over.
//!
//! Each subject of each kind is in one of four states: nothing is known against it, it is suspected (wrong, but not for long), an alert stands, or an
//! alert stands and it has been right for a while. Only subjects that are not in the first state take memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use admin_api::AlertLine;
use semantics::Timestamp;

use super::{
    Kind, Notice, Rules, State,
    judge::{Verdict, shortened},
};

/// The most subjects that are suspected or stand at once; further ones wait until there is room. Worst case: 300 KiB, as texts are
/// shortened.
pub const ALERTS_MAX: usize = 256;

/// The alerts that are remembered after their end.
pub const ENDED_MAX: usize = 32;

/// The longest name of what an alert is about, in bytes.
pub(super) const ABOUT_BYTES_MAX: usize = 300;

/// The longest text of an alert, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 600;

/// Holds what is wrong, or was until lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    watches: BTreeMap<(Kind, String), Watch>,
    /// The newest first.
    ended: VecDeque<AlertLine>,
}

#[derive(Clone, Debug)]
struct Watch {
    phase: Phase,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It is wrong, but not for long.
    Suspected { since: Timestamp },
    /// An alert stands.
    Standing {
        from: Timestamp,
        /// The time since which it has been right.
        right_since: Option<Timestamp>,
    },
}

impl Board {
    /// Takes the verdicts on everything of one kind. Adds what has begun and what has ended to `notices`.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        rules: &Rules,
        kind: Kind,
        mut subjects: Vec<(String, Verdict)>,
        notices: &mut Vec<Notice>,
    ) {
        for (about, _) in &mut subjects {
            shortened(about, ABOUT_BYTES_MAX);
        }
        self.forget_others(now, kind, &subjects, notices);
        for (about, verdict) in subjects {
            self.judge(now, rules, (kind, about), verdict, notices);
        }
    }

    /// Ends the alerts about what is no longer there.
    fn forget_others(&mut self, now: Timestamp, kind: Kind, subjects: &[(String, Verdict)], notices: &mut Vec<Notice>) {
        if !self.watches.keys().any(|(of, _)| *of == kind) {
            return;
        }
        let there: BTreeSet<&str> = subjects.iter().map(|(about, _)| about.as_str()).collect();
        let is_gone = |(of, about): &&(Kind, String)| *of == kind && !there.contains(about.as_str());
        let gone: Vec<(Kind, String)> = self.watches.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.end(now, key, notices);
        }
    }

    fn judge(&mut self, now: Timestamp, rules: &Rules, key: (Kind, String), verdict: Verdict, notices: &mut Vec<Notice>) {
        let Some(watch) = self.watches.get_mut(&key) else {
            let Verdict::Wrong(mut text) = verdict else { return };
            if self.watches.len() < ALERTS_MAX {
                shortened(&mut text, TEXT_BYTES_MAX);
                self.watches.insert(key.clone(), Watch { phase: Phase::Suspected { since: now }, text });
                self.begin(now, rules, &key, notices);
            }
            return;
        };
        match (&mut watch.phase, verdict) {
            (Phase::Suspected { since }, Verdict::Wrong(mut text)) => {
                shortened(&mut text, TEXT_BYTES_MAX);
                watch.text = text;
                // The clock may have been put back.
                *since = now.min(*since);
                self.begin(now, rules, &key, notices);
            }
            (Phase::Suspected { .. }, Verdict::Right | Verdict::Unknown) => drop(self.watches.remove(&key)),
            (Phase::Standing { right_since, .. }, Verdict::Wrong(mut text)) => {
                shortened(&mut text, TEXT_BYTES_MAX);
                watch.text = text;
                *right_since = None;
            }
            // What nobody knows to be right is not over.
            (Phase::Standing { right_since, .. }, Verdict::Unknown) => *right_since = None,
            (Phase::Standing { right_since, .. }, Verdict::Right) => {
                let since = right_since.map_or(now, |since| now.min(since));
                *right_since = Some(since);
                if now.since(since) >= rules.clear_after {
                    self.end(since, key, notices);
                }
            }
        }
    }

    /// Makes an alert of what has been suspected for long enough.
    fn begin(&mut self, now: Timestamp, rules: &Rules, key: &(Kind, String), notices: &mut Vec<Notice>) {
        let Some(watch) = self.watches.get_mut(key) else { return };
        let Phase::Suspected { since } = watch.phase else { return };
        if now.since(since) >= rules.after {
            watch.phase = Phase::Standing { from: since, right_since: None };
            let alert = line(key, &watch.text, since, None);
            notices.push(Notice { state: State::Firing, alert });
        }
    }

    fn end(&mut self, until: Timestamp, key: (Kind, String), notices: &mut Vec<Notice>) {
        let Some(Watch { phase: Phase::Standing { from, .. }, text }) = self.watches.remove(&key) else { return };
        let alert = line(&key, &text, from, Some(until.max(from)));
        self.ended.truncate(ENDED_MAX - 1);
        self.ended.push_front(alert.clone());
        notices.push(Notice { state: State::Resolved, alert });
    }

    pub(super) fn standing(&self) -> Vec<AlertLine> {
        let mut standing: Vec<AlertLine> = self
            .watches
            .iter()
            .filter_map(|(key, watch)| match watch.phase {
                Phase::Standing { from, right_since } => {
                    Some(AlertLine { right_since: right_since.map(Timestamp::as_millis), ..line(key, &watch.text, from, None) })
                }
                Phase::Suspected { .. } => None,
            })
            .collect();
        standing.sort_by_key(|alert| alert.from);
        standing
    }

    pub(super) fn ended(&self) -> Vec<AlertLine> {
        self.ended.iter().cloned().collect()
    }

    /// Makes a board on which these alerts stand and those have ended, as far as there is room.
    pub(super) fn of(standing: Vec<AlertLine>, ended: Vec<AlertLine>) -> Self {
        let watch = |mut alert: AlertLine| {
            shortened(&mut alert.about, ABOUT_BYTES_MAX);
            shortened(&mut alert.text, TEXT_BYTES_MAX);
            let phase = Phase::Standing { from: Timestamp::from_millis(alert.from), right_since: None };
            Some(((Kind::named(&alert.name)?, alert.about), Watch { phase, text: alert.text }))
        };
        Self {
            watches: standing.into_iter().take(ALERTS_MAX).filter_map(watch).collect(),
            ended: ended.into_iter().take(ENDED_MAX).collect(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let watches: usize = self.watches.iter().map(|((_, about), watch)| about.capacity() + watch.text.capacity() + 96).sum();
        let ended: usize = self.ended.iter().map(|alert| alert.about.capacity() + alert.text.capacity() + 120).sum();
        watches + ended
    }
}

fn line((kind, about): &(Kind, String), text: &str, from: Timestamp, until: Option<Timestamp>) -> AlertLine {
    AlertLine {
        name: kind.name().to_owned(),
        about: about.clone(),
        text: text.to_owned(),
        from: from.as_millis(),
        until: until.map(Timestamp::as_millis),
        right_since: None,
    }
}
