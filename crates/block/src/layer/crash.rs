//! `crash`: a volatile write cache that can lose power.
//!
//! Writes stay in the cache, unit by unit, in the order they came, until a flush puts them on the
//! device below; a FUA write goes through. On a crash, what is in the cache vanishes, survives up to
//! some write, or survives here and there in any order and torn at units, as the rule says. What was
//! flushed is always below.

use std::any::Any;
use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::mix;
use crate::iov::{gather, scatter, us};
use crate::spec::units::{print_count, print_size};
use crate::{
    BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Node, Op, Param, ParamKind, Registry,
    ReqFlags, Result, Shape, Stats, check, forward,
};

/// What survives a crash of a [`Crash`] layer, of what was not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Keep {
    /// Nothing.
    None,
    /// Everything up to some write.
    Prefix,
    /// Any unit as any of its writes left it, or as it was before.
    #[default]
    Random,
}

impl Keep {
    const NAMES: &'static [&'static str] = &["none", "prefix", "random"];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Prefix => "prefix",
            Self::Random => "random",
        }
    }
}

/// One write of one unit.
struct Entry {
    unit: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Cache {
    /// In the order they came; `None` where a FUA write made an older one meaningless.
    log: Vec<Option<Entry>>,
    /// The newest entry of each unit.
    newest: HashMap<u64, usize>,
    crashes: u64,
    lost: u64,
}

impl Cache {
    fn newest(&self, unit: u64) -> Option<&[u8]> {
        let i = *self.newest.get(&unit)?;
        self.log.get(i)?.as_ref().map(|e| e.bytes.as_slice())
    }

    fn push(&mut self, unit: u64, bytes: Vec<u8>) {
        self.newest.insert(unit, self.log.len());
        self.log.push(Some(Entry { unit, bytes }));
    }

    fn clear(&mut self) {
        self.log.clear();
        self.newest.clear();
    }
}

/// A layer with a volatile write cache. See [`crash`](Crash::crash).
pub struct Crash {
    below: Device,
    info: DeviceInfo,
    unit: u64,
    keep: Keep,
    seed: u64,
    cache: Mutex<Cache>,
    id: Option<Box<str>>,
}

const UNIT: u64 = 512;
/// A cache holds so many units at most; then it is written down, as a disk would do at leisure.
const MOST: usize = 1 << 17;

impl Crash {
    /// Over `below`, torn at 512 bytes or at the logical block if that is larger.
    pub fn new(below: Device, keep: Keep, seed: u64) -> Self {
        let unit = UNIT.max(below.info().logical_block.into());
        Self::with_unit(below, keep, seed, unit)
    }

    fn with_unit(below: Device, keep: Keep, seed: u64, unit: u64) -> Self {
        let mut info = below.info();
        info.volatile_cache = true;
        Self {
            below,
            info,
            unit,
            keep,
            seed,
            cache: Mutex::default(),
            id: None,
        }
    }

    crate::layer::with_id!();

    fn lock(&self) -> MutexGuard<'_, Cache> {
        // Each step leaves log and index in step, so a panic elsewhere has not broken them.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn around(&self, off: u64, len: u64) -> (u64, u64) {
        let start = off / self.unit * self.unit;
        let end = (off + len).next_multiple_of(self.unit).min(self.info.len);
        (start, end - start)
    }

    /// The bytes of whole units as a reader sees them now.
    fn view(&self, cache: &Cache, start: u64, len: u64) -> Result<Vec<u8>> {
        let mut all = self.below.read_vec(start, us(len))?;
        for (unit, part) in (start / self.unit..).zip(all.chunks_mut(us(self.unit))) {
            if let Some(newer) = cache.newest(unit) {
                part.copy_from_slice(newer);
            }
        }
        Ok(all)
    }

    fn write(&self, bytes: &[u8], off: u64, flags: ReqFlags) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut cache = self.lock();
        let (start, whole) = self.around(off, bytes.len() as u64);
        let mut all = self.view(&cache, start, whole)?;
        let head = us(off - start);
        if let Some(part) = all.get_mut(head..head + bytes.len()) {
            part.copy_from_slice(bytes);
        }
        let units = (start / self.unit..).zip(all.chunks(us(self.unit)));
        if !flags.contains(ReqFlags::FUA) {
            for (unit, part) in units {
                cache.push(unit, part.to_vec());
            }
            if cache.log.len() > MOST {
                self.write_down(&mut cache)?;
            }
            return Ok(());
        }
        self.below.write_at(&all, start)?;
        self.sync_below()?;
        let units: Vec<u64> = units.map(|(unit, _)| unit).collect();
        for entry in &mut cache.log {
            if entry.as_ref().is_some_and(|e| units.contains(&e.unit)) {
                *entry = None;
            }
        }
        for unit in units {
            cache.newest.remove(&unit);
        }
        Ok(())
    }

    fn sync_below(&self) -> Result<()> {
        if self.below.caps().contains(Caps::FLUSH) {
            self.below.flush()?;
        }
        Ok(())
    }

    /// Puts the newest of everything on the device below. On failure everything stays in the cache.
    fn write_down(&self, cache: &mut Cache) -> Result<()> {
        let mut units: Vec<u64> = cache.newest.keys().copied().collect();
        units.sort_unstable();
        for unit in units {
            if let Some(bytes) = cache.newest(unit) {
                self.below.write_at(bytes, unit * self.unit)?;
            }
        }
        self.sync_below()?;
        cache.clear();
        Ok(())
    }

    /// Loses power: of what was not flushed, only what the rule lets survive is on the device afterwards.
    /// Returns the number of unit writes that were in the cache.
    ///
    /// # Errors
    /// The device below fails to take what survives.
    pub fn crash(&self) -> Result<u64> {
        let mut cache = self.lock();
        let seed = mix(self.seed, cache.crashes);
        let entries: Vec<&Entry> = cache.log.iter().flatten().collect();
        let count = entries.len() as u64;
        let mut survivors: Vec<&Entry> = match self.keep {
            Keep::None => Vec::new(),
            Keep::Prefix => {
                let n = us(mix(seed, 0) % (count + 1));
                entries.into_iter().take(n).collect()
            }
            Keep::Random => {
                let mut by_unit: HashMap<u64, Vec<&Entry>> = HashMap::new();
                for e in entries {
                    by_unit.entry(e.unit).or_default().push(e);
                }
                by_unit
                    .into_values()
                    .filter_map(|writes| {
                        let unit = writes.first()?.unit;
                        // One more than there are: the unit may also stay as it was.
                        let pick = us(mix(seed, unit + 1) % (writes.len() as u64 + 1));
                        writes.get(pick).copied()
                    })
                    .collect()
            }
        };
        if self.keep == Keep::Random {
            survivors.sort_unstable_by_key(|e| e.unit);
        }
        let lost = count - survivors.len() as u64;
        for e in survivors {
            self.below.write_at(&e.bytes, e.unit * self.unit)?;
        }
        self.sync_below()?;
        cache.clear();
        cache.crashes += 1;
        cache.lost += lost;
        Ok(count)
    }
}

impl BlockDevice for Crash {
    forward!(below: cache children);

    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        let below = self.below.caps();
        let mut caps = below & (Caps::MULTI_CONN | Caps::CACHE_HINT);
        caps |= Caps::FLUSH;
        if below.contains(Caps::WRITE) {
            caps |= Caps::WRITE | Caps::FUA_NATIVE | Caps::ZERO;
        }
        caps
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
        let (start, whole) = self.around(off, len);
        let all = self.view(&self.lock(), start, whole)?;
        scatter(all.get(us(off - start)..).unwrap_or_default(), bufs);
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info, Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, flags)?;
        self.write(&gather(bufs), off, flags)
    }

    fn flush(&self) -> Result<()> {
        self.write_down(&mut self.lock())
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::WriteZeroes, &range)?;
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        let mut at = range.start;
        let end = range.start + len;
        while at < end {
            let n = (end - at).min(1 << 20);
            self.write(&vec![0; us(n)], at, flags & ReqFlags::FUA)?;
            at += n;
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        let cache = self.lock();
        Stats::new()
            .count("crashes", cache.crashes)
            .count("lost_units", cache.lost)
            .count("cached_units", cache.newest.len() as u64)
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::BEYOND_WRITES, "the cache knows writes only"),
            (Caps::ZCOPY, "mapped bytes would pass the cache by"),
        ]
    }

    fn describe(&self) -> Node {
        let unit = (self.unit != UNIT).then(|| print_size(self.unit));
        let keep = (self.keep != Keep::default()).then(|| self.keep.name());
        Node::new("crash")
            .opt_arg("seed", (self.seed != 0).then(|| print_count(self.seed)))
            .opt_arg("unit", unit)
            .opt_arg("keep", keep)
            .with_id(self.id.as_deref())
    }

    fn holds_data(&self) -> bool {
        true
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

const PARAMS: &[Param] = &[
    Param::new("seed", ParamKind::Count, "seed of what survives").or("0"),
    Param::new("unit", ParamKind::Size, "what a crash does not tear").or("512"),
    Param::new(
        "keep",
        ParamKind::Choice(Keep::NAMES),
        "what survives of what was not flushed",
    )
    .or("random"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "crash",
        "a volatile write cache that can lose power",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let below = site.below()?;
            let keep = match args.text("keep") {
                Some("none") => Keep::None,
                Some("prefix") => Keep::Prefix,
                _ => Keep::Random,
            };
            let seed = args.number("seed").unwrap_or(0);
            let least = u64::from(below.info().logical_block).max(512);
            let layer = if args.explicit("unit") {
                let unit = args.number_in("unit", least..=1 << 20, true)?;
                Crash::with_unit(below, keep, seed, unit.unwrap_or(UNIT))
            } else {
                Crash::new(below, keep, seed)
            };
            Ok(Arc::new(layer.with_id(args.id())))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cow, Zero};

    fn disk() -> Device {
        Arc::new(Cow::new(Arc::new(Zero::new(1 << 16))))
    }

    #[test]
    fn what_was_flushed_survives() {
        for keep in [Keep::None, Keep::Prefix, Keep::Random] {
            for seed in 0..50 {
                let crash = Crash::new(disk(), keep, seed);
                crash.write_at(&[1; 4096], 0).unwrap();
                crash.flush().unwrap();
                crash.write_at(&[2; 2048], 0).unwrap();
                crash.write_at(&[3; 1024], 0).unwrap();
                let slice = [IoSlice::new(&[4; 512])];
                crash
                    .write_vectored_at(&slice, 8192, ReqFlags::FUA)
                    .unwrap();
                assert_eq!(crash.read_vec(1024, 1024).unwrap(), [2; 1024]);
                crash.crash().unwrap();
                let now = crash.read_vec(0, 4096).unwrap();
                assert_eq!(now[2048..], [1; 2048]);
                assert_eq!(crash.read_vec(8192, 512).unwrap(), [4; 512]);
                for unit in now[..2048].chunks(512) {
                    assert!(unit.iter().all(|b| b == &unit[0]), "torn within a unit");
                }
                if keep == Keep::None {
                    assert_eq!(now, [1; 4096]);
                }
                if keep == Keep::Prefix {
                    // The second write began only after the first had all of its units.
                    assert!(now[0] != 3 || now[1024] == 2);
                }
            }
        }
    }

    #[test]
    fn an_older_write_does_not_come_back_over_fua() {
        for seed in 0..50 {
            let crash = Crash::new(disk(), Keep::Random, seed);
            crash.write_at(&[1; 512], 0).unwrap();
            crash
                .write_vectored_at(&[IoSlice::new(&[2; 512])], 0, ReqFlags::FUA)
                .unwrap();
            crash.crash().unwrap();
            assert_eq!(crash.read_vec(0, 512).unwrap(), [2; 512]);
        }
    }
}
