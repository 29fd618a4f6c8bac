//! NBD URIs.

use std::fmt;
use std::path::PathBuf;

use crate::codec::DEFAULT_PORT;

/// Where an export is.
///
/// ```
/// use cairn_nbd::NbdUri;
///
/// let uri: NbdUri = "nbd+unix:///scratch?socket=/run/nbd.sock".parse()?;
/// assert_eq!(uri.export(), "scratch");
/// assert!("nbd://host:none/".parse::<NbdUri>().is_err());
/// # Ok::<(), cairn_nbd::UriError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdUri {
    pub(crate) place: Place,
    export: String,
    pub(crate) tls: Option<UriTls>,
}

/// How a server is to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UriTls {
    /// Where the authorities are, and the client's own certificate if it has one.
    pub(crate) folder: PathBuf,
    /// Whose certificate it must be.
    pub(crate) name: String,
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

/// Why a text is no URI of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriError {
    /// Not one of the schemes.
    Scheme(String),
    /// A scheme of the protocol that this crate does not speak.
    Unsupported {
        /// The scheme.
        scheme: String,
        /// Why not.
        why: &'static str,
    },
    /// A part is wrong.
    Part {
        /// Which.
        what: &'static str,
        /// What was found.
        found: String,
        /// What would be right.
        want: &'static str,
    },
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(found) => write!(
                f,
                "`{found}` is no NBD URI: write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH"
            ),
            Self::Unsupported { scheme, why } => write!(f, "`{scheme}` is not supported: {why}"),
            Self::Part { what, found, want } => write!(f, "the {what} `{found}`: {want}"),
        }
    }
}

impl std::error::Error for UriError {}

fn wrong(what: &'static str, found: &str, want: &'static str) -> UriError {
    UriError::Part {
        what,
        found: found.to_owned(),
        want,
    }
}

impl NbdUri {
    /// Name of the export, empty for the default one.
    pub fn export(&self) -> &str {
        &self.export
    }
}

impl std::str::FromStr for NbdUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| UriError::Scheme(text.to_owned()))?;
        let unsupported = |why| UriError::Unsupported {
            scheme: scheme.to_owned(),
            why,
        };
        let (unix, tls) = match scheme {
            "nbd" => (false, false),
            "nbd+unix" => (true, false),
            // Never in plain text instead: that would give the data to whoever listens.
            "nbds" | "nbds+unix" if !cfg!(feature = "tls") => {
                return Err(unsupported(
                    "this build has no TLS: build it with the feature tls",
                ));
            }
            "nbds" => (false, true),
            "nbds+unix" => (true, true),
            "nbd+vsock" | "nbds+vsock" => {
                return Err(unsupported("sockets between virtual machines"));
            }
            _ => return Err(UriError::Scheme(text.to_owned())),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let export = decode("export", path.strip_prefix('/').unwrap_or(path))?;
        let (mut socket, mut folder, mut name) = (None, None, None);
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            match pair.split_once('=') {
                Some(("socket", path)) if unix => socket = Some(decode("socket", path)?),
                Some(("tls-certificates", path)) if tls => {
                    folder = Some(decode("tls-certificates", path)?);
                }
                Some(("tls-hostname", text)) if tls => name = Some(decode("tls-hostname", text)?),
                _ => {
                    let want = "known are socket=PATH of nbd+unix, and tls-certificates=FOLDER and \
                                tls-hostname=NAME of nbds";
                    return Err(wrong("parameter", pair, want));
                }
            }
        }
        let place = if unix {
            if !authority.is_empty() {
                let want = "nbd+unix has no host: write nbd+unix:///EXPORT?socket=PATH";
                return Err(wrong("host", authority, want));
            }
            let path = socket
                .filter(|p| !p.is_empty())
                .ok_or_else(|| wrong("parameter", query, "nbd+unix needs ?socket=PATH"))?;
            Place::Unix(path.into())
        } else {
            host(authority)?
        };
        let tls = match (tls, folder) {
            (false, _) => None,
            (true, Some(folder)) => Some(UriTls {
                folder: folder.into(),
                name: name.unwrap_or_else(|| match &place {
                    Place::Unix(_) => "localhost".to_owned(),
                    Place::Tcp { host, .. } => host.clone(),
                }),
            }),
            (true, None) => {
                let want =
                    "nbds needs ?tls-certificates=FOLDER, which has the authorities in ca-cert.pem";
                return Err(wrong("parameter", query, want));
            }
        };
        Ok(Self { place, export, tls })
    }
}

fn host(authority: &str) -> Result<Place, UriError> {
    let number = |text: &str| {
        text.parse()
            .map_err(|_| wrong("port", text, "a port is a number from 1 to 65535"))
    };
    // An IPv6 address is in brackets, since it has colons of its own.
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest
                .split_once(']')
                .ok_or_else(|| wrong("host", authority, "the bracket is never closed"))?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Ok(Place::Tcp {
        host: host.to_owned(),
        port: port.map_or(Ok(DEFAULT_PORT), number)?,
    })
}

fn decode(what: &'static str, text: &str) -> Result<String, UriError> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong(what, text, "% is followed by two hexadecimal digits"));
        };
        out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
    }
    String::from_utf8(out).map_err(|_| wrong(what, text, "it must be UTF-8"))
}

/// Percent-encodes what has a meaning in a URI. In a path, a name that begins with a slash keeps it.
pub(crate) fn encode(text: &str, path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        let plain =
            b.is_ascii_alphanumeric() || b"-._~/:@!$'*,".contains(&b) || (path && b == b'=');
        if plain {
            out.push(char::from(b));
        } else {
            let hex = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
            out.push('%');
            out.push(hex(b >> 4).to_ascii_uppercase());
            out.push(hex(b & 15).to_ascii_uppercase());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names() {
        let tcp = |host: &str, port| Place::Tcp {
            host: host.to_owned(),
            port,
        };
        for (text, place, export) in [
            ("nbd://localhost", tcp("localhost", 10809), ""),
            ("nbd://h:1/disk", tcp("h", 1), "disk"),
            ("nbd://h//disk", tcp("h", 10809), "/disk"),
            ("nbd://[::1]:7/a%20b", tcp("::1", 7), "a b"),
            ("nbd+unix:///?socket=/t/x", Place::Unix("/t/x".into()), ""),
            (
                "nbd+unix:///a/b?socket=%2Ft",
                Place::Unix("/t".into()),
                "a/b",
            ),
        ] {
            let uri: NbdUri = text.parse().unwrap();
            assert_eq!((&uri.place, uri.export()), (&place, export), "{text}");
            assert_eq!(decode("", &encode(export, true)).unwrap(), export);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("disk", "no NBD URI"),
            ("http://x", "no NBD URI"),
            (
                "nbds://x",
                if cfg!(feature = "tls") {
                    "ca-cert.pem"
                } else {
                    "no TLS"
                },
            ),
            ("nbd+vsock://1", "virtual machines"),
            ("nbd://x:99999", "99999"),
            ("nbd://[::1", "never closed"),
            ("nbd+unix:///x", "socket=PATH"),
            ("nbd+unix://h/?socket=/x", "has no host"),
            ("nbd://h/%zz", "two hexadecimal digits"),
            ("nbd://h/%ff", "UTF-8"),
            ("nbd://h/?tls-certificates=/x", "tls-certificates"),
        ] {
            let error = text.parse::<NbdUri>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
