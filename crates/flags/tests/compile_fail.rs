//! What must not compile does not, and the message names the bit.
//!
//! Messages are compared word for word, so this runs with the rustc they came from only.
//! `TRYBUILD=overwrite cargo test -p cairn-flags --test compile_fail` renews them.

#![cfg(all(feature = "std", not(any(loom, miri))))]

use std::process::Command;

/// The version of rustc the messages came from.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn wrong_declarations_and_role_misuse_do_not_compile() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("-V").output().unwrap().stdout;
    let version = String::from_utf8_lossy(&version);
    if !version.starts_with(RUSTC) {
        println!(
            "skipped: compile-fail suite needs {RUSTC}x, this is {}",
            version.trim()
        );
        return;
    }
    let tests = trybuild::TestCases::new();
    tests.pass("tests/ui/pass/*.rs");
    tests.compile_fail("tests/ui/declare/*.rs");
    tests.compile_fail("tests/ui/misuse/*.rs");
}
