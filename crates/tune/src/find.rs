//! Reading a machine: where distributions put what, and what runs.

use std::{
    cmp::Reverse,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    conf::Style,
    facts::{Children, Database, DatabaseSize, Facts, Flavour, FoundValue, Php, Pool, Redis, Seawall, SettingLocation, Site, Stack},
    machine, size,
};

/// Files and folders looked at below one WordPress, at most.
const FILES_MAX: usize = 200_000;
/// Bytes of a file of settings, at most.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Files that include each other, at most.
const INCLUDES_MAX: usize = 200;
/// A child of php-fpm that has not run a script yet takes less than this.
const IDLE_CHILD: u64 = 6 << 20;

/// The folder below which a machine is read: `/`, but in tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self("/".into())
    }
}

impl Root {
    /// Makes the machine that lies in a folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Returns where a path of the machine is. One that is below the folder already stays as it is.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        if path.starts_with(&self.0) { path.to_owned() } else { self.0.join(path.strip_prefix("/").unwrap_or(path)) }
    }

    /// Reads a file that is text.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        use io::Read as _;
        let mut bytes = Vec::new();
        fs::File::open(self.path(path))?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Returns the files whose names end so, in the order of their names.
    fn files(&self, folder: impl AsRef<Path>, endings: &[&str]) -> Vec<PathBuf> {
        let folder = folder.as_ref();
        let mut names: Vec<_> = fs::read_dir(self.path(folder)).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let is_meant = |name: &str| !name.starts_with('.') && endings.iter().any(|ending| name.ends_with(ending));
        names.into_iter().filter(|name| name.to_str().is_some_and(is_meant)).map(|name| folder.join(name)).collect()
    }

    fn folders(&self, folder: &str) -> Vec<PathBuf> {
        self.files(folder, &[""]).into_iter().filter(|path| self.path(path).is_dir()).collect()
    }

    /// Returns the first of several paths that is there.
    fn first<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Option<PathBuf> {
        paths.into_iter().find(|path| self.has(path)).map(PathBuf::from)
    }
}

/// Reads a machine and what runs on it. `folders` are those of its WordPress; if there is none, they are looked for where distributions and
/// images have them.
#[must_use]
pub fn read(root: &Root, seawall: Seawall, folders: &[PathBuf], (memory, cores): (Option<u64>, Option<usize>)) -> Facts {
    let mut notes = Vec::new();
    let processes = processes(root);
    let php = php(root, &processes, &mut notes);
    let sites = sites(root, folders, &mut notes);
    let database = database(root, &processes, &sites, &mut notes);
    let redis = redis(root, &mut notes);
    Facts { machine: machine::read(root, memory, cores), seawall, stack: Stack { php, database, redis, sites, notes } }
}

/// A process, as far as anybody may see it.
struct Process {
    id: String,
    name: String,
    /// The words of its command line. Those of php-fpm are one text.
    words: Vec<String>,
}

fn processes(root: &Root) -> Vec<Process> {
    let ids = root.files("/proc", &[""]);
    let ids = ids.iter().filter_map(|path| path.file_name()?.to_str()).filter(|id| id.bytes().all(|b| b.is_ascii_digit()));
    let process = |id: &str| {
        let name = root.text(format!("/proc/{id}/comm")).ok()?.trim().to_owned();
        let is_ours = name.starts_with("php-fpm") || ["mariadbd", "mysqld", "redis-server"].contains(&name.as_str());
        let line = if is_ours { root.text(format!("/proc/{id}/cmdline")).ok()? } else { return None };
        let words = line.split('\0').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Some(Process { id: id.to_owned(), name, words })
    };
    ids.filter_map(process).collect()
}

/// Returns all that a file sets in a section.
fn given(root: &Root, file: &Path, style: Style, section: Option<&str>, keys: &[&str]) -> Vec<FoundValue> {
    let Ok(text) = root.text(file) else { return Vec::new() };
    let place = SettingLocation { file: file.to_owned(), style, section: section.map(str::to_owned) };
    let value =
        |key: &&str| style.value(&text, section, key).map(|value| FoundValue { key: (*key).to_owned(), value, place: place.clone() });
    keys.iter().filter_map(value).collect()
}

const POOL_KEYS: [&str; 9] = [
    "pm",
    "pm.max_children",
    "pm.start_servers",
    "pm.min_spare_servers",
    "pm.max_spare_servers",
    "pm.max_requests",
    "request_terminate_timeout",
    "listen.backlog",
    "php_admin_value[memory_limit]",
];

const INI_KEYS: [&str; 9] = [
    "memory_limit",
    "opcache.enable",
    "opcache.memory_consumption",
    "opcache.interned_strings_buffer",
    "opcache.max_accelerated_files",
    "opcache.validate_timestamps",
    "opcache.revalidate_freq",
    "realpath_cache_size",
    "realpath_cache_ttl",
];

/// An installation of php-fpm: its version, its configuration, the folders with more of `php.ini`, and its service.
struct Installed {
    version: String,
    config: PathBuf,
    ini: Option<PathBuf>,
    ini_folder: PathBuf,
    program: Option<PathBuf>,
    service: String,
}

/// Finds where distributions have php-fpm, the newest first.
fn installed(root: &Root) -> Vec<Installed> {
    let mut all = Vec::new();
    // Debian and Ubuntu.
    for folder in root.folders("/etc/php") {
        let config = folder.join("fpm/php-fpm.conf");
        if root.has(&config) {
            let version = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let program = root.first([format!("/usr/sbin/php-fpm{version}").as_str()]);
            let ini = Some(folder.join("fpm/php.ini"));
            all.push(Installed {
                ini_folder: folder.join("fpm/conf.d"),
                service: format!("php{version}-fpm"),
                version,
                config,
                ini,
                program,
            });
        }
    }
    // Alpine: /etc/php83, php-fpm83.
    for folder in root.folders("/etc") {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(digits) = name.strip_prefix("php").filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        let config = folder.join("php-fpm.conf");
        if root.has(&config) {
            let version = format!("{}.{}", &digits[..1], &digits[1..]);
            let program = root.first([format!("/usr/sbin/php-fpm{digits}").as_str()]);
            let (ini, service) = (Some(folder.join("php.ini")), format!("php-fpm{digits}"));
            all.push(Installed { version, config, ini, ini_folder: folder.join("conf.d"), program, service });
        }
    }
    // Fedora, RHEL and their kin; images of Docker.
    for (config, ini, ini_folder) in [
        ("/etc/php-fpm.conf", "/etc/php.ini", "/etc/php.d"),
        ("/usr/local/etc/php-fpm.conf", "/usr/local/etc/php/php.ini", "/usr/local/etc/php/conf.d"),
    ] {
        if root.has(config) {
            all.push(Installed {
                version: String::new(),
                config: config.into(),
                ini: Some(ini.into()),
                ini_folder: ini_folder.into(),
                program: root.first(["/usr/sbin/php-fpm", "/usr/local/sbin/php-fpm"]),
                service: "php-fpm".to_owned(),
            });
        }
    }
    let number = |version: &str| version.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>();
    all.sort_by_key(|one| Reverse(number(&one.version)));
    all
}

fn php(root: &Root, processes: &[Process], notes: &mut Vec<String>) -> Option<Php> {
    let mut all = installed(root);
    // A master says which configuration it has read: `php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)`.
    let running: Vec<PathBuf> = processes
        .iter()
        .filter_map(|process| {
            let title = process.words.join(" ");
            Some(PathBuf::from(title.strip_prefix("php-fpm: master process (")?.strip_suffix(')')?))
        })
        .collect();
    let at = all.iter().position(|one| running.iter().any(|config| root.path(config) == root.path(&one.config)));
    if let Some(other) = running.iter().find(|config| !all.iter().any(|one| root.path(config) == root.path(&one.config))) {
        notes.push(format!("a php-fpm runs with {}, where no distribution has it: its settings are not looked at", other.display()));
    }
    if all.is_empty() {
        notes.push(
            "php-fpm is not installed here (looked in /etc/php/*/fpm, /etc/php-fpm.d, /etc/php[0-9]*, /usr/local/etc): no advice for PHP"
                .to_owned(),
        );
        return None;
    }
    let others: Vec<String> =
        all.iter().enumerate().filter(|(i, _)| *i != at.unwrap_or(0)).map(|(_, one)| one.config.display().to_string()).collect();
    if !others.is_empty() {
        notes.push(format!("there is more than one php-fpm: not looked at: {}", others.join(", ")));
    }
    let chosen = all.swap_remove(at.unwrap_or(0));
    let text = match root.text(&chosen.config) {
        Ok(text) => text,
        Err(error) => {
            notes.push(format!("{} cannot be read ({error}): no advice for PHP", chosen.config.display()));
            return None;
        }
    };
    let pools = pools(root, &chosen.config, &text, notes);
    if pools.is_empty() {
        notes.push(format!("{} has no pool that can be read: no advice for PHP", chosen.config.display()));
        return None;
    }
    let mut ini = Vec::new();
    for file in chosen.ini.iter().cloned().chain(root.files(&chosen.ini_folder, &[".ini"])) {
        ini.extend(given(root, &file, Style::Php, None, &INI_KEYS));
    }
    let limit_of_pool = pools.iter().filter_map(|pool| size::read(pool.value("php_admin_value[memory_limit]")?)).max();
    let limit = ini.iter().rev().find(|given| given.key == "memory_limit").and_then(|given| size::read(&given.value));
    let children = children(root, processes, (&chosen.config, &pools), notes);
    // A folder that PHP was not built to read would be of no use.
    let ini_file = match chosen.ini {
        Some(ini) if !root.path(&chosen.ini_folder).is_dir() => ini,
        Some(_) | None => chosen.ini_folder.join("99-seawall.ini"),
    };
    Some(Php {
        version: chosen.version,
        config: chosen.config,
        program: chosen.program,
        service: chosen.service,
        ini_place: SettingLocation { file: ini_file, style: Style::Php, section: None },
        memory_limit: limit_of_pool.or(limit).unwrap_or(128 << 20),
        children,
        pools,
        ini,
    })
}

/// Finds the pools of a configuration, and of the files that it includes.
fn pools(root: &Root, config: &Path, text: &str, notes: &mut Vec<String>) -> Vec<Pool> {
    let mut files = vec![config.to_owned()];
    for line in text.lines().map(str::trim) {
        let Some(pattern) = line.strip_prefix("include").and_then(|rest| rest.trim_start().strip_prefix('=')) else { continue };
        // Beside the prefix where PHP was built to be, which is /usr or /usr/local.
        let pattern = Path::new(pattern.trim());
        let pattern = if pattern.is_absolute() {
            pattern.to_owned()
        } else {
            config.parent().unwrap_or_else(|| Path::new("/")).join(pattern.strip_prefix("etc").unwrap_or(pattern))
        };
        let ending = pattern.file_name().and_then(|name| name.to_str()).unwrap_or_default().trim_start_matches('*').to_owned();
        files.extend(pattern.parent().map(|folder| root.files(folder, &[&ending])).unwrap_or_default());
    }
    let mut pools = Vec::new();
    for file in files.into_iter().take(INCLUDES_MAX) {
        let text = match root.text(&file) {
            Ok(text) => text,
            Err(error) => {
                notes.push(format!("{} cannot be read: {error}", file.display()));
                continue;
            }
        };
        let names = text.lines().filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']')).filter(|name| *name != "global");
        for name in names {
            let now = given(root, &file, Style::Php, Some(name), &POOL_KEYS);
            // A section may go on in a second file: the first one has the name.
            if !pools.iter().any(|pool: &Pool| pool.name == name) {
                let place = SettingLocation { file: file.clone(), style: Style::Php, section: Some(name.to_owned()) };
                pools.push(Pool { name: name.to_owned(), place, now });
            } else if let Some(pool) = pools.iter_mut().find(|pool| pool.name == name) {
                pool.now.extend(now);
            }
        }
    }
    pools
}

/// Measures the children that run.
fn children(root: &Root, processes: &[Process], (config, pools): (&Path, &[Pool]), notes: &mut Vec<String>) -> Option<Children> {
    let is_child = |process: &&Process| {
        let title = process.words.join(" ");
        process.name.starts_with("php-fpm")
            && title.strip_prefix("php-fpm: pool ").is_some_and(|name| pools.iter().any(|pool| pool.name == name.trim()))
    };
    let mut children: Vec<&Process> = processes.iter().filter(is_child).collect();
    // Those of another php-fpm with a pool of that name count only where there are no others.
    let title = |process: &Process| process.words.join(" ");
    let masters: Vec<&str> = processes
        .iter()
        .filter(|process| {
            let of = title(process);
            let config_of = of.strip_prefix("php-fpm: master process (").and_then(|rest| rest.strip_suffix(')'));
            config_of.is_some_and(|of| root.path(of) == root.path(config))
        })
        .map(|process| process.id.as_str())
        .collect();
    let parent = |process: &Process| root.text(format!("/proc/{}/status", process.id)).ok().and_then(|text| parent(&text));
    if children.iter().any(|child| parent(child).is_some_and(|parent| masters.contains(&parent.as_str()))) {
        children.retain(|child| parent(child).is_some_and(|parent| masters.contains(&parent.as_str())));
    }
    if children.is_empty() {
        notes.push("no child of php-fpm is running: the size of one is an estimate".to_owned());
        return None;
    }
    let largest = children.iter().filter_map(|process| own_bytes(root, &process.id)).max();
    let Some(largest) = largest.filter(|bytes| *bytes >= IDLE_CHILD) else {
        notes.push("the children of php-fpm have run no script yet, or cannot be looked at: the size of one is an estimate".to_owned());
        return None;
    };
    let shared = |id: &str| number(&root.text(format!("/proc/{id}/status")).ok()?, "RssShmem:");
    let shared = children.iter().filter_map(|process| shared(&process.id)).max().unwrap_or(0);
    Some(Children { count: children.len(), largest, shared })
}

/// Returns the memory of a process that would be free without it: neither OPcache nor files, which are shared. The kernel tells everybody what is
/// anonymous; what of that is shared with the master only those who may look closer.
fn own_bytes(root: &Root, id: &str) -> Option<u64> {
    let closer = root.text(format!("/proc/{id}/smaps_rollup")).ok();
    closer.and_then(|text| number(&text, "Anonymous:")).or_else(|| number(&root.text(format!("/proc/{id}/status")).ok()?, "RssAnon:"))
}

/// Returns the parent of a process, by its status.
fn parent(status: &str) -> Option<String> {
    Some(status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned())
}

/// Reads a number of kilobytes as the kernel writes it.
fn number(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

const MY_CNF_KEYS: [&str; 9] = [
    "datadir",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "max_connections",
    "tmp_table_size",
    "max_heap_table_size",
    "innodb_flush_log_at_trx_commit",
    "performance_schema",
];

fn database(root: &Root, processes: &[Process], sites: &[Site], notes: &mut Vec<String>) -> Option<Database> {
    let program =
        root.first(["/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "/usr/bin/mariadbd", "/usr/sbin/mysqld", "/usr/libexec/mysqld"]);
    let running = processes.iter().find(|process| process.name == "mariadbd" || process.name == "mysqld");
    let remote: Vec<&str> = sites.iter().filter_map(|site| site.remote_database.as_deref()).collect();
    if !remote.is_empty() && remote.len() == sites.len() && running.is_none() {
        notes.push(format!("the database is on another machine ({}): no advice for it here", remote.join(", ")));
        return None;
    }
    let config = root.first(["/etc/mysql/my.cnf", "/etc/my.cnf"]);
    if program.is_none() && running.is_none() {
        notes.push("MariaDB or MySQL is not installed here: no advice for it".to_owned());
        return None;
    }
    let name = program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let is_maria = [name.as_deref(), running.map(|process| process.name.as_str())].contains(&Some("mariadbd"))
        || root.has("/etc/mysql/mariadb.conf.d");
    let flavour = if is_maria { Flavour::MariaDb } else { Flavour::MySql };
    let config = config.unwrap_or_else(|| "/etc/my.cnf".into());
    let mut files = Vec::new();
    let mut folders = Vec::new();
    my_cnf(root, &config, &mut files, &mut folders, notes);
    let now: Vec<FoundValue> = files.iter().flat_map(|file| given(root, file, Style::MyCnf, Some("mysqld"), &MY_CNF_KEYS)).collect();
    // The last folder is read last.
    let file = folders.last().map_or_else(|| config.clone(), |folder: &PathBuf| folder.join("99-seawall.cnf"));
    let datadir = now.iter().rev().find(|given| given.key == "datadir").map_or("/var/lib/mysql", |given| given.value.as_str());
    // One that runs without these files says where its own are.
    let argument = running.and_then(|process| process.words.iter().find_map(|word| word.strip_prefix("--datadir=")));
    let datadir = PathBuf::from(argument.filter(|_| !root.has(datadir)).unwrap_or(datadir));
    let size = tables(root, &datadir).map_or(DatabaseSize::Unknown, DatabaseSize::Bytes);
    if size == DatabaseSize::Unknown {
        notes.push(format!("{} cannot be read, so the size of the database is not known: run as root to see it", datadir.display()));
    }
    let service = if is_maria { "mariadb" } else { "mysql" }.to_owned();
    Some(Database {
        flavour,
        now,
        place: SettingLocation { file, style: Style::MyCnf, section: Some("mysqld".to_owned()) },
        program,
        service,
        size,
    })
}

/// Follows the `!include` and `!includedir` of a file.
fn my_cnf(root: &Root, file: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>, notes: &mut Vec<String>) {
    if files.len() >= INCLUDES_MAX || files.iter().any(|seen| seen == file) {
        return;
    }
    files.push(file.to_owned());
    let text = match root.text(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return notes.push(format!("{} cannot be read: {error}", file.display())),
    };
    for line in text.lines().map(str::trim) {
        if let Some(folder) = line.strip_prefix("!includedir") {
            let folder = PathBuf::from(folder.trim());
            for file in root.files(&folder, &[".cnf"]) {
                my_cnf(root, &file, files, folders, notes);
            }
            if root.path(&folder).is_dir() {
                folders.push(folder);
            }
        } else if let Some(other) = line.strip_prefix("!include ") {
            my_cnf(root, Path::new(other.trim()), files, folders, notes);
        }
    }
}

/// Returns the bytes of the tables in a database's folder. The databases that the server keeps for itself do not count.
fn tables(root: &Root, datadir: &Path) -> Option<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(root.path(datadir)).ok()?.flatten() {
        let name = entry.file_name();
        if ["mysql", "performance_schema", "sys"].iter().any(|own| name == *own) {
            continue;
        }
        if name == "ibdata1" {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        } else if entry.path().is_dir() {
            let tables = fs::read_dir(entry.path()).ok()?.flatten();
            let is_table = |path: &Path| path.extension().is_some_and(|ending| ending == "ibd" || ending == "MYD" || ending == "MAD");
            bytes += tables.filter(|table| is_table(&table.path())).filter_map(|table| Some(table.metadata().ok()?.len())).sum::<u64>();
        }
    }
    Some(bytes)
}

fn redis(root: &Root, notes: &mut Vec<String>) -> Option<Redis> {
    let found = [("/etc/redis/redis.conf", "redis-server"), ("/etc/redis.conf", "redis"), ("/etc/valkey/valkey.conf", "valkey")];
    let (file, service) = found.into_iter().find(|(file, _)| root.has(file))?;
    if let Err(error) = root.text(file) {
        notes.push(format!("{file} cannot be read ({error}): no advice for Redis; run as root to see it"));
        return None;
    }
    let place = SettingLocation { file: file.into(), style: Style::Redis, section: None };
    Some(Redis {
        now: given(root, &place.file, Style::Redis, None, &["maxmemory", "maxmemory-policy"]),
        place,
        service: service.to_owned(),
    })
}

fn sites(root: &Root, folders: &[PathBuf], notes: &mut Vec<String>) -> Vec<Site> {
    let is_wordpress = |folder: &Path| root.has(folder.join("wp-includes/version.php"));
    let mut found: Vec<PathBuf> = folders.to_vec();
    if found.is_empty() {
        let usual = ["/var/www/html", "/usr/share/wordpress", "/srv/www", "/usr/share/nginx/html"].map(PathBuf::from);
        let below = ["/var/www", "/srv/www", "/srv/http"].into_iter().flat_map(|folder| root.folders(folder));
        for folder in usual.into_iter().chain(below) {
            for folder in [folder.clone(), folder.join("public_html"), folder.join("htdocs")] {
                if is_wordpress(&folder) && !found.contains(&folder) {
                    found.push(folder);
                }
            }
        }
        if found.is_empty() {
            notes.push("no WordPress was found: the number of its scripts is an estimate; --site FOLDER names one".to_owned());
        }
    }
    found.into_iter().map(|folder| site(root, folder, notes)).collect()
}

fn site(root: &Root, folder: PathBuf, notes: &mut Vec<String>) -> Site {
    let (mut scripts, mut script_bytes, mut other_bytes, mut seen) = (0, 0, 0, 0);
    let mut left = vec![root.path(&folder)];
    while let Some(next) = left.pop() {
        let entries = match fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(error) => {
                notes.push(format!("{} cannot be read: {error}", next.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            seen += 1;
            // Links are not followed: they may lead round in circles.
            let Ok(kind) = entry.file_type() else { continue };
            let length = if kind.is_file() { entry.metadata().map_or(0, |metadata| metadata.len()) } else { 0 };
            if kind.is_dir() {
                left.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "php") {
                scripts += 1;
                script_bytes += length;
            } else {
                other_bytes += length;
            }
        }
        if seen > FILES_MAX {
            notes.push(format!("{} has more files than are counted", folder.display()));
            break;
        }
    }
    let config = [folder.join("wp-config.php"), folder.parent().unwrap_or(&folder).join("wp-config.php")];
    let host = config.iter().find_map(|config| root.text(config).ok()).and_then(|text| database_host(&text));
    Site {
        has_object_cache: root.has(folder.join("wp-content/object-cache.php")),
        folder,
        scripts,
        script_bytes,
        other_bytes,
        remote_database: host,
    }
}

/// Returns the host of the database that a `wp-config.php` names, if that is not this machine: `define( 'DB_HOST', 'db.internal:3306' );`.
fn database_host(config: &str) -> Option<String> {
    let line = config.lines().map(str::trim).find(|line| line.starts_with("define") && line.contains("DB_HOST"))?;
    let mut quoted = line.split(['\'', '"']).skip(1).step_by(2);
    let host = quoted.by_ref().skip_while(|word| *word != "DB_HOST").nth(1)?;
    // Another word in quotes may be anything: `getenv('DB')`.
    let is_literal = line.split_once(',').is_some_and(|(_, value)| value.trim_start().starts_with(['\'', '"']));
    if !is_literal {
        return None;
    }
    let name = host.split(':').next().unwrap_or_default();
    let is_here = name.is_empty() || ["localhost", "127.0.0.1", "::1"].contains(&name) || host.starts_with('/');
    (!is_here).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_elsewhere_is_noticed() {
        for (line, host) in [
            ("define( 'DB_HOST', 'localhost' );", None),
            ("define('DB_HOST', 'localhost:/run/mysqld/mysqld.sock');", None),
            ("define( \"DB_HOST\", \"127.0.0.1:3307\" );", None),
            ("define( 'DB_HOST', 'db.internal:3306' );", Some("db.internal:3306")),
            ("define( 'DB_NAME', 'localhost' );", None),
            ("define('DB_HOST', getenv('DB'));", None),
        ] {
            assert_eq!(database_host(&format!("<?php\n{line}\n")).as_deref(), host, "{line}");
        }
    }
}
