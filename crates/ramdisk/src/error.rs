//! Why a ramdisk could not be made.

use std::fmt;
use std::io;

/// Why a ramdisk could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum RamError {
    /// A setting is wrong.
    Config {
        /// The parameter.
        key: &'static str,
        /// What is wrong and what would be right.
        why: String,
    },
    /// It could grow past what there is, and the kernel would kill somebody.
    TooLarge {
        /// Bytes it may come to use.
        need: u64,
        /// Bytes there are.
        available: u64,
        /// What was measured.
        what: &'static str,
        /// Whether a limit was given.
        limited: bool,
    },
    /// The pool of huge pages is too small.
    HugePages {
        /// Bytes in one page.
        page: u64,
        /// Pages that the device needs.
        need: u64,
        /// Pages that are free.
        free: u64,
    },
    /// The system refused.
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl RamError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

impl fmt::Display for RamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { key, why } => write!(f, "`{key}`: {why}"),
            Self::TooLarge {
                need,
                available,
                what,
                limited,
            } => {
                write!(
                    f,
                    "{need} bytes may come to be used, and {what} is {available} bytes: "
                )?;
                if *limited {
                    f.write_str("give a smaller limit, or force=1")
                } else {
                    f.write_str("give limit=SIZE to cap what may be used, or force=1")
                }
            }
            Self::HugePages { page, need, free } => write!(
                f,
                "{need} huge pages of {} MiB are needed and {free} are free: enlarge the pool \
                 (vm.nr_hugepages), or leave out backing=hugetlb",
                page >> 20
            ),
            Self::System { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for RamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
