//! `[alerts]`: what an operator is told without asking, and how it gets there.

use std::{fmt, fs, path::PathBuf, str::FromStr, time::Duration};

use http::{HeaderName, HeaderValue, Uri, header};
use insight::alerts::{Kind, Rules};
use toml::Spanned;

use super::{
    error::Mistake,
    file,
    ghost::NOT_SHOWN,
    resolve::{Resolver, seconds, whole},
    settings::{AlertCommand, Alerts, Webhook},
    units::{ByteSize, Count, Period},
    words::choose,
};

/// The most fields that a webhook carries.
const FIELDS_MAX: usize = 16;

/// The most arguments of the command.
const ARGUMENTS_MAX: usize = 32;

/// The longest name of this server.
const SERVER_BYTES_MAX: usize = 100;

const DAY: u64 = 86_400;

/// Fields that belong to the message itself.
const FIXED: [HeaderName; 6] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::CONTENT_TYPE, header::HOST, header::TRANSFER_ENCODING, header::UPGRADE];

/// The name of a kind of alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertWord(pub Kind);

impl FromStr for AlertWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        choose(text, "kind of alert", &Kind::ALL.map(|kind| (kind.name(), kind))).map(Self)
    }
}

/// The address of a webhook. Whoever knows it can write there, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(pub Uri);

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl {NOT_SHOWN}")
    }
}

impl FromStr for WebhookUrl {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let remedy = "write a whole address, such as \"https://hooks.example.org/seawall\"";
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(Mistake::new("a webhook's address begins with http:// or https://", remedy));
        }
        let url = text.parse::<Uri>().ok().filter(|url| url.host().is_some_and(|host| !host.is_empty()));
        let url = url.ok_or_else(|| Mistake::new("this is not the address of a webhook", remedy))?;
        if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            let remedy = "leave out everything before and including the \"@\", and write webhook_fields = [\"Authorization: ...\"]";
            return Err(Mistake::new("a webhook's address cannot carry a user name", remedy));
        }
        Ok(Self(url))
    }
}

/// A field of a webhook's request. It may be a password, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookField(pub HeaderName, pub HeaderValue);

impl fmt::Debug for WebhookField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookField {} {NOT_SHOWN}", self.0)
    }
}

impl FromStr for WebhookField {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake =
            || Mistake::new("this is not a field", "write its name, a colon and its value, such as \"Authorization: Bearer tk_1234\"");
        let (name, value) = text.split_once(':').ok_or_else(mistake)?;
        let name = name.trim().parse::<HeaderName>().map_err(|_| mistake())?;
        if FIXED.contains(&name) {
            return Err(Mistake::new(format!("{name} cannot be set: Seawall writes it itself"), "leave it out"));
        }
        let mut value = HeaderValue::from_str(value.trim()).ok().filter(|value| !value.is_empty()).ok_or_else(mistake)?;
        value.set_sensitive(true);
        Ok(Self(name, value))
    }
}

impl Resolver<'_> {
    pub(super) fn alerts(&mut self, file: &file::Alerts) -> Alerts {
        Alerts { rules: self.alert_rules(file), server: self.alert_server(file), webhook: self.webhook(file), command: self.command(file) }
    }

    fn alert_rules(&mut self, file: &file::Alerts) -> Rules {
        let usual = Rules::default();
        let days = |days: u64| seconds(days * DAY);
        let (after, clear_after) = (self.said(&file.after), self.said(&file.clear_after));
        let (server_errors, fall) = (self.said(&file.server_errors), self.said(&file.hit_ratio_fall));
        let (certificate, disk_free) = (self.said(&file.certificate_left), self.said(&file.disk_free));
        let percent = |Count(number): Count| u8::try_from(number).unwrap_or(100);
        Rules {
            off: file.off.iter().flat_map(Spanned::get_ref).map(|word| word.get_ref().0).collect(),
            after: self.within("after", after, Period(usual.after), seconds(0)..=days(1)).0,
            clear_after: self.within("clear_after", clear_after, Period(usual.clear_after), seconds(0)..=days(7)).0,
            server_errors: percent(self.within("server_errors", server_errors, Count(usual.server_errors.into()), Count(1)..=Count(100))),
            hit_ratio_fall: percent(self.within("hit_ratio_fall", fall, Count(usual.hit_ratio_fall.into()), Count(1)..=Count(100))),
            certificate: self.within("certificate_left", certificate, Period(usual.certificate), days(1)..=days(90)).0,
            disk_free: self.within("disk_free", disk_free, ByteSize(usual.disk_free), ByteSize(0)..=ByteSize(16 << 40)).0,
        }
    }

    fn alert_server(&mut self, file: &file::Alerts) -> String {
        let Some(server) = &file.server else { return own_name() };
        let name = server.get_ref().trim();
        if name.is_empty() || name.len() > SERVER_BYTES_MAX || name.chars().any(char::is_control) {
            let remedy = format!("write a name such as \"web1\"; at most {SERVER_BYTES_MAX} bytes");
            self.wrong_at(Mistake::new("this is not the name of a server", remedy), server.span());
        }
        name.to_owned()
    }

    fn webhook(&mut self, file: &file::Alerts) -> Option<Webhook> {
        let fields = self.webhook_fields(file);
        let Some(url) = &file.webhook else {
            let others = [
                ("webhook_resolved", file.webhook_resolved.as_ref().map(Spanned::span)),
                ("webhook_secret", file.webhook_secret.as_ref().map(Spanned::span)),
                ("webhook_fields", file.webhook_fields.as_ref().filter(|list| !list.get_ref().is_empty()).map(Spanned::span)),
            ];
            for (key, span) in others {
                if let Some(span) = span {
                    self.wrong_at(
                        Mistake::new(format!("{key} has no effect without webhook"), "write webhook = \"https://...\" too"),
                        span,
                    );
                }
            }
            return None;
        };
        Some(Webhook {
            url: url.get_ref().0.clone(),
            resolved: file.webhook_resolved.as_ref().map(|url| url.get_ref().0.clone()),
            secret: file.webhook_secret.as_ref().map(|secret| secret.get_ref().0.clone()),
            fields,
        })
    }

    fn webhook_fields(&mut self, file: &file::Alerts) -> Vec<(HeaderName, HeaderValue)> {
        let Some(list) = &file.webhook_fields else { return Vec::new() };
        if list.get_ref().len() > FIELDS_MAX {
            let problem = format!("{} fields are too many for webhook_fields", list.get_ref().len());
            self.wrong_at(Mistake::new(problem, format!("at most {FIELDS_MAX}")), list.span());
        }
        list.get_ref().iter().map(|field| (field.get_ref().0.clone(), field.get_ref().1.clone())).collect()
    }

    fn command(&mut self, file: &file::Alerts) -> Option<AlertCommand> {
        let said = self.said(&file.command_timeout);
        let timeout: Duration = self.within("command_timeout", said, seconds(30), seconds(1)..=seconds(600)).0;
        let list = file.command.as_ref()?;
        let words = list.get_ref();
        let Some((program, arguments)) = words.split_first().filter(|_| words.len() <= ARGUMENTS_MAX) else {
            let remedy = format!("write the program and its arguments, each a text of its own, at most {ARGUMENTS_MAX}");
            self.wrong_at(Mistake::new("command names no program", remedy), list.span());
            return None;
        };
        let path = whole(self.file_folder().join(program.get_ref()));
        if !path.is_file() {
            let mistake = Mistake::new(
                format!("there is no file \"{}\"", path.display()),
                "write the path of the program; it is not run by a shell, so its arguments follow as texts of their own",
            );
            self.wrong_at(mistake, program.span());
        }
        let arguments = arguments.iter().map(|argument| argument.get_ref().clone()).collect();
        Some(AlertCommand { program: path, arguments, timeout })
    }
}

/// Returns the name of this machine.
pub(super) fn own_name() -> String {
    let name = fs::read_to_string(PathBuf::from("/proc/sys/kernel/hostname")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(SERVER_BYTES_MAX).collect();
    if name.is_empty() { "Seawall".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{error::Document, read::read};

    #[test]
    fn the_address_of_a_webhook_is_whole_and_shown_to_nobody() {
        for text in
            ["https://hooks.slack.com/services/T0/B0/XXX", "http://127.0.0.1:9000/", "https://ntfy.sh/topic?tpl=1&m=%7B%7B.text%7D%7D"]
        {
            let url = text.parse::<WebhookUrl>().expect(text);
            assert_eq!(url.0.to_string(), text);
            assert!(!format!("{url:?}").contains("://"), "{url:?}");
        }
        for (text, piece) in [
            ("hooks.example.org/x", "http://"),
            ("/x", "http://"),
            ("ftp://hooks.example.org", "http://"),
            ("", "http://"),
            ("https://user:word@hooks.example.org/", "user name"),
            ("https://", "not the address"),
            ("https://a b", "not the address"),
        ] {
            let mistake = text.parse::<WebhookUrl>().expect_err(text);
            assert!(mistake.problem.contains(piece), "{text}: {mistake:?}");
        }
    }

    #[test]
    fn a_webhook_carries_fields_but_none_of_the_message_itself() {
        let field = "Authorization: Bearer tk_1234".parse::<WebhookField>().expect("a field");
        assert_eq!((field.0.as_str(), field.1.to_str().expect("text")), ("authorization", "Bearer tk_1234"));
        assert!(!format!("{field:?}").contains("tk_"), "{field:?}");
        for text in ["Authorization", "X-A:", "X A: b", "Content-Type: text/plain", "Host: a", "X-A: b\nX-C: d"] {
            assert!(text.parse::<WebhookField>().is_err(), "{text}");
        }
    }

    /// A bare name would be looked for in `PATH` when it is run, and never beside the file.
    #[test]
    fn a_program_beside_the_file_is_run_from_there() {
        let document = Document { path: "seawall.toml".into(), text: "[alerts]\ncommand = [\"Cargo.toml\", \"a b\"]\n".to_owned() };
        let (file, faults) = read(&document);
        assert!(faults.is_empty(), "{faults:?}");
        let mut resolver = Resolver::new(Some(&document), Path::new(""), Vec::new());
        let command = resolver.alerts(&file.alerts).command.expect("a program");
        assert_eq!((command.program.is_absolute(), command.arguments), (true, vec!["a b".to_owned()]), "{:?}", command.program);
    }

    #[test]
    fn a_kind_that_is_mistyped_is_guessed() {
        assert_eq!("disk".parse(), Ok(AlertWord(Kind::Disk)));
        let mistake = "orign-down".parse::<AlertWord>().expect_err("mistyped");
        assert!(mistake.meant.unwrap_or_default().contains("origin-down"));
    }
}
