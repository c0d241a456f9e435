//! The delivery of one batch: attempts, waits between them, and an end in any case.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use crate::{
    queue::Fate,
    retry::{self, CollectorAnswer},
    transport::{DescribedAnswer, Transport},
};

/// The time by which everything has to be over, as soon as somebody wants that.
pub(crate) type Stop = watch::Receiver<Option<Instant>>;

/// Says what became of a batch, and words if it did not become what it should.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) fate: Fate,
    pub(crate) trouble: Option<String>,
}

/// Sends the content of a batch with so many spans until the collector has taken or refused it, or the batch has had its time. When everything is
/// to stop, no wait between attempts is kept, and the last attempt ends by then.
pub(crate) async fn deliver(transport: &Transport, content: bytes::Bytes, spans: usize, stop: &mut Stop) -> Delivered {
    let began = Instant::now();
    let mut attempts = 0;
    loop {
        let is_last = stop.borrow().is_some();
        attempts += 1;
        let answer = tokio::select! {
            answer = transport.send(content.clone()) => answer,
            () = stopped(stop) => DescribedAnswer { answered: CollectorAnswer::Nothing, words: "it did not answer before Seawall had to stop".to_owned() },
        };
        let DescribedAnswer { answered, words } = answer;
        match answered {
            CollectorAnswer::Taken { refused } => {
                let refused = refused.min(spans);
                let trouble = (refused > 0).then(|| format!("it refused {refused} of {spans} spans: {words}"));
                return Delivered { fate: Fate { taken: spans - refused, refused, lost: 0 }, trouble };
            }
            CollectorAnswer::Refused => return Delivered { fate: Fate { refused: spans, ..Fate::default() }, trouble: Some(words) },
            CollectorAnswer::NotNow(_) | CollectorAnswer::Nothing => {}
        }
        let lost = Fate { lost: spans, ..Fate::default() };
        let chance = RandomState::new().hash_one(attempts);
        let Some(wait) = retry::wait(answered, attempts, began.elapsed(), chance).filter(|_| !is_last) else {
            return Delivered { fate: lost, trouble: Some(words) };
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stop.wait_for(Option::is_some) => {}
        }
    }
}

/// Waits until everything has to be over.
async fn stopped(stop: &mut Stop) {
    let until = match stop.wait_for(Option::is_some).await {
        Ok(until) => until.unwrap_or_else(Instant::now),
        // Nobody is there any more who could wait.
        Err(_) => Instant::now() + Duration::ZERO,
    };
    tokio::time::sleep_until(until).await;
}
