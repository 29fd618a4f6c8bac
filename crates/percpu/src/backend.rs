//! Which backend counts, who chose it, and why another was refused.

use std::fmt;
use std::ptr;

use crate::protocol::once::OnceBox;
use crate::sync::AtomicPtr;
use crate::sys::rseq;

/// How slots are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// One slot per living thread, written without a lock prefix. Safe code; the default.
    Owned,
    /// One slot per CPU, written in a restartable sequence (Linux on x86-64 and aarch64).
    RseqCpu,
    /// One slot per concurrency id of the process (`mm_cid`), likewise. As many slots as threads run at once.
    RseqCid,
    /// A few slots picked by thread, written with a locked add. Works everywhere.
    Striped,
}

impl BackendKind {
    /// The name, as `CAIRN_PERCPU` takes it (`rseq-cid` is for builders only).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owned => "owned",
            Self::RseqCpu => "rseq",
            Self::RseqCid => "rseq-cid",
            Self::Striped => "striped",
        }
    }

    /// The backend that a value of `CAIRN_PERCPU` names.
    fn from_env(value: &str) -> Option<Self> {
        match value {
            "owned" => Some(Self::Owned),
            "rseq" => Some(Self::RseqCpu),
            "striped" => Some(Self::Striped),
            _ => None,
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asked for a backend. A builder goes before the environment, and that before the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Nobody did.
    Default,
    /// The variable `CAIRN_PERCPU`.
    Environment,
    /// The counter's builder.
    Builder,
}

/// Why restartable sequences are not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The build has no sections: another system or processor, miri, loom, or the feature `rseq` off.
    NotBuilt,
    /// The C library does not register an area (glibc does since 2.35).
    NoLibrarySupport,
    /// The C library could not or was told not to register its area.
    NotRegistered,
    /// The kernel does not fill in the concurrency id (Linux does since 6.3).
    NoConcurrencyId {
        /// Bytes of the area that the kernel knows, as `AT_RSEQ_FEATURE_SIZE` says; 0 where it says nothing.
        feature_size: u64,
    },
    /// The processor's sections have not been proven: they run only if `CAIRN_PERCPU=rseq` asks for them.
    Unproven {
        /// The architecture.
        arch: &'static str,
    },
    /// The self-test saw something that a restartable sequence rules out.
    SelfTest {
        /// What it saw.
        saw: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str(
                "this build has no restartable sequences (they need Linux on x86-64 or aarch64 and the \
                 feature `rseq`)",
            ),
            Self::NoLibrarySupport => {
                f.write_str("the C library registers no rseq area (glibc 2.35 and later do)")
            }
            Self::NotRegistered => f.write_str(
                "the C library's rseq area is not registered (the kernel lacks rseq, or the tunable \
                 glibc.pthread.rseq=0 switches it off)",
            ),
            Self::NoConcurrencyId { feature_size } => write!(
                f,
                "the kernel fills {feature_size} bytes of the rseq area, and the concurrency id needs 28 \
                 (Linux 6.3 and later)"
            ),
            Self::Unproven { arch } => write!(
                f,
                "the rseq sections of {arch} are not proven: set CAIRN_PERCPU=rseq to use them"
            ),
            Self::SelfTest { saw } => write!(f, "the rseq self-test failed: {saw}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// The backend that counts, and why it is that one.
///
/// Displays as one line, such as `owned (default)` or `owned (CAIRN_PERCPU asked for rseq: ...)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    kind: BackendKind,
    source: Source,
    refused: Option<(BackendKind, Refusal)>,
    ignored: Option<String>,
}

impl Effective {
    /// The backend that counts.
    pub fn kind(&self) -> BackendKind {
        self.kind
    }

    /// Who asked.
    pub fn source(&self) -> Source {
        self.source
    }

    /// What was asked for and could not be had, and why.
    pub fn refused(&self) -> Option<(BackendKind, &Refusal)> {
        self.refused.as_ref().map(|(kind, why)| (*kind, why))
    }

    /// The value of `CAIRN_PERCPU` that names no backend and so counts as unset.
    pub fn ignored(&self) -> Option<&str> {
        self.ignored.as_deref()
    }

    /// The same choice in words.
    pub fn reason(&self) -> String {
        let who = match self.source {
            Source::Default => "default",
            Source::Environment => "CAIRN_PERCPU",
            Source::Builder => "builder",
        };
        match (&self.refused, &self.ignored) {
            (Some((asked, why)), _) => format!("{who} asked for {asked}: {why}"),
            (None, Some(value)) => {
                format!("{who}; CAIRN_PERCPU={value:?} is none of owned, rseq, striped")
            }
            (None, None) => who.to_owned(),
        }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.reason())
    }
}

/// What a counter made without a builder counts with in this process, and why.
///
/// The first call reads `CAIRN_PERCPU`, and runs the self-test (some milliseconds) if that names `rseq`.
/// It is the same for the life of the process.
///
/// ```
/// println!("counters: {}", cairn_percpu::effective_backend());
/// ```
pub fn effective_backend() -> &'static Effective {
    static EFFECTIVE: OnceBox<Effective> = OnceBox::over(AtomicPtr::new(ptr::null_mut()));
    EFFECTIVE.get_or_build(|| {
        let (asked, source, ignored) = from_environment();
        resolve(asked, source, ignored)
    })
}

/// Whether restartable sequences can be used here, and if not, why. Runs the self-test at the first call.
///
/// # Errors
/// The reason why counters with [`BackendKind::RseqCpu`] would fall back to owned slots.
pub fn rseq_available() -> Result<(), Refusal> {
    rseq::cpu_area().map(|_| ())
}

/// What a counter gets that asks for `kind` in its builder.
pub(crate) fn choose(kind: Option<BackendKind>) -> Effective {
    match kind {
        Some(kind) => resolve(kind, Source::Builder, None),
        None => effective_backend().clone(),
    }
}

/// What the environment asks for, who that makes the source, and the value if it names nothing.
fn from_environment() -> (BackendKind, Source, Option<String>) {
    let Some(value) = std::env::var_os("CAIRN_PERCPU") else {
        return (BackendKind::Owned, Source::Default, None);
    };
    match value.to_str().and_then(BackendKind::from_env) {
        Some(kind) => (kind, Source::Environment, None),
        None => (
            BackendKind::Owned,
            Source::Default,
            Some(value.to_string_lossy().into_owned()),
        ),
    }
}

/// Falls back to owned slots where `asked` cannot be had.
fn resolve(asked: BackendKind, source: Source, ignored: Option<String>) -> Effective {
    let refused = match asked {
        BackendKind::Owned | BackendKind::Striped => None,
        BackendKind::RseqCpu => rseq::cpu_area().err(),
        BackendKind::RseqCid => rseq::cid_area().err(),
    };
    Effective {
        kind: if refused.is_some() {
            BackendKind::Owned
        } else {
            asked
        },
        source,
        refused: refused.map(|why| (asked, why)),
        ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_who_asked_and_what_was_refused() {
        let refused = Effective {
            kind: BackendKind::Owned,
            source: Source::Environment,
            refused: Some((
                BackendKind::RseqCid,
                Refusal::NoConcurrencyId { feature_size: 20 },
            )),
            ignored: None,
        };
        assert_eq!(
            refused.to_string(),
            "owned (CAIRN_PERCPU asked for rseq-cid: the kernel fills 20 bytes of the rseq area, and the \
             concurrency id needs 28 (Linux 6.3 and later))"
        );
        let ignored = resolve(BackendKind::Owned, Source::Default, Some("percpu".into()));
        assert_eq!(
            ignored.to_string(),
            "owned (default; CAIRN_PERCPU=\"percpu\" is none of owned, rseq, striped)"
        );
        assert_eq!(ignored.ignored(), Some("percpu"));
    }

    #[test]
    fn the_environment_knows_three_names() {
        for kind in [
            BackendKind::Owned,
            BackendKind::RseqCpu,
            BackendKind::Striped,
        ] {
            assert_eq!(BackendKind::from_env(kind.name()), Some(kind));
        }
        for other in ["", "Owned", "rseq-cid", "shared", " owned"] {
            assert_eq!(BackendKind::from_env(other), None);
        }
    }
}
