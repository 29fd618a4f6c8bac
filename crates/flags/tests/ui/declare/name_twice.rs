//! A name declared twice.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const SEEN = plain(1) as seen;
        const SEEN = plain(2) as seen_again;
    }
}

fn main() {}
