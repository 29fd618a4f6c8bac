//! A log of what was asked and answered, in the form of nbd-server's transaction log.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IoSlice, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::codec::{Framing, Reply, Request, WireError, command};

/// In front of the payload of writes, the log says that they are in it.
const LOG_MAGIC: u32 = 0x2560_9514;
const SET_DATALOG: u16 = 1;
const FROM_MAGIC: u64 = 0x4a93_ba39_a54f_31b6;

/// Writes every request, the payload of writes, and every reply to a file that `nbd-trdump` shows and
/// `nbd-trplay` replays. Block status is left out: nbd-server has no such command, and the replay stops at it.
pub struct Recorder {
    out: Mutex<BufWriter<File>>,
    failed: AtomicBool,
}

impl Recorder {
    /// Begins a log; an earlier one of this name is replaced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        out.write_all(&LOG_MAGIC.to_be_bytes())?;
        out.write_all(&0_u16.to_be_bytes())?;
        out.write_all(&SET_DATALOG.to_be_bytes())?;
        out.write_all(&0_u64.to_be_bytes())?;
        out.write_all(&FROM_MAGIC.to_be_bytes())?;
        out.write_all(&1_u32.to_be_bytes())?;
        Ok(Self {
            out: Mutex::new(out),
            failed: AtomicBool::new(false),
        })
    }

    fn write(&self, put: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if put(&mut out).is_err() {
            // Clients are served all the same; who asked for the log is told at its end.
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    fn knows(request: &Request) -> bool {
        request.command != command::BLOCK_STATUS
    }

    /// A request, before it is carried out. Lengths that the log's form has no room for are cut.
    pub(super) fn request(&self, request: &Request, payload: &[IoSlice<'_>]) {
        if !Self::knows(request) {
            return;
        }
        let mut head = Vec::with_capacity(28);
        request.encode(Framing::Simple, &mut head);
        self.write(|out| {
            out.write_all(&head)?;
            if request.command == command::WRITE {
                for part in payload {
                    out.write_all(part)?;
                }
            }
            Ok(())
        });
    }

    /// Its answer.
    pub(super) fn reply(&self, request: &Request, error: Option<WireError>) {
        if !Self::knows(request) {
            return;
        }
        let mut bytes = Vec::with_capacity(16);
        let reply = Reply::to(Framing::Simple, request);
        match error {
            Some(error) => reply.error(error, "", &mut bytes),
            None => bytes.extend_from_slice(reply.done().as_slice()),
        }
        self.write(|out| out.write_all(&bytes));
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// A part of the log could not be written.
    pub fn finish(&self) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.flush()?;
        if self.failed.load(Ordering::Relaxed) {
            return Err(io::Error::other("a part of the log could not be written"));
        }
        Ok(())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
