//! `concat` (also `linear`) and `stripe`: several devices as one.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::iov::{Pieces, PiecesMut};
use crate::spec::units::{human_size, print_size};
use crate::{
    BlockDevice, BuildError, Caps, Coalesce, Device, DeviceInfo, Extent, Node, Op, Param,
    ParamKind, Registry, ReqFlags, Result, Shape, Site, check,
};

/// A part of a request: which device, where on it, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    child: usize,
    off: u64,
    len: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// Ends of the devices one behind the other.
    Concat { ends: Vec<u64> },
    /// Chunks in turn.
    Stripe { chunk: u64 },
}

/// Several devices as one: one behind the other, or in stripes.
pub struct Spread {
    children: Vec<Device>,
    layout: Layout,
    info: DeviceInfo,
    kind: &'static str,
    id: Option<Box<str>>,
}

/// Why devices cannot be joined.
fn fits(children: &[Device], layout: &str) -> std::result::Result<DeviceInfo, String> {
    if children.is_empty() {
        return Err(format!("`{layout}` needs a device"));
    }
    let infos: Vec<DeviceInfo> = children.iter().map(|c| c.info()).collect();
    Ok(DeviceInfo::over(&infos))
}

impl Spread {
    /// One behind the other.
    ///
    /// # Errors
    /// A sentence: a device whose size is no multiple of the largest logical block, or no device.
    pub fn concat(children: Vec<Device>) -> std::result::Result<Self, String> {
        let mut info = fits(&children, "concat")?;
        let block = u64::from(info.logical_block);
        let mut ends = Vec::with_capacity(children.len());
        let mut end = 0_u64;
        for (i, child) in children.iter().enumerate() {
            let len = child.info().len;
            if !len.is_multiple_of(block) {
                return Err(format!(
                    "device {} holds {len} bytes, no multiple of the largest logical block {block}",
                    i + 1
                ));
            }
            end = end.checked_add(len).ok_or_else(|| {
                format!(
                    "together they hold more than {} bytes, the most a device can have",
                    u64::MAX
                )
            })?;
            ends.push(end);
        }
        info.len = end;
        Ok(Self {
            children,
            layout: Layout::Concat { ends },
            info,
            kind: "concat",
            id: None,
        })
    }

    /// In chunks of `chunk` bytes in turn. What does not fill a whole round is left unused.
    ///
    /// # Errors
    /// A sentence: a chunk that is no multiple of the logical block, or devices smaller than a chunk.
    pub fn stripe(children: Vec<Device>, chunk: u64) -> std::result::Result<Self, String> {
        let mut info = fits(&children, "stripe")?;
        let block = u64::from(info.logical_block);
        if chunk == 0 || !chunk.is_multiple_of(block) {
            return Err(format!(
                "a chunk of {}: it must be a multiple of the largest logical block, {block}",
                human_size(chunk)
            ));
        }
        let each = info.len / chunk * chunk;
        if each == 0 {
            return Err(format!(
                "a chunk of {} is larger than the smallest device ({})",
                human_size(chunk),
                human_size(info.len)
            ));
        }
        info.len = each.checked_mul(children.len() as u64).ok_or_else(|| {
            format!(
                "together they hold more than {} bytes, the most a device can have",
                u64::MAX
            )
        })?;
        if info.optimal_io == 0 || u64::from(info.optimal_io) > chunk {
            info.optimal_io = u32::try_from(chunk).unwrap_or(u32::MAX);
        }
        Ok(Self {
            children,
            layout: Layout::Stripe { chunk },
            info,
            kind: "stripe",
            id: None,
        })
    }

    crate::layer::with_id!();

    /// The part of a request that begins at `off` and stays on one device.
    fn part(&self, off: u64, len: u64) -> Part {
        match &self.layout {
            Layout::Concat { ends } => {
                let child = ends.partition_point(|end| *end <= off);
                let start = child
                    .checked_sub(1)
                    .and_then(|i| ends.get(i))
                    .copied()
                    .unwrap_or(0);
                let end = ends.get(child).copied().unwrap_or(u64::MAX);
                Part {
                    child,
                    off: off - start,
                    len: len.min(end - off),
                }
            }
            Layout::Stripe { chunk } => {
                let n = self.children.len() as u64;
                let (number, within) = (off / chunk, off % chunk);
                Part {
                    child: usize::try_from(number % n).unwrap_or(0),
                    off: number / n * chunk + within,
                    len: len.min(chunk - within),
                }
            }
        }
    }

    /// Runs `each` for the parts of a range in their order.
    fn parts(
        &self,
        off: u64,
        len: u64,
        mut each: impl FnMut(&Device, Part) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut at = off;
        let end = off + len;
        while at < end {
            let part = self.part(at, end - at);
            let Some(child) = self.children.get(part.child) else {
                break;
            };
            if each(child, part)?.is_break() {
                break;
            }
            at += part.len;
        }
        Ok(())
    }
}

const GO_ON: Result<ControlFlow<()>> = Ok(ControlFlow::Continue(()));

impl BlockDevice for Spread {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        let each: Vec<Caps> = self.children.iter().map(|c| c.caps()).collect();
        Caps::over(&each) - (Caps::RESIZE | Caps::SNAPSHOT | Caps::ZCOPY)
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let len = check::bytes_mut(bufs);
        check::request(&self.info, Op::Read, off, len)?;
        let first = self.part(off, len);
        if first.len == len
            && let Some(child) = self.children.get(first.child)
        {
            return child.read_vectored_at(bufs, first.off, flags);
        }
        let mut pieces = PiecesMut::new(bufs);
        self.parts(off, len, |child, part| {
            child.read_vectored_at(&mut pieces.take(part.len), part.off, flags)?;
            GO_ON
        })
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = check::bytes(bufs);
        check::request(&self.info, Op::Write, off, len)?;
        check::flags(self.caps(), Op::Write, flags)?;
        let first = self.part(off, len);
        if first.len == len
            && let Some(child) = self.children.get(first.child)
        {
            return child.write_vectored_at(bufs, first.off, flags);
        }
        let mut pieces = Pieces::new(bufs);
        self.parts(off, len, |child, part| {
            child.write_vectored_at(&pieces.take(part.len), part.off, flags)?;
            GO_ON
        })
    }

    fn flush(&self) -> Result<()> {
        check::capable(self.caps(), Op::Flush)?;
        // All are flushed, also behind one that fails.
        self.children
            .iter()
            .map(|c| c.flush())
            .fold(Ok(()), Result::and)
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::Discard, &range)?;
        check::capable(self.caps(), Op::Discard)?;
        check::flags(self.caps(), Op::Discard, flags)?;
        self.parts(range.start, len, |child, p| {
            child.discard(p.off..p.off + p.len, flags)?;
            GO_ON
        })
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let len = check::range(&self.info, Op::WriteZeroes, &range)?;
        check::capable(self.caps(), Op::WriteZeroes)?;
        check::flags(self.caps(), Op::WriteZeroes, flags)?;
        let first = self.part(range.start, len);
        if flags.contains(ReqFlags::FAST) && first.len < len {
            // One part may be fast and the next one not, and then something has changed already.
            return Err(crate::Error::not_fast());
        }
        self.parts(range.start, len, |child, p| {
            child.write_zeroes(p.off..p.off + p.len, flags)?;
            GO_ON
        })
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info, Op::Extents, &range)?;
        if !self.caps().contains(Caps::EXTENTS) {
            if len > 0 {
                // One extent: there is nothing to stop.
                let _ = each(Extent::data(len));
            }
            return Ok(());
        }
        let mut join = Coalesce::new(each);
        self.parts(range.start, len, |child, p| {
            let mut stop = ControlFlow::Continue(());
            child.extents(p.off..p.off + p.len, &mut |e| {
                stop = join.push(e);
                stop
            })?;
            Ok(stop)
        })?;
        join.finish();
        Ok(())
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        check::capable(self.caps(), Op::Cache)?;
        let len = check::range(&self.info, Op::Cache, &range)?;
        self.parts(range.start, len, |child, p| {
            child.cache(p.off..p.off + p.len)?;
            GO_ON
        })
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::RESIZE, "every device has its place"),
            (Caps::SNAPSHOT, "the devices cannot be frozen at one moment"),
            (Caps::ZCOPY, "the bytes lie in several places"),
        ]
    }

    fn describe(&self) -> Node {
        let chunk = match self.layout {
            Layout::Stripe { chunk } if chunk != CHUNK => Some(print_size(chunk)),
            _ => None,
        };
        Node::new(self.kind)
            .opt_arg("chunk", chunk)
            .with_id(self.id.as_deref())
    }

    fn children(&self) -> Vec<Device> {
        self.children.clone()
    }
}

const CHUNK: u64 = 64 << 10;

const STRIPE: &[Param] = &[Param::new(
    "chunk",
    ParamKind::Size,
    "bytes on one device before the next",
)
.or("64k")
.positional()];

fn concat(site: &Site<'_>, kind: &'static str) -> std::result::Result<Device, BuildError> {
    let mut all =
        Spread::concat(site.branches().to_vec()).map_err(|why| site.args().refuse_node(why))?;
    all.kind = kind;
    Ok(Arc::new(all.with_id(site.args().id())))
}

pub(crate) fn register(registry: &mut Registry) {
    let branch = Shape::Branch { least: 1 };
    registry.register(
        "concat",
        "several devices, one behind the other",
        branch,
        &[],
        |site| concat(site, "concat"),
    );
    registry.register("linear", "the same as concat", branch, &[], |site| {
        concat(site, "linear")
    });
    registry.register(
        "stripe",
        "several devices, chunk by chunk in turn",
        branch,
        STRIPE,
        |site| {
            let args = site.args();
            let chunk = args.number("chunk").unwrap_or(CHUNK);
            let all = Spread::stripe(site.branches().to_vec(), chunk)
                .map_err(|why| args.refuse("chunk", why))?;
            Ok(Arc::new(all.with_id(args.id())))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Null;

    fn nulls(lens: &[u64]) -> Vec<Device> {
        lens.iter()
            .map(|n| Arc::new(Null::new(*n)) as Device)
            .collect()
    }

    fn all(spread: &Spread, off: u64, len: u64) -> Vec<(usize, u64, u64)> {
        let mut parts = Vec::new();
        spread
            .parts(off, len, |_, p| {
                parts.push((p.child, p.off, p.len));
                GO_ON
            })
            .unwrap();
        parts
    }

    #[test]
    fn concat_finds_its_devices() {
        let c = Spread::concat(nulls(&[10, 1, 20])).unwrap();
        assert_eq!(c.info().len, 31);
        assert_eq!(all(&c, 9, 13), [(0, 9, 1), (1, 0, 1), (2, 0, 11)]);
        assert_eq!(all(&c, 10, 1), [(1, 0, 1)]);
        assert!(Spread::concat(nulls(&[u64::MAX, 1])).is_err());
    }

    #[test]
    fn stripes_go_round() {
        let s = Spread::stripe(nulls(&[10, 11]), 4).unwrap();
        assert_eq!(s.info().len, 16);
        assert_eq!(all(&s, 3, 8), [(0, 3, 1), (1, 0, 4), (0, 4, 3)]);
        assert!(Spread::stripe(nulls(&[3]), 4).is_err());
        assert!(Spread::stripe(nulls(&[3]), 0).is_err());
    }
}
