//! TLS around a connection.
//!
//! After STARTTLS a thread stands between the socket and the connection: it speaks TLS on the one
//! side and plain text over a socket pair on the other. So the code that serves a connection is the
//! same with TLS and without, and bytes from before TLS cannot reach it: they are in another socket.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConnection};

use crate::socket::Socket;
use crate::wait::poll_for;

/// Plain text that is taken at once.
const TAKE: usize = 64 << 10;
/// How long the last words may take to reach a peer that does not listen.
const LINGER: Duration = Duration::from_secs(10);

/// A server's certificate and key.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<rustls::ServerConfig>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

/// Why there can be no TLS.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is not what it should be.
    File {
        /// Its path.
        path: PathBuf,
        /// What it should hold, and what is wrong.
        why: String,
    },
    /// Certificate, key or name cannot be used.
    Unusable(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Unusable(why) => write!(f, "TLS: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |why: String| TlsError::File {
        path: path.to_owned(),
        why,
    };
    let all: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| failed(format!("certificates in PEM: {e}")))?;
    if all.is_empty() {
        return Err(failed("it holds no certificate in PEM".to_owned()));
    }
    Ok(all)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|e| TlsError::File {
        path: path.to_owned(),
        why: format!("a private key in PEM: {e}"),
    })
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for root in certificates(path)? {
        store.add(root).map_err(|e| TlsError::File {
            path: path.to_owned(),
            why: format!("an authority: {e}"),
        })?;
    }
    Ok(store)
}

impl ServerTls {
    /// A certificate, with those that lead to its authority behind it, and its key, both in PEM.
    ///
    /// # Errors
    /// A file is missing or holds something else, or the two do not belong together.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::new(certificate, key, None)
    }

    /// The same, for clients only that have a certificate by one of the authorities of a file in PEM.
    ///
    /// # Errors
    /// A file is missing or holds something else, or certificate and key do not belong together.
    pub fn for_known_clients(
        certificate: &Path,
        key: &Path,
        authorities: &Path,
    ) -> Result<Self, TlsError> {
        Self::new(certificate, key, Some(authorities))
    }

    fn new(certificate: &Path, key: &Path, clients: Option<&Path>) -> Result<Self, TlsError> {
        let chain = certificates(certificate)?;
        let key = private_key(key)?;
        let unusable = |e: rustls::Error| TlsError::Unusable(e.to_string());
        let provider = Arc::new(ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider)
                        .build()
                        .map_err(|e| TlsError::Unusable(format!("{}: {e}", path.display())))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(unusable)?;
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// Puts TLS around a client's socket; gives back the plain side.
    pub(crate) fn wrap(&self, socket: Socket) -> io::Result<Socket> {
        let tls = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        Pump::start(tls.into(), socket)
    }
}

/// Puts TLS around a server's socket: its certificate must be of `name`, by an authority in `ca-cert.pem` of the
/// folder. Where the folder has `client-cert.pem` and `client-key.pem` too, they are shown to a server that asks.
pub(crate) fn wrap_client(socket: Socket, folder: &Path, name: &str) -> io::Result<Socket> {
    let invalid = |e: String| io::Error::new(io::ErrorKind::InvalidInput, e);
    let unusable = |e: TlsError| invalid(e.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots(&folder.join("ca-cert.pem")).map_err(unusable)?);
    let (own, key) = (
        folder.join("client-cert.pem"),
        folder.join("client-key.pem"),
    );
    let config = if own.exists() || key.exists() {
        let chain = certificates(&own).map_err(unusable)?;
        builder
            .with_client_auth_cert(chain, private_key(&key).map_err(unusable)?)
            .map_err(|e| invalid(format!("{}: {e}", own.display())))?
    } else {
        builder.with_no_client_auth()
    };
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| invalid(format!("`{name}` is no name that a certificate can have")))?;
    let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Pump::start(tls.into(), socket)
}

/// A socket as what TLS reads from and writes to.
struct Wire<'a>(&'a Socket);

impl Read for Wire<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Between a socket with TLS and one without.
struct Pump {
    tls: Connection,
    outer: Socket,
    inner: UnixStream,
    /// Plain text on its way in.
    text: Box<[u8]>,
    start: usize,
    end: usize,
    /// The peer says no more.
    outer_eof: bool,
    /// The connection says no more, and was told that the peer does not.
    inner_eof: bool,
    told: bool,
    /// When the connection was seen to be gone with words still on their way out.
    gone: Option<Instant>,
}

/// `None` where a socket has nothing or takes nothing now.
fn now(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(e) => Err(e),
    }
}

impl Pump {
    fn start(mut tls: Connection, outer: Socket) -> io::Result<Socket> {
        // What is taken from the connection is bounded here: nothing while the last is not out.
        tls.set_buffer_limit(None);
        let (inner, plain) = UnixStream::pair()?;
        inner.set_nonblocking(true)?;
        let plain = Socket::Unix(plain);
        plain.prepare()?;
        let mut pump = Self {
            tls,
            outer,
            inner,
            text: vec![0; TAKE].into_boxed_slice(),
            start: 0,
            end: 0,
            outer_eof: false,
            inner_eof: false,
            told: false,
            gone: None,
        };
        thread::Builder::new()
            .name("nbd-tls".to_owned())
            .spawn(move || {
                // Either side sees that the other is gone; a peer without TLS gets an alert.
                let _ = pump.run();
                pump.outer.close();
            })?;
        Ok(plain)
    }

    fn run(&mut self) -> io::Result<()> {
        let mut buf = vec![0; TAKE].into_boxed_slice();
        loop {
            let mut moved = self.bring_in()?;
            moved |= self.hear()?;
            moved |= self.take_out(&mut buf)?;
            moved |= self.speak()?;
            if self.inner_eof && !self.tls.wants_write() {
                return Ok(());
            }
            if !moved && !self.wait()? {
                return Ok(());
            }
        }
    }

    /// Hands plain text to the connection.
    fn bring_in(&mut self) -> io::Result<bool> {
        if self.start == self.end && !self.told {
            match self.tls.reader().read(&mut self.text) {
                Ok(n) if n > 0 => (self.start, self.end) = (0, n),
                // The peer has said goodbye, or is gone without.
                Ok(_) => self.tell()?,
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => self.tell()?,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
        let text = self.text.get(self.start..self.end).unwrap_or_default();
        if text.is_empty() || self.inner_eof {
            self.start = self.end;
            return Ok(false);
        }
        let n = now((&self.inner).write(text))?;
        self.start += n.unwrap_or(0);
        Ok(n.is_some())
    }

    fn tell(&mut self) -> io::Result<()> {
        self.told = true;
        self.inner.shutdown(std::net::Shutdown::Write)
    }

    /// Takes in what the peer sends.
    fn hear(&mut self) -> io::Result<bool> {
        if !self.may_hear() {
            return Ok(false);
        }
        let Some(n) = now(self.tls.read_tls(&mut Wire(&self.outer)))? else {
            return Ok(false);
        };
        self.outer_eof = n == 0;
        if let Err(e) = self.tls.process_new_packets() {
            // The alert that says why.
            let _ = self.tls.write_tls(&mut Wire(&self.outer));
            return Err(io::Error::other(e));
        }
        if self.outer_eof && self.tls.is_handshaking() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(true)
    }

    fn may_hear(&self) -> bool {
        self.start == self.end && !self.outer_eof && self.tls.wants_read()
    }

    fn may_take(&self) -> bool {
        !self.inner_eof && !self.tls.wants_write() && !self.tls.is_handshaking()
    }

    /// Takes plain text from the connection.
    fn take_out(&mut self, buf: &mut [u8]) -> io::Result<bool> {
        if !self.may_take() {
            return Ok(false);
        }
        let Some(n) = now((&self.inner).read(buf))? else {
            return Ok(false);
        };
        if n == 0 {
            self.inner_eof = true;
            self.tls.send_close_notify();
        } else {
            let text = buf.get(..n).unwrap_or_default();
            self.tls.writer().write_all(text)?;
        }
        Ok(true)
    }

    /// Sends what is encrypted.
    fn speak(&mut self) -> io::Result<bool> {
        let mut any = false;
        while self.tls.wants_write() && now(self.tls.write_tls(&mut Wire(&self.outer)))?.is_some() {
            any = true;
        }
        Ok(any)
    }

    /// Waits until something can go on; `false` when nobody waits for that any more.
    fn wait(&mut self) -> io::Result<bool> {
        let mut outer = PollFlags::empty();
        outer.set(PollFlags::IN, self.may_hear());
        outer.set(PollFlags::OUT, self.tls.wants_write());
        let mut inner = PollFlags::empty();
        inner.set(PollFlags::IN, self.may_take());
        inner.set(PollFlags::OUT, self.start < self.end);
        // Without events it is there to be seen hanging up, once.
        let watched = !inner.is_empty() || self.gone.is_none();
        let mut fds = Vec::with_capacity(2);
        if !self.inner_eof && watched {
            fds.push(PollFd::from_borrowed_fd(self.inner.as_fd(), inner));
        }
        if !outer.is_empty() {
            fds.push(PollFd::from_borrowed_fd(self.outer.as_fd(), outer));
        }
        let left = self.gone.map(|at| LINGER.saturating_sub(at.elapsed()));
        if fds.is_empty() || left.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        poll_for(&mut fds, left)?;
        let hung_up = !self.inner_eof
            && watched
            && fds
                .first()
                .is_some_and(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR));
        if hung_up {
            if self.tls.is_handshaking() {
                return Ok(false);
            }
            self.gone.get_or_insert_with(Instant::now);
        }
        Ok(true)
    }
}
