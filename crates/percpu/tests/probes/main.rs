//! Builds small programs with the compiler itself: the machine code of an add, ways of linking, and what bad input
//! to the macro is told.
//!
//! Only with rustc 1.95 on x86-64 Linux, whose output is known here.
#![cfg(all(
    not(loom),
    feature = "rseq",
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64",
    not(miri)
))]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that fails may panic, and one that cannot run says why"
)]

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const EDITION: &str = "--edition=2024";

fn rustc() -> Command {
    Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Says why and gives true with another compiler.
fn skip() -> bool {
    let version = rustc().arg("--version").output();
    let version = version.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    let known = version.starts_with("rustc 1.95.");
    if !known {
        println!(
            "skipped: written for rustc 1.95, not for {}",
            version.trim()
        );
    }
    !known
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// Where the compiled dependencies are: beside this program.
fn dependencies() -> PathBuf {
    env::current_exe().unwrap().parent().unwrap().into()
}

/// The crate, built once for all probes.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let newest = fs::read_dir(dependencies())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                name.starts_with("libpastey-") && name.ends_with(".so")
            })
            .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
            .unwrap();
        // A directory for each way of being called: some runners start a process per test, at once.
        let mut called = DefaultHasher::new();
        env::args().for_each(|argument| called.write(argument.as_bytes()));
        let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let out = out.join(format!("probes-{:x}", called.finish()));
        fs::create_dir_all(&out).unwrap();
        let rlib = out.join("libcairn_percpu.rlib");
        let output = rustc()
            .args([
                EDITION,
                "--crate-name=cairn_percpu",
                "--crate-type=rlib",
                "-O",
            ])
            .args(["--cap-lints=allow", "--cfg=feature=\"rseq\""])
            .arg(format!("--extern=pastey={}", newest.display()))
            .arg("-o")
            .arg(&rlib)
            .arg(here().join("src/lib.rs"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        rlib
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Compiles `source` against the crate.
fn compile(source: &Path, out: &Path, options: &[&str]) -> Output {
    rustc()
        .arg(EDITION)
        .args(options)
        .arg(format!("--extern=cairn_percpu={}", library().display()))
        .arg(format!("-Ldependency={}", dependencies().display()))
        .arg("-o")
        .arg(out)
        .arg(source)
        .output()
        .unwrap()
}

fn temporary(name: &str) -> PathBuf {
    library().with_file_name(name)
}

/// Builds the counting program with `options`, and runs it.
fn counts_when_built(name: &str, options: &[&str]) {
    if skip() {
        return;
    }
    let program = temporary(name);
    let built = compile(&here().join("tests/probes/count.rs"), &program, options);
    let said = stderr(&built);
    if !built.status.success() && said.contains("cannot find -l") {
        println!("skipped: no static C library here");
        return;
    }
    assert!(built.status.success(), "{options:?}: {said}");
    let ran = Command::new(program).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{options:?}: {said} {}", stderr(&ran));
    let rseq = match cairn_percpu::rseq_available() {
        Ok(()) => "rseq: 1600000 counted on rseq (builder)",
        Err(_) => "rseq: 1600000 counted on owned (builder asked for rseq",
    };
    assert!(said.contains("owned: 1600000"), "{options:?}: {said}");
    assert!(said.contains(rseq), "{options:?}: {said}");
}

#[test]
fn linked_statically() {
    counts_when_built("static", &["-O", "-Ctarget-feature=+crt-static"]);
    let options = [
        "-O",
        "-Ctarget-feature=+crt-static",
        "-Crelocation-model=static",
    ];
    counts_when_built("static-fixed", &options);
}

#[test]
fn linked_in_other_ways() {
    counts_when_built("debug", &["-Copt-level=0"]);
    counts_when_built("fixed", &["-O", "-Crelocation-model=static"]);
    let sections = ["-O", "-Clink-arg=-Wl,--gc-sections", "-Ccodegen-units=16"];
    counts_when_built("sections", &sections);
}

#[test]
fn optimised_across_crates() {
    counts_when_built("lto-thin", &["-O", "-Clto=thin"]);
    counts_when_built("lto-fat", &["-O", "-Clto=fat"]);
}

/// The assembly of each function of the codegen probe.
fn assembly() -> String {
    let out = temporary("codegen.s");
    let options = ["-O", "--crate-type=lib", "--emit=asm", "-Ccodegen-units=1"];
    let built = compile(&here().join("tests/probes/codegen.rs"), &out, &options);
    assert!(built.status.success(), "{}", stderr(&built));
    fs::read_to_string(out).unwrap()
}

fn function<'a>(assembly: &'a str, name: &str) -> Vec<&'a str> {
    let start = assembly.find(&format!("\n{name}:\n")).unwrap();
    let end = start + assembly[start..].find(".cfi_endproc").unwrap();
    assembly[start..end].lines().map(str::trim).collect()
}

/// Whether a line adds to memory in place.
fn adds_to_memory(line: &str) -> bool {
    (line.starts_with("incq\t") || line.starts_with("addq\t")) && line.ends_with(')')
}

/// Whether a line of a section stores.
fn stores(line: &str) -> bool {
    line.starts_with("movq\t%") && line.ends_with(')')
}

#[test]
fn an_owned_add_is_one_instruction_and_not_locked() {
    if skip() {
        return;
    }
    let assembly = assembly();
    // By index there are two owned ways, for threads that are near and for others.
    for (name, ways) in [
        ("probe_handle_inc", 1),
        ("probe_inc", 2),
        ("probe_add", 2),
        ("probe_gauge_dec", 2),
    ] {
        let lines = function(&assembly, name);
        let adds = lines.iter().filter(|line| adds_to_memory(line)).count();
        assert_eq!(adds, ways, "{name}: {lines:#?}");
        let locked = lines.iter().any(|line| line.starts_with("lock"));
        assert!(!locked, "{name}: {lines:#?}");
    }
}

/// The lines of each section: the descriptor names the labels at its ends.
fn sections(assembly: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
    let descriptors = lines.windows(3).filter_map(|quads| {
        let start = quads[0].strip_prefix(".quad\t")?;
        let (end, from) = quads[1].strip_prefix(".quad\t")?.split_once('-')?;
        (from == start && quads[2].starts_with(".quad\t")).then_some((start, end))
    });
    let at = |label: &str| {
        let label = format!("{label}:");
        lines.iter().position(|line| *line == label).unwrap()
    };
    descriptors
        .map(|(start, end)| lines[at(start) + 1..at(end)].to_vec())
        .collect()
}

/// What the kernel requires of every section, in the code that was really generated.
#[test]
fn each_section_has_one_store_and_it_is_last() {
    if skip() {
        return;
    }
    let assembly = assembly();
    let sections = sections(&assembly);
    // By handle, twice by index, down, and batched.
    assert!(sections.len() >= 5, "{} sections", sections.len());
    for body in sections {
        let count = body.iter().filter(|line| stores(line)).count();
        assert_eq!(count, 1, "{body:#?}");
        assert!(stores(body.last().unwrap()), "{body:#?}");
        let leaves = ["call", "syscall", "push", "pop", "%rsp"];
        let bad = body
            .iter()
            .any(|line| leaves.iter().any(|word| line.contains(word)));
        assert!(!bad, "{body:#?}");
    }
}

/// What the compiler says about a program.
fn refused(name: &str, program: &str) -> String {
    let source = temporary(&format!("{name}.rs"));
    fs::write(&source, format!("{program}\nfn main() {{}}\n")).unwrap();
    let built = compile(&source, &temporary(name), &[]);
    assert!(!built.status.success(), "it compiled: {program}");
    stderr(&built)
}

#[test]
fn bad_groups_are_refused_by_name() {
    if skip() {
        return;
    }
    let said = refused(
        "empty",
        "cairn_percpu::counter_group! { pub struct Nothing {} }",
    );
    assert!(
        said.contains("counter_group! `Nothing` declares no counter: name at least one"),
        "{said}"
    );
    let said = refused(
        "twice",
        "cairn_percpu::counter_group! { struct Twice { hits, batched misses, hits } }",
    );
    assert!(said.contains("field `hits` is already declared"), "{said}");
    assert!(
        said.contains("duplicate definitions with name `hits`"),
        "{said}"
    );
    let said = refused(
        "word",
        "cairn_percpu::counter_group! { struct Odd { hits, batch misses } }",
    );
    assert!(
        said.contains("counter_group! `Odd`: expected `name` or `batched name`"),
        "{said}"
    );
    assert!(said.contains("found `batch misses`"), "{said}");
}
