//! Watches the load tester itself and its machine, so that results can say whose limit was measured.
//!
//! Workers are watched from outside: by the CPU time, the waiting and the switches that the system counts for each thread. So it costs a run nothing,
//! and is the same for all protocols. Absent: any conclusion; [`crate::results::Verdict`] is drawn from these figures elsewhere.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use crate::results::Generator;

/// Holds what a run showed of the load tester and its machine. All times are in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observations {
    /// The CPU time of the process.
    pub cpu_seconds: f64,
    /// The CPU time of the process for each request that has ended, in microseconds.
    pub cpu_us_per_request: f64,
    /// Each worker.
    pub workers: Vec<WorkerSeen>,
    /// The most memory that the process had, in bytes.
    pub memory_max: u64,
    /// The CPUs that the load tester may use.
    pub cpus: usize,
    /// The part of the machine's CPU time that nobody used, 0 to 1.
    pub machine_idle_share: f64,
    /// The part of the machine's CPU time that its host took away, 0 to 1.
    pub steal_share: f64,
    /// The time by which the clock of the date jumped against the one that only goes on.
    pub clock_jump: f64,
    /// Requests that were sent again, because the server had closed a connection that it had kept when they came.
    pub resent: u64,
    /// Connections that could not be made because no port was free.
    pub ports_exhausted: u64,
    /// Connections that could not be made because no descriptor was free.
    pub descriptors_exhausted: u64,
    /// The descriptors that the load tester may have open.
    pub descriptors_max: u64,
    /// The targets of the connections of each origin.
    pub targets: Vec<String>,
}

impl Observations {
    /// Returns the part of the busiest worker's time in which it had nothing to do, 0 to 1.
    #[must_use]
    pub fn idle_share(&self) -> f64 {
        self.workers.iter().map(WorkerSeen::idle_share).fold(1.0, f64::min)
    }

    /// Returns the part of its time in which the busiest worker had a CPU, 0 to 1.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        self.workers.iter().map(WorkerSeen::busy_share).fold(0.0, f64::max)
    }

    /// Returns the part of a worker's time in which others had the CPU that it needed, 0 to 1: the most of all workers.
    #[must_use]
    pub fn waiting_share(&self) -> f64 {
        self.workers.iter().map(WorkerSeen::waiting_share).fold(0.0, f64::max)
    }
}

impl From<&Observations> for Generator {
    fn from(seen: &Observations) -> Self {
        Self {
            cpu_seconds: seen.cpu_seconds,
            cpu_us_per_request: seen.cpu_us_per_request,
            busiest_worker: seen.busy_share(),
            waiting_worker: seen.waiting_share(),
            memory_max: seen.memory_max,
            steal: seen.steal_share,
            clock_jump: seen.clock_jump,
            descriptors_max: seen.descriptors_max,
            descriptors_exhausted: seen.descriptors_exhausted,
            ports_exhausted: seen.ports_exhausted,
            resent: seen.resent,
        }
    }
}

/// Holds what the system counted for a worker's thread. All times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WorkerSeen {
    /// The time for which it was at work or waited for work.
    pub wall: f64,
    /// The CPU time of the thread.
    pub cpu: f64,
    /// The time for which it could have worked while others had the CPU.
    pub waiting: f64,
    /// The number of times that it gave the CPU away because it had nothing to do.
    pub voluntary_switches: u64,
    /// The number of times that the CPU was taken from it.
    pub involuntary_switches: u64,
}

impl WorkerSeen {
    /// Returns the part of its time in which it had nothing to do, 0 to 1.
    #[must_use]
    pub fn idle_share(&self) -> f64 {
        if self.wall > 0.0 { ((self.wall - self.cpu - self.waiting) / self.wall).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Returns the part of its time in which it had a CPU, 0 to 1.
    #[must_use]
    pub fn busy_share(&self) -> f64 {
        if self.wall > 0.0 { (self.cpu / self.wall).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns the part of its time in which others had the CPU that it needed, 0 to 1.
    #[must_use]
    pub fn waiting_share(&self) -> f64 {
        if self.wall > 0.0 { (self.waiting / self.wall).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Holds what the system has counted for the calling thread so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    wall: Duration,
    cpu: Duration,
    waiting: Duration,
    voluntary: u64,
    involuntary: u64,
}

impl Usage {
    /// Reads what the system has counted. What this system does not count stays zero.
    pub(super) fn now() -> Self {
        let schedule = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let count = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
        };
        Self {
            wall: clock(ClockId::Monotonic),
            cpu: clock(ClockId::ThreadCPUTime),
            waiting: Duration::from_nanos(schedule.split_ascii_whitespace().nth(1).and_then(|time| time.parse().ok()).unwrap_or_default()),
            voluntary: count("voluntary_ctxt_switches:"),
            involuntary: count("nonvoluntary_ctxt_switches:"),
        }
    }

    /// Returns what came between this moment and `end`.
    pub(super) fn until(&self, end: &Self) -> WorkerSeen {
        let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
        WorkerSeen {
            wall: seconds(self.wall, end.wall),
            cpu: seconds(self.cpu, end.cpu),
            waiting: seconds(self.waiting, end.waiting),
            voluntary_switches: end.voluntary.saturating_sub(self.voluntary),
            involuntary_switches: end.involuntary.saturating_sub(self.involuntary),
        }
    }
}

/// The process and the machine at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// CPU time so far, in ticks of the system: all, unused, and taken away by the host.
    ticks: [u64; 3],
    /// CPU time of the process.
    cpu: Duration,
    /// The clock of the date, and the one that only goes on.
    clocks: [Duration; 2],
}

impl Moment {
    pub(super) fn now() -> Self {
        let ticks = ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default();
        Self { ticks, cpu: clock(ClockId::ProcessCPUTime), clocks: [clock(ClockId::Realtime), clock(ClockId::Monotonic)] }
    }

    /// Says what came since, beside what the workers showed.
    pub(super) fn until(&self, end: &Self, workers: Vec<WorkerSeen>, requests: u64) -> Observations {
        let [all, idle, steal] = [0, 1, 2].map(|at| end.ticks[at].saturating_sub(self.ticks[at]) as f64);
        let share = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        let [date, steady] = [0, 1].map(|at| end.clocks[at].as_secs_f64() - self.clocks[at].as_secs_f64());
        let cpu_seconds = end.cpu.saturating_sub(self.cpu).as_secs_f64();
        Observations {
            cpu_seconds,
            cpu_us_per_request: if requests > 0 { cpu_seconds * 1e6 / requests as f64 } else { 0.0 },
            workers,
            memory_max: memory_max(&fs::read_to_string("/proc/self/status").unwrap_or_default()).unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            machine_idle_share: share(idle),
            steal_share: share(steal),
            clock_jump: date - steady,
            ..Observations::default()
        }
    }
}

/// Reads the most memory that a process had, in bytes, from its `/proc/self/status`.
fn memory_max(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()? << 10)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

/// Reads all CPU time, the part that nobody used, and the part that the host took, from the first line of `/proc/stat`.
fn ticks(stat: &str) -> Option<[u64; 3]> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user and nice.
    let mut ticks = [0; 8];
    for (tick, word) in ticks.iter_mut().zip(line.split_ascii_whitespace()) {
        *tick = word.parse().ok()?;
    }
    Some([ticks.iter().sum(), ticks[3] + ticks[4], ticks[7]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_all_the_unused_ones_and_the_stolen_ones() {
        assert_eq!(ticks("cpu  10 20 30 400 5 6 7 8 9 10\ncpu0 1 2"), Some([486, 405, 8]));
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn the_most_memory_is_in_kilobytes() {
        assert_eq!(memory_max("Name:\tseawall\nVmHWM:\t   12 kB\nVmRSS:\t 8 kB"), Some(12 << 10));
        assert_eq!(memory_max(""), None);
    }

    #[test]
    fn a_thread_that_works_has_used_cpu_and_was_not_idle() {
        let begin = Usage::now();
        let mut sum = 0_u64;
        while clock(ClockId::ThreadCPUTime) < begin.cpu + Duration::from_millis(20) {
            sum = sum.wrapping_add(1);
        }
        let seen = begin.until(&Usage::now());
        assert!(sum > 0 && seen.cpu >= 0.02 && seen.wall >= seen.cpu * 0.99, "{seen:?}");
        assert!(seen.idle_share() < 0.5, "{seen:?}");
    }
}
