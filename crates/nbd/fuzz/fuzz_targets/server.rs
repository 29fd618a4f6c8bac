//! A server under anything a client sends: the first two bytes say where delivery is cut and which policy it has.
#![no_main]
#![allow(dead_code, reason = "each target uses a part of the shared file")]

#[path = "../../tests/support/drive.rs"]
mod drive;

use cairn_nbd::codec::TlsPolicy;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [cut, policy, wire @ ..] = data else {
        return;
    };
    let tls = match policy % 3 {
        0 => TlsPolicy::Never,
        1 => TlsPolicy::Offered,
        _ => TlsPolicy::Required,
    };
    let whole = drive::server(&[wire], tls);
    let parts = drive::server(&drive::halves(wire, usize::from(*cut)), tls);
    if tls == TlsPolicy::Never {
        assert_eq!(parts, whole);
    }
});
