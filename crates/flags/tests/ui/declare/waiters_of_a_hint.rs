//! A waiters bit of a bit that is no lock.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const VERIFIED = hint(0, waiters = 1);
    }
}

fn main() {}
