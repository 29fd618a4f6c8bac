//! What a `state_bits!` type says of its own bits, for displays and reports.

use core::fmt;

/// The role a bit was declared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Losing a set is harmless; nothing is ordered by it.
    Hint,
    /// Set once when data is ready; a reader that sees it sees the data.
    Publish,
    /// "Please process": no mark may be lost between a marker and a taker.
    Work,
    /// A bit lock.
    Lock,
    /// Says that somebody waits for the lock bit it belongs to.
    Waiters,
    /// The caller picks every ordering.
    Plain,
}

impl Role {
    /// The role's keyword.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Publish => "publish",
            Self::Work => "work",
            Self::Lock => "lock",
            Self::Waiters => "waiters",
            Self::Plain => "plain",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One declared bit of a `state_bits!` type; see its `LAYOUT` constant.
///
/// ```
/// use cairn_flags::{Role, state_bits};
/// state_bits! {
///     pub struct State: u32 {
///         const DIRTY = work(2);
///         const LOCK = lock(3, waiters = 4);
///     }
/// }
/// let names: Vec<_> = State::LAYOUT.iter().map(|b| (b.name, b.bit)).collect();
/// assert_eq!(names, [("DIRTY", 2), ("LOCK", 3), ("LOCK_WAITERS", 4)]);
/// assert_eq!(State::LAYOUT[0].role, Role::Work);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateBit {
    /// The name it was declared with.
    pub name: &'static str,
    /// Its index in the word, 0 the lowest.
    pub bit: u32,
    /// Its role.
    pub role: Role,
}

impl StateBit {
    /// Describes one bit.
    pub const fn new(name: &'static str, bit: u32, role: Role) -> Self {
        Self { name, bit, role }
    }
}
