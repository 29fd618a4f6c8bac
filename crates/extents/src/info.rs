//! Statistics, and the text in which the kernel prints them.

use core::fmt;

/// The map with most entries among those with something to reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Largest {
    /// Its inode.
    pub ino: u64,
    /// Entries held.
    pub objects: u32,
    /// Entries that the shrinker may take.
    pub reclaimable: u32,
}

/// Running averages of the shrinker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Averages {
    /// Microseconds per scan.
    pub scan_micros: u64,
    /// Entries freed per scan.
    pub freed: u64,
    /// The longest scan, in microseconds.
    pub max_scan_micros: u64,
    /// Scans so far.
    pub scans: u64,
    /// Entries freed so far.
    pub total_freed: u64,
}

impl Averages {
    pub(crate) fn record(&mut self, micros: u64, freed: u64) {
        self.scan_micros = weighted(self.scan_micros, micros);
        self.freed = weighted(self.freed, freed);
        self.max_scan_micros = self.max_scan_micros.max(micros);
        self.scans += 1;
        self.total_freed += freed;
    }
}

/// The newest value weighs a quarter, except that the first one stands alone.
fn weighted(average: u64, new: u64) -> u64 {
    if average == 0 {
        new
    } else {
        new.saturating_add(average.saturating_mul(3)) / 4
    }
}

/// The statistics of a cache. `Display` gives the text of the kernel's `es_shrinker_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Entries held.
    pub objects: u64,
    /// Entries that the shrinker may take.
    pub reclaimable: u64,
    /// Look-ups that found an entry.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Maps with something to reclaim.
    pub inodes_on_list: u64,
    /// Running averages.
    pub averages: Averages,
    /// The largest map on the list.
    pub largest: Option<Largest>,
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "stats:")?;
        writeln!(f, "  {} objects", self.objects)?;
        writeln!(f, "  {} reclaimable objects", self.reclaimable)?;
        writeln!(f, "  {}/{} cache hits/misses", self.hits, self.misses)?;
        if self.inodes_on_list > 0 {
            writeln!(f, "  {} inodes on list", self.inodes_on_list)?;
        }
        writeln!(f, "average:")?;
        writeln!(f, "  {} us scan time", self.averages.scan_micros)?;
        writeln!(f, "  {} shrunk objects", self.averages.freed)?;
        if let Some(largest) = self.largest {
            writeln!(f, "maximum:")?;
            writeln!(
                f,
                "  {} inode ({} objects, {} reclaimable)",
                largest.ino, largest.objects, largest.reclaimable
            )?;
            writeln!(f, "  {} us max scan time", self.averages.max_scan_micros)?;
        }
        Ok(())
    }
}
