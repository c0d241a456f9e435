//! Machines in a folder, as distributions make them: what is found on them, and what is written.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use tempfile::TempDir;
use tune::{Advice, Changes, DatabaseSize, Facts, Flavour, GIB, MIB, Root, Seawall, TuneError, advise, read};

const POOL: &str = "[www]\nuser = www-data\nlisten = /run/php/php8.2-fpm.sock\n; how many\npm = dynamic\npm.max_children = 5\npm.start_servers = 2\n;pm.max_requests = 500\n";

struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self(tempfile::tempdir().expect("a folder"));
        machine.write("proc/meminfo", "MemTotal:        4194304 kB\n");
        machine.write("proc/self/status", "Cpus_allowed_list:\t0-1\n");
        files.iter().for_each(|(path, text)| machine.write(path, text));
        machine
    }

    /// Returns Debian 12 with PHP 8.2, MariaDB and a WordPress; two children of PHP have served pages, and one has not.
    fn debian() -> Self {
        let machine = Self::new(&[
            ("etc/php/8.2/fpm/php-fpm.conf", "[global]\npid = /run/php/php8.2-fpm.pid\ninclude=/etc/php/8.2/fpm/pool.d/*.conf\n"),
            ("etc/php/8.2/fpm/pool.d/www.conf", POOL),
            ("etc/php/8.2/fpm/php.ini", "[PHP]\nmemory_limit = 256M\n;opcache.memory_consumption=128\n"),
            ("etc/php/8.2/fpm/conf.d/10-opcache.ini", "zend_extension=opcache.so\nopcache.interned_strings_buffer = 4\n"),
            ("etc/mysql/mariadb.cnf", "[client-server]\n!includedir /etc/mysql/conf.d/\n!includedir /etc/mysql/mariadb.conf.d/\n"),
            ("etc/mysql/conf.d/mysql.cnf", "[mysql]\n"),
            (
                "etc/mysql/mariadb.conf.d/50-server.cnf",
                "[server]\n[mysqld]\nexpire_logs_days = 10\n#max_connections        = 100\nmax_connections = 8\n",
            ),
            ("usr/sbin/mariadbd", ""),
            ("var/lib/mysql/ibdata1", &"x".repeat(1 << 20)),
            ("var/lib/mysql/blog/wp_posts.ibd", &"x".repeat(3 << 20)),
            ("var/lib/mysql/mysql/own.ibd", &"x".repeat(9 << 20)),
            ("var/www/html/wp-includes/version.php", "<?php"),
            ("var/www/html/wp-config.php", "<?php\ndefine( 'DB_HOST', 'localhost' );\n"),
            ("var/www/html/wp-content/uploads/a.jpg", "picture"),
            ("proc/70/comm", "php-fpm8.2\n"),
            ("proc/70/cmdline", "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\0\0"),
        ]);
        symlink("mariadb.cnf", machine.path("etc/mysql/my.cnf")).expect("a link");
        for (id, anonymous) in [(71, 40 << 10), (72, 33 << 10), (73, 1 << 10)] {
            machine.write(&format!("proc/{id}/comm"), "php-fpm8.2\n");
            machine.write(&format!("proc/{id}/cmdline"), "php-fpm: pool www\0\0\0");
            machine.write(&format!("proc/{id}/smaps_rollup"), &format!("Rss: 90000 kB\nPss: 20000 kB\nAnonymous: {anonymous} kB\n"));
            machine.write(&format!("proc/{id}/status"), &format!("PPid:\t70\nRssAnon:\t{anonymous} kB\nRssShmem:\t50000 kB\n"));
        }
        machine
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// Puts a program in place that says this and ends with this code.
    fn program(&self, path: &str, says: &str, code: u8) {
        self.write(path, &format!("#!/bin/sh\necho '{says}' >&2\nexit {code}\n"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).expect("a program");
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn facts(&self) -> Facts {
        read(&self.root(), Seawall { cache: 256 * MIB, config: None }, &[], (None, None))
    }

    fn changes(&self) -> (Advice, Changes) {
        let facts = self.facts();
        let advice = advise(&facts);
        let changes = Changes::new(&self.root(), &facts.stack, &advice).expect("readable");
        (advice, changes)
    }

    /// Returns every file with its text.
    fn everything(&self, below: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut left = vec![self.path(below)];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                if entry.path().is_dir() {
                    left.push(entry.path());
                } else {
                    all.push((entry.path().display().to_string(), fs::read_to_string(entry.path()).expect("text")));
                }
            }
        }
        all.sort();
        all
    }
}

#[test]
fn a_debian_is_found_as_it_is() {
    let facts = Machine::debian().facts();
    assert_eq!((facts.machine.memory, facts.machine.cores), (4 * GIB, 2));
    let php = facts.stack.php.expect("php-fpm");
    assert_eq!((php.version.as_str(), php.service.as_str(), php.memory_limit), ("8.2", "php8.2-fpm", 256 * MIB));
    assert_eq!((php.pools.len(), php.pools[0].value("pm.max_children")), (1, Some("5")));
    let children = php.children.expect("children");
    assert_eq!((children.count, children.largest, children.shared), (3, 40 * MIB, 50_000 * 1024));
    let database = facts.stack.database.expect("a database");
    assert_eq!((database.flavour, database.size), (Flavour::MariaDb, DatabaseSize::Bytes(4 * MIB)));
    assert_eq!(database.place.file, Path::new("/etc/mysql/mariadb.conf.d/99-seawall.cnf"));
    let site = &facts.stack.sites[0];
    assert_eq!((site.folder.as_path(), site.scripts, site.other_bytes, &site.remote_database), (Path::new("/var/www/html"), 2, 7, &None));
    assert!(facts.stack.redis.is_none() && facts.stack.notes.is_empty(), "{:?}", facts.stack.notes);
}

/// A value is changed in the file that sets it; what is set nowhere goes into a file of its own, which is read last.
#[test]
fn the_difference_is_what_a_person_would_write() {
    let machine = Machine::debian();
    let before = machine.everything("etc");
    let diff = machine.changes().1.diff();
    for line in ["-pm = dynamic", "+pm = static", "+pm.max_requests = 1000"] {
        assert!(diff.lines().any(|it| it == line), "{line}: {diff}");
    }
    let php = machine.path("etc/php/8.2/fpm/conf.d").display().to_string();
    assert!(diff.contains(&format!("--- {php}/10-opcache.ini\n+++ {php}/10-opcache.ini\n")), "{diff}");
    assert!(diff.contains("-opcache.interned_strings_buffer = 4\n+opcache.interned_strings_buffer = 16\n"), "{diff}");
    // 128M and 96M are what MariaDB has anyway; eight connections are too few for five children, the schedule and a person.
    assert!(diff.contains("-max_connections = 8\n+max_connections = 15\n") && !diff.contains("innodb_buffer_pool_size"), "{diff}");
    let mysql = machine.path("etc/mysql/mariadb.conf.d").display().to_string();
    assert!(diff.contains(&format!("--- /dev/null\n+++ {mysql}/99-seawall.cnf\n")) && diff.contains("+[mysqld]\n"), "{diff}");
    assert_eq!(machine.everything("etc"), before, "nothing is written to look at it");
}

#[test]
fn what_is_written_is_copied_first_and_needs_no_second_time() {
    let machine = Machine::debian();
    machine.program("usr/sbin/php-fpm8.2", "test is successful", 0);
    machine.program("usr/sbin/mariadbd", "help", 0);
    fs::set_permissions(machine.path("etc/php/8.2/fpm/pool.d/www.conf"), fs::Permissions::from_mode(0o640)).expect("a mode");
    let outcome = machine.changes().1.write("2026-11-23").expect("written");
    assert_eq!(machine.text("etc/php/8.2/fpm/pool.d/www.conf.seawall-2026-11-23"), POOL);
    assert!(machine.text("etc/php/8.2/fpm/pool.d/www.conf").contains("\npm = static\npm.max_children = 5\n"));
    let mode = fs::metadata(machine.path("etc/php/8.2/fpm/pool.d/www.conf")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(outcome.services, ["mariadb", "php8.2-fpm"]);
    assert_eq!(outcome.tried.len(), 2);
    // No file is read by php-fpm or MariaDB that was not before, but for the two new ones.
    let (advice, again) = machine.changes();
    assert!(again.is_empty(), "{}", again.diff());
    assert!(advice.settings.iter().any(|setting| setting.key == "max_connections" && setting.now.as_deref() == Some("15")));
}

/// A php-fpm that would not start again is worse than a slow one.
#[test]
fn settings_that_are_refused_are_put_back() {
    for (php, database) in [(1, 0), (0, 1)] {
        let machine = Machine::debian();
        machine.program("usr/sbin/php-fpm8.2", "ERROR: FPM initialization failed", php);
        machine.program("usr/sbin/mariadbd", "[ERROR] unknown variable", database);
        let before = machine.everything("etc");
        match machine.changes().1.write("now") {
            Err(TuneError::Refused { program, said }) => {
                assert!(program.ends_with(if php == 1 { "php-fpm8.2" } else { "mariadbd" }) && said.contains("ERROR"), "{program}: {said}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(machine.everything("etc"), before);
    }
}

/// Debian's `my.cnf` is a link to what an alternative chose: it stays one.
#[test]
fn a_link_stays_one() {
    let machine = Machine::debian();
    fs::remove_file(machine.path("etc/mysql/mariadb.cnf")).expect("gone");
    machine.write("etc/mysql/mariadb.cnf", "[mysqld]\nmax_connections = 8\n");
    machine.write("etc/mysql/mariadb.conf.d/50-server.cnf", "");
    fs::remove_file(machine.path("usr/sbin/mariadbd")).expect("gone");
    machine.program("usr/sbin/mariadbd", "help", 0);
    machine.changes().1.write("now").expect("written");
    assert!(fs::symlink_metadata(machine.path("etc/mysql/my.cnf")).expect("a link").is_symlink());
    assert!(machine.text("etc/mysql/mariadb.cnf").contains("max_connections = 15\n"));
    assert!(machine.path("etc/mysql/mariadb.cnf.seawall-now").exists());
}

#[test]
fn other_distributions_and_images_are_found() {
    for (config, pool, ini, drop_in, service) in [
        ("etc/php-fpm.conf", "etc/php-fpm.d/www.conf", "etc/php.ini", "/etc/php.d/99-seawall.ini", "php-fpm"),
        ("etc/php83/php-fpm.conf", "etc/php83/php-fpm.d/www.conf", "etc/php83/php.ini", "/etc/php83/conf.d/99-seawall.ini", "php-fpm83"),
        (
            "usr/local/etc/php-fpm.conf",
            "usr/local/etc/php-fpm.d/www.conf",
            "usr/local/etc/php/php.ini",
            "/usr/local/etc/php/conf.d/99-seawall.ini",
            "php-fpm",
        ),
    ] {
        // The images of Docker include relatively to where PHP was installed.
        let include = if config.starts_with("usr/local") {
            "etc/php-fpm.d/*.conf".to_owned()
        } else {
            format!("/{}/*.conf", Path::new(pool).parent().expect("a folder").display())
        };
        let machine = Machine::new(&[(config, &format!("[global]\ninclude = {include}\n")), (pool, POOL), (ini, "memory_limit = 64M\n")]);
        let folder = machine.path(drop_in.trim_start_matches('/'));
        fs::create_dir_all(folder.parent().expect("a parent")).expect("made");
        let php = machine.facts().stack.php.expect(config);
        assert_eq!((php.pools.len(), php.memory_limit, php.service.as_str()), (1, 64 * MIB, service), "{config}");
        assert_eq!(php.ini_place.file, Path::new(drop_in));
    }
}

/// Where PHP reads no folder, its own file is the place.
#[test]
fn without_a_folder_for_more_php_ini_is_changed() {
    let machine = Machine::debian();
    fs::remove_dir_all(machine.path("etc/php/8.2/fpm/conf.d")).expect("gone");
    assert_eq!(machine.facts().stack.php.expect("php-fpm").ini_place.file, Path::new("/etc/php/8.2/fpm/php.ini"));
    let diff = machine.changes().1.diff();
    assert!(diff.contains("/php.ini\n") && diff.contains("\n+opcache.interned_strings_buffer = 16\n"), "{diff}");
}

/// Two versions: the one that runs counts, or else the newest.
#[test]
fn of_several_the_one_that_runs_counts() {
    let machine = Machine::debian();
    machine.write("etc/php/8.10/fpm/php-fpm.conf", "include=/etc/php/8.10/fpm/pool.d/*.conf\n");
    machine.write("etc/php/8.10/fpm/pool.d/www.conf", POOL);
    let facts = machine.facts();
    assert_eq!(facts.stack.php.expect("php-fpm").version, "8.2");
    assert!(facts.stack.notes.iter().any(|note| note.contains("/etc/php/8.10/fpm/php-fpm.conf")), "{:?}", facts.stack.notes);
    fs::remove_dir_all(machine.path("proc/70")).expect("gone");
    assert_eq!(machine.facts().stack.php.expect("php-fpm").version, "8.10");
}

/// Children of another php-fpm say nothing about this one, where it has some of its own.
#[test]
fn the_children_of_another_php_fpm_do_not_count() {
    let machine = Machine::debian();
    for (path, text) in [("comm", "php-fpm8.2\n"), ("cmdline", "php-fpm: pool www\0"), ("status", "PPid:\t80\nRssAnon:\t900000 kB\n")] {
        machine.write(&format!("proc/81/{path}"), text);
    }
    assert_eq!(machine.facts().stack.php.expect("php-fpm").children.expect("children").largest, 40 * MIB);
}

/// Somebody who may not look closer still sees what the kernel tells everybody.
#[test]
fn who_is_not_root_sees_the_size_of_children_too() {
    let machine = Machine::debian();
    for id in [71, 72, 73] {
        fs::remove_file(machine.path(&format!("proc/{id}/smaps_rollup"))).expect("gone");
    }
    assert_eq!(machine.facts().stack.php.expect("php-fpm").children.expect("children").largest, 40 * MIB);
    fs::remove_dir_all(machine.path("var/lib/mysql")).expect("gone");
    let facts = machine.facts();
    assert_eq!(facts.stack.database.expect("a database").size, DatabaseSize::Unknown);
    assert!(facts.stack.notes.iter().any(|note| note.contains("run as root")), "{:?}", facts.stack.notes);
}

/// What is not there is said in words, and is not an error.
#[test]
fn what_is_missing_is_said() {
    let machine = Machine::new(&[]);
    let facts = machine.facts();
    let notes = facts.stack.notes.join("\n");
    for words in ["php-fpm is not installed here", "MariaDB or MySQL is not installed here", "no WordPress was found"] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
    assert!(machine.changes().1.is_empty());

    // A database elsewhere gets no memory here, although its client is installed.
    let machine = Machine::debian();
    machine.write("var/www/html/wp-config.php", "<?php\ndefine( 'DB_HOST', 'db.internal' );\n");
    let facts = machine.facts();
    assert!(facts.stack.database.is_none() && facts.stack.notes.iter().any(|note| note.contains("db.internal")));
}

/// A Redis in which a WordPress keeps its objects gets a bound; another one is none of our business.
#[test]
fn redis_is_bounded_where_wordpress_uses_it() {
    let machine = Machine::debian();
    machine.write("etc/redis/redis.conf", "port 6379\n# maxmemory <bytes>\n");
    assert!(!machine.changes().1.diff().contains("redis"));
    machine.write("var/www/html/wp-content/object-cache.php", "<?php");
    let diff = machine.changes().1.diff();
    assert!(diff.contains(" # maxmemory <bytes>\n+maxmemory 32mb\n+maxmemory-policy allkeys-lru\n"), "{diff}");
}
