//! How much memory may be taken before the kernel kills somebody.

use std::fs;
use std::path::Path;

/// What bounds a ramdisk's size, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) bytes: u64,
    pub(crate) what: &'static str,
}

/// The smaller of the machine's available memory and what the control group still allows. `None`
/// when neither can be read.
pub(crate) fn available() -> Option<Available> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| mem_available(&text))
        .map(|bytes| Available {
            bytes,
            what: "available memory",
        });
    let group = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|text| group_path(&text).map(str::to_owned))
        .and_then(|path| group_left(Path::new("/sys/fs/cgroup"), &path))
        .map(|bytes| Available {
            bytes,
            what: "what the control group's memory.max leaves",
        });
    match (machine, group) {
        (Some(m), Some(g)) => Some(if g.bytes < m.bytes { g } else { m }),
        (m, g) => m.or(g),
    }
}

/// Free pages in the pool of huge pages of this size; none where there is no such pool.
pub(crate) fn free_huge_pages(bytes: u64) -> u64 {
    let file = format!(
        "/sys/kernel/mm/hugepages/hugepages-{}kB/free_hugepages",
        bytes / 1024
    );
    fs::read_to_string(file)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The path of the unified hierarchy.
fn group_path(cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|l| l.strip_prefix("0::"))
}

/// The smallest `max - current` of the group and those above it.
fn group_left(root: &Path, path: &str) -> Option<u64> {
    let mut group = root.join(path.trim_start_matches('/'));
    let mut least = None;
    while group.starts_with(root) {
        let number = |file: &str| -> Option<u64> {
            fs::read_to_string(group.join(file))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        if let Some(max) = number("memory.max") {
            let left = max.saturating_sub(number("memory.current").unwrap_or(0));
            least = Some(least.map_or(left, |l: u64| l.min(left)));
        }
        if !group.pop() {
            break;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:  10 kB\nMemFree:  3 kB\nMemAvailable:   24000 kB\n";
        assert_eq!(mem_available(text), Some(24_576_000));
        assert_eq!(mem_available("MemTotal: 10 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        fs::write(root.path().join("a/memory.current"), "400\n").unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(group_path("1:x:/y\n0::/a/b\n"), Some("/a/b"));
        assert_eq!(group_left(root.path(), "/a/b"), Some(600));
        assert_eq!(group_left(root.path(), "/"), None);
    }
}
