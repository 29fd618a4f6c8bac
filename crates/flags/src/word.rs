//! The integers a flag word can be made of.
//!
//! [`Word`] is sealed: the hidden operations name exactly the instructions whose code generation
//! the crate's tests hold, and nothing outside may add a width for which they were not looked at.

use core::sync::atomic::Ordering;

use bitflags::parser::WriteHex;

/// An integer that can hold the bits of an [`AtomicFlags`](crate::AtomicFlags): `u8`, `u16`,
/// `u32`, `u64` or `usize`.
///
/// Sealed. Waits use the operating system directly only for `u32` on Linux, since a futex word has
/// 32 bits; the other widths wait in a table of condition variables.
pub trait Word: bitflags::Bits + WriteHex + Ord + sealed::Sealed {
    /// The atomic integer of this width.
    type Atomic: Send + Sync;

    /// Bits in the word.
    const BITS: u32;

    #[cfg(not(loom))]
    #[doc(hidden)]
    const ZERO: Self::Atomic;

    #[doc(hidden)]
    fn cell(value: Self) -> Self::Atomic;
    #[doc(hidden)]
    fn one_bit(bit: u32) -> Self;
    #[doc(hidden)]
    fn to_u64(self) -> u64;
    #[doc(hidden)]
    fn picked(old: Self, mask: Self) -> Self;
    #[doc(hidden)]
    fn load(cell: &Self::Atomic, order: Ordering) -> Self;
    #[doc(hidden)]
    fn store(cell: &Self::Atomic, value: Self, order: Ordering);
    #[doc(hidden)]
    fn swap(cell: &Self::Atomic, value: Self, order: Ordering) -> Self;
    #[doc(hidden)]
    fn fetch_or(cell: &Self::Atomic, mask: Self, order: Ordering) -> Self;
    #[doc(hidden)]
    fn fetch_and(cell: &Self::Atomic, mask: Self, order: Ordering) -> Self;
    #[doc(hidden)]
    fn fetch_xor(cell: &Self::Atomic, mask: Self, order: Ordering) -> Self;
    #[doc(hidden)]
    fn fetch_sub(cell: &Self::Atomic, value: Self, order: Ordering) -> Self;
    #[doc(hidden)]
    fn exchange(
        cell: &Self::Atomic,
        old: Self,
        new: Self,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self, Self>;
    #[doc(hidden)]
    fn with_mut<R>(cell: &mut Self::Atomic, f: impl FnOnce(&mut Self) -> R) -> R;
    #[doc(hidden)]
    fn into_inner(cell: Self::Atomic) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// The atomic integer behind an [`AtomicFlags`](crate::AtomicFlags) of flag type `F`.
///
/// ```
/// use cairn_flags::{AtomicFlags, Storage};
/// bitflags::bitflags! {
///     pub struct Seen: u16 { const ONCE = 1; }
/// }
/// // An `AtomicU16`, be it core's or portable-atomic's.
/// static INITIAL: AtomicFlags<Seen> = AtomicFlags::from_storage(<Storage<Seen>>::new(1));
/// assert!(INITIAL.contains(Seen::ONCE));
/// ```
pub type Storage<F> = <<F as bitflags::Flags>::Bits as Word>::Atomic;

macro_rules! words {
    ($($int:ident $atomic:ident $hide:ident),*) => {$(
        impl sealed::Sealed for $int {}

        impl Word for $int {
            type Atomic = crate::sync::$atomic;
            const BITS: u32 = $int::BITS;
            #[cfg(not(loom))]
            #[expect(
                clippy::declare_interior_mutable_const,
                reason = "a template for const constructors; each use makes its own cell"
            )]
            const ZERO: Self::Atomic = crate::sync::$atomic::new(0);

            #[inline(always)]
            fn cell(value: Self) -> Self::Atomic {
                crate::sync::$atomic::new(value)
            }
            #[inline(always)]
            fn one_bit(bit: u32) -> Self {
                1 << bit
            }
            #[allow(clippy::cast_lossless, reason = "usize has no From, the others share its line")]
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            /// `old & mask`, in the shape that becomes `lock bts` for any single bit.
            ///
            /// LLVM turns the test of a word's top bit into one of its sign before it looks for
            /// `bts`, and then makes a compare-and-swap loop; so that one test is hidden from it.
            #[inline(always)]
            fn picked(old: Self, mask: Self) -> Self {
                let bits = old & mask;
                if mask == 1 << ($int::BITS - 1) { hide::$hide(bits) } else { bits }
            }
            #[inline(always)]
            fn load(cell: &Self::Atomic, order: Ordering) -> Self {
                cell.load(order)
            }
            #[inline(always)]
            fn store(cell: &Self::Atomic, value: Self, order: Ordering) {
                cell.store(value, order);
            }
            #[inline(always)]
            fn swap(cell: &Self::Atomic, value: Self, order: Ordering) -> Self {
                cell.swap(value, order)
            }
            #[inline(always)]
            fn fetch_or(cell: &Self::Atomic, mask: Self, order: Ordering) -> Self {
                cell.fetch_or(mask, order)
            }
            #[inline(always)]
            fn fetch_and(cell: &Self::Atomic, mask: Self, order: Ordering) -> Self {
                cell.fetch_and(mask, order)
            }
            #[inline(always)]
            fn fetch_xor(cell: &Self::Atomic, mask: Self, order: Ordering) -> Self {
                cell.fetch_xor(mask, order)
            }
            #[inline(always)]
            fn fetch_sub(cell: &Self::Atomic, value: Self, order: Ordering) -> Self {
                cell.fetch_sub(value, order)
            }
            #[inline(always)]
            fn exchange(
                cell: &Self::Atomic,
                old: Self,
                new: Self,
                success: Ordering,
                failure: Ordering,
            ) -> Result<Self, Self> {
                cell.compare_exchange_weak(old, new, success, failure)
            }
            #[inline(always)]
            fn with_mut<R>(cell: &mut Self::Atomic, f: impl FnOnce(&mut Self) -> R) -> R {
                #[cfg(loom)]
                {
                    cell.with_mut(f)
                }
                #[cfg(not(loom))]
                {
                    f(cell.get_mut())
                }
            }
            #[inline(always)]
            fn into_inner(cell: Self::Atomic) -> Self {
                cell.into_inner()
            }
        }
    )*};
}

/// Identities that the optimiser cannot see through. They cost no instruction.
mod hide {
    macro_rules! hide {
        ($($name:ident $int:ident $template:literal),*) => {$(
            #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
            #[inline(always)]
            pub(super) fn $name(mut value: $int) -> $int {
                // SAFETY: the block is a comment. It touches neither memory nor flags, and leaves
                // the register as it is.
                unsafe {
                    core::arch::asm!(
                        $template,
                        inout(reg) value,
                        options(pure, nomem, nostack, preserves_flags),
                    );
                }
                value
            }

            #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
            #[inline(always)]
            pub(super) fn $name(value: $int) -> $int {
                value
            }
        )*};
    }

    hide!(u16 u16 "/* {0:x} */", u32 u32 "/* {0:e} */", u64 u64 "/* {0:r} */");
    hide!(usize usize "/* {0:r} */");

    /// There is no `bts` of 8 bits to be had.
    #[inline(always)]
    pub(super) fn u8(value: u8) -> u8 {
        value
    }
}

words!(u8 AtomicU8 u8, u16 AtomicU16 u16, u32 AtomicU32 u32, usize AtomicUsize usize);
#[cfg(any(loom, feature = "portable-atomic", target_has_atomic = "64"))]
words!(u64 AtomicU64 u64);
