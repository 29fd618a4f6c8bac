//! A word that is no unsigned integer.

cairn_flags::state_bits! {
    pub struct State: f32 {
        const SEEN = hint(0);
    }
}

fn main() {}
