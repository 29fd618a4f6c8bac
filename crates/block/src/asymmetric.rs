//! A pair of fences of which one costs nothing: for what is done at every request on one side, and must
//! be waited for now and then on the other.
//!
//! # Ordering
//! When one thread stores `a`, calls [`light`] and loads `b`, and another stores `b`, calls [`heavy`] and
//! loads `a`, then at least one of the two sees the other's store. Two `SeqCst` fences promise the same,
//! but a fence on the hot side waits until all earlier stores of its processor have left, for example
//! those of a copy. Linux's `membarrier(2)` makes every running thread of the process execute a full
//! barrier instead, so that [`light`] only has to keep the compiler from moving things.
//!
//! Where the call is missing, both are `SeqCst` fences. `tests/loom.rs` has models of both forms, and shows
//! that neither holds with one of its parts left out.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, membarrier};

const UNKNOWN: u8 = 0;
const MEMBARRIER: u8 = 1;
const FENCES: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The side that is free.
#[inline]
pub fn light() {
    if MODE.load(Ordering::Relaxed) == MEMBARRIER {
        compiler_fence(Ordering::SeqCst);
    } else {
        // Pairs with both forms of `heavy`, so it does not matter that others may decide meanwhile.
        fence(Ordering::SeqCst);
    }
}

/// The side that pays: a system call that reaches every processor this process runs on.
///
/// # Panics
/// If the system refuses a barrier that it granted before, which it does not.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if mode() == MEMBARRIER {
        membarrier(MembarrierCommand::PrivateExpedited)
            .expect("the process has registered for it, and a registration is for good");
    }
    fence(Ordering::SeqCst);
}

/// Finds out, once, which form this system has. Whoever will call [`light`] often does this first.
pub fn prepare() {
    mode();
}

fn mode() -> u8 {
    match MODE.load(Ordering::Acquire) {
        UNKNOWN => {
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
                && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
            let found = if registered { MEMBARRIER } else { FENCES };
            // The first to decide decides for all and for good: a filter of system calls may make two
            // threads find different things, and a light side without a fence needs every heavy one to call.
            MODE.compare_exchange(UNKNOWN, found, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|decided| decided, |_| found)
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn one_of_the_two_sees_the_other() {
        const ROUNDS: u32 = 3000;
        prepare();
        let (a, b) = (AtomicU32::new(0), AtomicU32::new(0));
        let start = Barrier::new(2);
        let (from_light, from_heavy) = std::thread::scope(|s| {
            let light_side = s.spawn(|| {
                let mut seen = Vec::new();
                for round in 1..=ROUNDS {
                    start.wait();
                    a.store(round, Ordering::Relaxed);
                    light();
                    seen.push(b.load(Ordering::Relaxed) == round);
                }
                seen
            });
            let heavy_side = s.spawn(|| {
                let mut seen = Vec::new();
                for round in 1..=ROUNDS {
                    start.wait();
                    b.store(round, Ordering::Relaxed);
                    heavy();
                    seen.push(a.load(Ordering::Relaxed) == round);
                }
                seen
            });
            (light_side.join().unwrap(), heavy_side.join().unwrap())
        });
        for (round, (x, y)) in from_light.iter().zip(&from_heavy).enumerate() {
            assert!(x | y, "round {round}: neither saw the other");
        }
    }
}
