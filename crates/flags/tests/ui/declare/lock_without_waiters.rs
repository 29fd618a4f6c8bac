//! A lock that nobody could wait for.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const LOCK = lock(3);
    }
}

fn main() {}
