//! What a ramdisk is asked to be.

use std::path::PathBuf;

use cairn_block::check;
use cairn_block::spec::units::{human_size, print_size};
use cairn_block::{DeviceInfo, Node};

use crate::bitmap::{PAGE, PAGE_BYTES};
use crate::error::RamError;
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
    /// A file on disk.
    File {
        /// The file; it is made if it does not exist.
        path: PathBuf,
        /// Whether space is taken as it is written, instead of all at once.
        sparse: bool,
        /// How its bytes are reached.
        io: FileIo,
    },
    /// Memory of the pool of huge pages. What was taken is kept: discard zeroes.
    HugeTlb {
        /// Size of a page.
        page: HugePage,
    },
}

/// How the bytes of a file are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FileIo {
    /// Through a mapping: as fast as memory. Truncating the file from outside kills the process.
    #[default]
    Mapped,
    /// By `pread` and `pwrite`: one to two microseconds more for each request, and a truncated file is
    /// an error.
    Pread,
}

/// Sizes of pages in pools of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HugePage {
    /// 2 MiB.
    #[default]
    Mega2,
    /// 1 GiB.
    Giga1,
}

impl HugePage {
    /// Bytes in a page.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Mega2 => 2 << 20,
            Self::Giga1 => 1 << 30,
        }
    }
}

/// What the device holds at the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fill {
    /// Zeros, or what the file holds.
    #[default]
    Empty,
    /// Bytes that depend on the seed and their place alone.
    Seed(u64),
    /// A text over and over.
    Pattern(String),
    /// What an image holds; its holes stay holes.
    Image(PathBuf),
}

/// The memory nodes that the pages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Numa {
    /// One node.
    Node(u32),
    /// All in turn.
    Interleave,
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that are on or off, each on its own"
)]
pub struct RamConfig {
    pub(crate) size: u64,
    pub(crate) max: u64,
    pub(crate) logical: u32,
    pub(crate) physical: u32,
    pub(crate) backing: Backing,
    pub(crate) reserve: Reserve,
    pub(crate) limit: Option<u64>,
    pub(crate) huge: bool,
    pub(crate) fill: Fill,
    pub(crate) numa: Option<Numa>,
    pub(crate) atomic: bool,
    pub(crate) checksum: bool,
    pub(crate) shrinkable: bool,
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
            fill: Fill::Empty,
            numa: None,
            atomic: false,
            checksum: false,
            shrinkable: false,
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

    /// What it holds at the start.
    #[must_use]
    pub fn fill(mut self, fill: Fill) -> Self {
        self.fill = fill;
        self
    }

    /// The memory nodes its pages come from.
    #[must_use]
    pub const fn numa(mut self, numa: Numa) -> Self {
        self.numa = Some(numa);
        self
    }

    /// Makes reads and writes of an aligned 4 KiB atomic: a reader that races a writer sees the old
    /// block or the new one. Costs a lock for each block.
    #[must_use]
    pub const fn atomic(mut self, yes: bool) -> Self {
        self.atomic = yes;
        self
    }

    /// Keeps a CRC32C of each 4 KiB and checks it at each read. Makes blocks atomic too.
    #[must_use]
    pub const fn checksum(mut self, yes: bool) -> Self {
        self.checksum = yes;
        self
    }

    /// Gives up the seal that keeps others from cutting the memory file: whoever does kills the process.
    #[must_use]
    pub const fn shrinkable(mut self, yes: bool) -> Self {
        self.shrinkable = yes;
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
            let key = if self.max == self.size { "size" } else { "max" };
            let most = usize::MAX / 2 / PAGE_BYTES * PAGE_BYTES;
            let why = format!(
                "{} is more than this machine can map: at most {most}",
                human_size(self.max)
            );
            return wrong(key, why);
        }
        if let Some(limit) = self.limit
            && limit < PAGE
        {
            return wrong("limit", format!("{limit}: the smallest is one page, 4k"));
        }
        let all = matches!(self.fill, Fill::Seed(_) | Fill::Pattern(_));
        if let Some(limit) = self.limit
            && all
            && limit < self.size
        {
            return wrong(
                "limit",
                format!(
                    "{} is less than the {} that are filled: leave it out",
                    print_size(limit),
                    print_size(self.size)
                ),
            );
        }
        if matches!(&self.fill, Fill::Pattern(text) if text.is_empty()) {
            return wrong("pattern", "a pattern of no bytes: give some".to_owned());
        }
        if matches!(self.backing, Backing::HugeTlb { .. }) && self.huge {
            return wrong(
                "huge",
                "thp is for memory of small pages: with backing=hugetlb give 2m or 1g".to_owned(),
            );
        }
        if self.limit.is_some() && matches!(self.backing, Backing::HugeTlb { .. }) {
            return wrong(
                "limit",
                "huge pages are reserved at the start: leave it out".to_owned(),
            );
        }
        let unmapped = self.unmapped();
        if unmapped && (self.reserve != Reserve::Lazy || self.huge || self.numa.is_some()) {
            return wrong(
                "io",
                "pread maps nothing: leave out `reserve`, `huge` and `numa`".to_owned(),
            );
        }
        if self.limit.is_some() && self.reserve != Reserve::Lazy {
            return wrong(
                "limit",
                "everything is reserved already: leave out `limit` or `reserve`".to_owned(),
            );
        }
        self.fits()
    }

    /// Whether no byte is reached through a mapping.
    pub(crate) const fn unmapped(&self) -> bool {
        matches!(
            self.backing,
            Backing::File {
                io: FileIo::Pread,
                ..
            }
        )
    }

    /// Whether each page has a lock.
    pub(crate) const fn guarded(&self) -> bool {
        self.atomic || self.checksum
    }

    fn fits(&self) -> Result<(), RamError> {
        if let Backing::HugeTlb { page } = self.backing {
            let need = self.max.div_ceil(page.bytes());
            let free = memory::free_huge_pages(page.bytes());
            return if need > free {
                Err(RamError::HugePages {
                    page: page.bytes(),
                    need,
                    free,
                })
            } else {
                Ok(())
            };
        }
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
            Backing::File { path, sparse, io } => {
                node = node
                    .arg("backing", "file")
                    .arg("path", path.display())
                    .opt_arg("sparse", sparse.then_some(1))
                    .opt_arg("io", (*io == FileIo::Pread).then_some("pread"));
            }
            Backing::HugeTlb { page } => {
                node = node.arg("backing", "hugetlb").opt_arg(
                    "huge",
                    match page {
                        HugePage::Mega2 => None,
                        HugePage::Giga1 => Some("1g"),
                    },
                );
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
            .opt_arg(
                "numa",
                self.numa.map(|n| match n {
                    Numa::Node(n) => n.to_string(),
                    Numa::Interleave => "interleave".to_owned(),
                }),
            )
            .opt_arg(
                "seed",
                match &self.fill {
                    Fill::Seed(seed) => Some(seed),
                    _ => None,
                },
            )
            .opt_arg(
                "pattern",
                match &self.fill {
                    Fill::Pattern(text) => Some(text),
                    _ => None,
                },
            )
            .opt_arg(
                "load",
                match &self.fill {
                    Fill::Image(path) => Some(path.display()),
                    _ => None,
                },
            )
            .opt_arg("atomic", self.atomic.then_some("4k"))
            .opt_arg("checksum", self.checksum.then_some(1))
            .opt_arg("shrinkable", self.shrinkable.then_some(1))
            .opt_arg("readonly", self.read_only.then_some(1))
            .opt_arg("force", self.force.then_some(1))
            .with_id(self.id.as_deref())
    }
}
