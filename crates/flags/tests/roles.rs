//! Each role's methods, as a user of the macro sees them.

#![cfg(all(feature = "std", not(loom)))]

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use cairn_flags::{PolicyCell, Role, SetPolicy, state_bits};

state_bits! {
    /// A buffer's state, with the kernel's names.
    #[derive(Default)]
    pub(crate) struct BufferState: u32 {
        /// Contents valid.
        const UPTODATE = publish(0);
        /// To be written.
        const DIRTY = work(1);
        /// Being worked on.
        const LOCK = lock(2, waiters = 3);
        const REQ = plain(4);
        const MAPPED = plain(5);
        const NEW = plain(6) as fresh;
        const WRITE_EIO = plain(7);
        const META = hint(8);
        const PRIO = hint(9);
        const VERIFIED = hint(31);
        const HWPOISON = stub;
    }
}

#[test]
fn a_hint_has_both_forms_and_the_policy() {
    static POLICY: PolicyCell = PolicyCell::new(SetPolicy::CheckFirst);
    let word = AtomicBufferState::new();
    assert!(!word.verified());
    assert!(word.set_verified());
    assert!(!word.set_verified());
    word.set_verified_always();
    word.set_meta_with(POLICY.get());
    POLICY.set(SetPolicy::AlwaysRmw);
    word.set_prio_with(POLICY.get());
    assert_eq!(
        word.snapshot(),
        BufferState::VERIFIED | BufferState::META | BufferState::PRIO
    );
    word.clear_verified();
    assert!(!word.clear_verified_if_set());
    assert!(word.clear_meta_if_set());
    assert!(!word.verified() && !word.meta() && word.prio());
}

#[test]
fn a_publish_bit_is_set_once_and_retracted_by_its_owner() {
    let mut word = AtomicBufferState::new();
    assert!(word.publish_uptodate());
    assert!(!word.publish_uptodate());
    assert!(word.uptodate());
    word.retract_uptodate_mut();
    assert!(!word.uptodate());
    assert!(word.publish_uptodate());
    word.store_mut(BufferState::empty());
    assert!(!word.uptodate());
}

#[test]
fn work_is_taken_once() {
    let word = AtomicBufferState::new();
    assert!(word.mark_dirty());
    assert!(!word.mark_dirty());
    assert!(!word.mark_dirty_always());
    assert!(word.dirty());
    assert!(word.take_dirty());
    assert!(!word.take_dirty());
    assert!(word.mark_dirty_always());
}

#[test]
fn a_lock_is_held_by_one_guard() {
    let word = AtomicBufferState::with(BufferState::DIRTY);
    let guard: BufferStateLockGuard<'_> = word.lock();
    assert!(word.lock_held());
    assert!(word.try_lock().is_none());
    assert_eq!(format!("{guard:?}"), "BitGuard { bit: LOCK, word: 6 }");
    drop(guard);
    assert!(!word.lock_held());
    word.spin_lock().leak();
    assert!(word.lock_held());
    word.release_lock();
    assert_eq!(word.snapshot(), BufferState::DIRTY);
    word.wait_lock();
}

#[test]
fn plain_bits_take_the_callers_order() {
    let word = AtomicBufferState::new();
    word.set_mapped(Release);
    assert!(word.mapped(Acquire));
    assert!(word.test_and_set_mapped(AcqRel));
    assert!(!word.test_and_set_fresh(AcqRel));
    assert!(word.test_and_clear_fresh(AcqRel));
    assert!(!word.set_mapped_if_clear());
    word.assign_write_eio(true, Relaxed);
    word.clear_mapped(Relaxed);
    assert!(!word.clear_mapped_if_set(Release));
    assert_eq!(word.snapshot(), BufferState::WRITE_EIO);
}

#[test]
fn a_bit_configured_out_is_never_set() {
    let word = AtomicBufferState::new();
    word.set_hwpoison_always();
    word.set_hwpoison_with(SetPolicy::AlwaysRmw);
    assert!(!word.set_hwpoison() && !word.hwpoison() && !word.clear_hwpoison_if_set());
    word.clear_hwpoison();
    assert_eq!(word.into_inner(), BufferState::default());
}

#[test]
fn debug_names_bits_and_shows_the_rest() {
    let word = AtomicBufferState::with(BufferState::from_bits_retain(0x8000_1003));
    assert_eq!(
        format!("{word:?}"),
        "AtomicBufferState(UPTODATE | DIRTY | VERIFIED | 0x1000)"
    );
    assert_eq!(
        format!("{:?}", AtomicBufferState::new()),
        "AtomicBufferState(0x0)"
    );
    assert_eq!(
        format!("{:?}", word.as_raw()),
        "AtomicFlags(UPTODATE | DIRTY | VERIFIED | 0x1000)"
    );
}

#[test]
fn the_layout_lists_every_bit() {
    let waiters = BufferState::LAYOUT.iter().find(|b| b.bit == 3).unwrap();
    assert_eq!(
        (waiters.name, waiters.role),
        ("LOCK_WAITERS", Role::Waiters)
    );
    assert_eq!(BufferState::LAYOUT.len(), 11);
}

/// Words of other widths, in statics and with their own types.
mod widths {
    use super::*;

    state_bits! { pub(crate) struct Small: u8 { const LOCK = lock(7, waiters = 6); } }
    state_bits! { pub(crate) struct Half: u16 { const A = hint(15); } }
    state_bits! { pub(crate) struct Long: u64 { const A = hint(63); const B = lock(0, waiters = 1); } }
    state_bits! { pub(crate) struct Native: usize { const A = publish(0); } }

    static SMALL: AtomicSmall = AtomicSmall::new();
    static HALF: AtomicHalf = AtomicHalf::with(Half::A);
    static LONG: AtomicLong = AtomicLong::new();
    static NATIVE: AtomicNative = AtomicNative::new();

    #[test]
    fn every_width_works_in_a_static() {
        drop(SMALL.lock());
        assert!(!HALF.set_a());
        assert!(LONG.set_a());
        drop(LONG.b());
        assert!(NATIVE.publish_a() && NATIVE.a());
        assert_eq!(size_of::<AtomicSmall>(), 1);
        assert_eq!(size_of::<AtomicLong>(), 8);
    }
}
