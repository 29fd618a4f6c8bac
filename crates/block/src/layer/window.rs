//! `offset` and `slice`: a window of the device below.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::spec::units::{human_size, print_range, print_size};
use crate::{
    Args, BlockDevice, BuildError, Caps, Device, DeviceInfo, Error, Extent, MappedRegion, Node, Op,
    Param, ParamKind, Registry, ReqFlags, Result, Shape, Site, check, forward,
};

/// How a window was asked for, so that it can be described again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Offset { len: Option<u64> },
    Slice { open: bool },
    Partition { which: String },
}

/// A window of the device below.
pub struct Window {
    below: Device,
    start: u64,
    len: u64,
    asked: Asked,
    /// Planned over bytes that nobody has read: it may lie anywhere.
    anywhere: bool,
    id: Option<Box<str>>,
}

impl Window {
    /// The bytes from `start` on, `len` of them or all.
    ///
    /// # Errors
    /// A window that ends past the device, is empty, or cuts through a logical block.
    pub fn new(below: Device, start: u64, len: Option<u64>) -> Result<Self> {
        let info = below.info();
        let have = info.len.checked_sub(start).ok_or(Error::OutOfRange {
            op: Op::Resize,
            offset: start,
            len: 0,
            size: info.len,
        })?;
        let window = len.unwrap_or(have);
        let mut open = info;
        open.read_only = false;
        check::request(&open, Op::Resize, start, window)?;
        if window == 0 {
            return Err(Error::OutOfRange {
                op: Op::Resize,
                offset: start,
                len: 1,
                size: info.len,
            });
        }
        Ok(Self {
            below,
            start,
            len: window,
            asked: Asked::Offset { len },
            anywhere: false,
            id: None,
        })
    }

    crate::layer::with_id!();

    pub(crate) fn of_partition(mut self, which: &str) -> Self {
        self.asked = Asked::Partition {
            which: which.to_owned(),
        };
        self
    }

    pub(crate) const fn anywhere(mut self) -> Self {
        self.anywhere = true;
        self
    }

    /// First byte of the device below.
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Checks against the window and moves to the device below.
    #[inline]
    fn place(&self, op: Op, off: u64, len: u64) -> Result<u64> {
        // The device below checks everything but the window's own end.
        match off.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.start + off),
            _ => Err(self.outside(op, off, len)),
        }
    }

    #[cold]
    fn outside(&self, op: Op, offset: u64, len: u64) -> Error {
        if op.changes() && self.below.info().read_only {
            return Error::ReadOnly { op };
        }
        Error::OutOfRange {
            op,
            offset,
            len,
            size: self.len,
        }
    }

    fn place_range(&self, op: Op, range: &Range<u64>) -> Result<Range<u64>> {
        let len = range.end.saturating_sub(range.start);
        let start = self.place(op, range.start, len)?;
        Ok(start..start + len)
    }

    fn mapped(&self, off: u64, len: u64) -> io::Result<(&dyn MappedRegion, u64)> {
        let start = self.place(Op::Read, off, len)?;
        let below = self.below.as_mapped().ok_or(io::ErrorKind::Unsupported)?;
        Ok((below, start))
    }
}

impl BlockDevice for Window {
    forward!(below: flush children);

    fn info(&self) -> DeviceInfo {
        let mut info = self.below.info();
        info.len = self.len;
        info
    }

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::RESIZE
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let at = self.place(Op::Read, off, check::bytes_mut(bufs))?;
        self.below.read_vectored_at(bufs, at, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let at = self.place(Op::Write, off, check::bytes(bufs))?;
        self.below.write_vectored_at(bufs, at, flags)
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let range = self.place_range(Op::Discard, &range)?;
        self.below.discard(range, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        let range = self.place_range(Op::WriteZeroes, &range)?;
        self.below.write_zeroes(range, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let range = self.place_range(Op::Extents, &range)?;
        self.below.extents(range, each)
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        let range = self.place_range(Op::Cache, &range)?;
        self.below.cache(range)
    }

    fn snapshot(&self) -> Result<Device> {
        Ok(Arc::new(Self {
            below: self.below.snapshot()?,
            start: self.start,
            len: self.len,
            asked: self.asked.clone(),
            anywhere: self.anywhere,
            id: None,
        }))
    }

    fn as_mapped(&self) -> Option<&dyn MappedRegion> {
        self.below.as_mapped().is_some().then_some(self as _)
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::RESIZE, "the window is fixed")]
    }

    fn unknown(&self) -> Option<&'static str> {
        self.anywhere
            .then_some("the table is read when the stack is built: whether there is such a partition, and its size")
    }

    fn describe(&self) -> Node {
        match &self.asked {
            Asked::Offset { len } => Node::new("offset")
                .arg("start", print_size(self.start))
                .opt_arg("len", len.map(print_size)),
            Asked::Partition { which } => Node::new("partition").arg("n", which),
            Asked::Slice { open } => {
                let end = if *open {
                    u64::MAX
                } else {
                    self.start + self.len
                };
                Node::new("slice").arg("range", print_range((self.start, end)))
            }
        }
        .with_id(self.id.as_deref())
    }
}

impl MappedRegion for Window {
    fn copy_out(&self, off: u64, to: &mut [u8]) -> Result<()> {
        let at = self.place(Op::Read, off, to.len() as u64)?;
        match self.below.as_mapped() {
            Some(below) => below.copy_out(at, to),
            None => Err(Error::unsupported(Op::Read)),
        }
    }

    fn copy_in(&self, off: u64, from: &[u8]) -> Result<()> {
        let at = self.place(Op::Write, off, from.len() as u64)?;
        match self.below.as_mapped() {
            Some(below) => below.copy_in(at, from),
            None => Err(Error::unsupported(Op::Write)),
        }
    }

    fn send_to(&self, fd: BorrowedFd<'_>, off: u64, len: usize) -> io::Result<usize> {
        let (below, at) = self.mapped(off, len as u64)?;
        below.send_to(fd, at, len)
    }

    fn recv_from(&self, fd: BorrowedFd<'_>, off: u64, len: usize) -> io::Result<usize> {
        let (below, at) = self.mapped(off, len as u64)?;
        below.recv_from(fd, at, len)
    }
}

const OFFSET: &[Param] = &[
    Param::new("start", ParamKind::Size, "first byte of the device below")
        .required()
        .positional(),
    Param::new(
        "len",
        ParamKind::Size,
        "bytes in the window, all when left out",
    ),
];

const SLICE: &[Param] = &[Param::new(
    "range",
    ParamKind::Range,
    "bytes of the device below, the end not included",
)
.required()
.positional()];

pub(crate) fn about(below: &DeviceInfo) -> String {
    format!(
        "the window must lie inside the device below ({}), hold a byte, and begin and end at a multiple of {}",
        human_size(below.len),
        below.logical_block
    )
}

fn window(site: &Site<'_>, key: &str, start: u64, len: Option<u64>) -> Result<Window, BuildError> {
    let below = site.below()?;
    let have = below.info();
    Window::new(below, start, len).map_err(|_| {
        let args: &Args = site.args();
        args.refuse(key, about(&have)).into()
    })
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "offset",
        "a window of the device below, by start and length",
        Shape::Layer,
        OFFSET,
        |site| {
            let start = site.args().number("start").unwrap_or(0);
            let len = site.args().number("len");
            let window = window(site, "start", start, len)?;
            Ok(Arc::new(window.with_id(site.args().id())))
        },
    );
    registry.register(
        "slice",
        "a window of the device below, by range",
        Shape::Layer,
        SLICE,
        |site| {
            let (from, to) = site.args().range("range").unwrap_or((0, u64::MAX));
            let open = to == u64::MAX;
            let len = (!open).then_some(to - from);
            let mut window = window(site, "range", from, len)?;
            window.asked = Asked::Slice { open };
            Ok(Arc::new(window.with_id(site.args().id())))
        },
    );
}
