//! A publish bit is not cleared through a shared reference.

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
    word.clear_uptodate();
    let _: &AtomicFlags<State> = word.as_raw();
}
