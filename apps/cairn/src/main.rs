//! The program `cairn`.
fn main() {}
