//! The zero-copy face, safe from outside.

use std::io;
use std::os::fd::BorrowedFd;

use cairn_block::{Error, MappedRegion, Op, Result, check};

use crate::ram::Ram;

/// A short-lived buffer for what cannot go straight into the mapping.
const BOUNCE: usize = 64 << 10;

fn outside(e: &Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, e.to_string())
}

impl MappedRegion for Ram {
    fn copy_out(&self, off: u64, to: &mut [u8]) -> Result<()> {
        check::request(&self.info_now(), Op::Read, off, to.len() as u64)?;
        self.read_slice(off, to)
    }

    fn copy_in(&self, off: u64, from: &[u8]) -> Result<()> {
        check::request(&self.info_now(), Op::Write, off, from.len() as u64)?;
        self.write_slice(off, from)
    }

    fn send_to(&self, fd: BorrowedFd<'_>, off: u64, len: usize) -> io::Result<usize> {
        check::request(&self.info_now(), Op::Read, off, len as u64).map_err(|e| outside(&e))?;
        let file = self.store.file().ok_or(io::ErrorKind::Unsupported)?;
        // Clear pages read as zeros in the file too, and the kernel sends holes without filling them.
        let mut at = off;
        Ok(rustix::fs::sendfile(fd, file, Some(&mut at), len)?)
    }

    fn recv_from(&self, fd: BorrowedFd<'_>, off: u64, len: usize) -> io::Result<usize> {
        check::request(&self.info_now(), Op::Write, off, len as u64).map_err(|e| outside(&e))?;
        let mut bounce = vec![0; len.min(BOUNCE)];
        let n = rustix::io::read(fd, bounce.as_mut_slice())?;
        self.write_slice(off, bounce.get(..n).unwrap_or_default())?;
        Ok(n)
    }
}
