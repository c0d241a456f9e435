//! The memory and the cores that this process may use: the machine's, or what its control group leaves of them.

use std::path::{Path, PathBuf};

use crate::{facts::Machine, find::Root};

/// The value of a limit of a cgroup of version 1 that means no limit: the largest number of pages.
const NO_LIMIT: u64 = 1 << 60;

/// Reads them. What the operator says goes before what is found.
pub(crate) fn read(root: &Root, memory: Option<u64>, cores: Option<usize>) -> Machine {
    let groups = groups(root);
    let (memory, memory_from) = match memory {
        Some(memory) => (memory, "as given".to_owned()),
        None => {
            let machine = meminfo(root).unwrap_or(1 << 30);
            let limit = groups.iter().filter_map(|group| group.memory(root)).min();
            match limit.filter(|limit| *limit < machine) {
                Some(limit) => (limit, "the limit of this control group".to_owned()),
                None => (machine, "all of the machine".to_owned()),
            }
        }
    };
    let (cores, cores_from) = match cores {
        Some(cores) => (cores, "as given".to_owned()),
        None => {
            let machine = cpus(root).unwrap_or(1);
            let limit = groups.iter().filter_map(|group| group.cores(root)).min();
            match limit.filter(|limit| *limit < machine) {
                Some(limit) => (limit, "the limit of this control group".to_owned()),
                None => (machine, "all of the machine".to_owned()),
            }
        }
    };
    Machine { memory, memory_from, cores: cores.max(1), cores_from }
}

fn meminfo(root: &Root) -> Option<u64> {
    let text = root.text("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the cores on which this process may run.
fn cpus(root: &Root) -> Option<usize> {
    let text = root.text("/proc/self/status").ok()?;
    let allowed = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let count = |range: &str| -> Option<usize> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.trim().parse::<usize>().ok()?.checked_sub(first.trim().parse().ok()?)? + 1)
    };
    allowed.trim().split(',').map(count).sum()
}

/// A control group that this process is in, or one above it.
enum Group {
    Second(PathBuf),
    FirstMemory(PathBuf),
    FirstCpu(PathBuf),
}

/// Returns the control groups, from the process's own upwards. A limit of any of them counts.
fn groups(root: &Root) -> Vec<Group> {
    let text = root.text("/proc/self/cgroup").unwrap_or_default();
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mut above = |mount: &[&str], make: &dyn Fn(PathBuf) -> Group| {
            for mount in mount {
                // In a container the path may be that of the machine outside: the folder itself is then the group.
                for path in Path::new(path).ancestors() {
                    groups.push(make(Path::new(mount).join(path.strip_prefix("/").unwrap_or(path))));
                }
            }
        };
        match controllers {
            "" => above(&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], &Group::Second),
            _ if controllers.split(',').any(|name| name == "memory") => above(&["/sys/fs/cgroup/memory"], &Group::FirstMemory),
            _ if controllers.split(',').any(|name| name == "cpu") => {
                above(&["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"], &Group::FirstCpu)
            }
            _ => {}
        }
    }
    groups
}

impl Group {
    fn memory(&self, root: &Root) -> Option<u64> {
        let file = match self {
            Self::Second(folder) => folder.join("memory.max"),
            Self::FirstMemory(folder) => folder.join("memory.limit_in_bytes"),
            Self::FirstCpu(_) => return None,
        };
        root.text(file).ok()?.trim().parse().ok().filter(|limit| *limit > 0 && *limit < NO_LIMIT)
    }

    /// Returns the cores that a quota comes to, rounded up: half a core is still one that runs.
    fn cores(&self, root: &Root) -> Option<usize> {
        let (quota, period) = match self {
            Self::Second(folder) => {
                let text = root.text(folder.join("cpu.max")).ok()?;
                let mut words = text.split_whitespace();
                (words.next()?.parse::<usize>().ok()?, words.next()?.parse::<usize>().ok()?)
            }
            Self::FirstCpu(folder) => {
                let number = |file: &str| root.text(folder.join(file)).ok()?.trim().parse::<usize>().ok();
                (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
            }
            Self::FirstMemory(_) => return None,
        };
        (period > 0 && quota > 0).then(|| quota.div_ceil(period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (u64, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let machine = read(&Root::at(folder.path()), None, None);
        (machine.memory >> 20, machine.cores)
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        4194304 kB\nMemFree: 1 kB\n");
    const STATUS: (&str, &str) = ("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,6\n");

    #[test]
    fn a_machine_is_what_its_control_group_leaves() {
        assert_eq!(machine(&[MEMINFO, STATUS]), (4096, 5));
        // Version 2, in a container that sees its own group as the top.
        let second = ("proc/self/cgroup", "0::/\n");
        assert_eq!(
            machine(&[MEMINFO, STATUS, second, ("sys/fs/cgroup/memory.max", "1073741824\n"), ("sys/fs/cgroup/cpu.max", "150000 100000\n")]),
            (1024, 2)
        );
        assert_eq!(
            machine(&[MEMINFO, STATUS, second, ("sys/fs/cgroup/memory.max", "max\n"), ("sys/fs/cgroup/cpu.max", "max 100000\n")]),
            (4096, 5)
        );
        // A limit further up counts too.
        let nested = ("proc/self/cgroup", "0::/system.slice/seawall.service\n");
        assert_eq!(
            machine(&[
                MEMINFO,
                STATUS,
                nested,
                ("sys/fs/cgroup/system.slice/seawall.service/memory.max", "max\n"),
                ("sys/fs/cgroup/system.slice/memory.max", "2147483648\n")
            ]),
            (2048, 5)
        );
        // Version 1, and one whose path is that of the machine outside.
        let first = ("proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n");
        assert_eq!(
            machine(&[
                MEMINFO,
                STATUS,
                first,
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n"),
                ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
            ]),
            (512, 1)
        );
        let unlimited = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(machine(&[MEMINFO, STATUS, first, unlimited, ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")]), (4096, 5));
    }
}
