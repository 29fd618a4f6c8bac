//! A lock bit that is its own waiters bit.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const LOCK = lock(3, waiters = 3);
    }
}

fn main() {}
