//! The sections of aarch64 on another machine: they must assemble, and look as the kernel requires.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::aarch64_text::{self as text, add, found, section};

const SECTIONS: [(&str, &str); 5] = [
    ("add_relaxed", text::add_relaxed!()),
    ("add_release", text::add_release!()),
    ("add_below", text::add_below!()),
    ("publish", text::publish!()),
    ("add_slowly", text::add_slowly!()),
];

const ASSEMBLERS: [&str; 2] = ["aarch64-linux-gnu-as", "aarch64-unknown-linux-gnu-as"];

/// The template with registers for its operands, each another one.
fn with_registers(template: &str) -> String {
    let mut text = template.replace("{shift}", "7");
    let mut next = 1;
    while let Some(start) = text.find('{') {
        let len = text[start..].find('}').unwrap();
        let name = text[start + 1..start + len]
            .trim_end_matches(":w")
            .to_owned();
        text = text
            .replace(&format!("{{{name}:w}}"), &format!("w{next}"))
            .replace(&format!("{{{name}}}"), &format!("x{next}"));
        next += 1;
    }
    assert!(next < 18, "more operands than registers");
    text
}

#[test]
fn the_sections_assemble() {
    let assembler = ASSEMBLERS
        .iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(assembler) = assembler else {
        println!("skipped: no assembler for aarch64 (binutils-aarch64-linux-gnu)");
        return;
    };
    let mut source = String::new();
    for (name, template) in SECTIONS {
        let text = with_registers(template);
        write!(source, ".text\n.globl {name}\n{name}:\n{text}ret\n").unwrap();
    }
    for template in [text::libc_symbols!(), text::id!()] {
        source += &with_registers(template);
    }
    let mut child = Command::new(assembler)
        .args(["-o", "/dev/null", "--fatal-warnings", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(source.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{source}");
}

/// What the kernel and the protocol require of each text, whatever assembles it.
#[test]
fn each_section_has_one_store_and_it_is_last() {
    for (name, text) in SECTIONS {
        let from = text.find("71:\n").unwrap();
        let to = text.find("72:\n").unwrap();
        let body: Vec<&str> = text[from..to].lines().skip(1).collect();
        let is_store = |line: &&&str| line.starts_with("st");
        assert_eq!(body.iter().filter(is_store).count(), 1, "{name}");
        assert!(is_store(&body.last().unwrap()), "{name}");
        let calls = body
            .iter()
            .any(|line| line.starts_with("bl") || line.starts_with("svc") || line.contains("sp"));
        assert!(!calls, "{name}");
    }
}
