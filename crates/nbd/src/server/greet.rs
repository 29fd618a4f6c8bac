//! The handshake on a socket.

use std::io::{self, IoSlice};
use std::time::Instant;

use super::connection::{Connection, End};
use crate::codec::{Negotiated, ServerHandshake, ServerStep};
use crate::wait::Sleep;

impl Connection<'_> {
    /// Negotiates; `None` when the client ended the session.
    pub(super) fn greet(&mut self) -> Result<Option<Negotiated>, End> {
        let deadline = Instant::now() + self.shared.config.handshake_time;
        let config = &self.shared.config;
        let mut handshake = ServerHandshake::new(config.handshake, config.tls_policy());
        let mut out = Vec::new();
        handshake.greeting(&mut out);
        self.say(&mut out, deadline)?;
        loop {
            let (used, step) = handshake.step(self.input.bytes(), &**self.shared, &mut out)?;
            self.input.used(used);
            // Answers go out before the next option is looked at, so they never pile up.
            let said = self.say(&mut out, deadline);
            match step {
                ServerStep::Went => said?,
                ServerStep::Ready(negotiated) => {
                    said?;
                    return Ok(Some(*negotiated));
                }
                // A client need not wait for the last answer.
                ServerStep::Close => return Ok(None),
                ServerStep::StartTls => {
                    said?;
                    // Anybody on the way may have put there what came before TLS.
                    self.input.clear();
                    self.encrypt()?;
                    handshake.encrypted();
                }
                ServerStep::More => {
                    said?;
                    self.hear(deadline)?;
                }
            }
        }
    }

    #[cfg(feature = "tls")]
    fn encrypt(&mut self) -> Result<(), End> {
        let Some((tls, _)) = &self.shared.config.tls else {
            return Err(End::Closed);
        };
        let closed = crate::socket::Socket::closed()?;
        let plain = std::mem::replace(&mut self.socket, closed);
        self.socket = tls.wrap(plain)?;
        Ok(())
    }

    #[cfg(not(feature = "tls"))]
    #[expect(
        clippy::unused_self,
        reason = "with TLS the socket is another afterwards"
    )]
    const fn encrypt(&mut self) -> Result<(), End> {
        // Never offered, so never agreed.
        Err(End::Closed)
    }

    fn say(&self, out: &mut Vec<u8>, deadline: Instant) -> Result<(), End> {
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            match self.socket.write_vectored(&[IoSlice::new(rest)]) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.pause(false, deadline)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        out.clear();
        Ok(())
    }

    fn hear(&mut self, deadline: Instant) -> Result<(), End> {
        loop {
            match self.socket.read(self.input.room()) {
                Ok(0) => return Err(End::Closed),
                Ok(n) => {
                    self.input.came(n);
                    return Ok(());
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.pause(true, deadline)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Waits for the socket until the deadline. A server that stops does not wait for a client which
    /// has not even chosen an export.
    fn pause(&self, read: bool, deadline: Instant) -> Result<(), End> {
        if self.shared.stopping() {
            return Err(End::Closed);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let sleep = Sleep {
            socket: std::os::fd::AsFd::as_fd(&self.socket),
            read,
            write: !read,
            mailbox: None,
            stopped: Some(self.shared.stopped.fd()),
        };
        if left.is_zero() || !sleep.sleep(Some(left))? {
            return Err(End::Handshake);
        }
        Ok(())
    }
}
