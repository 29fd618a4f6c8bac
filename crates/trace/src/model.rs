//! What a replay drives: one cache per device.

use cairn_extents::{
    Config, Error, Extent, ExtentCache, Generation, Info, MAX_BLOCK, Rules, Status,
};

/// What a shrinker pass of a model did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shrunk {
    /// Entries freed.
    pub freed: u32,
    /// Maps passed over.
    pub skipped: u32,
    /// Whether there was a second pass.
    pub retried: bool,
}

/// An extent status cache that a trace can be replayed through.
///
/// [`ExtentCache`] is one; a naive model of blocks is another, as a second oracle, and faulty
/// ones show that a replay finds the fault.
pub trait Model {
    /// The range has this status from now on.
    ///
    /// # Errors
    /// The model's reason for refusing it.
    fn insert(&mut self, ino: u64, lblk: u32, len: u32, status: Status) -> Result<(), Error>;

    /// The range was reserved; the flags say that the cluster of its first or last block is
    /// allocated.
    ///
    /// # Errors
    /// The model's reason for refusing it.
    fn insert_delayed(
        &mut self,
        ino: u64,
        lblk: u32,
        len: u32,
        start_alloc: bool,
        end_alloc: bool,
    ) -> Result<(), Error>;

    /// The range was read from disk.
    ///
    /// # Errors
    /// The model's reason for refusing it.
    fn cache(&mut self, ino: u64, lblk: u32, len: u32, status: Status) -> Result<(), Error>;

    /// The range is not known any more.
    ///
    /// # Errors
    /// The model's reason for refusing it.
    fn remove(&mut self, ino: u64, lblk: u32, len: u32) -> Result<(), Error>;

    /// The entry that contains the block as it was before; then it is marked referenced. Counts.
    fn lookup(&mut self, ino: u64, lblk: u32) -> Option<Extent>;

    /// The entry that contains the block; nothing is counted or marked.
    fn containing(&mut self, ino: u64, lblk: u32) -> Option<Extent>;

    /// Marks the entry that contains the block as referenced, without counting.
    fn touch(&mut self, ino: u64, lblk: u32);

    /// Drops what can be read again, and the precached mark.
    fn clear(&mut self, ino: u64);

    /// Sets the precached mark.
    fn precache(&mut self, ino: u64);

    /// Runs the shrinker.
    fn shrink(&mut self, budget: u32) -> Shrunk;

    /// The statistics.
    fn info(&self) -> Info;
}

/// The cache that a replay uses unless told otherwise.
pub fn cairn_model(rules: Rules) -> ExtentCache {
    ExtentCache::new(
        Config::new()
            .with_generation(rules.generation)
            .with_upstream_conflicts(rules.upstream_conflicts)
            .with_legacy_ud(rules.legacy_ud)
            .with_cluster_bits(rules.cluster_bits),
    )
}

impl Model for ExtentCache {
    fn insert(&mut self, ino: u64, lblk: u32, len: u32, status: Status) -> Result<(), Error> {
        // A trace has no reservation to lower.
        let _ = self.map(ino).insert(lblk, len, status)?;
        Ok(())
    }

    fn insert_delayed(
        &mut self,
        ino: u64,
        lblk: u32,
        len: u32,
        start_alloc: bool,
        end_alloc: bool,
    ) -> Result<(), Error> {
        self.map(ino)
            .insert_delayed(lblk, len, start_alloc, end_alloc)
    }

    fn cache(&mut self, ino: u64, lblk: u32, len: u32, status: Status) -> Result<(), Error> {
        self.map(ino).cache(lblk, len, status).map(|_| ())
    }

    fn remove(&mut self, ino: u64, lblk: u32, len: u32) -> Result<(), Error> {
        let _ = self.map(ino).remove(lblk, len)?;
        Ok(())
    }

    fn lookup(&mut self, ino: u64, lblk: u32) -> Option<Extent> {
        self.map(ino).lookup(lblk).map(|hit| hit.extent)
    }

    fn containing(&mut self, ino: u64, lblk: u32) -> Option<Extent> {
        self.map(ino).containing(lblk)
    }

    fn touch(&mut self, ino: u64, lblk: u32) {
        self.map(ino).touch(lblk);
    }

    fn clear(&mut self, ino: u64) {
        self.map(ino).clear();
    }

    fn precache(&mut self, ino: u64) {
        self.map(ino).set_precached(true);
    }

    fn shrink(&mut self, budget: u32) -> Shrunk {
        let scan = ExtentCache::shrink(self, budget);
        Shrunk {
            freed: scan.freed,
            skipped: scan.skipped,
            retried: scan.retried,
        }
    }

    fn info(&self) -> Info {
        ExtentCache::info(self)
    }
}

/// Puts the kernel's view in place of the model's: the entry it answered, or nothing at the block.
pub(crate) fn adopt<M: Model>(model: &mut M, ino: u64, lblk: u32, answer: Option<Extent>) {
    let Some(e) = answer else {
        let _ = model.remove(ino, lblk, 1.min(MAX_BLOCK - lblk));
        return;
    };
    let _ = model.remove(ino, e.lblk, e.len);
    let _ = match e.status {
        Status::Delayed => model.insert_delayed(ino, e.lblk, e.len, false, false),
        status => model.insert(ino, e.lblk, e.len, status),
    };
}

/// The generation's name on the command line and in reports.
pub(crate) fn generation_name(generation: Generation) -> &'static str {
    match generation {
        Generation::VacantOnly => "vacant",
        Generation::Overwrite => "overwrite",
    }
}
