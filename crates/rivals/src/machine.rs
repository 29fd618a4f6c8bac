//! What a report says of the machine, so that figures are not read as if they came from another.

use serde_json::{Value, json};

/// The machine and how the harness could use it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) kernel: String,
    pub(crate) load: String,
    pub(crate) pinned: bool,
    pub(crate) real_time: bool,
}

fn file(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

impl Machine {
    pub(crate) fn describe(cpus: usize, pinned: bool, real_time: bool) -> Self {
        let cpu = file("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(
                || std::env::consts::ARCH.into(),
                |(_, name)| name.trim().into(),
            );
        Self {
            cpu,
            cpus,
            kernel: file("/proc/sys/kernel/osrelease").trim().into(),
            load: file("/proc/loadavg").split(' ').next().unwrap_or("").into(),
            pinned,
            real_time,
        }
    }

    pub(crate) fn line(&self) -> String {
        let or_not = |yes, what: &str| {
            if yes {
                what.to_string()
            } else {
                format!("not {what}")
            }
        };
        format!(
            "machine: {}, {} CPUs, Linux {}, load {}, {}, {}",
            self.cpu,
            self.cpus,
            self.kernel,
            self.load,
            or_not(self.pinned, "pinned"),
            or_not(self.real_time, "SCHED_FIFO"),
        )
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "cpus": self.cpus,
            "kernel": self.kernel,
            "load": self.load,
            "pinned": self.pinned,
            "sched_fifo": self.real_time,
        })
    }
}
