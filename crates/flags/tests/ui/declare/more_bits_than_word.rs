//! More bits than the word holds.

cairn_flags::state_bits! {
    pub struct State: u8 {
        const B0 = plain(0);
        const B1 = plain(1);
        const B2 = plain(2);
        const B3 = plain(3);
        const B4 = plain(4);
        const B5 = plain(5);
        const B6 = plain(6);
        const B7 = plain(7);
        const B8 = plain(8);
    }
}

fn main() {}
