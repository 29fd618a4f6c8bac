//! The system calls of the harness. Everything here degrades to nothing off Linux.

/// CPUs this process may run on, in order.
#[cfg(target_os = "linux")]
pub(crate) fn cpus() -> Vec<usize> {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: an all-zero cpu_set_t is the empty set, a valid value.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: `set` is valid for the write of its own size.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut set) } != 0 {
        return Vec::new();
    }
    (0..size * 8)
        // SAFETY: the index is below the number of bits in the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Keeps the calling thread on one CPU; returns whether that worked.
#[cfg(target_os = "linux")]
pub(crate) fn pin(cpu: usize) -> bool {
    let size = size_of::<libc::cpu_set_t>();
    if cpu >= size * 8 {
        return false;
    }
    // SAFETY: an all-zero cpu_set_t is the empty set, a valid value.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: the index was checked against the number of bits in the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for the read of its own size.
    unsafe { libc::sched_setaffinity(0, size, &raw const set) == 0 }
}

/// Puts the calling thread into `SCHED_FIFO`, or back to the normal class; returns whether that
/// was permitted.
#[cfg(target_os = "linux")]
pub(crate) fn real_time(on: bool) -> bool {
    let (policy, priority) = if on {
        (libc::SCHED_FIFO, 10)
    } else {
        (libc::SCHED_OTHER, 0)
    };
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `param` is valid for the read; 0 means the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const param) == 0 }
}

/// Context switches of the calling thread so far, voluntary or not.
#[cfg(target_os = "linux")]
pub(crate) fn context_switches() -> u64 {
    // SAFETY: an all-zero rusage is a valid value.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: `usage` is valid for the write.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw).unsigned_abs()
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn cpus() -> Vec<usize> {
        let n = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..n).collect()
    }

    pub(crate) fn pin(_cpu: usize) -> bool {
        false
    }

    pub(crate) fn real_time(_on: bool) -> bool {
        false
    }

    pub(crate) fn context_switches() -> u64 {
        0
    }
}
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{context_switches, cpus, pin, real_time};
