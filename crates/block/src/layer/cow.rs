//! `cow`: writes stay above.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::iov::{Pieces, PiecesMut, gather, scatter, us};
use crate::spec::units::print_size;
use crate::{
    BlockDevice, BlockDeviceExt, Caps, Coalesce, Device, DeviceInfo, Error, Extent, Node, Op,
    Param, ParamKind, Registry, ReqFlags, Result, Shape, Stats, check,
};

#[derive(Clone)]
enum Upper {
    /// The block's bytes. Shared with snapshots until one of them writes.
    Data(Arc<Vec<u8>>),
    /// It was discarded or zeroed.
    Zero,
}

type Shard = HashMap<u64, Upper>;

const SHARDS: u64 = 64;
const BLOCK: u64 = 4096;

/// A layer that keeps what is written in memory and never changes the device below, unless it is told
/// to [`commit`](Cow::commit). Snapshots are cheap, over any device.
pub struct Cow {
    below: Device,
    info: DeviceInfo,
    block: u64,
    shards: Vec<RwLock<Shard>>,
    kept: AtomicU64,
    /// One for each snapshot that stands on the same device.
    family: Arc<()>,
    commit_at_end: bool,
    id: Option<Box<str>>,
}

impl Cow {
    /// Over `below`, keeping blocks of 4 KiB, or of the device's logical block if that is larger.
    pub fn new(below: Device) -> Self {
        let mut info = below.info();
        info.read_only = false;
        info.volatile_cache = false;
        let block = BLOCK.max(info.logical_block.into());
        Self {
            below,
            info,
            block,
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            kept: AtomicU64::new(0),
            family: Arc::new(()),
            commit_at_end: false,
            id: None,
        }
    }

    /// Keeping blocks of this size, a power of two; at least the logical block of the device below.
    #[must_use]
    pub fn block(mut self, bytes: u64) -> Self {
        self.block = bytes
            .next_power_of_two()
            .max(self.info.logical_block.into());
        self
    }

    /// Writing everything down when the layer is dropped.
    #[must_use]
    pub const fn commit_at_end(mut self, yes: bool) -> Self {
        self.commit_at_end = yes;
        self
    }

    crate::layer::with_id!();

    fn shard(&self, block: u64) -> &RwLock<Shard> {
        #[expect(clippy::indexing_slicing, reason = "a remainder of the length")]
        &self.shards[us(block % SHARDS)]
    }

    fn look(&self, block: u64) -> RwLockReadGuard<'_, Shard> {
        self.shard(block)
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, block: u64) -> RwLockWriteGuard<'_, Shard> {
        self.shard(block)
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a block; the last one may be short.
    fn len_of(&self, block: u64) -> u64 {
        self.block.min(self.info.len - block * self.block)
    }

    /// The parts of a range by block: number, offset within, length.
    fn parts(&self, off: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let size = self.block;
        let mut at = off;
        let end = off + len;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (block, within) = (at / size, at % size);
                let n = (size - within).min(end - at);
                at += n;
                (block, within, n)
            })
        })
    }

    fn write_part(&self, block: u64, within: u64, bytes: &[u8]) -> Result<()> {
        let mut shard = self.change(block);
        let whole = bytes.len() as u64 == self.len_of(block);
        let upper = match shard.entry(block) {
            Entry::Occupied(e) => e.into_mut(),
            Entry::Vacant(e) => {
                let first = if whole {
                    Upper::Zero
                } else {
                    // Copied up under the lock, so that nobody writes the block in between.
                    let len = us(self.len_of(block));
                    Upper::Data(Arc::new(self.below.read_vec(block * self.block, len)?))
                };
                self.kept.fetch_add(1, Ordering::Relaxed);
                e.insert(first)
            }
        };
        if whole {
            *upper = Upper::Data(Arc::new(bytes.to_vec()));
            return Ok(());
        }
        if let Upper::Zero = upper {
            *upper = Upper::Data(Arc::new(vec![0; us(self.len_of(block))]));
        }
        if let Upper::Data(data) = upper
            && let Some(part) = Arc::make_mut(data).get_mut(us(within)..us(within) + bytes.len())
        {
            part.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn clear(&self, off: u64, len: u64) -> Result<()> {
        for (block, within, n) in self.parts(off, len) {
            if n == self.len_of(block) {
                let before = self.change(block).insert(block, Upper::Zero);
                if before.is_none() {
                    self.kept.fetch_add(1, Ordering::Relaxed);
                }
            } else {
                self.write_part(block, within, &vec![0; us(n)])?;
            }
        }
        Ok(())
    }

    /// Writes everything kept here to the device below and forgets it. Returns the number of blocks.
    ///
    /// # Errors
    /// `ReadOnly` below; `Unsupported` while snapshots stand on the same device, for they would change;
    /// or the first failing write, behind which everything is still kept.
    pub fn commit(&self) -> Result<u64> {
        if Arc::strong_count(&self.family) > 1 {
            return Err(Error::unsupported_because(
                Op::Write,
                "a commit would change the snapshots",
            ));
        }
        let mut done = 0;
        for shard in &self.shards {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            let mut numbers: Vec<u64> = shard.keys().copied().collect();
            numbers.sort_unstable();
            for block in numbers {
                let off = block * self.block;
                let zeros;
                let bytes: &[u8] = match shard.get(&block) {
                    Some(Upper::Data(data)) => data,
                    Some(Upper::Zero) => {
                        zeros = vec![0; us(self.len_of(block))];
                        &zeros
                    }
                    None => continue,
                };
                self.below.write_at(bytes, off)?;
                shard.remove(&block);
                self.kept.fetch_sub(1, Ordering::Relaxed);
                done += 1;
            }
        }
        if self.below.caps().contains(Caps::FLUSH) {
            self.below.flush()?;
        }
        Ok(done)
    }
}

impl Drop for Cow {
    fn drop(&mut self) {
        if self.commit_at_end {
            // Nobody is left to hear of an error; commit() is the way to learn of it.
            let _ = self.commit();
        }
    }
}

impl BlockDevice for Cow {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        Caps::WRITE
            | Caps::FLUSH
            | Caps::FUA_NATIVE
            | Caps::DISCARD
            | Caps::DISCARD_ZEROES
            | Caps::ZERO
            | Caps::EXTENTS
            | Caps::SNAPSHOT
            | Caps::MULTI_CONN
            | (self.below.caps() & Caps::CACHE_HINT)
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let len = check::bytes_mut(bufs);
        check::request(&self.info, Op::Read, off, len)?;
        check::flags(self.caps(), Op::Read, flags)?;
        let mut pieces = PiecesMut::new(bufs);
        let mut missing = 0;
        let mut at = off;
        for (block, within, n) in self.parts(off, len) {
            let upper = self.look(block).get(&block).cloned();
            let Some(upper) = upper else {
                missing += n;
                continue;
            };
            if missing > 0 {
                self.below
                    .read_vectored_at(&mut pieces.take(missing), at, ReqFlags::empty())?;
                at += missing;
                missing = 0;
            }
            let mut to = pieces.take(n);
            match upper {
                Upper::Data(data) => {
                    let range = us(within)..us(within + n);
                    scatter(data.get(range).unwrap_or_default(), &mut to);
                }
                Upper::Zero => {
                    for b in &mut to {
                        b.fill(0);
                    }
                }
            }
            at += n;
        }
        if missing > 0 {
            self.below
                .read_vectored_at(&mut pieces.take(missing), at, ReqFlags::empty())?;
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = check::bytes(bufs);
        check::request(&self.info, Op::Write, off, len)?;
        check::flags(self.caps(), Op::Write, flags)?;
        let mut pieces = Pieces::new(bufs);
        for (block, within, n) in self.parts(off, len) {
            let piece = pieces.take(n);
            match piece.as_slice() {
                [one] => self.write_part(block, within, one)?,
                several => self.write_part(block, within, &gather(several))?,
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        // What is kept is in memory, and nothing went down.
        Ok(())
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::Discard, &range)?;
        check::flags(self.caps(), Op::Discard, flags)?;
        self.clear(range.start, len)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::WriteZeroes, &range)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        self.clear(range.start, len)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info, Op::Extents, &range)?;
        let mut join = Coalesce::new(each);
        let mut at = range.start;
        for (block, _, n) in self.parts(range.start, len) {
            let upper = self.look(block).get(&block).cloned();
            let mut stop = ControlFlow::Continue(());
            match upper {
                Some(Upper::Data(_)) => stop = join.push(Extent::data(n)),
                Some(Upper::Zero) => stop = join.push(Extent::hole(n)),
                None => self.below.extents(at..at + n, &mut |e| {
                    stop = join.push(e);
                    stop
                })?,
            }
            if stop.is_break() {
                return Ok(());
            }
            at += n;
        }
        join.finish();
        Ok(())
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.below.cache(range)
    }

    fn snapshot(&self) -> Result<Device> {
        // Held together, these keep every writer out.
        let all: Vec<RwLockReadGuard<'_, Shard>> = self
            .shards
            .iter()
            .map(|s| s.read().unwrap_or_else(PoisonError::into_inner))
            .collect();
        Ok(Arc::new(Self {
            below: Arc::clone(&self.below),
            info: self.info,
            block: self.block,
            shards: all.iter().map(|s| RwLock::new((**s).clone())).collect(),
            kept: AtomicU64::new(self.kept.load(Ordering::Relaxed)),
            family: Arc::clone(&self.family),
            commit_at_end: false,
            id: None,
        }))
    }

    fn stats(&self) -> Stats {
        let kept = self.kept.load(Ordering::Relaxed);
        Stats::new()
            .count("kept_blocks", kept)
            .bytes("kept_bytes", kept * self.block)
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::FAST_ZERO, "the edges of a range are copied up"),
            (Caps::RESIZE, "the size is that of the device below"),
            (Caps::ZCOPY, "the bytes lie in two places"),
        ]
    }

    fn describe(&self) -> Node {
        Node::new("cow")
            .opt_arg(
                "block",
                (self.block != BLOCK).then(|| print_size(self.block)),
            )
            .opt_arg("commit", self.commit_at_end.then_some(1))
            .with_id(self.id.as_deref())
    }

    fn children(&self) -> Vec<Device> {
        vec![Arc::clone(&self.below)]
    }

    fn holds_data(&self) -> bool {
        true
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

const PARAMS: &[Param] = &[
    Param::new("block", ParamKind::Size, "unit that is copied up").or("4k"),
    Param::new(
        "commit",
        ParamKind::Switch,
        "writes everything down when the stack is closed",
    )
    .or("0"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "cow",
        "keeps writes in memory, above",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let below = site.below()?;
            let least = u64::from(below.info().logical_block).max(512);
            let mut cow = Cow::new(below)
                .commit_at_end(args.on("commit") && !site.planning())
                .with_id(args.id());
            if args.explicit("block")
                && let Some(block) = args.number_in("block", least..=1 << 24, true)?
            {
                cow = cow.block(block);
            }
            if site.planning() {
                // Described as asked for, though nothing is written at the end of a plan.
                return Ok(Arc::new(PlannedCow {
                    commit: args.on("commit"),
                    cow,
                }));
            }
            Ok(Arc::new(cow))
        },
    );
}

/// A planned layer that must not write when it is dropped.
struct PlannedCow {
    cow: Cow,
    commit: bool,
}

impl BlockDevice for PlannedCow {
    crate::forward!(cow: info caps read write flush discard write_zeroes extents cache snapshot);

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        self.cow.ends()
    }

    fn describe(&self) -> Node {
        let commit = self.commit.then_some(1);
        self.cow.describe().opt_arg("commit", commit)
    }

    fn children(&self) -> Vec<Device> {
        self.cow.children()
    }

    fn holds_data(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pattern, Zero};

    #[test]
    fn writes_stay_above() {
        let below: Device = Arc::new(Pattern::new(20_000));
        let cow = Cow::new(Arc::clone(&below));
        cow.write_at(&[0xaa; 5000], 4000).unwrap();
        let got = cow.read_vec(3998, 5004).unwrap();
        let plain = below.read_vec(3998, 5004).unwrap();
        assert_eq!(got[..2], plain[..2]);
        assert_eq!(got[2..5002], [0xaa; 5000]);
        assert_eq!(got[5002..], plain[5002..]);
        assert_eq!(cow.stats().get("kept_blocks"), Some(3));
    }

    #[test]
    fn a_commit_goes_down_unless_a_snapshot_is_there() {
        let below: Device = Arc::new(Cow::new(Arc::new(Zero::new(10_000))));
        let cow = Cow::new(Arc::clone(&below));
        cow.write_at(b"stone", 9_990).unwrap();
        let snapshot = cow.snapshot().unwrap();
        assert!(cow.commit().is_err());
        drop(snapshot);
        assert_eq!(cow.commit().unwrap(), 1);
        assert_eq!(below.read_vec(9_990, 5).unwrap(), b"stone");
        assert_eq!(cow.stats().get("kept_blocks"), Some(0));
        let readonly = Cow::new(Arc::new(Zero::new(10_000)));
        readonly.write_at(b"x", 0).unwrap();
        assert!(matches!(readonly.commit(), Err(Error::ReadOnly { .. })));
        assert_eq!(readonly.read_vec(0, 1).unwrap(), b"x");
    }
}
