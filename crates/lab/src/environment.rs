//! The machine: what it is, and what else it did while a run was measured.

use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::fio::usage;

/// Milliseconds of a clock tick in /proc/stat.
const TICK_MS: u64 = 10;

/// What does not change while a program runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Model of the first CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Threads of a core, if the kernel tells.
    pub smt: String,
    /// Memory nodes.
    pub nodes: usize,
    /// Frequency governor, or `none`.
    pub governor: String,
    /// Whether a hypervisor runs this machine.
    pub virtual_machine: bool,
    /// Kernel version.
    pub kernel: String,
    /// Clock that times are read from.
    pub clock: String,
    /// Transparent huge pages of anonymous memory and of shared memory.
    pub huge_pages: [String; 2],
    /// `vm.overcommit_memory`.
    pub overcommit: String,
    /// Memory and swap in KiB.
    pub memory_kib: [u64; 2],
    /// Limits of the control group: CPU and memory.
    pub cgroup: [String; 2],
    /// State of the mitigations of CPU faults, in short.
    pub mitigations: String,
    /// Version of this program.
    pub cairn: String,
    /// Whether it was built with optimisation.
    pub optimised: bool,
}

impl Environment {
    /// Looks at the machine.
    pub fn read() -> Self {
        let cpuinfo = text("/proc/cpuinfo");
        let meminfo = text("/proc/meminfo");
        let of = |all: &str, key: &str| {
            all.lines()
                .find(|line| line.starts_with(key))
                .and_then(|line| line.split_once(':'))
                .map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let kib = |key: &str| {
            let value = of(&meminfo, key);
            value
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0)
        };
        Self {
            cpu: of(&cpuinfo, "model name"),
            cpus: cpus(),
            smt: text("/sys/devices/system/cpu/smt/control"),
            nodes: fs::read_dir("/sys/devices/system/node").map_or(1, |dir| {
                let names = dir.flatten().map(|e| e.file_name());
                names
                    .filter(|n| {
                        let digits = n.to_str().and_then(|n| n.strip_prefix("node"));
                        digits.is_some_and(|d| d.parse::<u32>().is_ok())
                    })
                    .count()
                    .max(1)
            }),
            governor: match text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
                none if none.is_empty() => "none".to_owned(),
                some => some,
            },
            virtual_machine: of(&cpuinfo, "flags").split(' ').any(|f| f == "hypervisor"),
            kernel: text("/proc/sys/kernel/osrelease"),
            clock: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            huge_pages: ["enabled", "shmem_enabled"].map(|file| {
                let all = text(&format!("/sys/kernel/mm/transparent_hugepage/{file}"));
                let chosen = all
                    .split_once('[')
                    .and_then(|(_, rest)| rest.split_once(']'));
                chosen.map_or_else(|| all.clone(), |(word, _)| word.to_owned())
            }),
            overcommit: text("/proc/sys/vm/overcommit_memory"),
            memory_kib: [kib("MemTotal"), kib("SwapTotal")],
            cgroup: ["cpu.max", "memory.max"].map(|file| text(&format!("/sys/fs/cgroup/{file}"))),
            mitigations: mitigations(),
            cairn: env!("CARGO_PKG_VERSION").to_owned(),
            optimised: !cfg!(debug_assertions),
        }
    }

    /// Lines for a report: what it is, and what it is not.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let or = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
        vec![
            ("CPU", or(&self.cpu)),
            (
                "CPUs",
                format!(
                    "{} usable, SMT {}, {} node(s)",
                    self.cpus,
                    or(&self.smt),
                    self.nodes
                ),
            ),
            (
                "machine",
                format!(
                    "{}, kernel {}, governor {}, clock {}",
                    if self.virtual_machine {
                        "virtual"
                    } else {
                        "no hypervisor seen"
                    },
                    or(&self.kernel),
                    self.governor,
                    or(&self.clock)
                ),
            ),
            (
                "memory",
                format!(
                    "{} MiB, swap {} MiB, huge pages {} (anonymous) {} (shared), overcommit {}",
                    self.memory_kib.first().unwrap_or(&0) >> 10,
                    self.memory_kib.last().unwrap_or(&0) >> 10,
                    or(self.huge_pages.first().map_or("", String::as_str)),
                    or(self.huge_pages.last().map_or("", String::as_str)),
                    or(&self.overcommit)
                ),
            ),
            (
                "build",
                format!(
                    "cairn {}{}",
                    self.cairn,
                    if self.optimised {
                        ""
                    } else {
                        ", built without optimisation: figures mean nothing"
                    }
                ),
            ),
        ]
    }
}

/// CPUs that this process may use.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn text(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn mitigations() -> String {
    let Ok(dir) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return String::new();
    };
    let mut mitigated = 0;
    let mut open = Vec::new();
    for entry in dir.flatten() {
        let state = text(&entry.path().display().to_string());
        if state.starts_with("Mitigation") {
            mitigated += 1;
        } else if state.starts_with("Vulnerable") {
            open.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    open.sort();
    format!(
        "{mitigated} mitigated, vulnerable: {}",
        if open.is_empty() {
            "none".to_owned()
        } else {
            open.join(" ")
        }
    )
}

/// The kernel's counts at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    /// Ticks of all CPUs that did something, theirs and ours; without steal.
    busy: u64,
    steal: u64,
    ours: cairn_fio::output::CpuUsage,
}

/// What happened between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Weather {
    /// Seconds between the two.
    pub seconds: f64,
    /// CPUs that others used, on average.
    pub others: f64,
    /// CPUs that the hypervisor gave to somebody else while this machine wanted them.
    pub steal: f64,
    /// Load average of the last minute.
    pub load: f64,
    /// CPU seconds of this process.
    pub cpu_seconds: f64,
    /// Context switches of this process.
    pub switches: u64,
    /// Minor and major page faults of this process.
    pub faults: [u64; 2],
}

impl Moment {
    pub(crate) fn now() -> Self {
        let stat = text("/proc/stat");
        let (busy, steal) = parse(&stat);
        Self {
            at: Instant::now(),
            busy,
            steal,
            ours: usage::process(),
        }
    }

    /// What happened since then.
    pub(crate) fn since(&self, before: &Self) -> Weather {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        let over = |ms: u64| ms as f64 / 1e3 / seconds.max(1e-9);
        let ours = usage::since(self.ours, before.ours);
        let ours_ms = (ours.user_us + ours.sys_us) / 1000;
        let all_ms = self.busy.saturating_sub(before.busy) * TICK_MS;
        let load = text("/proc/loadavg");
        Weather {
            seconds,
            others: over(all_ms.saturating_sub(ours_ms)),
            steal: over(self.steal.saturating_sub(before.steal) * TICK_MS),
            load: load
                .split(' ')
                .next()
                .and_then(|l| l.parse().ok())
                .unwrap_or(0.0),
            cpu_seconds: ours_ms as f64 / 1e3,
            switches: ours.ctx,
            faults: [ours.minf, ours.majf],
        }
    }
}

/// Follows what else the machine does, second by second.
#[derive(Debug)]
pub(crate) struct Watch {
    last: Moment,
    weather: Option<Weather>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            last: Moment::now(),
            weather: None,
        }
    }

    /// What happened in the last second that is over; asked more often, it answers the same.
    pub(crate) fn take(&mut self) -> Option<Weather> {
        if self.last.at.elapsed() >= Duration::from_secs(1) {
            let now = Moment::now();
            self.weather = Some(now.since(&self.last));
            self.last = now;
        }
        self.weather
    }
}

/// Busy and stolen ticks of the line that sums all CPUs.
fn parse(stat: &str) -> (u64, u64) {
    let line = stat.lines().next().unwrap_or("");
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .map(|n| n.parse().unwrap_or(0))
        .collect();
    let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
    // user nice system idle iowait irq softirq steal
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7))
}

/// How much of others' work a run may bear.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Share of the CPUs in use that the hypervisor may take.
    pub steal: f64,
    /// Share that other processes may use.
    pub others: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steal: 0.01,
            others: 0.05,
        }
    }
}

impl Weather {
    /// Why the run is of no use, if it is: looks at the environment only, never at the result.
    ///
    /// `in_use` is the number of CPUs that the run kept busy. Three ticks of the kernel's clock are always
    /// borne: less cannot be told from rounding.
    pub(crate) fn pollution(&self, limits: Limits, in_use: usize) -> Option<String> {
        let grain = 3.0 * TICK_MS as f64 / 1e3 / self.seconds.max(1e-9);
        let in_use = in_use.max(1) as f64;
        for (what, had, limit) in [
            ("the hypervisor took", self.steal, limits.steal),
            ("other processes used", self.others, limits.others),
        ] {
            if had > (limit * in_use).max(grain) {
                return Some(format!(
                    "{what} {:.1} % of the {in_use} CPUs in use, more than {:.1} %",
                    100.0 * had / in_use,
                    100.0 * limit
                ));
            }
        }
        None
    }
}

/// Waits until others leave the machine alone for a second, at most as long as `patience` lasts, and takes what
/// it waited off it.
pub(crate) fn wait_for_quiet(patience: &mut Duration, stop: impl Fn() -> bool) {
    const CALM: f64 = 0.25;
    let began = Instant::now();
    while began.elapsed() < *patience && !stop() {
        let before = Moment::now();
        let until = Instant::now() + Duration::from_secs(1).min(*patience);
        while Instant::now() < until && !stop() {
            std::thread::sleep(Duration::from_millis(50));
        }
        if Moment::now().since(&before).others < CALM {
            break;
        }
    }
    *patience = patience.saturating_sub(began.elapsed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_the_kernels_line() {
        assert_eq!(parse("cpu  10 20 30 400 5 1 2 7 0 0\ncpu0 1 1"), (63, 7));
        assert_eq!(parse(""), (0, 0));
    }

    fn weather(others: f64, steal: f64) -> Weather {
        Weather {
            seconds: 2.0,
            others,
            steal,
            load: 0.0,
            cpu_seconds: 0.0,
            switches: 0,
            faults: [0, 0],
        }
    }

    #[test]
    fn a_run_is_polluted_by_what_others_do_and_by_nothing_else() {
        let limits = Limits::default();
        assert_eq!(weather(0.09, 0.015).pollution(limits, 2), None);
        let why = weather(0.11, 0.0).pollution(limits, 2).unwrap();
        assert!(why.starts_with("other processes used 5.5 %"), "{why}");
        let why = weather(0.0, 0.03).pollution(limits, 2).unwrap();
        assert!(why.starts_with("the hypervisor took 1.5 %"), "{why}");
        // Two ticks in a short run are rounding.
        let short = Weather {
            seconds: 0.2,
            ..weather(0.1, 0.1)
        };
        assert_eq!(short.pollution(limits, 1), None);
    }

    #[test]
    fn a_busy_loop_of_another_process_is_seen() {
        let Ok(mut child) = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
        else {
            return;
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = 0.0;
        while seen <= 0.1 && Instant::now() < deadline {
            let before = Moment::now();
            std::thread::sleep(Duration::from_millis(300));
            seen = Moment::now().since(&before).others;
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(seen > 0.1, "others used {seen} CPUs");
    }

    #[test]
    fn the_machine_is_described() {
        let here = Environment::read();
        assert!(here.cpus >= 1 && here.nodes >= 1);
        assert_eq!(here.lines().len(), 5);
    }
}
