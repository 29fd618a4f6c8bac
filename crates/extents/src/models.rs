//! Model checking: every interleaving, and every value that the memory model lets a load return,
//! for a few operations at a time.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p cairn-extents loom`
//!
//! Each model spawns all of its actors, and main only joins them. Nodes that are freed are filled
//! with rubbish here, so that a read of one shows.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};
use std::sync::{Arc, Mutex, PoisonError};

use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::arena::Arena;
use crate::seq::Seq;
use crate::tree::{Place, Tree};
use crate::value::{Item, Value};
use crate::{Config, ExtentCache, ExtentMap, Status};

/// The switches of the mutants are global, so models run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    explore(preemptions, run);
}

fn explore(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(run);
}

/// The mutant must fail in some execution.
fn fails(switch: &AtomicBool, preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    switch.store(true, StdOrdering::Relaxed);
    let result = catch_unwind(AssertUnwindSafe(|| explore(preemptions, run)));
    switch.store(false, StdOrdering::Relaxed);
    assert!(result.is_err(), "the mutant passed every execution");
}

struct Fixture {
    tree: Tree,
    arena: Arena,
}

impl Fixture {
    /// A map of `runs` runs of two blocks each, all of generation 0: small up to four.
    fn new(runs: u32) -> Arc<Self> {
        let fixture = Self {
            tree: Tree::new(),
            arena: Arena::new(false),
        };
        for i in 0..runs {
            fixture.set(2 * i, 2 * i + 2, i % 2, 0);
        }
        Arc::new(fixture)
    }

    /// Gives a range a generation. Neighbours of different `slide` stay apart.
    fn set(&self, from: u32, to: u32, slide: u32, generation: u64) {
        let status =
            Status::Written(u64::from(from) + u64::from(slide) * 1000 + generation * 10_000);
        self.put(from, to, Value::new(from, status));
    }

    fn put(&self, from: u32, to: u32, value: Value) {
        let item = Item {
            key: from,
            value,
            referenced: false,
        };
        // SAFETY: each model has one writer.
        unsafe { self.tree.splice(&self.arena, true, (from, to), &[item]) }.expect("memory");
    }

    /// Gives the two runs of a map of two a generation at once.
    fn set_both(&self, generation: u64) {
        let item = |key: u32, slide: u64| Item {
            key,
            value: Value::new(
                key,
                Status::Written(u64::from(key) + 1000 * slide + 10_000 * generation),
            ),
            referenced: false,
        };
        let items = [item(0, 0), item(2, 1)];
        // SAFETY: each model has one writer.
        unsafe { self.tree.splice(&self.arena, true, (0, 4), &items) }.expect("small");
    }

    /// The generation of a block; panics if the answer is rubbish.
    fn generation(&self, at: u32) -> u64 {
        let run = self.tree.run_at(at, true);
        assert!(run.start <= at && at < run.end, "{run:?} for {at}");
        let extent = run.extent().expect("always known");
        let physical = extent.physical_at(at).expect("written");
        assert!(
            physical < 40_000 && physical % 1000 == u64::from(at),
            "{extent} for {at}"
        );
        physical / 10_000
    }
}

/// A change of a range over several runs, and two look-ups in it: the second is no older than the
/// first. All of the three outcomes occur.
fn torn(runs: u32) {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let outcomes = seen.clone();
    model(3, move || {
        let fixture = Fixture::new(runs);
        let writer = thread::spawn({
            let fixture = fixture.clone();
            move || fixture.set(1, 2 * runs - 1, 0, 1)
        });
        let reader = thread::spawn({
            let fixture = fixture.clone();
            move || (fixture.generation(1), fixture.generation(2 * runs - 2))
        });
        writer.join().expect("no panic");
        let (first, second) = reader.join().expect("no panic");
        assert!(first <= second, "{first} then {second}");
        outcomes.lock().expect("no panic").insert((first, second));
    });
    assert_eq!(
        *seen.lock().expect("no panic"),
        BTreeSet::from([(0, 0), (0, 1), (1, 1)])
    );
}

#[test]
fn loom_a_change_of_a_small_map_is_seen_whole() {
    torn(3);
}

#[test]
fn loom_a_change_of_a_tree_is_seen_whole() {
    torn(6);
}

/// Changes enough that memory is freed and used again under the reader.
fn reused() {
    let fixture = Fixture::new(6);
    let writer = thread::spawn({
        let fixture = fixture.clone();
        move || {
            for generation in 1..3 {
                fixture.set(4, 6, 0, generation);
            }
        }
    });
    let reader = thread::spawn({
        let fixture = fixture.clone();
        move || fixture.generation(4)
    });
    writer.join().expect("no panic");
    reader.join().expect("no panic");
}

#[test]
fn loom_memory_is_not_used_again_under_a_reader() {
    model(3, reused);
}

#[test]
fn loom_mutant_without_the_readers_fence_is_found() {
    fails(&crate::barrier::NO_FENCE, 3, reused);
}

/// From small to tree and back, with a reader in the middle of it.
#[test]
fn loom_growing_and_shrinking_is_not_noticed() {
    model(1, || {
        let fixture = Fixture::new(4);
        let writer = thread::spawn({
            let fixture = fixture.clone();
            move || {
                fixture.set(8, 10, 0, 0); // the fifth run
                fixture.set(0, 2, 0, 1);
                fixture.put(2, 8, Value::UNKNOWN); // two are left
                fixture.set(0, 2, 0, 2);
            }
        });
        let reader = thread::spawn({
            let fixture = fixture.clone();
            move || {
                let (first, second) = (fixture.generation(1), fixture.generation(1));
                assert!(first <= second);
            }
        });
        writer.join().expect("no panic");
        reader.join().expect("no panic");
        assert_eq!(fixture.generation(1), 2);
    });
}

/// Two changes of a small map: the second fills the buffer that a reader of the first state reads.
#[test]
fn loom_two_changes_of_a_small_map() {
    model(3, || {
        let fixture = Fixture::new(2);
        let writer = thread::spawn({
            let fixture = fixture.clone();
            move || {
                for generation in 1..3 {
                    fixture.set_both(generation);
                }
            }
        });
        let reader = thread::spawn({
            let fixture = fixture.clone();
            move || (fixture.generation(0), fixture.generation(3))
        });
        writer.join().expect("no panic");
        let (first, second) = reader.join().expect("no panic");
        assert!(first <= second, "{first} then {second}");
    });
}

/// A cursor that remembers a place while the leaf is replaced.
#[test]
fn loom_a_cursor_does_not_believe_a_replaced_leaf() {
    model(2, || {
        let fixture = Fixture::new(6);
        let writer = thread::spawn({
            let fixture = fixture.clone();
            move || {
                fixture.set(4, 6, 0, 1);
                fixture.set(4, 6, 0, 2);
            }
        });
        let reader = thread::spawn({
            let fixture = fixture.clone();
            move || {
                let mut place = Place::nowhere();
                let mut last = 0;
                for at in [3, 4, 5] {
                    let extent = match fixture.tree.same_run(&place, at) {
                        Some(extent) => extent,
                        None => fixture
                            .tree
                            .run_from(&mut place, at)
                            .extent()
                            .expect("known"),
                    };
                    let physical = extent.physical_at(at).expect("written");
                    assert_eq!(physical % 1000, u64::from(at), "{extent}");
                    if at > 3 {
                        assert!(physical / 10_000 >= last);
                        last = physical / 10_000;
                    }
                }
            }
        });
        writer.join().expect("no panic");
        reader.join().expect("no panic");
    });
}

/// One sees the change and says so; another, who then finds its cookie current, has seen it, too.
#[test]
fn loom_a_current_cookie_is_no_older_than_what_others_saw() {
    model(2, || {
        let shared = Arc::new((Seq::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.begin();
                shared.1.store(1, Ordering::Release);
                shared.0.commit();
            }
        });
        let observer = thread::spawn({
            let shared = shared.clone();
            move || {
                let seen = shared.1.load(Ordering::Acquire);
                shared.2.store(seen, Ordering::Release);
            }
        });
        let user = thread::spawn({
            let shared = shared.clone();
            move || {
                let cookie = shared.0.cookie();
                let answer = shared.1.load(Ordering::Acquire);
                let others = shared.2.load(Ordering::Acquire);
                if shared.0.is_current(cookie) {
                    assert!(answer >= others, "a stale answer was validated");
                }
            }
        });
        for thread in [writer, observer, user] {
            thread.join().expect("no panic");
        }
    });
}

/// Two changes: a cookie taken while the second is under way counts the first one, so the answer
/// that goes with it shows the first one.
#[test]
fn loom_a_cookie_counts_only_what_its_answer_shows() {
    model(3, || {
        let shared = Arc::new((Seq::new(), AtomicU64::new(0)));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                for change in 1..3 {
                    shared.0.begin();
                    shared.1.store(change, Ordering::Relaxed);
                    shared.0.commit();
                }
            }
        });
        let user = thread::spawn({
            let shared = shared.clone();
            move || {
                let cookie = shared.0.cookie();
                let answer = shared.1.load(Ordering::Acquire);
                assert!(answer >= cookie, "answer {answer} under cookie {cookie}");
            }
        });
        writer.join().expect("no panic");
        user.join().expect("no panic");
    });
}

/// The same with a number that is raised only after the change, as a mutant.
#[test]
fn loom_mutant_that_announces_no_change_is_found() {
    let never = AtomicBool::new(false);
    fails(&never, 2, || {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Ordering::Release);
                shared.0.store(1, Ordering::Release);
            }
        });
        let observer = thread::spawn({
            let shared = shared.clone();
            move || {
                let seen = shared.1.load(Ordering::Acquire);
                shared.2.store(seen, Ordering::Release);
            }
        });
        let user = thread::spawn({
            let shared = shared.clone();
            move || {
                let cookie = shared.0.load(Ordering::Acquire);
                let answer = shared.1.load(Ordering::Acquire);
                let others = shared.2.load(Ordering::Acquire);
                if shared.0.load(Ordering::Acquire) == cookie {
                    assert!(answer >= others, "a stale answer was validated");
                }
            }
        });
        for thread in [writer, observer, user] {
            thread.join().expect("no panic");
        }
    });
}

/// Two writers: no number is lost, and each sees its own.
#[test]
fn loom_no_sequence_number_is_lost() {
    model(3, || {
        let map = ExtentMap::standalone(1, Config::new().with_huge_pages(false));
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let map = map.clone();
                thread::spawn(move || {
                    let _ = map.insert(i, 1, Status::Written(5)).expect("legal");
                    assert!(map.seq() >= 1);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(map.seq(), 2);
    });
}

/// What was read before the change is not cached after it.
#[test]
fn loom_a_stale_reading_is_refused() {
    model(3, || {
        let map = ExtentMap::standalone(1, Config::new().with_huge_pages(false));
        let disk = Arc::new(AtomicU64::new(1));
        let writer = thread::spawn({
            let (map, disk) = (map.clone(), disk.clone());
            move || {
                disk.store(2, Ordering::Release);
                let _ = map.remove(0, 1).expect("memory");
            }
        });
        let reader = thread::spawn({
            let (map, disk) = (map.clone(), disk.clone());
            move || {
                let seq = map.seq();
                let read = disk.load(Ordering::Acquire);
                let _ = map.cache_if(seq, 0, 1, Status::Written(read));
            }
        });
        writer.join().expect("no panic");
        reader.join().expect("no panic");
        let known = map.containing(0);
        assert!(
            known.is_none_or(|e| e.status == Status::Written(2)),
            "{known:?}"
        );
    });
}

/// The shrinker in a map that is evicted: counts and list are right, whoever comes first.
#[test]
fn loom_shrinker_against_eviction() {
    model(2, || {
        let cache = ExtentCache::new(Config::new().with_huge_pages(false));
        let _ = cache
            .map(1)
            .insert(0, 1, Status::Written(1))
            .expect("legal");
        let shrinker = thread::spawn({
            let cache = cache.clone();
            move || cache.shrink(4).freed
        });
        let evictor = thread::spawn({
            let cache = cache.clone();
            move || {
                let _ = cache.evict(1);
            }
        });
        assert!(shrinker.join().expect("no panic") <= 1);
        evictor.join().expect("no panic");
        let info = cache.info();
        assert_eq!(
            (info.objects, info.reclaimable, info.inodes_on_list),
            (0, 0, 0)
        );
    });
}
