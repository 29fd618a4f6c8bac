//! What a ramdisk is asked to be.

use std::fmt;
use std::io;
use std::path::PathBuf;

use cairn_block::check;
use cairn_block::spec::units::{human_size, print_size};
use cairn_block::{DeviceInfo, Node};

use crate::bitmap::PAGE;
use crate::memory;

/// Where the bytes live.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Backing {
    /// A memory file, sealed against shrinking.
    #[default]
    Memfd,
    /// Private memory of the process.
    Anonymous,
    /// A file on disk, mapped. Truncating it from outside kills the process.
    File {
        /// The file; it is made if it does not exist.
        path: PathBuf,
        /// Whether space is taken as it is written, instead of all at once.
        sparse: bool,
    },
}

/// How much memory is taken at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reserve {
    /// As it is written.
    #[default]
    Lazy,
    /// All of it, and kept.
    Full,
    /// All of it, kept and never swapped; degrades to [`Full`](Self::Full) where the limit on locked
    /// memory does not allow it.
    Locked,
}

/// What a [`Ram`](crate::Ram) is asked to be.
///
/// ```
/// use cairn_ramdisk::{Ram, RamConfig};
///
/// let ram = Ram::new(RamConfig::new(1 << 40).limit(64 << 20))?; // 1 TiB, of which 64 MiB may be used
/// # Ok::<(), cairn_ramdisk::RamError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RamConfig {
    pub(crate) size: u64,
    pub(crate) max: u64,
    pub(crate) logical: u32,
    pub(crate) physical: u32,
    pub(crate) backing: Backing,
    pub(crate) reserve: Reserve,
    pub(crate) limit: Option<u64>,
    pub(crate) huge: bool,
    pub(crate) read_only: bool,
    pub(crate) force: bool,
    pub(crate) id: Option<Box<str>>,
}

impl RamConfig {
    /// `size` bytes in a sealed memory file, byte addressed, taken as they are written.
    pub const fn new(size: u64) -> Self {
        Self {
            size,
            max: size,
            logical: 1,
            physical: 4096,
            backing: Backing::Memfd,
            reserve: Reserve::Lazy,
            limit: None,
            huge: false,
            read_only: false,
            force: false,
            id: None,
        }
    }

    /// Logical block, a power of two up to 65536.
    #[must_use]
    pub const fn logical_block(mut self, bytes: u32) -> Self {
        self.logical = bytes;
        self
    }

    /// Physical block, a power of two.
    #[must_use]
    pub const fn physical_block(mut self, bytes: u32) -> Self {
        self.physical = bytes;
        self
    }

    /// Where the bytes live.
    #[must_use]
    pub fn backing(mut self, backing: Backing) -> Self {
        self.backing = backing;
        self
    }

    /// How much is taken at the start.
    #[must_use]
    pub const fn reserve(mut self, reserve: Reserve) -> Self {
        self.reserve = reserve;
        self
    }

    /// Most bytes that may be allocated; a write beyond it gets `NoSpace`.
    #[must_use]
    pub const fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Address space to reserve, so that it can grow up to this.
    #[must_use]
    pub const fn max(mut self, bytes: u64) -> Self {
        self.max = bytes;
        self
    }

    /// Asks for transparent huge pages.
    #[must_use]
    pub const fn huge(mut self, yes: bool) -> Self {
        self.huge = yes;
        self
    }

    /// Takes no changes.
    #[must_use]
    pub const fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Skips the check against available memory.
    #[must_use]
    pub const fn force(mut self, yes: bool) -> Self {
        self.force = yes;
        self
    }

    /// An instance name.
    #[must_use]
    pub fn id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(Into::into);
        self
    }

    pub(crate) fn info(&self) -> DeviceInfo {
        let mut info = DeviceInfo::new(self.size);
        info.logical_block = self.logical;
        info.physical_block = self.physical.max(self.logical);
        info.read_only = self.read_only;
        info.volatile_cache = matches!(self.backing, Backing::File { .. });
        info
    }

    /// Checks everything that can be checked without taking memory.
    pub(crate) fn check(&self) -> Result<(), RamError> {
        let wrong = |key, why| Err(RamError::Config { key, why });
        if !self.physical.is_power_of_two() || self.physical > 1 << 20 {
            return wrong(
                "physical",
                format!("{}: it must be a power of two up to 1m", self.physical),
            );
        }
        // The block is at fault when no size would do.
        let key = if check::size(u64::from(cairn_block::MAX_LOGICAL_BLOCK), self.logical).is_err() {
            "block"
        } else {
            "size"
        };
        if let Err(why) = check::size(self.size, self.logical) {
            return wrong(key, why);
        }
        if self.max < self.size {
            return wrong(
                "max",
                format!(
                    "{} is less than the size: at least {}",
                    print_size(self.max),
                    print_size(self.size)
                ),
            );
        }
        let mappable = self
            .max
            .checked_next_multiple_of(PAGE)
            .is_some_and(|n| isize::try_from(n).is_ok());
        if !mappable {
            return wrong(
                "max",
                format!("{} is more than this machine can map", human_size(self.max)),
            );
        }
        if let Some(limit) = self.limit
            && limit < PAGE
        {
            return wrong("limit", format!("{limit}: the smallest is one page, 4k"));
        }
        if self.limit.is_some() && self.reserve != Reserve::Lazy {
            return wrong(
                "limit",
                "everything is reserved already: leave out `limit` or `reserve`".to_owned(),
            );
        }
        self.fits()
    }

    fn fits(&self) -> Result<(), RamError> {
        let memory = !matches!(self.backing, Backing::File { .. });
        if self.force || !memory {
            return Ok(());
        }
        let need = match (self.reserve, self.limit) {
            (Reserve::Lazy, Some(limit)) => limit.min(self.size),
            _ => self.size,
        };
        match memory::available() {
            Some(have) if need > have.bytes => Err(RamError::TooLarge {
                need,
                available: have.bytes,
                what: have.what,
                limited: self.limit.is_some(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn node(&self) -> Node {
        let mut node = Node::new("ram")
            .arg("size", print_size(self.size))
            .opt_arg(
                "block",
                (self.logical != 1).then(|| print_size(self.logical.into())),
            )
            .opt_arg(
                "physical",
                (self.physical != 4096).then(|| print_size(self.physical.into())),
            );
        match &self.backing {
            Backing::Memfd => {}
            Backing::Anonymous => node = node.arg("backing", "anon"),
            Backing::File { path, sparse } => {
                node = node
                    .arg("backing", "file")
                    .arg("path", path.display())
                    .opt_arg("sparse", sparse.then_some(1));
            }
        }
        let reserve = match self.reserve {
            Reserve::Lazy => None,
            Reserve::Full => Some("full"),
            Reserve::Locked => Some("mlock"),
        };
        node.opt_arg("huge", self.huge.then_some("thp"))
            .opt_arg("reserve", reserve)
            .opt_arg("limit", self.limit.map(print_size))
            .opt_arg("max", (self.max != self.size).then(|| print_size(self.max)))
            .opt_arg("readonly", self.read_only.then_some(1))
            .opt_arg("force", self.force.then_some(1))
            .with_id(self.id.as_deref())
    }
}

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
