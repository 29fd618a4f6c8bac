//! Are the sections what they claim to be, on this kernel and this processor?
//!
//! Two threads are pinned to one CPU and add to one slot through a section with a wide gap between its load and
//! its store. They preempt each other in that gap; a section that is not restarted then stores over what
//! the other added. The test goes on until sections were seen to be restarted often enough to believe in
//! it, or until there was chance enough: then adds were exact, but little was proven, and the caller decides.
//! Chance is counted in adds, too, because on a busy machine the two may get no CPU for a while.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Area, arch};
use crate::backend::Refusal;
use crate::slot::Slot;

/// Restarts that must be seen.
const RESTARTS: u64 = 2;
/// When to give up waiting for them: not before so much time and so many adds, which take about as long.
const PATIENCE: Duration = Duration::from_millis(60);
const ADDS: u64 = 60_000;
/// When to give up in any case.
const DEADLINE: Duration = Duration::from_secs(1);
/// Turns of the delay loop between load and store: about a microsecond, so that nearly all of the time is
/// spent in the gap.
const GAP: u64 = 1_000;

/// What the test saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    added: u64,
    counted: u64,
    restarts: u64,
}

/// Runs the test on `area`, which must hold CPU ids.
pub(super) fn run(area: Area) -> Result<(), Refusal> {
    let seen = storm(area).map_err(|error| Refusal::SelfTest {
        saw: format!("no thread to test with: {error}"),
    })?;
    judge(seen, arch::MUST_SEE_RESTARTS)
}

/// Whether sections can be trusted after this.
fn judge(seen: Seen, must_see_restarts: bool) -> Result<(), Refusal> {
    let Seen {
        added,
        counted,
        restarts,
    } = seen;
    let saw = if added != counted {
        format!("{added} adds were counted as {counted}")
    } else if added == 0 {
        "no CPU id in the area".to_owned()
    } else if must_see_restarts && restarts < RESTARTS {
        format!("{restarts} restarts in {added} adds, and {RESTARTS} were needed to prove it")
    } else {
        return Ok(());
    };
    Err(Refusal::SelfTest { saw })
}

/// Adds from two threads on one CPU.
fn storm(area: Area) -> io::Result<Seen> {
    let slots: Box<[Slot<1>]> = Slot::many(crate::cpus::possible());
    let (added, restarts) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let cpu = area.id_now() as usize;
    if cpu >= slots.len() {
        // Not registered after all: the id is -1 or -2.
        return Ok(Seen::default());
    }
    let begun = Instant::now();
    thread::scope(|scope| -> io::Result<()> {
        for _ in 0..2 {
            let work = || {
                // Where pinning is not allowed the threads are apart, and the slots as well.
                pin_to(cpu);
                let Some(words) = area.words(&slots, 0) else {
                    return;
                };
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: the caller of `run` found the area registered; the words are those of `slots`.
                    if let Some(again) = unsafe { arch::add_slowly(words, GAP) } {
                        added.fetch_add(1, Ordering::Relaxed);
                        restarts.fetch_add(again, Ordering::Relaxed);
                    }
                    let enough = restarts.load(Ordering::Relaxed) >= RESTARTS;
                    let chance = added.load(Ordering::Relaxed) >= ADDS;
                    let time = begun.elapsed();
                    if enough || chance && time >= PATIENCE || time >= DEADLINE {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            };
            let started = thread::Builder::new().spawn_scoped(scope, work);
            if let Err(error) = started {
                stop.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })?;
    let words = slots.iter().map(|slot| slot.word(0));
    Ok(Seen {
        added: added.into_inner(),
        counted: crate::protocol::owner::sum(words),
        restarts: restarts.into_inner(),
    })
}

/// Moves the calling thread to `cpu` for good, if that is allowed.
fn pin_to(cpu: usize) {
    const BITS: usize = u64::BITS as usize;
    let mut mask = vec![0_u64; cpu / BITS + 1];
    if let Some(word) = mask.last_mut() {
        *word = 1 << (cpu % BITS);
    }
    // SAFETY: the call reads as many bytes from `mask` as it is told, and changes nothing but where this thread
    // runs, which was made for the test.
    unsafe {
        sched_setaffinity(
            0,
            size_of_val(mask.as_slice()),
            ptr::from_ref(mask.as_slice()).cast(),
        )
    };
}

unsafe extern "C" {
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_adds_and_too_few_restarts_are_refused() {
        let good = Seen {
            added: 100,
            counted: 100,
            restarts: 2,
        };
        assert_eq!(judge(good, true), Ok(()));
        let lost = judge(
            Seen {
                counted: 99,
                ..good
            },
            false,
        )
        .unwrap_err();
        assert_eq!(
            lost.to_string(),
            "the rseq self-test failed: 100 adds were counted as 99"
        );
        let unproven = Seen {
            restarts: 1,
            ..good
        };
        assert!(judge(unproven, true).is_err());
        assert_eq!(judge(unproven, false), Ok(()));
        assert!(judge(Seen::default(), false).is_err());
    }

    #[test]
    fn the_sections_of_this_machine_are_restarted() {
        let Ok(offset) = super::super::libc_area::offset() else {
            println!("skipped: the C library registers no rseq area here");
            return;
        };
        let area = Area::with_id(offset, super::super::CPU_ID);
        let mut restarts = 0;
        for _ in 0..20 {
            let seen = storm(area).unwrap();
            assert_eq!(seen.added, seen.counted);
            assert!(seen.added > 0);
            restarts += seen.restarts;
        }
        assert!(restarts > 0, "two threads never met on one CPU");
    }
}
