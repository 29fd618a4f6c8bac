//! Small functions whose machine code `tests/codegen.rs` reads. Those that end in `_by_hand` are
//! what the one before must be compiled to.

#![allow(
    unsafe_code,
    missing_docs,
    reason = "exported under plain names, for a test to find"
)]

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use cairn_flags::{PolicyCell, state_bits};

state_bits! {
    pub struct State: u32 {
        const VERIFIED = hint(0);
        const UPTODATE = publish(1);
        const DIRTY = work(2);
        const LOCK = lock(3, waiters = 4);
        const META = plain(5);
        const LAST = plain(31);
        const ABSENT = stub;
    }
}

state_bits! {
    /// Every role on the top bit.
    pub struct TopHint: u32 { const TOP = hint(31); }
}
state_bits! {
    pub struct TopPublish: u32 { const TOP = publish(31); }
}
state_bits! {
    pub struct TopWork: u32 { const TOP = work(31); }
}
state_bits! {
    pub struct TopLock: u32 { const TOP = lock(31, waiters = 30); }
}

state_bits! {
    pub struct Wide: u64 {
        const FIRST = plain(0);
        const DIRTY = work(62);
        const LAST = plain(63);
    }
}

state_bits! {
    pub struct Small: u16 {
        const LAST = plain(15);
        const FIRST = plain(0);
    }
}

macro_rules! export {
    ($(fn $name:ident($($arg:ident: $T:ty),*) $(-> $R:ty)? $body:block)*) => {$(
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub fn $name($($arg: $T),*) $(-> $R)? $body
    )*};
}

export! {
    fn hint_test(w: &AtomicState) -> bool { w.verified() }
    fn hint_test_by_hand(w: &AtomicU32) -> bool { w.load(Relaxed) & 1 != 0 }

    fn hint_set(w: &AtomicState) { w.set_verified(); }
    fn hint_set_by_hand(w: &AtomicU32) {
        if w.load(Relaxed) & 1 == 0 {
            w.fetch_or(1, Relaxed);
        }
    }

    fn hint_set_always(w: &AtomicState) { w.set_verified_always(); }
    fn hint_set_always_by_hand(w: &AtomicU32) { w.fetch_or(1, Relaxed); }

    fn hint_set_with(w: &AtomicState, p: &PolicyCell) { w.set_verified_with(p.get()); }

    fn hint_clear(w: &AtomicState) { w.clear_verified(); }
    fn hint_clear_by_hand(w: &AtomicU32) { w.fetch_and(!1, Relaxed); }

    fn publish(w: &AtomicState) { w.publish_uptodate(); }
    fn publish_by_hand(w: &AtomicU32) {
        if w.load(Relaxed) & 2 == 0 {
            w.fetch_or(2, Release);
        }
    }
    fn publish_test(w: &AtomicState) -> bool { w.uptodate() }
    fn publish_test_by_hand(w: &AtomicU32) -> bool { w.load(Acquire) & 2 != 0 }

    fn work_mark(w: &AtomicState) { w.mark_dirty(); }
    fn work_mark_always(w: &AtomicState) { w.mark_dirty_always(); }
    fn work_mark_always_by_hand(w: &AtomicU32) { w.fetch_or(4, AcqRel); }
    fn work_take(w: &AtomicState) -> bool { w.take_dirty() }

    fn lock_try_and_leak(w: &AtomicState) -> bool { w.try_lock().map(BitLeak::leak).is_some() }
    fn lock_and_unlock(w: &AtomicState) { drop(w.try_lock()); }

    fn plain_set(w: &AtomicState) { w.set_meta(Release); }
    fn plain_set_by_hand(w: &AtomicU32) { w.fetch_or(32, Release); }
    fn test_and_set_0(w: &AtomicState) -> bool { w.as_raw().test_and_set::<0>(SeqCst) }
    fn test_and_set_5(w: &AtomicState) -> bool { w.test_and_set_meta(AcqRel) }
    fn test_and_set_31(w: &AtomicState) -> bool { w.test_and_set_last(AcqRel) }
    fn test_and_clear_5(w: &AtomicState) -> bool { w.test_and_clear_meta(AcqRel) }
    fn test_and_toggle_5(w: &AtomicState) -> bool { w.as_raw().test_and_toggle::<5>(AcqRel) }
    fn wide_test_and_set_0(w: &AtomicWide) -> bool { w.test_and_set_first(AcqRel) }
    fn wide_test_and_set_63(w: &AtomicWide) -> bool { w.test_and_set_last(AcqRel) }
    fn small_test_and_set_0(w: &AtomicSmall) -> bool { w.test_and_set_first(AcqRel) }
    fn small_test_and_set_15(w: &AtomicSmall) -> bool { w.test_and_set_last(AcqRel) }

    fn top_hint_set(w: &AtomicTopHint) { w.set_top(); }
    fn top_hint_set_tell(w: &AtomicTopHint) -> bool { w.set_top() }
    fn top_publish(w: &AtomicTopPublish) -> bool { w.publish_top() }
    fn top_work_mark_always(w: &AtomicTopWork) -> bool { w.mark_top_always() }
    fn top_work_take(w: &AtomicTopWork) -> bool { w.take_top() }
    fn top_lock_try(w: &AtomicTopLock) -> bool { w.try_top().map(BitLeak::leak).is_some() }

    fn exclusive_set(w: &mut AtomicState) { w.set_mut(State::META); }
    fn exclusive_retract(w: &mut AtomicState) { w.retract_uptodate_mut(); }
    fn stub_set(w: &AtomicState) -> bool { w.set_absent() | w.absent() }
    fn stub_set_by_hand(_w: &AtomicU32) -> bool { false }
}

/// Names the guard's `leak` without its parameters.
trait BitLeak {
    fn leak(self);
}

impl BitLeak for TopLockTopGuard<'_> {
    fn leak(self) {
        self.leak();
    }
}

impl BitLeak for StateLockGuard<'_> {
    fn leak(self) {
        self.leak();
    }
}
