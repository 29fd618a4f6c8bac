//! A role without a bit.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const SEEN = hint();
    }
}

fn main() {}
