//! A role that does not exist.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const SEEN = hnt(0);
    }
}

fn main() {}
