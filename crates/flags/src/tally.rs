//! A probe that counts, ready to use: per bit, exactly, without a shared line.
//!
//! Each thread counts in a block of its own, by a plain load, add and store, since nobody else
//! writes there. Readers sum over the blocks. A block outlives its thread with its counts, and goes
//! to the next thread that needs one, so that there are never more blocks than threads at once.
//!
//! A thread without a block points to one that all such threads share, whose counts are negative
//! numbers: adding one shows by its sign, for free, that the thread must get a block first. What
//! racing threads leave there is negative still, and nobody reads it.
//!
//! The counters are plain atomics even under loom: they order nothing, and models would explode.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What a probe counts.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Rmw,
    Avoided,
    Redundant,
}

/// One thread's counts.
#[doc(hidden)]
#[repr(align(128))]
pub struct Counts([[AtomicU64; 64]; 3]);

impl Counts {
    const fn new() -> Self {
        Self([const { [const { AtomicU64::new(0) }; 64] }; 3])
    }

    /// The block of threads that have none.
    const fn nobody() -> Self {
        Self([const { [const { AtomicU64::new(1 << 63) }; 64] }; 3])
    }

    #[inline(always)]
    fn at(&self, kind: Kind, bit: u32) -> &AtomicU64 {
        #[expect(
            clippy::indexing_slicing,
            reason = "three kinds, and a bit index below 64"
        )]
        &self.0[kind as usize][bit as usize % 64]
    }

    /// Counts one, as the only writer; false when this is nobody's block.
    #[inline(always)]
    pub fn bump(&self, kind: Kind, bit: u32) -> bool {
        let count = self.at(kind, bit);
        let more = count.load(Relaxed).wrapping_add(1);
        count.store(more, Relaxed);
        more.cast_signed() >= 0
    }
}

/// Where threads point that have no block, be it not yet or no more.
#[doc(hidden)]
pub static NOBODY: Counts = Counts::nobody();

/// The counts of one probe type: a static, made by [`tally_probe!`](crate::tally_probe).
pub struct Tally {
    blocks: Mutex<Blocks>,
    /// For threads that are past the destruction of their thread-locals; many write here.
    late: Counts,
}

struct Blocks {
    all: Vec<&'static Counts>,
    free: Vec<&'static Counts>,
}

/// What was counted for one bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BitCount {
    /// Read-modify-writes done.
    pub rmw: u64,
    /// Read-modify-writes that a look at the word made unnecessary.
    pub avoided: u64,
    /// Of `rmw`, those that found the bit as they left it.
    pub redundant: u64,
}

impl BitCount {
    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            rmw: self.rmw.wrapping_sub(earlier.rmw),
            avoided: self.avoided.wrapping_sub(earlier.avoided),
            redundant: self.redundant.wrapping_sub(earlier.redundant),
        }
    }
}

impl Tally {
    /// No counts.
    #[expect(
        clippy::new_without_default,
        reason = "a static only; a default would invite tallies that no probe writes to"
    )]
    pub const fn new() -> Self {
        Self {
            blocks: Mutex::new(Blocks {
                all: Vec::new(),
                free: Vec::new(),
            }),
            late: Counts::new(),
        }
    }

    /// The counts of bit `bit` over all threads, those that have ended included. Each thread's own
    /// reports are in it once they are made; those of others appear soon.
    pub fn bit(&self, bit: u32) -> BitCount {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |kind| {
            let own = blocks.all.iter().map(|b| b.at(kind, bit).load(Relaxed));
            own.fold(self.late.at(kind, bit).load(Relaxed), u64::wrapping_add)
        };
        BitCount {
            rmw: sum(Kind::Rmw),
            avoided: sum(Kind::Avoided),
            redundant: sum(Kind::Redundant),
        }
    }

    fn take_block(&self) -> &'static Counts {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.free.pop().unwrap_or_else(|| {
            let block: &'static Counts = Box::leak(Box::new(Counts::new()));
            blocks.all.push(block);
            block
        })
    }

    fn give_back(&self, block: &'static Counts) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.free.push(block);
    }
}

/// Gives the thread's blocks back when it ends.
struct Owned {
    blocks: Vec<(
        &'static Tally,
        &'static std::thread::LocalKey<Cell<&'static Counts>>,
    )>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        for (tally, mine) in self.blocks.drain(..) {
            // The cell has no destructor, so it is there as long as the thread is.
            tally.give_back(mine.replace(&NOBODY));
        }
    }
}

thread_local! {
    static OWNED: std::cell::RefCell<Owned> =
        const { std::cell::RefCell::new(Owned { blocks: Vec::new() }) };
}

/// Counts one for a thread that has no block yet, and gives it one if it still lives.
#[doc(hidden)]
#[cold]
pub fn enter(
    tally: &'static Tally,
    mine: &'static std::thread::LocalKey<Cell<&'static Counts>>,
    kind: Kind,
    bit: u32,
) {
    let registered = OWNED.try_with(|owned| {
        let block = tally.take_block();
        owned.borrow_mut().blocks.push((tally, mine));
        mine.set(block);
        block.bump(kind, bit);
    });
    if registered.is_err() {
        tally.late.at(kind, bit).fetch_add(1, Relaxed);
    }
}

/// Defines a [`Probe`](crate::Probe) that counts what its words do, and where the counts are read.
///
/// A report costs a thread-local look-up and an uncontended add: a set of a bit that is set takes
/// about twice as long as without.
///
/// ```
/// use cairn_flags::{state_bits, tally_probe};
///
/// tally_probe! {
///     /// Counts what buffer heads do.
///     pub struct HeadProbe;
/// }
/// state_bits! {
///     pub struct Head: u32 { const VERIFIED = hint(3); }
/// }
///
/// let head = AtomicHead::<HeadProbe>::probed();
/// for _ in 0..100 {
///     head.set_verified();
/// }
/// let count = HeadProbe::tally().bit(3);
/// assert_eq!((count.rmw, count.avoided, count.redundant), (1, 99, 0));
/// ```
#[macro_export]
macro_rules! tally_probe {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident;) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        $vis enum $Name {}

        const _: () = {
            static TALLY: $crate::Tally = $crate::Tally::new();

            ::std::thread_local! {
                static MINE: ::core::cell::Cell<&'static $crate::__private::Counts> =
                    const { ::core::cell::Cell::new(&$crate::__private::NOBODY) };
            }

            #[inline(always)]
            fn report(kind: $crate::__private::Kind, bit: u32) {
                if !MINE.get().bump(kind, bit) {
                    $crate::__private::enter(&TALLY, &MINE, kind, bit);
                }
            }

            impl $Name {
                /// What all words with this probe have reported.
                pub fn tally() -> &'static $crate::Tally {
                    &TALLY
                }
            }

            impl $crate::Probe for $Name {
                const ON: bool = true;

                #[inline(always)]
                fn rmw(bit: u32) {
                    report($crate::__private::Kind::Rmw, bit);
                }

                #[inline(always)]
                fn avoided(bit: u32) {
                    report($crate::__private::Kind::Avoided, bit);
                }

                #[inline(always)]
                fn redundant(bit: u32) {
                    report($crate::__private::Kind::Redundant, bit);
                }
            }
        };
    };
}
