//! [`AtomicFlags`]: a `bitflags` type in one atomic integer. Constructors, looks, exclusive forms.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use bitflags::{Bits, Flags};

use crate::probe::{NoProbe, Probe};
use crate::word::{Storage, Word};

/// A flag word whose caller picks the ordering, or the role, of each operation.
///
/// This is the layer below [`state_bits!`](crate::state_bits): any operation on any bit. The
/// wrappers made by the macro allow each bit only what its role makes correct, and hand out this
/// type through their `as_raw()`.
///
/// Give single bits as constants where the result is used: `test_and_set::<3>(..)` becomes one
/// `lock bts`, whereas a mask known only at run time becomes a compare-and-swap loop.
///
/// ```
/// use std::sync::atomic::Ordering::{AcqRel, Relaxed};
/// use cairn_flags::AtomicFlags;
/// bitflags::bitflags! {
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub struct State: u32 { const SEEN = 1; const BUSY = 1 << 1; }
/// }
/// static WORD: AtomicFlags<State> = AtomicFlags::new();
/// assert!(!WORD.test_and_set::<1>(AcqRel));
/// assert!(WORD.set_if_clear(State::SEEN));
/// assert_eq!(WORD.load(Relaxed), State::SEEN | State::BUSY);
/// assert_eq!(format!("{WORD:?}"), "AtomicFlags(SEEN | BUSY)");
/// ```
///
/// # Panics
/// As in the standard library, a load with `Release` or `AcqRel`, or a store with `Acquire` or
/// `AcqRel`, panics.
#[repr(transparent)]
pub struct AtomicFlags<F: Flags, P: Probe = NoProbe>
where
    F::Bits: Word,
{
    pub(crate) cell: Storage<F>,
    kind: PhantomData<fn() -> (F, P)>,
}

impl<F: Flags> AtomicFlags<F>
where
    F::Bits: Word,
{
    /// A word with no bit set, without a probe.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self::probed()
    }

    /// A word with no bit set, without a probe.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self::probed()
    }

    /// A word made of an atomic integer, without a probe: the way to a constant that has bits set.
    pub const fn from_storage(cell: Storage<F>) -> Self {
        Self::probed_from(cell)
    }
}

impl<F: Flags, P: Probe> AtomicFlags<F, P>
where
    F::Bits: Word,
{
    /// A word with no bit set that reports to `P`.
    #[cfg(not(loom))]
    pub const fn probed() -> Self {
        Self::probed_from(F::Bits::ZERO)
    }

    /// A word with no bit set that reports to `P`.
    #[cfg(loom)]
    pub fn probed() -> Self {
        Self::probed_from(F::Bits::cell(F::empty().bits()))
    }

    /// A word made of an atomic integer that reports to `P`.
    pub const fn probed_from(cell: Storage<F>) -> Self {
        Self {
            cell,
            kind: PhantomData,
        }
    }

    /// The whole word.
    ///
    /// # Ordering
    /// One load with `order`; nothing changes.
    #[inline(always)]
    pub fn load(&self, order: Ordering) -> F {
        F::from_bits_retain(F::Bits::load(&self.cell, order))
    }

    /// Whether all of `flags` are set.
    ///
    /// # Ordering
    /// One relaxed load: orders nothing, whatever it finds, as `test_bit()` of the kernel
    /// (`Documentation/atomic_bitops.txt`: not an RMW, so unordered).
    #[inline(always)]
    pub fn contains(&self, flags: F) -> bool {
        self.load(Ordering::Relaxed).contains(flags)
    }

    /// Whether any of `flags` is set.
    ///
    /// # Ordering
    /// One relaxed load: orders nothing, whatever it finds.
    #[inline(always)]
    pub fn intersects(&self, flags: F) -> bool {
        self.load(Ordering::Relaxed).intersects(flags)
    }

    /// Whether all of `flags` are set; what their release-setters wrote before is then visible.
    ///
    /// # Ordering
    /// One acquire load, whatever it finds. Pairs with [`publish`](Self::publish); Linux learned in
    /// d4252071b97d (2022) that a test without it reads stale buffers.
    #[inline(always)]
    pub fn contains_acquire(&self, flags: F) -> bool {
        self.load(Ordering::Acquire).contains(flags)
    }

    /// The whole word, from its exclusive owner: a plain load.
    #[inline]
    pub fn load_mut(&mut self) -> F {
        F::from_bits_retain(F::Bits::with_mut(&mut self.cell, |w| *w))
    }

    /// Replaces the word, by its exclusive owner: a plain store that reports to no probe.
    ///
    /// # Ordering
    /// Of itself none: what makes the object reachable for others orders it, as with the kernel's
    /// non-atomic `__set_bit()`. The same holds for the other `_mut` forms.
    #[inline]
    pub fn store_mut(&mut self, flags: F) {
        F::Bits::with_mut(&mut self.cell, |w| *w = flags.bits());
    }

    /// Sets `flags`, by the exclusive owner: plain instructions that report to no probe.
    ///
    /// ```
    /// # use cairn_flags::state_bits;
    /// # state_bits! { pub struct State: u32 { const MAPPED = plain(0); } }
    /// let mut word = AtomicState::new();
    /// word.set_mut(State::MAPPED); // not shared yet: no atomic instruction
    /// assert_eq!(word.load_mut(), State::MAPPED);
    /// ```
    #[inline]
    pub fn set_mut(&mut self, flags: F) {
        F::Bits::with_mut(&mut self.cell, |w| *w = *w | flags.bits());
    }

    /// Clears `flags`, by the exclusive owner: plain instructions that report to no probe.
    #[inline]
    pub fn clear_mut(&mut self, flags: F) {
        F::Bits::with_mut(&mut self.cell, |w| *w = *w & !flags.bits());
    }

    /// Takes the word apart.
    #[inline]
    pub fn into_inner(self) -> F {
        F::from_bits_retain(F::Bits::into_inner(self.cell))
    }

    /// Reports one read-modify-write on `mask`; `before` tells which bits it left as they were.
    #[inline(always)]
    pub(crate) fn note_rmw(mask: F::Bits, unchanged: impl FnOnce() -> F::Bits) {
        if P::ON {
            let unchanged = unchanged().to_u64();
            let mut rest = mask.to_u64();
            while rest != 0 {
                let bit = rest.trailing_zeros();
                P::rmw(bit);
                if unchanged & (1 << bit) != 0 {
                    P::redundant(bit);
                }
                rest &= rest - 1;
            }
        }
    }

    /// Reports that no read-modify-write was needed for `mask`.
    #[inline(always)]
    pub(crate) fn note_avoided(mask: F::Bits) {
        if P::ON {
            let mut rest = mask.to_u64();
            while rest != 0 {
                P::avoided(rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
    }

    /// The word's bits, for a probe's eyes only.
    #[inline(always)]
    pub(crate) fn peek(&self) -> F::Bits {
        F::Bits::load(&self.cell, Ordering::Relaxed)
    }

    /// The mask of one bit, whose index must fit the word.
    #[inline(always)]
    pub(crate) fn one<const BIT: u32>() -> F::Bits {
        const {
            assert!(
                BIT < <F::Bits as Word>::BITS,
                "the bit's index must be below the number of bits in the word"
            );
        }
        F::Bits::one_bit(BIT)
    }
}

impl<F: Flags, P: Probe> Default for AtomicFlags<F, P>
where
    F::Bits: Word,
{
    fn default() -> Self {
        Self::probed()
    }
}

impl<F: Flags> From<F> for AtomicFlags<F>
where
    F::Bits: Word,
{
    fn from(flags: F) -> Self {
        Self::from_storage(F::Bits::cell(flags.bits()))
    }
}

impl<F: Flags, P: Probe> fmt::Debug for AtomicFlags<F, P>
where
    F::Bits: Word,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names("AtomicFlags", &self.load(Ordering::Relaxed), f)
    }
}

/// Writes `type_name(A | B | 0x80)`, and `type_name(0x0)` when nothing is set.
#[doc(hidden)]
pub fn write_names<F: Flags>(type_name: &str, flags: &F, f: &mut fmt::Formatter<'_>) -> fmt::Result
where
    F::Bits: Word,
{
    write!(f, "{type_name}(")?;
    if flags.bits() == F::Bits::EMPTY {
        f.write_str("0x0")?;
    } else {
        bitflags::parser::to_writer(flags, &mut *f)?;
    }
    f.write_str(")")
}

/// Displays the name of a bit of `F`, or its index when it has none.
pub(crate) struct BitName<F> {
    bit: u32,
    kind: PhantomData<F>,
}

impl<F: Flags> BitName<F> {
    pub(crate) fn new(bit: u32) -> Self {
        Self {
            bit,
            kind: PhantomData,
        }
    }
}

impl<F: Flags> fmt::Display for BitName<F>
where
    F::Bits: Word,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mask = F::Bits::one_bit(self.bit);
        match F::FLAGS.iter().find(|flag| flag.value().bits() == mask) {
            Some(flag) => f.write_str(flag.name()),
            None => write!(f, "bit {}", self.bit),
        }
    }
}
