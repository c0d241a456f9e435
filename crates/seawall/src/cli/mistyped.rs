//! What was mistyped, with a guess at what was meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of other programs, each with what to type here instead.
const OTHER_FLAGS: [(&str, &str); 24] = [
    ("--port", "--listen 0.0.0.0:80 says where visitors reach Seawall, address and port"),
    ("-p", "--listen 0.0.0.0:80 says where visitors reach Seawall, address and port"),
    ("--bind", "--listen 127.0.0.1:8080 says where visitors reach Seawall"),
    ("--address", "--listen 127.0.0.1:8080 says where visitors reach Seawall"),
    ("--host", "--domain NAME is the site's public name; --listen ADDR says where visitors reach Seawall"),
    ("--hostname", "--domain NAME is the site's public name"),
    ("--root", "the folder stands by itself: seawall serve FOLDER"),
    ("--dir", "the folder stands by itself: seawall serve FOLDER"),
    ("--to", "the server's address stands by itself: seawall serve http://127.0.0.1:2368"),
    ("--upstream", "the server's address stands by itself: seawall serve http://127.0.0.1:2368"),
    ("--cert", "--tls-cert FILE is the certificate"),
    ("--key", "--tls-key FILE is the certificate's key"),
    ("--ttl", "--hold DURATION keeps pages for that long"),
    ("-k", "connections are kept, unless --no-keepalive is typed; --insecure accepts any certificate"),
    ("--keepalive", "connections are kept, unless --no-keepalive is typed"),
    ("--latency", "percentiles are always shown"),
    ("--connections", "-c N, or --clients, is the number of clients, each with a connection"),
    ("--concurrency", "-c N, or --clients, is the number of clients"),
    ("--users", "-c N, or --clients, is the number of clients"),
    ("--concurrency-level", "-c N, or --clients, is the number of clients"),
    ("-z", "-d TIME, or --duration, ends a run"),
    ("--data", "--body TEXT is the content; --body @FILE sends a file"),
    ("--qps", "--rate N is the number of requests a second"),
    ("--header", "-H 'FIELD: VALUE', or --field, is a field of the request"),
];

/// Adds what a flag of another program is called here. That goes before the flag that is spelled most like it.
pub(super) fn with_a_guess(mut mistake: clap::Error) -> clap::Error {
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(typed))) = (mistake.kind(), mistake.get(ContextKind::InvalidArg))
        && let Some((_, tip)) = OTHER_FLAGS.iter().find(|(other, _)| other == typed)
    {
        mistake.remove(ContextKind::SuggestedArg);
        mistake.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
    }
    mistake
}

#[cfg(test)]
mod tests {
    use crate::cli::read;

    fn shown(line: &str) -> String {
        read(line.split_whitespace()).map(|(entry, _)| entry.name).expect_err(line).to_string()
    }

    /// Whoever comes from another program is told what it is called here.
    #[test]
    fn the_flags_of_other_programs_lead_to_ours() {
        for (line, expected) in [
            ("seawall serve public --port 80", "--listen 0.0.0.0:80"),
            ("seawall serve public -p 80", "--listen 0.0.0.0:80"),
            ("seawall serve --root public", "seawall serve FOLDER"),
            ("seawall check public --lisen 1", "'--listen'"),
            ("seawall bench http://127.0.0.1/ -k", "--no-keepalive"),
            ("seawall bench http://127.0.0.1/ -z 10s", "--duration"),
            ("seawall bench http://127.0.0.1/ --concurrency 5", "--clients"),
            ("seawall bench http://127.0.0.1/ -c -5", "whole number"),
            ("seawall bench http://127.0.0.1/ -d -5", "longer than 0"),
            ("seawall bench http://127.0.0.1/ -d 0", "longer than 0"),
            ("seawall bench http://127.0.0.1/ --seed x", "write a whole number"),
            ("seawall bench http://127.0.0.1/ --header A:b", "-H 'FIELD: VALUE'"),
        ] {
            let shown = shown(line);
            assert!(shown.contains(expected) && !shown.contains("as a value"), "{line}\n{shown}");
        }
    }

    #[test]
    fn a_slip_in_a_flag_or_command_is_recognised() {
        for (line, expected) in [("seawall serve --lisen a", "--listen"), ("seawall sreve", "serve")] {
            assert!(shown(line).contains(expected), "{line}");
        }
    }
}
