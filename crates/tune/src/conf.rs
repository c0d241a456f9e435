//! Files of settings, as PHP, php-fpm, MariaDB and Redis have them: what counts in one, and one with another value.
//!
//! A file is edited as a person would: a value is replaced where it stands, or added below the comment that shows its default; nothing else changes.

/// Says how a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `key = value` in `[sections]`; `;` begins a comment. Php-fpm and `php.ini`.
    Php,
    /// `key = value` in `[sections]`; `#` and `;` begin a comment, `-` and `_` are the same in keys. MariaDB and MySQL.
    MyCnf,
    /// `key value`; `#` begins a comment.
    Redis,
}

/// The sections that a MariaDB or a MySQL reads for its server.
const SERVER_SECTIONS: [&str; 4] = ["mysqld", "server", "mariadb", "mariadbd"];

/// One line of a file that sets something.
struct Line<'a> {
    key: &'a str,
    value: &'a str,
    /// Whether it is commented out.
    is_comment: bool,
}

impl Style {
    fn line(self, line: &str) -> Option<Line<'_>> {
        let comments: &[char] = match self {
            Self::Php => &[';'],
            Self::MyCnf => &['#', ';'],
            Self::Redis => &['#'],
        };
        let line = line.trim();
        let text = line.trim_start_matches(comments).trim_start();
        let is_comment = text.len() < line.len();
        let (key, value) = match self {
            Self::Php | Self::MyCnf => text.split_once('=')?,
            Self::Redis => text.split_once(' ')?,
        };
        let key = key.trim();
        // Prose in comments is not a setting.
        if key.is_empty() || key.contains(' ') {
            return None;
        }
        let value = match self {
            // What follows a space and the sign of a comment is one.
            Self::Php => value.split(" ;").next().unwrap_or_default(),
            Self::MyCnf => value.split(" #").next().unwrap_or_default(),
            Self::Redis => value,
        };
        Some(Line { key, value: value.trim().trim_matches('"'), is_comment })
    }

    fn is(self, key: &str, other: &str) -> bool {
        match self {
            Self::Php | Self::Redis => key == other,
            Self::MyCnf => key.replace('-', "_") == other.replace('-', "_"),
        }
    }

    fn is_section(self, line: &str, section: &str) -> bool {
        let name = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        name.is_some_and(|name| match self {
            Self::MyCnf if section == "mysqld" => SERVER_SECTIONS.iter().any(|server| is_server(name, server)),
            Self::Php | Self::MyCnf | Self::Redis => name == section,
        })
    }

    fn begins_section(self, line: &str) -> bool {
        self != Self::Redis && line.trim_start().starts_with('[')
    }

    /// Returns which lines are in a section. A file of `php.ini` has none that count.
    fn within(self, text: &str, section: Option<&str>) -> Vec<bool> {
        let Some(section) = section else { return text.lines().map(|_| true).collect() };
        let mut inside = false;
        text.lines()
            .map(|line| {
                if self.begins_section(line) {
                    inside = self.is_section(line, section);
                    return false;
                }
                inside
            })
            .collect()
    }

    /// Returns the value of a key, as the last line says that sets it.
    #[must_use]
    pub fn value(self, text: &str, section: Option<&str>, key: &str) -> Option<String> {
        let within = self.within(text, section);
        let lines = text.lines().zip(within).filter(|(_, within)| *within).filter_map(|(line, _)| self.line(line));
        lines.filter(|line| !line.is_comment && self.is(line.key, key)).last().map(|line| line.value.to_owned())
    }

    /// Returns the file with another value: in place of the line that counts, else below the comment with the same key, else at the end of the section.
    #[must_use]
    pub fn set(self, text: &str, section: Option<&str>, key: &str, value: &str) -> String {
        let setting = match self {
            Self::Php | Self::MyCnf => format!("{key} = {value}"),
            Self::Redis => format!("{key} {value}"),
        };
        let within = self.within(text, section);
        let lines: Vec<&str> = text.lines().collect();
        let find = |is_comment: bool| {
            let mut all = lines.iter().zip(&within).enumerate().filter(|(_, (_, within))| **within);
            let is = |line: &str| self.line(line).is_some_and(|line| line.is_comment == is_comment && self.is(line.key, key));
            if is_comment { all.find(|(_, (line, _))| is(line)) } else { all.rfind(|(_, (line, _))| is(line)) }.map(|(at, _)| at)
        };
        let mut new: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        if let Some(at) = find(false) {
            new[at] = setting;
        } else if let Some(at) = find(true) {
            new.insert(at + 1, setting);
        } else if let Some(last) = within.iter().rposition(|within| *within) {
            // Behind the last line that says something.
            let at = (0..=last).rev().find(|at| !within[*at] || !lines[*at].trim().is_empty()).unwrap_or(last);
            new.insert(at + 1, setting);
        } else {
            if let Some(section) = section {
                let at = lines.iter().position(|line| self.is_section(line, section));
                if let Some(at) = at {
                    new.insert(at + 1, setting);
                    return new.join("\n") + "\n";
                }
                if new.last().is_some_and(|line| !line.is_empty()) {
                    new.push(String::new());
                }
                new.push(format!("[{section}]"));
            }
            new.push(setting);
        }
        new.join("\n") + "\n"
    }
}

/// Returns whether a section is one of the server's: `[mariadb]`, and for its versions `[mariadb-11.4]`.
fn is_server(name: &str, server: &str) -> bool {
    name.strip_prefix(server)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-') && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "; Start a new pool named 'www'.\n[www]\nuser = www-data\n; Choose how\npm = dynamic\npm.max_children = 5 ; five\n;pm.max_requests = 500\n\n[other]\npm = static\n";

    #[test]
    fn the_last_value_of_the_section_counts() {
        assert_eq!(Style::Php.value(POOL, Some("www"), "pm.max_children").as_deref(), Some("5"));
        assert_eq!(Style::Php.value(POOL, Some("www"), "pm").as_deref(), Some("dynamic"));
        assert_eq!(Style::Php.value(POOL, Some("other"), "pm").as_deref(), Some("static"));
        assert_eq!(Style::Php.value(POOL, Some("www"), "pm.max_requests"), None);
        assert_eq!(Style::Php.value("memory_limit = 128M\nmemory_limit = \"256M\"\n", None, "memory_limit").as_deref(), Some("256M"));
        let my = "[client]\nmax_connections=1\n[mysqld]\nmax-connections = 100 # many\n[mariadb-10.11]\nmax_connections=50\n[mysqldump]\nmax_connections=7\n";
        assert_eq!(Style::MyCnf.value(my, Some("mysqld"), "max_connections").as_deref(), Some("50"));
        assert_eq!(Style::Redis.value("# maxmemory 1gb\nmaxmemory 2gb\n", None, "maxmemory").as_deref(), Some("2gb"));
    }

    #[test]
    fn a_value_is_set_where_a_person_would_set_it() {
        let set = |key, value| Style::Php.set(POOL, Some("www"), key, value);
        assert_eq!(set("pm", "static"), POOL.replace("pm = dynamic", "pm = static"));
        assert_eq!(
            set("pm.max_requests", "1000"),
            POOL.replace(";pm.max_requests = 500\n", ";pm.max_requests = 500\npm.max_requests = 1000\n")
        );
        assert_eq!(
            set("listen.backlog", "511"),
            POOL.replace(";pm.max_requests = 500\n", ";pm.max_requests = 500\nlisten.backlog = 511\n")
        );
        assert_eq!(Style::MyCnf.set("", Some("mysqld"), "max_connections", "20"), "[mysqld]\nmax_connections = 20\n");
        assert_eq!(Style::MyCnf.set("[client]\na=1\n", Some("mysqld"), "b", "2"), "[client]\na=1\n\n[mysqld]\nb = 2\n");
        assert_eq!(Style::MyCnf.set("[mysqld]\n[client]\na=1\n", Some("mysqld"), "b", "2"), "[mysqld]\nb = 2\n[client]\na=1\n");
        assert_eq!(
            Style::Redis.set("port 6379\n# maxmemory <bytes>\n", None, "maxmemory", "64mb"),
            "port 6379\n# maxmemory <bytes>\nmaxmemory 64mb\n"
        );
        // What is set is then what counts, and setting it again changes nothing.
        let once = set("pm.max_children", "9");
        assert_eq!(Style::Php.value(&once, Some("www"), "pm.max_children").as_deref(), Some("9"));
        assert_eq!(Style::Php.set(&once, Some("www"), "pm.max_children", "9"), once);
    }
}
