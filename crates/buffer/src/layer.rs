//! `cache`: the buffer cache as a layer of a stack.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;

use cairn_block::spec::units::print_size;
use cairn_block::{
    BlockDevice, BuildError, Caps, Device, DeviceInfo, Error, Node, Op, Param, ParamKind, Registry,
    ReqFlags, Result, Shape, Site, Stats, check,
};

use crate::{BufferCache, BufferError, CacheConfig};

const BLOCK: u64 = 4096;
const SIZE: u64 = 64 << 20;

/// A write-back cache between a device and its user.
///
/// ```
/// use cairn_block::{BlockDeviceExt, Registry};
///
/// let mut registry = Registry::new();
/// cairn_ramdisk::register(&mut registry);
/// cairn_buffer::register(&mut registry);
/// let stack = registry.open("cache(size=1m)/stats/ram(64m)")?;
/// for _ in 0..10 {
///     stack.device().write_at(b"again and again", 5)?;
/// }
/// stack.device().flush()?;
/// let below = stack.get("stats").expect("it was named so").stats();
/// assert_eq!((below.get("reads"), below.get("writes")), (Some(1), Some(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CacheLayer {
    cache: BufferCache,
    info: DeviceInfo,
    size: u64,
    id: Option<Box<str>>,
}

impl CacheLayer {
    /// Over `below`, holding up to `size` bytes in blocks of `block_size`.
    ///
    /// # Errors
    /// As [`BufferCache::new`].
    pub fn new(
        below: Device,
        block_size: usize,
        size: u64,
    ) -> std::result::Result<Self, BufferError> {
        let mut info = below.info();
        info.volatile_cache = true;
        let buffers = usize::try_from(size / block_size.max(1) as u64).unwrap_or(usize::MAX);
        let cache = BufferCache::new(below, CacheConfig::new(block_size, buffers))?;
        Ok(Self {
            cache,
            info,
            size,
            id: None,
        })
    }

    /// With an instance name, as `@id` gives it in a spec.
    #[must_use]
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(Into::into);
        self
    }

    /// The cache itself.
    pub const fn cache(&self) -> &BufferCache {
        &self.cache
    }

    /// The parts of a range by block: number, first byte within, bytes.
    fn parts(&self, off: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
        let size = self.cache.block_size() as u64;
        let mut at = off;
        let end = off + len;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let (block, within) = (at / size, at % size);
                let n = (size - within).min(end - at);
                at += n;
                // Lossless: both are at most the block size.
                let us = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                (block, us(within), us(n))
            })
        })
    }

    /// Changes a range block by block: `change` gets each part of the blocks in its turn.
    fn change(&self, off: u64, len: u64, mut change: impl FnMut(&mut [u8])) -> Result<()> {
        for (block, within, n) in self.parts(off, len) {
            let (_, whole) = self.cache.place(block);
            let buffer = if n == whole {
                self.cache.get_new(block)
            } else {
                self.cache.get(block)
            };
            buffer
                .and_then(|b| {
                    b.write_data(|data| {
                        if let Some(part) = data.get_mut(within..within + n) {
                            change(part);
                        }
                    })
                })
                .map_err(|e| device_error(off, &e))?;
        }
        Ok(())
    }

    fn after(&self, off: u64, flags: ReqFlags) -> Result<()> {
        if flags.contains(ReqFlags::FUA) {
            self.cache.flush().map_err(|e| device_error(off, &e))?;
        }
        Ok(())
    }
}

fn device_error(off: u64, e: &BufferError) -> Error {
    match e.device() {
        Some(source) => source.clone(),
        None => Error::io(
            off,
            io::Error::new(io::ErrorKind::OutOfMemory, e.to_string()),
        ),
    }
}

impl BlockDevice for CacheLayer {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        let below = self.cache.device().caps();
        let mut caps = Caps::FLUSH | (below & Caps::MULTI_CONN);
        if below.contains(Caps::WRITE) {
            caps |= Caps::WRITE | Caps::ZERO | Caps::FUA_EMULATED;
        }
        caps
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        check::request(&self.info, Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, flags)?;
        let mut at = off;
        for buf in bufs {
            let mut to: &mut [u8] = buf;
            let len = to.len() as u64;
            for (block, within, n) in self.parts(at, len) {
                let (part, rest) = to.split_at_mut(n);
                self.cache
                    .get(block)
                    .and_then(|b| {
                        b.read(|data| {
                            if let Some(from) = data.get(within..within + n) {
                                part.copy_from_slice(from);
                            }
                        })
                    })
                    .map_err(|e| device_error(at, &e))?;
                to = rest;
            }
            at += len;
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        check::request(&self.info, Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, flags)?;
        let mut at = off;
        for buf in bufs {
            let mut from: &[u8] = buf;
            self.change(at, buf.len() as u64, |part| {
                let (now, rest) = from.split_at(part.len());
                part.copy_from_slice(now);
                from = rest;
            })?;
            at += buf.len() as u64;
        }
        self.after(off, flags)
    }

    fn flush(&self) -> Result<()> {
        self.cache.flush().map_err(|e| device_error(0, &e))
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::WriteZeroes, &range)?;
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        self.change(range.start, len, |part| part.fill(0))?;
        self.after(range.start, flags)
    }

    fn stats(&self) -> Stats {
        let s = self.cache.stats();
        Stats::new()
            .count("hits", s.hits)
            .count("misses", s.misses)
            .count("reads", s.reads)
            .count("writes", s.writes)
            .count("read_errors", s.read_errors)
            .count("write_errors", s.write_errors)
            .count("evictions", s.evictions)
            .count("cached", s.cached)
            .count("dirty", s.dirty)
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        const KNOWS: Caps = Caps::DISCARD
            .union(Caps::DISCARD_ZEROES)
            .union(Caps::FAST_ZERO)
            .union(Caps::EXTENTS)
            .union(Caps::SNAPSHOT)
            .union(Caps::CACHE_HINT)
            .union(Caps::RESIZE);
        &[
            (
                KNOWS,
                "the cache knows blocks only, and may be ahead of the device",
            ),
            (Caps::ZCOPY, "mapped bytes would pass the cache by"),
        ]
    }

    fn describe(&self) -> Node {
        let block = self.cache.block_size() as u64;
        Node::new("cache")
            .opt_arg("size", (self.size != SIZE).then(|| print_size(self.size)))
            .opt_arg("block", (block != BLOCK).then(|| print_size(block)))
            .with_id(self.id.as_deref())
    }

    fn children(&self) -> Vec<Device> {
        vec![Arc::clone(self.cache.device())]
    }

    fn holds_data(&self) -> bool {
        true
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

const PARAMS: &[Param] = &[
    Param::new("size", ParamKind::Size, "bytes it may hold").or("64m"),
    Param::new("block", ParamKind::Size, "bytes in a buffer").or("4k"),
];

fn build(site: &Site<'_>) -> std::result::Result<Device, BuildError> {
    let args = site.args();
    let below = site.below()?;
    let least = u64::from(below.info().logical_block).max(512);
    let block = if args.explicit("block") {
        args.number_in("block", least..=65536, true)?
    } else {
        None
    };
    let block = block.unwrap_or(BLOCK.max(least));
    let bytes = args
        .number_in("size", block..=1 << 50, false)?
        .unwrap_or(SIZE);
    let layer = CacheLayer::new(below, usize::try_from(block).unwrap_or(4096), bytes)
        .map_err(|e| args.refuse("block", e))?;
    Ok(Arc::new(layer.with_id(args.id())))
}

/// Adds `cache` to a registry.
pub fn register(registry: &mut Registry) {
    registry.register(
        "cache",
        "a write-back cache of buffer heads",
        Shape::Layer,
        PARAMS,
        build,
    );
}
