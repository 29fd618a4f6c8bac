//! Threads on chosen CPUs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may run on; none where the system does not say.
pub(crate) fn allowed() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    let all = 0..u32::try_from(CpuSet::MAX_CPU).unwrap_or(u32::MAX);
    let is_set = |cpu: &u32| usize::try_from(*cpu).is_ok_and(|index| set.is_set(index));
    all.filter(is_set).collect()
}

/// Keeps this thread on some CPUs; where there are none, it stays where it is.
///
/// # Errors
/// What cannot be, in words.
pub(crate) fn to(cpus: &[u32]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        let index = usize::try_from(*cpu).unwrap_or(usize::MAX);
        if index >= CpuSet::MAX_CPU {
            return Err(format!("there is no CPU {cpu}"));
        }
        set.set(index);
    }
    sched_setaffinity(None, &set).map_err(|e| format!("none of the CPUs {cpus:?} can be used: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_on_the_cpu_it_was_put_on() {
        let before = allowed();
        let last = *before.last().unwrap();
        std::thread::spawn(move || {
            to(&[last]).unwrap();
            assert_eq!(allowed(), [last]);
            let none = to(&[70_000]).unwrap_err();
            assert_eq!(none, "there is no CPU 70000");
        })
        .join()
        .unwrap();
        assert_eq!(allowed(), before);
    }
}
