//! Sockets that listen.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::socket::Socket;

/// A socket that clients connect to. The file of a Unix socket is removed with it.
#[derive(Debug)]
pub struct Listener {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unix {
        listener: UnixListener,
        path: PathBuf,
        /// Device and inode of the file, so that nobody else's file is removed.
        file: (u64, u64),
    },
    Tcp(TcpListener),
}

/// Why nothing listens.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// A server answers on this socket.
    InUse(PathBuf),
    /// The path is taken by something that is no socket.
    NotASocket(PathBuf),
    /// Anybody in the network could connect.
    Exposed(SocketAddr),
    /// What the system said.
    Io {
        /// Where it was to listen.
        at: String,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "{}: a server answers there: stop it or take another path",
                path.display()
            ),
            Self::NotASocket(path) => write!(
                f,
                "{}: there is a file that is no socket: take another path",
                path.display()
            ),
            Self::Exposed(at) => write!(
                f,
                "{at} can be reached from the network, and anybody there could read and write: use 127.0.0.1 or [::1], or expose it on purpose"
            ),
            Self::Io { at, source } => write!(f, "{at}: {source}"),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Listener {
    /// Listens at a path, for this user only. A socket that nobody answers on is replaced.
    ///
    /// # Errors
    /// A server answers there, the path is some other file, or the system refuses.
    pub fn unix(path: impl AsRef<Path>) -> Result<Self, ListenError> {
        let path = path.as_ref();
        let failed = |source| ListenError::Io {
            at: path.display().to_string(),
            source,
        };
        match fs::symlink_metadata(path) {
            Ok(meta) if !meta.file_type().is_socket() => {
                return Err(ListenError::NotASocket(path.to_owned()));
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(ListenError::InUse(path.to_owned()));
            }
            Ok(_) => fs::remove_file(path).map_err(failed)?,
            Err(_) => {}
        }
        // The mask is this process's, so it is held only while the socket is made; a file made by
        // another thread meanwhile is at most more private than it asked for.
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = bound.map_err(failed)?;
        let listen = || {
            listener.set_nonblocking(true)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            fs::symlink_metadata(path)
        };
        let meta = listen().map_err(failed)?;
        Ok(Self {
            kind: Kind::Unix {
                listener,
                path: path.to_owned(),
                file: (meta.dev(), meta.ino()),
            },
        })
    }

    /// Listens at an address; one that is not of this machine only if `expose` says so.
    ///
    /// # Errors
    /// The address can be reached from outside, or the system refuses.
    pub fn tcp(at: SocketAddr, expose: bool) -> Result<Self, ListenError> {
        if !at.ip().is_loopback() && !expose {
            return Err(ListenError::Exposed(at));
        }
        let failed = |source| ListenError::Io {
            at: at.to_string(),
            source,
        };
        let listener = TcpListener::bind(at).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            kind: Kind::Tcp(listener),
        })
    }

    /// The address, of a TCP socket: with the port that the system chose.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.kind {
            Kind::Unix { .. } => None,
            Kind::Tcp(listener) => listener.local_addr().ok(),
        }
    }

    /// A URI by which clients reach an export here.
    pub fn uri(&self, export: &str) -> String {
        let name = crate::uri::encode(export, true);
        match &self.kind {
            Kind::Unix { path, .. } => {
                let path = crate::uri::encode(&path.to_string_lossy(), false);
                format!("nbd+unix:///{name}?socket={path}")
            }
            Kind::Tcp(_) => match self.address() {
                Some(at) => format!("nbd://{at}/{name}"),
                None => format!("nbd:///{name}"),
            },
        }
    }

    pub(super) fn accept(&self) -> io::Result<Socket> {
        match &self.kind {
            Kind::Unix { listener, .. } => Ok(Socket::Unix(listener.accept()?.0)),
            Kind::Tcp(listener) => Ok(Socket::Tcp(listener.accept()?.0)),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix { listener, .. } => listener.as_fd(),
            Kind::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix { path, file, .. } = &self.kind
            && fs::symlink_metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == *file)
        {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}
