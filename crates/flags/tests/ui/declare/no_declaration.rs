//! Something else than a declaration.

cairn_flags::state_bits! {
    pub struct State: u32 {
        SEEN: bool,
    }
}

fn main() {}
