//! CPU time and events of threads, as the kernel counts them.

use std::fs;

use cairn_fio::output::CpuUsage;

/// Microseconds in a clock tick: /proc counts in `USER_HZ`, which is 100 on every architecture that
/// Linux still supports, whatever the kernel's own HZ.
const TICK_US: u64 = 10_000;

/// What this thread has used so far; zero where /proc does not tell.
pub(crate) fn this_thread() -> CpuUsage {
    read("/proc/thread-self")
}

/// What a thread of this process has used so far.
pub(crate) fn thread(tid: u32) -> CpuUsage {
    read(&format!("/proc/self/task/{tid}"))
}

/// What the whole process has used so far.
pub(crate) fn process() -> CpuUsage {
    read("/proc/self")
}

/// This thread's number, 0 where /proc does not tell.
pub(crate) fn this_tid() -> u32 {
    fs::read_link("/proc/thread-self")
        .ok()
        .and_then(|p| p.file_name()?.to_str()?.parse().ok())
        .unwrap_or(0)
}

fn read(folder: &str) -> CpuUsage {
    let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
    parse(&stat, &status)
}

fn parse(stat: &str, status: &str) -> CpuUsage {
    // The name, in brackets, may hold blanks; what follows it starts with field 3.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .collect();
    let field = |number: usize| {
        fields
            .get(number - 3)
            .and_then(|f| f.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let switches = status
        .lines()
        .filter(|l| l.contains("ctxt_switches"))
        .filter_map(|l| l.split_whitespace().last()?.parse::<u64>().ok())
        .sum();
    CpuUsage {
        user_us: field(14) * TICK_US,
        sys_us: field(15) * TICK_US,
        ctx: switches,
        majf: field(12),
        minf: field(10),
    }
}

/// What was used since `before`.
pub(crate) fn since(now: CpuUsage, before: CpuUsage) -> CpuUsage {
    CpuUsage {
        user_us: now.user_us.saturating_sub(before.user_us),
        sys_us: now.sys_us.saturating_sub(before.sys_us),
        ctx: now.ctx.saturating_sub(before.ctx),
        majf: now.majf.saturating_sub(before.majf),
        minf: now.minf.saturating_sub(before.minf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_lines() {
        let stat = "77 (a ) b) R 1 2 3 4 5 6 111 8 222 10 333 444 0 0 20 0 1 0 99";
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n";
        let usage = parse(stat, status);
        assert_eq!((usage.minf, usage.majf), (111, 222));
        assert_eq!((usage.user_us, usage.sys_us), (3_330_000, 4_440_000));
        assert_eq!(usage.ctx, 12);
        assert_eq!(parse("", ""), CpuUsage::default());
    }

    #[test]
    fn this_thread_has_a_number_and_has_faulted() {
        if this_tid() == 0 {
            return;
        }
        // Large enough to come fresh from the kernel, and touched.
        let fresh = std::hint::black_box(vec![1_u8; 4 << 20]);
        assert!(this_thread().minf > 0);
        assert!(thread(this_tid()).minf > 0);
        drop(fresh);
    }
}
