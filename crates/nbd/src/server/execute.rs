//! Carries requests out on a device and writes the answers.

use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_block::{Caps, Error, ReqFlags};

use super::export::Served;
use super::segs::{Pool, Segs};
use crate::codec::{
    CommandFlags, Framing, Reply, Request, ServerTransmission, Status, StatusFlags, WireError,
    command,
};

/// Bytes of a long trim or zeroing between two looks at whether the server stops.
const SLICE: u64 = 128 << 20;
/// A read above this is answered piece by piece, so that its answer never stands in memory as a whole.
pub(super) const PIECE: u64 = 4 << 20;
/// Longest hole in one chunk.
const LONGEST_HOLE: u64 = 1 << 30;

/// A failure as a reply tells it.
pub(super) struct Failure {
    pub(super) error: WireError,
    message: String,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self {
            error: WireError::from_number(e.nbd()),
            message: e.to_string(),
        }
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self {
            error,
            message: error.text().to_owned(),
        }
    }
}

/// Buffers that are used over and over.
#[derive(Default)]
pub(super) struct Scratch {
    runs: Vec<(u64, bool)>,
    text: Vec<u8>,
}

/// Where answers go.
pub(super) struct Answers<'a> {
    pub(super) out: &'a mut Segs,
    pub(super) pool: &'a mut Pool,
    pub(super) scratch: &'a mut Scratch,
}

/// A connection's view of its export.
pub(super) struct Executor<'a> {
    pub(super) export: &'a Served,
    pub(super) rules: &'a ServerTransmission,
    pub(super) stop: &'a AtomicBool,
}

impl Executor<'_> {
    /// Carries out a request that was found good, and writes its whole answer. Returns what went
    /// wrong.
    pub(super) fn run(
        &self,
        request: &Request,
        payload: &[IoSlice<'_>],
        to: &mut Answers<'_>,
    ) -> Option<WireError> {
        let mark = to.out.mark();
        let result = match request.command {
            command::READ => self.read(request, to),
            command::BLOCK_STATUS => self.status(request, payload, to),
            _ => self.change(request, payload).map(|()| {
                let reply = Reply::to(self.rules.framing(), request);
                to.out.put(to.pool, reply.done().as_slice());
            }),
        };
        if let Err(mut failure) = result {
            to.out.rewind(mark, to.pool);
            failure.error = allowed(request, failure.error);
            self.fail(request, &failure, to);
            return Some(failure.error);
        }
        None
    }

    /// Writes the answer to a request that was refused or failed.
    pub(super) fn fail(&self, request: &Request, failure: &Failure, to: &mut Answers<'_>) {
        let reply = Reply::to(self.rules.framing(), request);
        to.scratch.text.clear();
        reply.error(failure.error, &failure.message, &mut to.scratch.text);
        to.out.put(to.pool, &to.scratch.text);
    }

    fn read(&self, r: &Request, to: &mut Answers<'_>) -> Result<(), Failure> {
        self.read_part(r, r.offset, r.len, true, to)
    }

    /// Answers a part of a read. An error leaves a part of the answer behind that the caller takes back.
    pub(super) fn read_part(
        &self,
        r: &Request,
        offset: u64,
        len: u64,
        done: bool,
        to: &mut Answers<'_>,
    ) -> Result<(), Failure> {
        let whole = self.rules.framing() == Framing::Simple
            || r.flags.contains(CommandFlags::DF)
            || !self.export.caps.contains(Caps::EXTENTS);
        to.scratch.runs.clear();
        if !whole {
            let runs = &mut to.scratch.runs;
            let known = self.export.device.extents(offset..offset + len, &mut |e| {
                runs.push((e.len, e.zero));
                ControlFlow::Continue(())
            });
            if known.is_err() {
                runs.clear();
            }
        }
        if !to.scratch.runs.iter().any(|(_, zero)| *zero) {
            return self.read_data(r, offset, len, done, to);
        }
        let runs = std::mem::take(&mut to.scratch.runs);
        let result = self.read_runs(r, offset, &runs, done, to);
        to.scratch.runs = runs;
        result
    }

    fn read_runs(
        &self,
        r: &Request,
        offset: u64,
        runs: &[(u64, bool)],
        done: bool,
        to: &mut Answers<'_>,
    ) -> Result<(), Failure> {
        let reply = Reply::to(self.rules.framing(), r);
        let mut at = offset;
        for (i, (len, zero)) in runs.iter().enumerate() {
            let last = done && i + 1 == runs.len();
            if !*zero {
                self.read_data(r, at, *len, last, to)?;
                at += len;
                continue;
            }
            let mut left = *len;
            while left > 0 {
                let n = left.min(LONGEST_HOLE);
                left -= n;
                let size = u32::try_from(n).unwrap_or(u32::MAX);
                let head = reply.hole(at, size, last && left == 0);
                to.out.put(to.pool, head.as_slice());
                at += n;
            }
        }
        Ok(())
    }

    #[inline]
    fn read_data(
        &self,
        r: &Request,
        offset: u64,
        len: u64,
        done: bool,
        to: &mut Answers<'_>,
    ) -> Result<(), Failure> {
        let bytes = usize::try_from(len).map_err(|_| WireError::NoMem)?;
        let head = Reply::to(self.rules.framing(), r).data(offset, bytes, done);
        to.out.put(to.pool, head.as_slice());
        let step = match self.export.max_transfer {
            0 => len,
            n => n,
        };
        let mut at = offset;
        let end = offset + len;
        while at < end {
            let n = step.min(end - at);
            let bytes = usize::try_from(n).map_err(|_| WireError::NoMem)?;
            to.out.fill(to.pool, bytes, |bufs| {
                self.export
                    .device
                    .read_vectored_at(bufs, at, ReqFlags::empty())
            })?;
            at += n;
        }
        Ok(())
    }

    /// Everything whose answer is a bare success.
    fn change(&self, r: &Request, payload: &[IoSlice<'_>]) -> Result<(), Failure> {
        let device = &self.export.device;
        let mut flags = ReqFlags::empty();
        flags.set(ReqFlags::FUA, r.flags.contains(CommandFlags::FUA));
        match r.command {
            command::WRITE => self.write(r, payload, flags)?,
            command::FLUSH => device.flush()?,
            command::TRIM => self.sliced(r, |range| device.discard(range, flags))?,
            command::CACHE => self.sliced(r, |range| device.cache(range))?,
            command::WRITE_ZEROES => {
                let keep = r.flags.contains(CommandFlags::NO_HOLE);
                flags.set(ReqFlags::NO_HOLE, keep);
                flags.set(ReqFlags::MAY_UNMAP, !keep);
                if r.flags.contains(CommandFlags::FAST_ZERO) {
                    // In one piece: once a part is done it is too late to refuse.
                    let whole = r.offset..r.offset + r.len;
                    device.write_zeroes(whole, flags | ReqFlags::FAST)?;
                } else {
                    self.sliced(r, |range| device.write_zeroes(range, flags))?;
                }
            }
            _ => return Err(WireError::Inval.into()),
        }
        Ok(())
    }

    fn write(&self, r: &Request, payload: &[IoSlice<'_>], flags: ReqFlags) -> Result<(), Failure> {
        let device = &self.export.device;
        let step = self.export.max_transfer;
        if step == 0 || r.len <= step {
            device.write_vectored_at(payload, r.offset, flags)?;
            return Ok(());
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        let mut at = r.offset;
        for buf in payload {
            for part in buf.chunks(step) {
                device.write_vectored_at(&[IoSlice::new(part)], at, flags)?;
                at += part.len() as u64;
            }
        }
        Ok(())
    }

    fn sliced(
        &self,
        r: &Request,
        mut each: impl FnMut(std::ops::Range<u64>) -> cairn_block::Result<()>,
    ) -> Result<(), Failure> {
        let end = r.offset + r.len;
        let mut at = r.offset;
        while at < end {
            if at > r.offset && self.stop.load(Ordering::Relaxed) {
                return Err(WireError::Shutdown.into());
            }
            let next = (at + SLICE).min(end);
            each(at..next)?;
            at = next;
        }
        Ok(())
    }

    fn status(
        &self,
        r: &Request,
        payload: &[IoSlice<'_>],
        to: &mut Answers<'_>,
    ) -> Result<(), Failure> {
        let mut asked = *r;
        if r.flags.contains(CommandFlags::PAYLOAD_LEN) {
            asked.len = status_payload(payload).ok_or(WireError::Inval)?;
            self.rules.check_range(&asked)?;
        }
        let mut status = Status::new(r.flags.contains(CommandFlags::REQ_ONE));
        let range = asked.offset..asked.offset + asked.len;
        self.export.device.extents(range, &mut |e| {
            let mut flags = StatusFlags::empty();
            flags.set(StatusFlags::HOLE, e.hole);
            flags.set(StatusFlags::ZERO, e.zero);
            if status.push(e.len, flags) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        to.scratch.text.clear();
        Reply::to(self.rules.framing(), r).status(&status, &mut to.scratch.text);
        to.out.put(to.pool, &to.scratch.text);
        Ok(())
    }
}

/// The error that this request may be answered with: two numbers have a meaning of their own, which another device
/// below need not keep to.
fn allowed(request: &Request, error: WireError) -> WireError {
    let fast = request.flags.contains(CommandFlags::FAST_ZERO);
    match error {
        WireError::NotSup if !fast => WireError::Inval,
        WireError::Overflow if request.command != command::READ => WireError::Inval,
        other => other,
    }
}

/// The length in the payload of `BLOCK_STATUS`, if it names the one context that there is, once.
fn status_payload(payload: &[IoSlice<'_>]) -> Option<u64> {
    let bytes: Vec<u8> = payload
        .iter()
        .flat_map(|b| b.iter().copied())
        .take(13)
        .collect();
    let (len, ids) = bytes.split_first_chunk::<8>()?;
    let one = crate::codec::ALLOCATION_ID.to_be_bytes();
    (ids == one).then_some(u64::from_be_bytes(*len))
}
