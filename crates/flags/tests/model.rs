//! Random operations against a naive model: word, results and probe reports must agree.

#![cfg(not(loom))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::match_same_arms,
    reason = "masks are cut to the word on purpose, and the model's arms stay in the order of the operations"
)]

use std::cell::RefCell;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use cairn_flags::{AtomicFlags, Probe, SetPolicy};
use proptest::prelude::*;

thread_local! {
    /// Reports of the word under test: (what, bit).
    static REPORTS: RefCell<Vec<(Report, u32)>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Report {
    Rmw,
    Redundant,
    Avoided,
}

struct Recorder;

impl Probe for Recorder {
    const ON: bool = true;

    fn rmw(bit: u32) {
        REPORTS.with_borrow_mut(|r| r.push((Report::Rmw, bit)));
    }

    fn avoided(bit: u32) {
        REPORTS.with_borrow_mut(|r| r.push((Report::Avoided, bit)));
    }

    fn redundant(bit: u32) {
        REPORTS.with_borrow_mut(|r| r.push((Report::Redundant, bit)));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Set(u64),
    SetIfClear(u64),
    SetWith(u64, bool),
    Clear(u64),
    ClearIfSet(u64),
    Toggle(u64),
    Assign(u64, bool),
    Swap(u64),
    FetchSet(u64),
    FetchClear(u64),
    UpdateMask(u64, u64),
    ClearUnless(u64, u64),
    Publish(u64),
    Mark(u64),
    MarkAlways(u64),
    Take(u64),
    TestAndSet,
    TestAndClear,
    TestAndToggle,
    Lock,
    SetMut(u64),
    ClearMut(u64),
    StoreMut(u64),
    Store(u64),
}

fn op() -> impl Strategy<Value = Op> {
    // Few bits at a time, so that operations meet each other's.
    let mask = || {
        prop_oneof![
            (0..64_u32).prop_map(|b| 1 << b),
            (0..8_u32).prop_map(|b| 1 << b),
            any::<u64>()
        ]
    };
    prop_oneof![
        mask().prop_map(Op::Set),
        mask().prop_map(Op::SetIfClear),
        (mask(), any::<bool>()).prop_map(|(m, b)| Op::SetWith(m, b)),
        mask().prop_map(Op::Clear),
        mask().prop_map(Op::ClearIfSet),
        mask().prop_map(Op::Toggle),
        (mask(), any::<bool>()).prop_map(|(m, b)| Op::Assign(m, b)),
        mask().prop_map(Op::Swap),
        mask().prop_map(Op::FetchSet),
        mask().prop_map(Op::FetchClear),
        (mask(), mask()).prop_map(|(a, b)| Op::UpdateMask(a, b)),
        (mask(), mask()).prop_map(|(a, b)| Op::ClearUnless(a, b)),
        mask().prop_map(Op::Publish),
        mask().prop_map(Op::Mark),
        mask().prop_map(Op::MarkAlways),
        mask().prop_map(Op::Take),
        Just(Op::TestAndSet),
        Just(Op::TestAndClear),
        Just(Op::TestAndToggle),
        Just(Op::Lock),
        mask().prop_map(Op::SetMut),
        mask().prop_map(Op::ClearMut),
        mask().prop_map(Op::StoreMut),
        mask().prop_map(Op::Store),
    ]
}

/// What an operation must do: the new word, its result as a number, and its reports.
struct Expected {
    word: u64,
    result: u64,
    reports: Vec<(Report, u32)>,
}

/// The bit the single-bit operations work on, and the lock's.
const BIT: u32 = 5;
const LOCK: u32 = 2;
const WAITERS: u32 = 3;

fn model(word: u64, op: &Op, all: u64) -> Expected {
    let bits = |mask: u64| (0..64).filter(move |b| mask >> b & 1 == 1);
    let rmw = |mask: u64, new: u64| -> Vec<_> {
        bits(mask & all)
            .flat_map(|b| {
                let kept = (word ^ new) >> b & 1 == 0;
                [
                    Some((Report::Rmw, b)),
                    kept.then_some((Report::Redundant, b)),
                ]
            })
            .flatten()
            .collect()
    };
    let avoided = |mask: u64| bits(mask & all).map(|b| (Report::Avoided, b)).collect();
    let changed = |new: u64| u64::from(new != word);
    let done = |new: u64, mask: u64, result: u64| Expected {
        word: new,
        result,
        reports: rmw(mask, new),
    };
    let skipped = |mask: u64, result: u64| Expected {
        word,
        result,
        reports: avoided(mask),
    };
    let unreported = |new: u64| Expected {
        word: new,
        result: 0,
        reports: Vec::new(),
    };
    match *op {
        Op::Set(m) | Op::SetWith(m, true) | Op::Assign(m, true) => done(word | m & all, m, 0),
        Op::Clear(m) | Op::Assign(m, false) => done(word & !m, m, 0),
        Op::SetWith(m, false) if word & m & all == m & all => skipped(m, 0),
        Op::SetWith(m, false) => done(word | m & all, m, 0),
        Op::SetIfClear(m) | Op::Publish(m) | Op::Mark(m) if word & m & all == m & all => {
            skipped(m, 0)
        }
        Op::SetIfClear(m) | Op::Publish(m) | Op::Mark(m) => done(word | m & all, m, 1),
        Op::MarkAlways(m) => done(word | m & all, m, changed(word | m & all)),
        Op::ClearIfSet(m) if word & m == 0 => skipped(m, 0),
        Op::ClearIfSet(m) => done(word & !m, m, 1),
        Op::Toggle(m) => done(word ^ m & all, m, 0),
        Op::Swap(m) => done(m & all, word | m, word),
        Op::FetchSet(m) => done(word | m & all, m, word),
        Op::FetchClear(m) => done(word & !m, m, word),
        Op::UpdateMask(c, s) => done(word & !c | s & all, c | s, word),
        Op::ClearUnless(c, t) if word & t != 0 => skipped(c, 0),
        Op::ClearUnless(c, _) => done(word & !c, c, 1),
        Op::Take(m) => done(word & !m, m, word & m),
        Op::TestAndSet => done(word | 1 << BIT, 1 << BIT, word >> BIT & 1),
        Op::TestAndClear => done(word & !(1 << BIT), 1 << BIT, word >> BIT & 1),
        Op::TestAndToggle => done(word ^ 1 << BIT, 1 << BIT, word >> BIT & 1),
        Op::Lock if word >> LOCK & 1 == 1 => skipped(1 << LOCK, 0),
        // One RMW locks, one unlocks. Who meets the waiters bit clears it.
        Op::Lock => Expected {
            word: word & !(1 << WAITERS),
            result: 1,
            reports: vec![(Report::Rmw, LOCK); 2],
        },
        Op::SetMut(m) => unreported(word | m & all),
        Op::ClearMut(m) => unreported(word & !m),
        Op::StoreMut(m) | Op::Store(m) => unreported(m & all),
    }
}

macro_rules! agrees {
    ($name:ident, $T:ident) => {
        mod $name {
            use super::*;

            bitflags::bitflags! {
                #[derive(Debug, Clone, Copy)]
                struct Bits: $T { const ALL = $T::MAX; }
            }

            fn apply(word: &mut AtomicFlags<Bits, Recorder>, op: &Op) -> u64 {
                let f = |m: u64| Bits::from_bits_retain(m as $T);
                let n = |b: Bits| u64::from(b.bits());
                let none = 0;
                match *op {
                    Op::Set(m) => { word.set(f(m), Relaxed); none }
                    Op::SetIfClear(m) => word.set_if_clear(f(m)).into(),
                    Op::SetWith(m, always) => {
                        word.set_with(f(m), if always { SetPolicy::AlwaysRmw } else { SetPolicy::CheckFirst });
                        none
                    }
                    Op::Clear(m) => { word.clear(f(m), Release); none }
                    Op::ClearIfSet(m) => word.clear_if_set(f(m), Relaxed).into(),
                    Op::Toggle(m) => { word.toggle(f(m), AcqRel); none }
                    Op::Assign(m, v) => { word.assign(f(m), v, Relaxed); none }
                    Op::Swap(m) => n(word.swap(f(m), AcqRel)),
                    Op::FetchSet(m) => n(word.fetch_set(f(m), AcqRel)),
                    Op::FetchClear(m) => n(word.fetch_clear(f(m), AcqRel)),
                    Op::UpdateMask(c, s) => n(word.update_mask(f(c), f(s))),
                    Op::ClearUnless(c, t) => word.clear_unless(f(c), f(t)).into(),
                    Op::Publish(m) => word.publish(f(m)).into(),
                    Op::Mark(m) => word.mark_work(f(m)).into(),
                    Op::MarkAlways(m) => word.mark_work_always(f(m)).into(),
                    Op::Take(m) => n(word.take_work(f(m))),
                    Op::TestAndSet => word.test_and_set::<BIT>(AcqRel).into(),
                    Op::TestAndClear => word.test_and_clear::<BIT>(AcqRel).into(),
                    Op::TestAndToggle => word.test_and_toggle::<BIT>(AcqRel).into(),
                    Op::Lock => word.try_lock::<LOCK, WAITERS>().is_some().into(),
                    Op::SetMut(m) => { word.set_mut(f(m)); none }
                    Op::ClearMut(m) => { word.clear_mut(f(m)); none }
                    Op::StoreMut(m) => { word.store_mut(f(m)); none }
                    Op::Store(m) => { word.store(f(m), Release); none }
                }
            }

            proptest! {
                #[test]
                fn word_results_and_reports_agree(
                    start in any::<$T>(),
                    ops in proptest::collection::vec(op(), 1..60),
                ) {
                    let all = u64::from($T::MAX);
                    let mut word = AtomicFlags::<Bits, Recorder>::probed();
                    word.store_mut(Bits::from_bits_retain(start));
                    let mut now = u64::from(start);
                    for op in &ops {
                        REPORTS.take();
                        let result = apply(&mut word, op);
                        let want = model(now, op, all);
                        let mut reports = REPORTS.take();
                        let mut wanted = want.reports;
                        reports.sort_unstable();
                        wanted.sort_unstable();
                        prop_assert_eq!(u64::from(word.load(Relaxed).bits()), want.word, "{:?}", op);
                        prop_assert_eq!(result & all, want.result & all, "{:?} on {:#x}", op, now);
                        prop_assert_eq!(reports, wanted, "{:?} on {:#x}", op, now);
                        now = want.word;
                    }
                    prop_assert_eq!(u64::from(word.into_inner().bits()), now);
                }
            }
        }
    };
}

agrees!(on_u8, u8);
agrees!(on_u16, u16);
agrees!(on_u32, u32);
agrees!(on_u64, u64);
