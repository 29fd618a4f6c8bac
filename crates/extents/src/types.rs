//! The vocabulary: what can be known of a block, and the entries that say it.

use core::fmt;
use core::ops::BitOr;

use crate::error::Error;

/// One past the last legal logical block: a range is legal if it ends here or before, so the last
/// block that can be known is `0xffff_fffe`, as on disk.
pub const MAX_BLOCK: u32 = u32::MAX;

/// One past the last legal physical block. The format on disk has 48 bits; the top number stays
/// unused so that no two contiguous runs can meet across the wrap.
pub const MAX_PHYSICAL: u64 = (1 << 48) - 1;

/// What is known of a run of blocks.
///
/// The numbers are the physical block of the run's first block. A delayed run and a hole have no
/// physical block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Mapped, and the data on disk is valid.
    Written(u64),
    /// Mapped, but reads as zeroes until written.
    Unwritten(u64),
    /// Reserved in memory, not yet mapped.
    Delayed,
    /// Known to be unmapped.
    Hole,
    /// Preallocated and delayed at once. Kernels up to 6.11 had it; only maps built with
    /// [`Config::with_legacy_ud`](crate::Config::with_legacy_ud) accept it.
    DelayedUnwritten(u64),
}

impl Status {
    /// The status without its physical block.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Written(_) => Kind::Written,
            Self::Unwritten(_) => Kind::Unwritten,
            Self::Delayed => Kind::Delayed,
            Self::Hole => Kind::Hole,
            Self::DelayedUnwritten(_) => Kind::DelayedUnwritten,
        }
    }

    /// Physical block of the first block, `None` for delayed runs and holes.
    pub const fn physical(self) -> Option<u64> {
        match self {
            Self::Written(p) | Self::Unwritten(p) | Self::DelayedUnwritten(p) => Some(p),
            Self::Delayed | Self::Hole => None,
        }
    }

    /// The status of the same run from its block number `by` on.
    ///
    /// ```
    /// use cairn_extents::Status;
    /// assert_eq!(Status::Written(100).advanced(5), Status::Written(105));
    /// assert_eq!(Status::Hole.advanced(5), Status::Hole);
    /// ```
    #[must_use]
    pub const fn advanced(self, by: u32) -> Self {
        match self {
            Self::Written(p) => Self::Written(p.wrapping_add(by as u64)),
            Self::Unwritten(p) => Self::Unwritten(p.wrapping_add(by as u64)),
            Self::DelayedUnwritten(p) => Self::DelayedUnwritten(p.wrapping_add(by as u64)),
            Self::Delayed | Self::Hole => self,
        }
    }

    /// Whether memory alone holds this: the shrinker and [`clear`](crate::ExtentMap::clear) must
    /// keep it.
    pub const fn must_keep(self) -> bool {
        matches!(self, Self::Delayed | Self::DelayedUnwritten(_))
    }

    /// Whether the blocks count as reserved: delayed and nothing else.
    pub const fn is_reserved(self) -> bool {
        matches!(self, Self::Delayed)
    }

    /// Whether the blocks are mapped on disk and not delayed.
    pub const fn is_mapped(self) -> bool {
        matches!(self, Self::Written(_) | Self::Unwritten(_))
    }

    /// Whether a run of `len` blocks with this status continues in one with status `right`.
    pub(crate) fn continues(self, len: u32, right: Self) -> bool {
        self.advanced(len) == right
    }
}

/// A [`Status`] without its physical block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// See [`Status::Written`].
    Written,
    /// See [`Status::Unwritten`].
    Unwritten,
    /// See [`Status::Delayed`].
    Delayed,
    /// See [`Status::Hole`].
    Hole,
    /// See [`Status::DelayedUnwritten`].
    DelayedUnwritten,
}

impl Kind {
    /// The flag bits the kernel uses: written 1, unwritten 2, delayed 4, hole 8.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Written => 1,
            Self::Unwritten => 2,
            Self::Delayed => 4,
            Self::Hole => 8,
            Self::DelayedUnwritten => 6,
        }
    }

    /// The kernel's letters for it.
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Written => "W",
            Self::Unwritten => "U",
            Self::Delayed => "D",
            Self::Hole => "H",
            Self::DelayedUnwritten => "UD",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.letters())
    }
}

/// A set of kinds to search for.
///
/// ```
/// use cairn_extents::{Match, Status};
/// let data = Match::WRITTEN | Match::DELAYED;
/// assert!(data.accepts(Status::Delayed) && !data.accepts(Status::Hole));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Match(u8);

impl Match {
    /// Written runs.
    pub const WRITTEN: Self = Self(1);
    /// Unwritten runs, delayed or not.
    pub const UNWRITTEN: Self = Self(2);
    /// Delayed runs, unwritten or not.
    pub const DELAYED: Self = Self(4);
    /// Holes.
    pub const HOLE: Self = Self(8);
    /// Everything that is known.
    pub const ANY: Self = Self(15);

    /// Whether `status` is one of the set.
    pub const fn accepts(self, status: Status) -> bool {
        self.0 & status.kind().bits() != 0
    }
}

impl BitOr for Match {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One entry: a run of blocks of which the same is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First logical block.
    pub lblk: u32,
    /// Number of blocks, never 0.
    pub len: u32,
    /// What is known of them.
    pub status: Status,
    /// Looked up since the shrinker last passed.
    pub referenced: bool,
}

impl Extent {
    /// Last logical block.
    pub const fn last(&self) -> u32 {
        self.lblk.wrapping_add(self.len).wrapping_sub(1)
    }

    /// First logical block after the entry.
    pub const fn end(&self) -> u32 {
        self.lblk.wrapping_add(self.len)
    }

    /// Whether `lblk` lies inside.
    pub const fn contains(&self, lblk: u32) -> bool {
        lblk >= self.lblk && lblk <= self.last()
    }

    /// Physical block of logical block `lblk`, `None` if it has none or lies outside.
    pub fn physical_at(&self, lblk: u32) -> Option<u64> {
        if !self.contains(lblk) {
            return None;
        }
        self.status.advanced(lblk - self.lblk).physical()
    }

    /// The part from `lblk` on, which must lie inside.
    #[must_use]
    pub(crate) fn tail_at(self, lblk: u32) -> Self {
        let by = lblk - self.lblk;
        Self {
            lblk,
            len: self.len - by,
            status: self.status.advanced(by),
            referenced: self.referenced,
        }
    }
}

impl fmt::Display for Extent {
    /// As in kernel traces: `[0/16384) 262144 WR`, without a block for delayed runs and holes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}/{}) ", self.lblk, self.len)?;
        if let Some(p) = self.status.physical() {
            write!(f, "{p} ")?;
        }
        f.write_str(self.status.kind().letters())?;
        if self.referenced {
            f.write_str("R")?;
        }
        Ok(())
    }
}

/// The answer of a look-up that hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// The whole entry, as it was before this look-up marked it referenced.
    pub extent: Extent,
    /// The map's sequence number: valid as long as [`ExtentMap::is_current`](crate::ExtentMap::is_current) says so.
    pub seq: u64,
}

/// What [`cache`](crate::ExtentMap::cache) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cached {
    /// The range is in the map now.
    Inserted {
        /// An entry of the same kind but with another physical block was replaced.
        remapped: bool,
    },
    /// One entry said the same of the whole range already.
    Covered,
    /// Something was known of the range, so nothing was changed. In an inert map, and when memory
    /// runs out, too.
    Ignored,
    /// A hole was offered where blocks are delayed; the delayed blocks stay.
    HoleOverDelayed,
    /// This entry says something else; nothing was changed.
    Conflict(Extent),
}

/// Clusters that an operation set free; the caller takes [`total`](Released::total) off its
/// reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "the reservation must be lowered by the total"]
pub struct Released {
    /// Clusters that held delayed blocks and hold none any more.
    pub delayed_clusters: u32,
    /// Clusters that became partly allocated and still hold delayed blocks.
    pub new_pendings: u32,
}

impl Released {
    /// Clusters to take off the reservation.
    pub const fn total(self) -> u64 {
        self.delayed_clusters as u64 + self.new_pendings as u64
    }
}

/// What a bulk load did with the entries of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loaded {
    /// Entries and holes now in the map through this load.
    pub inserted: u32,
    /// Entries and holes that were known already, or were ignored because something was.
    pub known: u32,
    /// Entries and holes refused because an entry said something else.
    pub conflicts: u32,
}

/// Last block of the range, `None` if the range is empty.
///
/// # Errors
/// [`Error::Range`] if it does not end at or before [`MAX_BLOCK`].
pub(crate) fn last_block(lblk: u32, len: u32) -> Result<Option<u32>, Error> {
    match lblk.checked_add(len) {
        None => Err(Error::Range { lblk, len }),
        Some(_) if len == 0 => Ok(None),
        Some(end) => Ok(Some(end - 1)),
    }
}

/// Refuses a physical run that does not fit, or a status this map does not know.
pub(crate) fn check_status(
    lblk: u32,
    len: u32,
    status: Status,
    legacy_ud: bool,
) -> Result<(), Error> {
    if let Some(physical) = status.physical() {
        let fits = physical
            .checked_add(u64::from(len))
            .is_some_and(|end| end <= MAX_PHYSICAL);
        if !fits {
            return Err(Error::Physical {
                lblk,
                len,
                physical,
            });
        }
    }
    if matches!(status, Status::DelayedUnwritten(_)) && !legacy_ud {
        return Err(Error::LegacyStatus { lblk, len });
    }
    Ok(())
}
