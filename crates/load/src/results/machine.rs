//! The machine that made the load.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine that made the load. What is not known is empty or zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The model of its CPU.
    pub cpu: String,
    /// The cores that the load tester may use.
    pub cores: u32,
    /// The memory of the machine in bytes.
    pub memory: u64,
    /// The kernel, with its version.
    pub kernel: String,
}

impl Machine {
    /// Describes the machine that this runs on.
    #[must_use]
    pub fn here() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: cpu(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(0, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
            memory: memory(&read("/proc/meminfo")),
            kernel: format!("{} {}", read("/proc/sys/kernel/ostype").trim(), read("/proc/sys/kernel/osrelease").trim()).trim().to_owned(),
        }
    }
}

/// Finds the model in `/proc/cpuinfo` (proc_cpuinfo(5)), whose names differ between processors.
fn cpu(info: &str) -> String {
    let value =
        |name| info.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    value("model name").or_else(|| value("Model")).or_else(|| value("cpu model")).unwrap_or_default().to_owned()
}

/// Finds the memory in `/proc/meminfo` (proc_meminfo(5)), which counts in KiB.
fn memory(info: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: AMD EPYC 7B13\n"), "AMD EPYC 7B13");
        assert_eq!(cpu("processor : 0\nModel\t\t: Raspberry Pi 4 Model B\n"), "Raspberry Pi 4 Model B");
        assert_eq!(cpu(""), "");
        assert_eq!(memory("MemTotal:        8052244 kB\nMemFree: 1 kB\n"), 8_052_244 * 1024);
        assert_eq!(memory("nothing"), 0);
    }
}
