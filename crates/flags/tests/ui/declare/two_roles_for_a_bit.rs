//! Two roles for one bit.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const DIRTY = hint(1) + work(1);
    }
}

fn main() {}
