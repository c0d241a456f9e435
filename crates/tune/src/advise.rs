//! Makes advice of facts: a pure function.
//!
//! Three quarters of the memory are handed out. What Seawall, OPcache, the database and Redis need comes first, in this order; PHP gets children of
//! what is left, but no more than the cores can use. The last quarter is for the system, and for the one child that needs all of its `memory_limit`.
//! A value in place that is larger than needed and fits stays: somebody may have had a reason.

use crate::{
    facts::{Database, DatabaseSize, Facts, Flavour, FoundValue, Php, Pool, Redis, Setting, SettingLocation},
    size::{GIB, KIB, MIB, in_mebibytes, in_words, read},
};

/// Seawall beside its cache: connections, buffers, the program.
const SEAWALL_ITSELF: u64 = 48 * MIB;
/// A child that was not measured. WordPress with some plugins takes 30 to 60 MiB.
const CHILD_ESTIMATE: u64 = 48 * MIB;
/// The least that is reckoned for a child, however small it was when it was measured: the next page may be wp-admin.
const CHILD_MIN: u64 = 24 * MIB;
/// The ratio by which a page may wait longer than it computes, for the database or for another server, while children enough are left to
/// keep the cores busy: with `n` cores, that takes `n * (1 + waiting / computing)` of them.
///
/// More children are not free. Those that compute at once displace one another's memory from the caches of the processor: on two cores, where pages wait for
/// a database on the same machine only, ten children took a sixth more processor time for each page than five. A site whose pages wait longer wants more all
/// the same: its operator knows that, and is told the formula.
const WAITING_BY_COMPUTING: (u64, u64) = (3, 2);
/// php-fpm's own default in distributions.
const CHILDREN_MIN_WANTED: u64 = 5;
/// Children for which room is kept before the database and Redis get more than they need.
const FEW_CHILDREN: u64 = 4;
/// The bytes that a connection takes in the database, buffers included.
const CONNECTION: u64 = MIB;
/// The bytes that a script takes in OPcache, for each byte of its text.
const OPCACHE_PER_BYTE: u64 = 3;
/// Scripts of a WordPress with plugins, where none was found to count.
const SCRIPTS_ESTIMATE: (usize, u64) = (4_000, 32 * MIB);
/// The sizes that OPcache's table can have (`zend_accel_hash.c`).
const PRIMES: [usize; 8] = [7_963, 16_229, 32_531, 65_407, 130_987, 262_237, 524_521, 1_048_793];

/// Says what should be set, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Bytes that are handed out: three quarters of the memory.
    pub budget: u64,
    /// The shares of it, with who gets them.
    pub shares: Vec<Share>,
    /// The settings, those that stay as they are included.
    pub settings: Vec<Setting>,
    /// Whether all of it fits.
    pub fits: bool,
    /// The notes on what else is to be said.
    pub notes: Vec<String>,
}

/// A share of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The name of the program whose share it is.
    pub name: &'static str,
    /// The bytes of the share.
    pub bytes: u64,
    /// The explanation how it comes about.
    pub why: String,
}

impl Advice {
    /// Returns the sum of all shares.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.shares.iter().map(|share| share.bytes).sum()
    }
}

/// Makes an advice of facts.
#[must_use]
pub fn advise(facts: &Facts) -> Advice {
    let memory = facts.machine.memory;
    let mut plan = Plan {
        facts,
        advice: Advice { budget: memory / 4 * 3, shares: Vec::new(), settings: Vec::new(), fits: true, notes: facts.stack.notes.clone() },
    };
    plan.seawall();
    plan.files();
    let opcache = facts.stack.php.as_ref().map(|php| plan.opcache(php));
    let pool = facts.stack.database.as_ref().map(|database| plan.buffer_pool(database));
    let redis = facts.stack.redis.as_ref().and_then(|redis| plan.redis_memory(redis));
    let children = facts.stack.php.as_ref().map(|php| plan.children(php));
    if let (Some(php), Some(children), Some(opcache)) = (&facts.stack.php, children, opcache) {
        php.pools.iter().for_each(|pool| plan.pool(php, pool, children));
        plan.ini(php, opcache);
        plan.advice.notes.push(format!(
            "in seawall.toml, [origin] concurrency = {children} (as many as PHP has children): further requests then wait in Seawall, which serves stale pages in time, and not in php-fpm's queue, where nobody can tell them apart"
        ));
    }
    if let (Some(database), Some(pool)) = (&facts.stack.database, pool) {
        plan.database(database, pool, children.unwrap_or(0));
    }
    if let (Some(server), Some(bytes)) = (&facts.stack.redis, redis) {
        plan.redis(server, bytes);
    }
    plan.advice.fits &= plan.advice.sum() <= plan.advice.budget;
    if !plan.advice.fits {
        plan.advice.notes.push(format!(
            "{} are too little for all of this: it will swap, or be ended by the kernel. Move the database, or take a machine with more",
            in_words(memory)
        ));
    }
    plan.advice
}

struct Plan<'a> {
    facts: &'a Facts,
    advice: Advice,
}

impl Plan<'_> {
    fn share(&mut self, name: &'static str, bytes: u64, why: String) {
        self.advice.shares.push(Share { name, bytes, why });
    }

    fn left(&self) -> u64 {
        self.advice.budget.saturating_sub(self.advice.sum())
    }

    fn set(
        &mut self,
        place: &SettingLocation,
        found: Option<&FoundValue>,
        (key, value): (&str, String),
        default: Option<&'static str>,
        (service, why): (&str, String),
    ) {
        self.advice.settings.push(Setting {
            // Where it is set already, it is changed there: a file that is read later would win.
            place: found.map_or(place, |found| &found.place).clone(),
            key: key.to_owned(),
            value,
            now: found.map(|found| found.value.clone()),
            default,
            why,
            service: service.to_owned(),
        });
    }

    fn seawall(&mut self) {
        let (memory, cache) = (self.facts.machine.memory, self.facts.seawall.cache);
        let wanted = if cache > (memory / 8).max(32 * MIB) { (memory / 16 / MIB * MIB).max(16 * MIB) } else { cache };
        if wanted != cache {
            self.advice.notes.push(format!(
                "in seawall.toml, [cache] memory = \"{}MiB\": {} are more than an eighth of the memory, and what does not fit stays on the disk",
                wanted / MIB,
                in_words(cache)
            ));
        }
        let why = format!("{} for stored pages ([cache] memory), and {} for itself", in_words(wanted), in_words(SEAWALL_ITSELF));
        self.share("Seawall", wanted + SEAWALL_ITSELF, why);
    }

    fn files(&mut self) {
        let files: u64 = self.facts.stack.sites.iter().map(|site| site.other_bytes).sum();
        let bytes = files.clamp(16 * MIB, (self.facts.machine.memory / 16).max(16 * MIB));
        let why = if files > 0 {
            format!("pictures and other files, {} in all: the kernel keeps what was read last", in_words(files))
        } else {
            "files that the kernel keeps at hand".to_owned()
        };
        self.share("Page cache", bytes, why);
    }

    /// Returns whether the number of scripts is an estimate.
    fn is_estimate(&self) -> bool {
        self.facts.stack.sites.iter().all(|site| site.scripts == 0)
    }

    /// Returns the scripts of all sites, and what they take in OPcache.
    fn scripts(&self) -> (usize, u64) {
        let sites = &self.facts.stack.sites;
        let (scripts, bytes) = sites.iter().fold((0, 0), |(scripts, bytes), site| (scripts + site.scripts, bytes + site.script_bytes));
        let (scripts, bytes) = if scripts == 0 { SCRIPTS_ESTIMATE } else { (scripts, bytes) };
        (scripts, bytes * OPCACHE_PER_BYTE)
    }

    /// Returns OPcache's size in MiB.
    fn opcache(&mut self, php: &Php) -> u64 {
        let (scripts, estimate) = self.scripts();
        let used = php.children.map_or(0, |children| children.shared);
        let need = estimate.max(used);
        let now = last(&php.ini, "opcache.memory_consumption").and_then(|given| given.value.parse::<u64>().ok()).unwrap_or(0);
        let least = if self.facts.machine.memory < GIB { 64 } else { 128 };
        let size = ((need + need / 4).div_ceil(64 * MIB) * 64).clamp(least, 512).max(now.min(1024));
        let measured = if used > 0 { format!("; {} are used now", in_words(used)) } else { String::new() };
        let about = if self.is_estimate() { "an estimate: " } else { "" };
        let why = format!("{about}{scripts} scripts, {} if all of them are run{measured}; all children share it", in_words(estimate));
        self.share("OPcache", need.min(size * MIB), why);
        size
    }

    fn buffer_pool(&mut self, database: &Database) -> u64 {
        let memory = self.facts.machine.memory;
        let (stored, known) = match database.size {
            DatabaseSize::Bytes(bytes) => (bytes, format!("{} of tables with room to grow", in_words(bytes))),
            DatabaseSize::Unknown => (128 * MIB, "an unknown number of tables".to_owned()),
        };
        let now = last(&database.now, "innodb_buffer_pool_size").and_then(|given| read(&given.value)).unwrap_or(0);
        let least = if memory < GIB { 32 * MIB } else { 128 * MIB };
        let wanted = ((stored + stored / 3).div_ceil(16 * MIB) * 16 * MIB).max(least).max(now);
        let itself = match database.flavour {
            Flavour::MariaDb => 80 * MIB,
            Flavour::MySql if memory < 2 * GIB => 160 * MIB,
            Flavour::MySql => 320 * MIB,
        };
        let most = (self.advice.budget * 3 / 10).min(self.left().saturating_sub(itself + self.few_children())).max(32 * MIB);
        let pool = wanted.min(most) / MIB * MIB;
        let why = format!("a buffer pool of {} for {known}, and {} for itself", in_words(pool), in_words(itself));
        self.share(database.flavour.name(), pool + itself, why);
        pool
    }

    /// Returns the memory for Redis if WordPress keeps its objects there.
    fn redis_memory(&mut self, redis: &Redis) -> Option<u64> {
        if !self.facts.stack.sites.iter().any(|site| site.has_object_cache) {
            let why = "Redis is here, but no WordPress keeps its objects in it (there is no wp-content/object-cache.php): its settings are left alone";
            self.advice.notes.push(why.to_owned());
            return None;
        }
        let stored = match self.facts.stack.database.as_ref().map(|database| database.size) {
            Some(DatabaseSize::Bytes(bytes)) => bytes / 2,
            Some(DatabaseSize::Unknown) | None => 64 * MIB,
        };
        let now = last(&redis.now, "maxmemory").and_then(|given| read(&given.value)).unwrap_or(0);
        // With a quarter more, it is within what is left.
        let most = (self.advice.budget / 10).min(self.left().saturating_sub(self.few_children()) * 4 / 5).max(16 * MIB) / MIB * MIB;
        let bytes = (stored.clamp(32 * MIB, 256 * MIB).max(now).min(most)).div_ceil(MIB) * MIB;
        self.share("Redis", bytes + bytes / 4, format!("{} of objects, and a quarter more for how they lie in memory", in_words(bytes)));
        Some(bytes)
    }

    /// Returns the memory that is kept for some children, whatever else could use it.
    fn few_children(&self) -> u64 {
        self.facts.stack.php.as_ref().map_or(0, |php| FEW_CHILDREN * (child_bytes(php) + CONNECTION))
    }

    /// Returns the number of children of all pools together.
    fn children(&mut self, php: &Php) -> u64 {
        let child = child_bytes(php);
        let how = match php.children {
            Some(children) => {
                let of = if children.count == 1 {
                    "The one child that runs"
                } else {
                    &format!("The largest of {} children that run", children.count)
                };
                format!("{of} takes {} of its own, and half as much again is for larger pages", in_words(children.largest))
            }
            None => "An estimate: run this again when php-fpm has served some pages".to_owned(),
        };
        let by_memory = self.left() / (child + CONNECTION);
        let by_cores = children_to_keep_busy(self.facts.machine.cores as u64).max(CHILDREN_MIN_WANTED);
        let pools = php.pools.len() as u64;
        let children = by_memory.min(by_cores).max(1).max(pools);
        self.advice.fits &= by_memory >= children;
        let bound = if by_memory < by_cores {
            format!("there is memory for {by_memory}; the cores could use {by_cores}")
        } else {
            let cores = self.facts.machine.cores;
            let busy = if cores == 1 { "the core busy".to_owned() } else { format!("{cores} cores busy") };
            format!("That keeps {busy} if pages wait no longer than 1.5 times what they compute. There would be memory for {by_memory}")
        };
        let why = format!("{children} children of {} and their connections to the database. {bound}. {how}", in_words(child));
        self.share("php-fpm", children * (child + CONNECTION), why);
        children
    }

    fn pool(&mut self, php: &Php, pool: &Pool, all: u64) {
        let pools = php.pools.len() as u64;
        let children = (all / pools).max(1);
        let mut set = |key: &str, value: String, default: Option<&'static str>, why: String| {
            let found = pool.now.iter().rev().find(|given| given.key == key);
            self.set(&pool.place, found, (key, value), default, (&php.service, why));
        };
        let is_static = pools == 1;
        let why = if is_static {
            "the memory is set aside for all children anyway: those that are there need not be started when a crowd comes"
        } else {
            "several pools share the memory: each keeps some children ready, and starts others when it needs them"
        };
        set("pm", if is_static { "static" } else { "dynamic" }.to_owned(), None, why.to_owned());
        let share = if pools == 1 { String::new() } else { format!(", {all} in all for {pools} pools") };
        let more = pool.value("pm.max_children").and_then(|now| now.parse::<u64>().ok()).filter(|now| *now > children);
        set("pm.max_children", children.to_string(), None, format!("what the memory and the cores bear{share}: see php-fpm above"));
        if !is_static {
            let (ready, most) = ((children / 4).max(1), (children / 2).max(1));
            set("pm.start_servers", ready.to_string(), None, "children that are ready at the start".to_owned());
            set("pm.min_spare_servers", ready.to_string(), None, "children that wait for the next request, at least".to_owned());
            set(
                "pm.max_spare_servers",
                most.to_string(),
                None,
                "children that wait for the next request, at most: the others end".to_owned(),
            );
        }
        let or = |key: &str, is_none: &str, value: &str| pool.value(key).filter(|now| *now != is_none).unwrap_or(value).to_owned();
        set(
            "pm.max_requests",
            or("pm.max_requests", "0", "1000"),
            Some("0"),
            "what a plugin forgets to free is given back after so many requests; a new child costs some milliseconds".to_owned(),
        );
        let hangs = "a script that hangs, because another server does not answer, gives its child back. Updates and imports take less";
        set("request_terminate_timeout", or("request_terminate_timeout", "0", "300s"), Some("0"), hangs.to_owned());
        set(
            "listen.backlog",
            or("listen.backlog", "-1", "511"),
            Some("511"),
            "requests that php-fpm lets wait; when it is full, Seawall tries again".to_owned(),
        );
        if let Some(now) = more {
            self.advice.notes.push(format!(
                "the pool {} has {now} children now, {children} are advised: more of them slow one another where pages compute. If yours wait long for other servers, leave it: cores * (1 + waiting / computing) children keep the cores busy",
                pool.name
            ));
        }
    }

    fn ini(&mut self, php: &Php, opcache: u64) {
        let (scripts, _) = self.scripts();
        let there = if self.is_estimate() { "an estimate, as no WordPress was found:" } else { "there are" };
        let number = |key: &str| last(&php.ini, key).and_then(|given| given.value.parse::<u64>().ok()).unwrap_or(0);
        let files = scripts + scripts / 4;
        let table = PRIMES.iter().copied().find(|prime| *prime >= files).unwrap_or(PRIMES[7]);
        let (strings, table) = (
            number("opcache.interned_strings_buffer").max(if scripts > 5_000 { 32 } else { 16 }),
            number("opcache.max_accelerated_files").max(table as u64).max(10_000),
        );
        let mut set = |key: &str, value: String, default: &'static str, why: String| {
            self.set(&php.ini_place, last(&php.ini, key), (key, value), Some(default), (&php.service, why));
        };
        set("opcache.enable", "1".to_owned(), "1", "without it, PHP reads and compiles every script for every request".to_owned());
        set(
            "opcache.memory_consumption",
            opcache.to_string(),
            "128",
            "MiB, with a quarter more than all scripts take. What is not used costs nothing; when it is full, OPcache begins anew, and all scripts are compiled again".to_owned(),
        );
        set(
            "opcache.interned_strings_buffer",
            strings.to_string(),
            "8",
            "MiB of that, for names and texts that scripts have in common; 8 are full with some plugins".to_owned(),
        );
        set("opcache.max_accelerated_files", table.to_string(), "10000", format!("{there} {scripts} scripts"));
        set(
            "opcache.validate_timestamps",
            "1".to_owned(),
            "1",
            "stays on: WordPress updates itself and its plugins by writing files, and without it the old ones would run on until php-fpm is restarted".to_owned(),
        );
        let seconds = last(&php.ini, "opcache.revalidate_freq").map_or_else(|| "2".to_owned(), |given| given.value.clone());
        set("opcache.revalidate_freq", seconds, "2", "seconds in which a script is not looked at again".to_owned());
        let now = last(&php.ini, "realpath_cache_size").and_then(|given| read(&given.value)).unwrap_or(4 * MIB);
        let size = format!("{}K", now.max(4 * MIB) / KIB);
        set(
            "realpath_cache_size",
            size,
            "4096K",
            format!("room for the paths of {scripts} scripts, so that they are not looked up for each request"),
        );
    }

    fn database(&mut self, database: &Database, pool: u64, children: u64) {
        let memory = self.facts.machine.memory;
        let size = |key: &str| last(&database.now, key).and_then(|given| read(&given.value)).unwrap_or(0);
        let (log_now, redo_now, tmp_now, heap_now) =
            (size("innodb_log_file_size"), size("innodb_redo_log_capacity"), size("tmp_table_size"), size("max_heap_table_size"));
        let connections_now = last(&database.now, "max_connections").and_then(|given| given.value.parse::<u64>().ok());
        let mut set = |key: &str, value: String, default: &'static str, why: String| {
            self.set(&database.place, last(&database.now, key), (key, value), Some(default), (&database.service, why));
        };
        let tables = match database.size {
            DatabaseSize::Bytes(bytes) => format!("the tables are {}: what is read often need not be read from the disk", in_words(bytes)),
            DatabaseSize::Unknown => "the size of the tables is not known; more than all of them is of no use".to_owned(),
        };
        set("innodb_buffer_pool_size", in_mebibytes(pool), "128M", tables);
        let log = (pool / 4).clamp(96 * MIB, GIB);
        let why = "a quarter of the buffer pool: changes are collected before they go to the tables";
        match database.flavour {
            Flavour::MariaDb => set("innodb_log_file_size", in_mebibytes(log.max(log_now)), "96M", why.to_owned()),
            Flavour::MySql => set("innodb_redo_log_capacity", in_mebibytes(log.max(100 * MIB).max(redo_now)), "100M", why.to_owned()),
        }
        let need = children + (children / 5).max(10);
        let connections = connections_now.unwrap_or(151).max(need);
        let why =
            format!("each of {children} children has one, and some are for the schedule, the command line and you: {need} are enough");
        set("max_connections", connections.to_string(), "151", why);
        let tmp = if memory >= 2 * GIB { 32 * MIB } else { 16 * MIB };
        let why = "tables that a query makes for itself stay in memory up to this size; the smaller of the two counts";
        set("tmp_table_size", in_mebibytes(tmp.max(tmp_now)), "16M", why.to_owned());
        set("max_heap_table_size", in_mebibytes(tmp.max(heap_now)), "16M", why.to_owned());
        let commit = last(&database.now, "innodb_flush_log_at_trx_commit").map_or_else(|| "1".to_owned(), |given| given.value.clone());
        set(
            "innodb_flush_log_at_trx_commit",
            commit,
            "1",
            "stays: with 1, an order that was confirmed is there after a power cut; pages are read, and not written, so it costs little"
                .to_owned(),
        );
        if database.flavour == Flavour::MySql && memory < 2 * GIB {
            set("performance_schema", "OFF".to_owned(), "ON", "saves some 150 MiB of a small machine; it only measures".to_owned());
        }
    }

    fn redis(&mut self, redis: &Redis, bytes: u64) {
        let mut set = |key: &str, value: String, default: &'static str, why: &str| {
            let found = last(&redis.now, key);
            self.set(&redis.place, found, (key, value), Some(default), (&redis.service, why.to_owned()));
        };
        set("maxmemory", format!("{}mb", bytes / MIB), "0", "without a limit it grows until the kernel ends something");
        set(
            "maxmemory-policy",
            "allkeys-lru".to_owned(),
            "noeviction",
            "objects that were not used for long make room; with noeviction, writing fails when it is full. If something else keeps what must not be lost in this Redis, leave it",
        );
    }
}

/// Returns the number of children that keep so many cores busy, see [`WAITING_BY_COMPUTING`].
const fn children_to_keep_busy(cores: u64) -> u64 {
    let (waiting, computing) = WAITING_BY_COMPUTING;
    (cores * (computing + waiting)).div_ceil(computing)
}

/// Returns what is reckoned for one child.
fn child_bytes(php: &Php) -> u64 {
    let child = php.children.map_or(CHILD_ESTIMATE, |children| (children.largest + children.largest / 2).max(CHILD_MIN));
    child.div_ceil(MIB) * MIB
}

/// Returns what is set last for a key: that counts.
fn last<'a>(given: &'a [FoundValue], key: &str) -> Option<&'a FoundValue> {
    given.iter().rev().find(|given| given.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conf::Style,
        facts::{Children, Machine, Seawall, Site, Stack},
    };

    fn place(file: &str, style: Style, section: Option<&str>) -> SettingLocation {
        SettingLocation { file: file.into(), style, section: section.map(str::to_owned) }
    }

    fn machine(memory: u64, cores: usize) -> Facts {
        let pool_place = place("/etc/php/8.2/fpm/pool.d/www.conf", Style::Php, Some("www"));
        let given = |key: &str, value: &str| FoundValue { key: key.to_owned(), value: value.to_owned(), place: pool_place.clone() };
        let debian = [
            ("pm", "dynamic"),
            ("pm.max_children", "5"),
            ("pm.start_servers", "2"),
            ("pm.min_spare_servers", "1"),
            ("pm.max_spare_servers", "3"),
        ];
        let pool = Pool { name: "www".to_owned(), now: debian.map(|(key, value)| given(key, value)).to_vec(), place: pool_place.clone() };
        let php = Php {
            version: "8.2".to_owned(),
            config: "/etc/php/8.2/fpm/php-fpm.conf".into(),
            program: None,
            service: "php8.2-fpm".to_owned(),
            pools: vec![pool],
            ini: Vec::new(),
            ini_place: place("/etc/php/8.2/fpm/conf.d/99-seawall.ini", Style::Php, None),
            memory_limit: 128 * MIB,
            children: Some(Children { count: 5, largest: 30 * MIB, shared: 40 * MIB }),
        };
        let database = Database {
            flavour: Flavour::MariaDb,
            now: Vec::new(),
            place: place("/etc/mysql/mariadb.conf.d/99-seawall.cnf", Style::MyCnf, Some("mysqld")),
            program: None,
            service: "mariadb".to_owned(),
            size: DatabaseSize::Bytes(200 * MIB),
        };
        let site = Site {
            folder: "/var/www/html".into(),
            scripts: 3_000,
            script_bytes: 30 * MIB,
            other_bytes: 2 * GIB,
            has_object_cache: true,
            remote_database: None,
        };
        let redis =
            Redis { now: Vec::new(), place: place("/etc/redis/redis.conf", Style::Redis, None), service: "redis-server".to_owned() };
        Facts {
            machine: Machine { memory, memory_from: String::new(), cores, cores_from: String::new() },
            seawall: Seawall { cache: 256 * MIB, config: None },
            stack: Stack { php: Some(php), database: Some(database), redis: Some(redis), sites: vec![site], notes: Vec::new() },
        }
    }

    fn value(advice: &Advice, key: &str) -> String {
        let found: Vec<&Setting> = advice.settings.iter().filter(|setting| setting.key == key).collect();
        assert_eq!(found.len(), 1, "{key}: {found:?}");
        found[0].value.clone()
    }

    /// Machines as they are rented, and some that nobody rents.
    #[test]
    fn all_of_it_is_three_quarters_of_the_memory_at_most() {
        for memory in [GIB, 2 * GIB, 3 * GIB + 7, 4 * GIB, 8 * GIB, 16 * GIB, 64 * GIB, 512 * GIB] {
            for cores in [1, 2, 4, 8, 64] {
                for data in [DatabaseSize::Unknown, DatabaseSize::Bytes(0), DatabaseSize::Bytes(200 * MIB), DatabaseSize::Bytes(90 * GIB)] {
                    for child in [None, Some(9 * MIB), Some(60 * MIB), Some(200 * MIB)] {
                        let mut facts = machine(memory, cores);
                        let stack = &mut facts.stack;
                        if let (Some(database), Some(php)) = (&mut stack.database, &mut stack.php) {
                            database.size = data;
                            php.children = child.map(|largest| Children { count: 3, largest, shared: 50 * MIB });
                        }
                        let advice = advise(&facts);
                        let sum = advice.sum();
                        assert!(!advice.fits || sum <= memory / 4 * 3, "{memory} {cores} {data:?} {child:?}: {sum}");
                        assert!(advice.fits || (memory < 2 * GIB), "{memory} {cores} {data:?} {child:?}: {advice:?}");
                        let children: u64 = value(&advice, "pm.max_children").parse().expect("a number");
                        let connections: u64 = value(&advice, "max_connections").parse().expect("a number");
                        assert!(children >= 1 && connections >= children + 10);
                        assert!(children <= (cores as u64 * 5).div_ceil(2).max(5));
                    }
                }
            }
        }
    }

    #[test]
    fn a_machine_of_two_cores_and_four_gibibytes() {
        let advice = advise(&machine(4 * GIB, 2));
        for (key, expected) in [
            ("pm", "static"),
            ("pm.max_children", "5"),
            ("pm.max_requests", "1000"),
            ("opcache.memory_consumption", "128"),
            ("opcache.max_accelerated_files", "10000"),
            ("opcache.validate_timestamps", "1"),
            ("innodb_buffer_pool_size", "272M"),
            ("innodb_log_file_size", "96M"),
            ("max_connections", "151"),
            ("tmp_table_size", "32M"),
            ("maxmemory", "100mb"),
            ("maxmemory-policy", "allkeys-lru"),
        ] {
            assert_eq!(value(&advice, key), expected, "{key}");
        }
        assert!(advice.fits && advice.settings.iter().all(|setting| !setting.why.is_empty()));
        assert!(advice.settings.iter().all(|setting| setting.key != "pm.start_servers"), "there are none with pm = static");
    }

    /// Where pages wait for as long as they compute, two children on a core keep it busy. Those that compute at once displace one another from the caches of
    /// the processor: a page costs more, and no core does more. Never fewer than a distribution has: pages may wait for longer.
    #[test]
    fn there_are_no_more_children_than_keep_the_cores_busy() {
        for (cores, children) in [(1, "5"), (2, "5"), (3, "8"), (4, "10"), (16, "40")] {
            assert_eq!(value(&advise(&machine(64 * GIB, cores)), "pm.max_children"), children, "{cores} cores");
        }
    }

    /// Somebody may have had a reason to have more, and the machine may have the memory: pages that wait long for other servers.
    #[test]
    fn whoever_has_more_children_than_the_cores_can_use_is_told_when_to_leave_them() {
        let mut facts = machine(8 * GIB, 2);
        let now = &mut facts.stack.php.as_mut().expect("one").pools[0].now;
        now.iter_mut().find(|given| given.key == "pm.max_children").expect("set").value = "40".to_owned();
        let advice = advise(&facts);
        assert_eq!(value(&advice, "pm.max_children"), "5");
        let told = |advice: &Advice| advice.notes.iter().any(|note| note.contains("has 40 children now") && note.contains("leave it"));
        assert!(told(&advice), "{:?}", advice.notes);
        assert!(!advise(&machine(8 * GIB, 2)).notes.iter().any(|note| note.contains("children now")));
    }

    /// Where memory is short, it decides, and Seawall is not the one that takes it.
    #[test]
    fn a_small_machine_gets_as_many_children_as_fit() {
        let advice = advise(&machine(GIB, 2));
        let children: u64 = value(&advice, "pm.max_children").parse().expect("a number");
        assert!((2..=6).contains(&children), "{children}: {:?}", advice.shares);
        assert!(advice.fits && advice.notes.iter().any(|note| note.contains("[cache] memory = \"64MiB\"")), "{:?}", advice.notes);

        let mut tiny = machine(256 * MIB, 1);
        tiny.stack.redis = None;
        let advice = advise(&tiny);
        assert!(!advice.fits && advice.notes.iter().any(|note| note.contains("too little")), "{:?}", advice.shares);
    }

    #[test]
    fn a_database_that_is_larger_than_the_memory_does_not_take_all_of_it() {
        let mut facts = machine(8 * GIB, 4);
        facts.stack.database.as_mut().expect("one").size = DatabaseSize::Bytes(100 * GIB);
        let advice = advise(&facts);
        assert_eq!(value(&advice, "innodb_buffer_pool_size"), format!("{}M", 8 * 1024 * 3 / 4 * 3 / 10));
        assert_eq!(value(&advice, "innodb_log_file_size"), "460M");
    }

    /// What is in place and larger stays; what is the same is not a change, however it is spelt.
    #[test]
    fn what_is_right_already_is_left() {
        let mut facts = machine(8 * GIB, 2);
        let my = place("/etc/mysql/mariadb.conf.d/60-own.cnf", Style::MyCnf, Some("mysqld"));
        let own = |key: &str, value: &str| FoundValue { key: key.to_owned(), value: value.to_owned(), place: my.clone() };
        facts.stack.database.as_mut().expect("one").now = vec![
            own("innodb_buffer_pool_size", "1G"),
            own("max_connections", "300"),
            own("tmp_table_size", "33554432"),
            own("innodb_flush_log_at_trx_commit", "2"),
        ];
        facts.stack.php.as_mut().expect("one").ini =
            vec![own("opcache.memory_consumption", "512"), own("opcache.validate_timestamps", "On")];
        let advice = advise(&facts);
        for key in [
            "innodb_buffer_pool_size",
            "max_connections",
            "tmp_table_size",
            "innodb_flush_log_at_trx_commit",
            "opcache.memory_consumption",
            "opcache.validate_timestamps",
        ] {
            let setting = advice.settings.iter().find(|setting| setting.key == key).expect(key);
            assert!(!setting.is_change(), "{setting:?}");
            assert_eq!(setting.place, my, "{key}: it is changed where it is set");
        }
    }

    #[test]
    fn several_pools_share() {
        let mut facts = machine(8 * GIB, 4);
        let php = facts.stack.php.as_mut().expect("one");
        let second = Pool { name: "shop".to_owned(), ..php.pools[0].clone() };
        php.pools.push(second);
        let advice = advise(&facts);
        let of = |key: &str| {
            advice.settings.iter().filter(|setting| setting.key == key).map(|setting| setting.value.as_str()).collect::<Vec<_>>()
        };
        assert_eq!((of("pm"), of("pm.max_children")), (vec!["dynamic"; 2], vec!["5"; 2]));
        // php-fpm refuses other orders.
        let number = |key: &str| of(key)[0].parse::<u64>().expect("a number");
        assert!(
            number("pm.min_spare_servers") <= number("pm.start_servers") && number("pm.start_servers") <= number("pm.max_spare_servers")
        );
        assert!(number("pm.max_spare_servers") <= 5);
    }

    #[test]
    fn redis_is_left_alone_where_no_wordpress_uses_it() {
        let mut facts = machine(4 * GIB, 2);
        facts.stack.sites[0].has_object_cache = false;
        let advice = advise(&facts);
        assert!(advice.settings.iter().all(|setting| setting.key != "maxmemory"));
        assert!(advice.notes.iter().any(|note| note.contains("object-cache.php")));
    }

    #[test]
    fn a_machine_with_nothing_on_it_gets_no_settings() {
        let facts = Facts { stack: Stack::default(), ..machine(4 * GIB, 2) };
        let advice = advise(&facts);
        assert_eq!(advice.settings, []);
        assert_eq!(advice.shares.iter().map(|share| share.name).collect::<Vec<_>>(), ["Seawall", "Page cache"]);
    }
}
