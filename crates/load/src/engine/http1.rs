//! HTTP/1.1, one client at a time, until the loop on epoll is there.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
};

use super::Worker;
use crate::{
    answer::Answer,
    record::{Sample, Tally},
    requests::{Next, Visitor},
};

pub(super) fn work(mut worker: Worker) -> Tally {
    worker.begin();
    let mut visitor = Visitor::new(Arc::clone(&worker.plan.requests), 0, worker.plan.seed);
    let mut mine = 0;
    let mut connection: Option<TcpStream> = None;
    let mut buffer = vec![0; 64 << 10];
    loop {
        if worker.is_stopped() || worker.ends().is_some_and(|end| worker.clock.now() >= end) {
            break;
        }
        let Next::Ask(asked) = visitor.next(None, worker.clock.now()) else { continue };
        if !worker.budget.take(&mut mine) {
            break;
        }
        let origin = &worker.plan.requests.origins[usize::from(asked.origin)];
        let Ok(socket) = connection.take().map_or_else(|| TcpStream::connect((origin.host.as_str(), origin.port)), Ok) else { break };
        let request = &worker.plan.requests.requests[asked.request as usize];
        let sent = worker.clock.now();
        let _ = (&socket)
            .write_all(format!("{} {} HTTP/1.1\r\nHost: {}\r\n\r\n", request.method, request.target, origin.authority()).as_bytes());
        let (mut filled, mut whole) = (0, usize::MAX);
        while filled < whole {
            let Ok(read @ 1..) = (&socket).read(&mut buffer[filled..]) else { break };
            filled += read;
            let mut fields = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut fields);
            if let Ok(httparse::Status::Complete(length)) = head.parse(&buffer[..filled]) {
                let content = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
                whole = length + content.and_then(|field| std::str::from_utf8(field.value).ok()?.parse::<usize>().ok()).unwrap_or_default();
                if filled >= whole {
                    let status = head.code.unwrap_or_default();
                    let fields: Vec<_> = head.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
                    let ended = worker.clock.now();
                    let judged = visitor.answered(&asked, &Answer { status, fields: &fields, body: None }, ended);
                    worker.recorder.ended(&Sample {
                        intended: sent,
                        sent,
                        first_byte: Some(ended),
                        ended,
                        status,
                        bytes: filled as u64,
                        outcome: judged.outcome,
                        origin_reached: judged.origin_reached,
                        page: judged.page,
                        error: judged.error,
                    });
                }
            }
        }
        connection = Some(socket);
    }
    let now = worker.clock.now();
    worker.recorder.finish(now)
}
