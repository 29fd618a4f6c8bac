//! A waiters bit on its own.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const SLEEPERS = waiters(4);
    }
}

fn main() {}
