//! A client under anything a server sends: the first two bytes say where delivery is cut and what it wishes.
#![no_main]
#![allow(dead_code, reason = "each target uses a part of the shared file")]

#[path = "../../tests/support/drive.rs"]
mod drive;

use cairn_nbd::codec::Framing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [cut, wish, wire @ ..] = data else {
        return;
    };
    let framing = match wish % 3 {
        0 => Framing::Simple,
        1 => Framing::Structured,
        _ => Framing::Extended,
    };
    let whole = drive::client(&[wire], "disk", framing);
    let cut = drive::halves(wire, usize::from(*cut));
    assert_eq!(drive::client(&cut, "disk", framing), whole);
});
