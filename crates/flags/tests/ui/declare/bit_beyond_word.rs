//! A bit beyond the word.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const FAR = hint(32);
    }
}

fn main() {}
