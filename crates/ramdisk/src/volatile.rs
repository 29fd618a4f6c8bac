//! `volatile=`: a ramdisk that loses power on request, for crash tests.

use std::any::Any;
use std::sync::Arc;

use cairn_block::{BlockDevice, Crash, Device, Keep, Node, Result, Stats, forward};

/// Names of the rules, as `volatile=` has them.
pub(crate) const RULES: &[&str] = &["off", "none", "prefix", "random"];

/// A ramdisk with a volatile write cache of its own: what was not flushed is lost, all of it or in part,
/// when [`crash`](Self::crash) is called. What was flushed stays.
///
/// ```
/// use cairn_block::{BlockDeviceExt, Registry};
/// use cairn_ramdisk::VolatileRam;
///
/// let mut registry = Registry::new();
/// cairn_ramdisk::register(&mut registry);
/// let stack = registry.open("ram(1m,volatile=none)")?;
/// let disk = stack.device();
/// disk.write_at(b"kept", 0).and_then(|()| disk.flush()).expect("a sound device");
/// disk.write_at(b"lost", 0).expect("a sound device");
/// let ram = disk.as_any().and_then(|d| d.downcast_ref::<VolatileRam>()).expect("volatile was asked for");
/// assert_eq!(ram.crash().expect("a sound device"), 1);
/// assert_eq!(disk.read_vec(0, 4).expect("a sound device"), b"kept");
/// # Ok::<(), cairn_block::BuildError>(())
/// ```
pub struct VolatileRam {
    ram: Device,
    crash: Crash,
    keep: Keep,
}

impl VolatileRam {
    /// Over a ramdisk: of what was not flushed, `keep` says what survives; `seed` makes it repeat.
    pub fn new(ram: Device, keep: Keep, seed: u64) -> Self {
        Self {
            crash: Crash::new(Arc::clone(&ram), keep, seed),
            ram,
            keep,
        }
    }

    /// Loses power. Returns how many units of 512 bytes (or of the logical block) were not flushed.
    ///
    /// # Errors
    /// What the memory below refuses, as where a limit is reached.
    pub fn crash(&self) -> Result<u64> {
        self.crash.crash()
    }
}

/// The rule of a name; none for `off`.
pub(crate) fn rule(name: Option<&str>) -> Option<Keep> {
    match name {
        Some("none") => Some(Keep::None),
        Some("prefix") => Some(Keep::Prefix),
        Some("random") => Some(Keep::Random),
        _ => None,
    }
}

impl BlockDevice for VolatileRam {
    forward!(crash: info caps read write flush discard write_zeroes extents cache resize snapshot
        as_mapped);

    fn stats(&self) -> Stats {
        let cache = self.crash.stats();
        let of = |name| cache.get(name).unwrap_or(0);
        self.ram
            .stats()
            .count("crashes", of("crashes"))
            .count("lost_units", of("lost_units"))
            .count("cached_units", of("cached_units"))
    }

    fn describe(&self) -> Node {
        let name = match self.keep {
            Keep::None => "none",
            Keep::Prefix => "prefix",
            _ => "random",
        };
        self.ram.describe().arg("volatile", name)
    }

    fn holds_data(&self) -> bool {
        true
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
