//! A lock bit is released by its guard.

use cairn_flags::{AtomicFlags, state_bits};

state_bits! {
    pub struct State: u32 {
        const VERIFIED = hint(0);
        const UPTODATE = publish(1);
        const DIRTY = work(2);
        const LOCK = lock(3, waiters = 4);
        const META = plain(5);
    }
}

fn main() {
    let word = AtomicState::new();
    word.set_lock();
    word.clear_lock();
    let _: &AtomicFlags<State> = word.as_raw();
}
