//! `--direct`: asks the running Seawall for the field that lets requests go past its cache, and sees to it that they do.

use std::{ops::ControlFlow, time::Duration};

use admin::{DIRECT_SECONDS_MAX, DirectCommand, DirectField};
use load::{Results, Stop, Watch, answer::Outcome, results::Second};

use crate::cli::access::Access;

/// Time beside that of the run itself: for connecting, and for the last answers.
const MARGIN: Duration = Duration::from_mins(1);

/// The time for which a run has the field whose end is a number of requests. What it does later may be answered from the cache, and is told.
const UNKNOWN: Duration = Duration::from_mins(9);

/// Says for how long a run needs the field.
///
/// # Errors
/// When that is longer than Seawall signs one for.
pub(super) fn seconds(stop: Stop, schedule_end: Option<Duration>, before: Duration) -> Result<u32, String> {
    let most = Duration::from_secs(DIRECT_SECONDS_MAX.into());
    let time = stop.after.or(schedule_end).unwrap_or(UNKNOWN);
    let time = time + before + MARGIN;
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1);
    if time <= most {
        return Ok(seconds);
    }
    let most = (most - MARGIN).as_secs() / 60;
    Err(format!("--direct lasts for {most} minutes at most\n  Use a shorter --duration, or several runs."))
}

/// Asks the running Seawall for the field. Returns it as it is sent.
///
/// # Errors
/// When there is none, or it does not sign one.
pub(super) fn field(access: &Access, seconds: u32) -> anyhow::Result<String> {
    let signed: DirectField = access.client()?.post("/direct", &DirectCommand { seconds }.to_json())?;
    Ok(format!("{}: {}", signed.field, signed.value))
}

/// Ends a run at once whose answers come from the cache although they should not.
#[derive(Debug, Default)]
pub(super) struct MustBypass {
    others: u64,
    bypassed: u64,
}

impl Watch for MustBypass {
    fn second(&mut self, second: &Second) -> ControlFlow<()> {
        for (outcome, count) in &second.cache {
            if *outcome == Outcome::Bypass { self.bypassed += count } else { self.others += count }
        }
        if self.bypassed == 0 && self.others > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Says whether requests went past the cache. `Ok` has a remark if some did not.
///
/// # Errors
/// When none did, in words for whoever asked for it.
pub(super) fn went_past(results: &Results) -> Result<Option<String>, String> {
    let count =
        |of: &dyn Fn(Outcome) -> bool| results.cache.iter().filter(|(outcome, _)| of(**outcome)).map(|(_, it)| it.requests).sum::<u64>();
    let (bypassed, others) = (count(&|outcome| outcome == Outcome::Bypass), count(&|outcome| outcome != Outcome::Bypass));
    match (bypassed, others) {
        (_, 0) => Ok(None),
        (0, _) => Err("the cache answered, or a server that knows nothing of --direct\n  --direct works if the URL leads to the running Seawall that --admin, \
                       --token-file and --config name, without another server in between."
            .to_owned()),
        (_, others) => Ok(Some(format!("{others} answers did not go past the cache: this is not what the server behind it can do"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_lasts_as_long_as_its_run() {
        let after = |secs| Stop { requests: None, after: Some(Duration::from_secs(secs)) };
        let secs = Duration::from_secs;
        assert_eq!(seconds(after(10), None, Duration::ZERO), Ok(70));
        assert_eq!(seconds(after(10), None, secs(5)), Ok(75));
        assert_eq!(seconds(Stop::default(), Some(secs(60)), Duration::ZERO), Ok(120));
        assert_eq!(seconds(Stop { requests: Some(5_000), after: None }, None, Duration::ZERO), Ok(600));
        assert!(seconds(after(3_600), None, Duration::ZERO).is_err_and(|error| error.contains("59 minutes")));
    }

    #[test]
    fn a_run_whose_answers_come_from_the_cache_is_ended() {
        let second = |outcome, count| Second { cache: [(outcome, count)].into(), ..Second::default() };
        let mut watch = MustBypass::default();
        assert!(watch.second(&Second::default()).is_continue(), "nothing was answered yet");
        assert!(watch.second(&second(Outcome::Bypass, 3)).is_continue());
        assert!(watch.second(&second(Outcome::Hit, 3)).is_continue());
        assert!(MustBypass::default().second(&second(Outcome::Hit, 3)).is_break());
        assert!(MustBypass::default().second(&second(Outcome::Unknown, 1)).is_break());
    }
}
