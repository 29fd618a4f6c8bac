//! What is chosen when a map or a group of maps is made.

use std::fmt;
use std::sync::Arc;

/// How an entry read from disk meets what is known already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generation {
    /// Only ranges of which nothing is known are filled (Linux up to 6.18).
    #[default]
    VacantOnly,
    /// Entries of the same kind are replaced, others are conflicts (Linux from commit ae3e5ebbdd77).
    Overwrite,
}

/// The rules a map keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How read entries meet known ones.
    pub generation: Generation,
    /// Lose entries on a conflict exactly as Linux does, to replay its traces. Off: nothing is lost.
    pub upstream_conflicts: bool,
    /// Accept entries that are delayed and unwritten at once (kernels up to 6.11).
    pub legacy_ud: bool,
    /// log2 of the blocks per cluster; 0 without clusters.
    pub cluster_bits: u8,
}

impl Rules {
    /// The usual rules of `generation`, without clusters.
    pub const fn new(generation: Generation) -> Self {
        Self {
            generation,
            upstream_conflicts: false,
            legacy_ud: false,
            cluster_bits: 0,
        }
    }

    pub(crate) const fn cluster(self, lblk: u32) -> u32 {
        lblk >> self.cluster_bits
    }

    pub(crate) const fn cluster_first(self, cluster: u32) -> u32 {
        cluster << self.cluster_bits
    }

    pub(crate) const fn cluster_last(self, cluster: u32) -> u32 {
        (cluster << self.cluster_bits) | ((1 << self.cluster_bits) - 1)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new(Generation::default())
    }
}

/// A map was dropped while it still held reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedDelayed {
    /// The map's inode.
    pub ino: u64,
    /// Clusters still reserved by its delayed blocks.
    pub clusters: u32,
}

type DropHook = Arc<dyn Fn(DroppedDelayed) + Send + Sync>;

/// How a group of maps is made.
///
/// ```
/// use cairn_extents::{Config, ExtentCache, Generation};
/// let cache = ExtentCache::new(Config::new().with_generation(Generation::Overwrite).with_cluster_bits(4));
/// assert_eq!(cache.rules().cluster_bits, 4);
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) rules: Rules,
    pub(crate) on_drop: Option<DropHook>,
    pub(crate) counter_slots: Option<usize>,
    pub(crate) huge_pages: bool,
}

impl Config {
    /// The default: [`Generation::VacantOnly`], no clusters, nothing legacy.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses how read entries meet known ones.
    #[must_use]
    pub fn with_generation(mut self, generation: Generation) -> Self {
        self.rules.generation = generation;
        self
    }

    /// Loses entries on a conflict exactly as Linux does.
    #[must_use]
    pub fn with_upstream_conflicts(mut self, on: bool) -> Self {
        self.rules.upstream_conflicts = on;
        self
    }

    /// Accepts entries that are delayed and unwritten at once.
    #[must_use]
    pub fn with_legacy_ud(mut self, on: bool) -> Self {
        self.rules.legacy_ud = on;
        self
    }

    /// Sets log2 of the blocks per cluster, at most 16.
    #[must_use]
    pub fn with_cluster_bits(mut self, bits: u8) -> Self {
        self.rules.cluster_bits = bits.min(16);
        self
    }

    /// Gives the counters slots for this many threads, where slots belong to threads. More threads
    /// count rightly but share a slot.
    #[must_use]
    pub fn with_counter_slots(mut self, threads: usize) -> Self {
        self.counter_slots = Some(threads);
        self
    }

    /// Asks for huge pages once the trees are large enough to fill them (on, unless switched off).
    #[must_use]
    pub fn with_huge_pages(mut self, on: bool) -> Self {
        self.huge_pages = on;
        self
    }

    /// Calls `hook` when a map is dropped that still holds delayed blocks, before they are gone.
    #[must_use]
    pub fn on_dropped_delayed(
        mut self,
        hook: impl Fn(DroppedDelayed) + Send + Sync + 'static,
    ) -> Self {
        self.on_drop = Some(Arc::new(hook));
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            on_drop: None,
            counter_slots: None,
            huge_pages: true,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("rules", &self.rules)
            .field("on_drop", &self.on_drop.is_some())
            .field("counter_slots", &self.counter_slots)
            .field("huge_pages", &self.huge_pages)
            .finish()
    }
}
