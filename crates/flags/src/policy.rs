//! The run-time choice between the two ways to set a hint bit.
//!
//! Both forms stay real: [`AlwaysRmw`](SetPolicy::AlwaysRmw) does its read-modify-write even when
//! the bit is set, which is what one measures against.

use core::fmt;
use core::str::FromStr;
use core::sync::atomic::{AtomicU8, Ordering};

/// How to set a hint bit that may be set already.
///
/// ```
/// use cairn_flags::SetPolicy;
/// assert_eq!("check-first".parse(), Ok(SetPolicy::CheckFirst));
/// assert_eq!(SetPolicy::AlwaysRmw.to_string(), "always-rmw");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SetPolicy {
    /// One atomic read-modify-write each time: takes the cache line exclusively, needed or not.
    AlwaysRmw,
    /// A plain load first, and the read-modify-write only when the bit is clear.
    #[default]
    CheckFirst,
}

impl SetPolicy {
    /// Both forms, the unconditional one first.
    pub const ALL: [Self; 2] = [Self::AlwaysRmw, Self::CheckFirst];

    /// The policy's name: `always-rmw` or `check-first`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlwaysRmw => "always-rmw",
            Self::CheckFirst => "check-first",
        }
    }
}

impl fmt::Display for SetPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SetPolicy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or(UnknownPolicy)
    }
}

/// The name is none of the [`SetPolicy`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown set policy: one of always-rmw, check-first")
    }
}

impl core::error::Error for UnknownPolicy {}

/// A [`SetPolicy`] that can be exchanged while others read it.
///
/// # Ordering
/// [`get`](Self::get) and [`set`](Self::set) are relaxed: a reader learns of a change soon, and
/// the change orders nothing else. Both policies are correct at any moment, so no more is needed.
///
/// ```
/// use cairn_flags::{PolicyCell, SetPolicy, state_bits};
/// static POLICY: PolicyCell = PolicyCell::new(SetPolicy::CheckFirst);
/// state_bits! {
///     pub struct State: u32 { const VERIFIED = hint(0); }
/// }
/// let word = AtomicState::new();
/// word.set_verified_with(POLICY.get());
/// POLICY.set(SetPolicy::AlwaysRmw);
/// word.set_verified_with(POLICY.get());
/// assert!(word.verified());
/// ```
pub struct PolicyCell(AtomicU8);

impl PolicyCell {
    /// A cell that holds `policy`.
    pub const fn new(policy: SetPolicy) -> Self {
        Self(AtomicU8::new(policy as u8))
    }

    /// The policy now: one relaxed load.
    #[inline(always)]
    pub fn get(&self) -> SetPolicy {
        if self.0.load(Ordering::Relaxed) == SetPolicy::AlwaysRmw as u8 {
            SetPolicy::AlwaysRmw
        } else {
            SetPolicy::CheckFirst
        }
    }

    /// Exchanges the policy: one relaxed store.
    pub fn set(&self, policy: SetPolicy) {
        self.0.store(policy as u8, Ordering::Relaxed);
    }
}

impl Default for PolicyCell {
    fn default() -> Self {
        Self::new(SetPolicy::default())
    }
}

impl fmt::Debug for PolicyCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyCell").field(&self.get()).finish()
    }
}
