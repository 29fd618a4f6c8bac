//! A bit declared twice.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const SEEN = hint(1);
        const USED = hint(1);
    }
}

fn main() {}
