//! A bit declared twice, in roles that clash.

cairn_flags::state_bits! {
    pub struct State: u32 {
        const VERIFIED = hint(1);
        const DIRTY = work(1);
    }
}

fn main() {}
