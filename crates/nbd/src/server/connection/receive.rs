//! Receiving: into the input, or straight to where a long payload is kept.

use std::io;

use super::{Coming, End, Session};

impl Session<'_> {
    /// Takes in what is there; `false` when that is nothing.
    pub(super) fn receive(&mut self) -> Result<bool, End> {
        if self.eof || self.full() {
            return Ok(false);
        }
        loop {
            match self.receive_once() {
                Ok(0) => {
                    self.eof = true;
                    // Half a request is none.
                    self.coming = None;
                    return Ok(true);
                }
                Ok(_) => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn receive_once(&mut self) -> io::Result<usize> {
        if let Some(Coming::Kept { request, payload }) = &mut self.coming
            && self.input.len() == 0
        {
            let left = usize::try_from(request.payload)
                .unwrap_or(usize::MAX)
                .saturating_sub(payload.len());
            let spare = self.input.room();
            let (got, kept) = payload.receive(&mut self.pool, left, spare, |bufs| {
                self.socket.read_vectored(bufs)
            })?;
            self.input.came(got - kept);
            return Ok(got);
        }
        let got = self.socket.read(self.input.room())?;
        self.input.came(got);
        Ok(got)
    }
}
