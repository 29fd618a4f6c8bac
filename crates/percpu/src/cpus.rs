//! How many CPU ids there can be.

use crate::sync::{AtomicUsize, Ordering};

/// One more than the highest CPU id this machine may ever have.
///
/// Neither the online nor the configured count bounds the ids: they may be sparse, and CPUs come and go.
pub(crate) fn possible() -> usize {
    /// 0 until somebody has asked. Relaxed: the number is all there is. No `OnceLock`, since a thread that a
    /// fork left behind in the middle of asking would make the child wait for ever.
    static POSSIBLE: AtomicUsize = AtomicUsize::new(0);
    let known = POSSIBLE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let asked = std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|list| ids_in(&list))
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    POSSIBLE.store(asked, Ordering::Relaxed);
    asked
}

/// One more than the highest id in a kernel CPU list such as `0-3,8-11`; none if it is not such a list.
fn ids_in(list: &str) -> Option<usize> {
    let mut ids = 0;
    for range in list.trim().split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?);
        if from > to {
            return None;
        }
        ids = ids.max(to.checked_add(1)?);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_id_counts_not_the_number_of_cpus() {
        assert_eq!(ids_in("0-1\n"), Some(2));
        assert_eq!(ids_in("0\n"), Some(1));
        assert_eq!(ids_in("0,2,5"), Some(6));
        assert_eq!(ids_in("0-3,128-131\n"), Some(132));
        assert_eq!(ids_in("8-11,0-3"), Some(12));
    }

    #[test]
    fn what_is_no_list_gives_nothing() {
        for list in [
            "",
            "\n",
            "a",
            "0-",
            "-3",
            "3-1",
            "0,,1",
            "0-18446744073709551615",
        ] {
            assert_eq!(ids_in(list), None, "{list:?}");
        }
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(possible() >= 1);
    }
}
