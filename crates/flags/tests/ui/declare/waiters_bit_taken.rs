//! A waiters bit that another bit has.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const VERIFIED = hint(4);
        const LOCK = lock(3, waiters = 4);
    }
}

fn main() {}
