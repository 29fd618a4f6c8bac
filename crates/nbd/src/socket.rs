//! Sockets of both kinds.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::net::SendFlags;

/// A connected stream that never blocks.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Sets the socket up: no blocking, no waiting for more to send.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Unix(s) => s.set_nonblocking(true),
            Self::Tcp(s) => {
                s.set_nodelay(true)?;
                s.set_nonblocking(true)
            }
        }
    }

    pub(crate) fn read(&self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => (&mut &*s).read(to),
            Self::Tcp(s) => (&mut &*s).read(to),
        }
    }

    pub(crate) fn read_vectored(&self, to: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(s) => (&mut &*s).read_vectored(to),
            Self::Tcp(s) => (&mut &*s).read_vectored(to),
        }
    }

    /// Sends what the socket takes at once.
    pub(crate) fn write_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        if let [one] = from {
            // The usual answer. This call has less to look at than the one for files, on a socket's behalf.
            return Ok(rustix::net::send(self, one, SendFlags::NOSIGNAL)?);
        }
        match self {
            Self::Unix(s) => (&mut &*s).write_vectored(from),
            Self::Tcp(s) => (&mut &*s).write_vectored(from),
        }
    }

    /// A socket whose peer is gone.
    #[cfg(feature = "tls")]
    pub(crate) fn closed() -> io::Result<Self> {
        Ok(Self::Unix(UnixStream::pair()?.0))
    }

    /// Ends the connection for both sides.
    pub(crate) fn close(&self) {
        // It may be closed already.
        let _ = match self {
            Self::Unix(s) => s.shutdown(std::net::Shutdown::Both),
            Self::Tcp(s) => s.shutdown(std::net::Shutdown::Both),
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(s) => s.as_fd(),
            Self::Tcp(s) => s.as_fd(),
        }
    }
}
