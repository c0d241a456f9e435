//! What the workers think of the addresses of an origin, brought together for the metrics.
//!
//! Each worker has its own opinion, which only its thread can read. So each tells the others' reader when its opinion changes: several times a
//! second it looks, and no request pays for it.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use origins::http::{Address, HttpOrigin};

/// For each address of an origin, how many workers take it for down.
#[derive(Debug)]
pub(crate) struct OriginHealth(Vec<(String, AtomicUsize)>);

impl OriginHealth {
    pub(crate) fn of(addresses: &[Address]) -> Arc<Self> {
        Arc::new(Self(addresses.iter().map(|address| (address.to_string(), AtomicUsize::new(0))).collect()))
    }

    /// Each address, and whether every worker takes it for up.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(address, down)| (address.as_str(), down.load(Relaxed) == 0))
    }
}

/// One worker's part: it tells what its origin knows, and takes it back when the worker gets another origin.
#[derive(Debug)]
pub(crate) struct OriginWatch {
    origin: Rc<HttpOrigin>,
    health: Arc<OriginHealth>,
    /// What this worker has said: whether each address is up.
    said: RefCell<Vec<bool>>,
}

impl OriginWatch {
    pub(crate) fn new(origin: Rc<HttpOrigin>, health: Arc<OriginHealth>) -> Self {
        let said = RefCell::new(vec![true; health.0.len()]);
        Self { origin, health, said }
    }

    /// Says what has changed since the last call.
    pub(crate) fn tell(&self) {
        self.say(self.origin.addresses().map(|address| address.up));
    }

    fn say(&self, up: impl Iterator<Item = bool>) {
        for ((said, now), (_, down)) in self.said.borrow_mut().iter_mut().zip(up).zip(&self.health.0) {
            match (*said, now) {
                (true, false) => drop(down.fetch_add(1, Relaxed)),
                (false, true) => drop(down.fetch_sub(1, Relaxed)),
                _ => {}
            }
            *said = now;
        }
    }
}

impl Drop for OriginWatch {
    fn drop(&mut self) {
        self.say(std::iter::repeat(true));
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use origins::{
        Body, Origin as _,
        http::{HttpOptions, tls_config},
    };
    use testkit::{Origin, get, ok};
    use tokio::task::LocalSet;

    use super::*;

    /// Asks until each address has had its turn often enough to be taken for down.
    async fn ask_often(origin: &HttpOrigin) {
        // Origins keep their connections on tasks of their own.
        let asking = async {
            for _ in 0..8 {
                drop(origin.fetch(Request::get("/").body(Body::Empty).expect("a request")).await);
            }
        };
        LocalSet::new().run_until(asking).await;
    }

    #[tokio::test]
    async fn an_address_is_up_as_long_as_every_worker_uses_it() {
        let (alive, dead) = (Origin::start(), Origin::start());
        alive.on(get("/")).reply(ok("text"));
        dead.kill();
        let addresses = [&alive, &dead].map(|origin| origin.url().parse::<Address>().expect("an address")).to_vec();
        let names = addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        let options = Arc::new(HttpOptions::new(addresses.clone(), tls_config(None).expect("TLS")));
        let health = OriginHealth::of(&addresses);
        let seen = || health.addresses().map(|(address, up)| (address.to_owned(), up)).collect::<Vec<_>>();
        let watch = || {
            let origin = Rc::new(HttpOrigin::new(Arc::clone(&options), None).expect("an origin"));
            OriginWatch::new(origin, Arc::clone(&health))
        };
        let (busy, idle) = (watch(), watch());
        let tell = || [&busy, &idle].map(OriginWatch::tell);

        tell();
        assert_eq!(seen(), [(names[0].clone(), true), (names[1].clone(), true)], "nobody has asked yet");

        ask_often(&busy.origin).await;
        tell();
        tell();
        assert_eq!(seen(), [(names[0].clone(), true), (names[1].clone(), false)], "one worker knows");

        ask_often(&idle.origin).await;
        tell();
        assert!(!seen()[1].1, "both know");
        drop(busy);
        assert!(!seen()[1].1, "the other one still does");
        drop(idle);
        assert!(seen()[1].1, "a reload begins anew");
    }
}
