//! Specs as somebody would type them who wants to break the explanation: every kind there is, with every
//! parameter there is and values of every sort. A panic, an abort or a wait fails; so does a refusal that
//! does not name what it is about.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cairn_block::{BuildError, Registry, Shape};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn registry() -> Registry {
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
    cairn_buffer::register(&mut registry);
    registry
}

const VALUES: &[&str] = &[
    "0",
    "1",
    "3",
    "-1",
    "512",
    "1000",
    "4k",
    "64k",
    "1m",
    "4g",
    "1t",
    "15e",
    "16e",
    "8e",
    "18446744073709551615",
    "99999999999999999999",
    "0us",
    "50us",
    "1h",
    "5124095h",
    "99999999h",
    "1%",
    "100%",
    "0.5",
    "2",
    "nan",
    "inf",
    "\"\"",
    "\"a,b\"",
    "/",
    "/dev/null",
    "/nonexistent/x",
    "off",
    "on",
    "thp",
    "2m",
    "1g",
    "full",
    "mlock",
    "file",
    "anon",
    "random",
    "prefix",
    "none",
    "rr",
    "verify",
    "keep",
    "fixed",
    "exp",
    "lognormal",
    "5-3",
    "0-",
    "0-16e",
    "1k-2k",
    "EIO",
    "EBOGUS",
    "interleave",
    "1023",
    "99999",
    "iolog3",
    "pread",
    "a=b",
    "\u{e9}",
];

const LEAVES: &[&str] = &[
    "ram(1m)",
    "ram(1000003)",
    "ram(64k,block=512)",
    "ram(48g,limit=16g)",
    "ram(1m,volatile=none)",
    "ram(1m,readonly=1)",
    "null(15e)",
    "null(1)",
    "zero(1000003)",
    "pattern(1m)",
];

#[derive(Debug, Clone)]
struct Part {
    kind: usize,
    args: Vec<(Option<usize>, usize)>,
    branches: usize,
}

fn part() -> impl Strategy<Value = Part> {
    let arg = (prop::option::weighted(0.8, 0_usize..1000), 0..VALUES.len());
    (0_usize..1000, prop::collection::vec(arg, 0..3), 0_usize..4).prop_map(
        |(kind, args, branches)| Part {
            kind,
            args,
            branches,
        },
    )
}

/// Prints the parts as a stack over a leaf; branches stand on copies of what is below them.
fn text(registry: &Registry, parts: &[Part], leaf: &str) -> String {
    let kinds = registry.kinds();
    let mut below = leaf.to_owned();
    for part in parts {
        let kind = kinds.get(part.kind % kinds.len()).unwrap();
        let args: Vec<String> = part
            .args
            .iter()
            .map(|(key, value)| {
                let value = VALUES.get(*value).unwrap();
                let key = key.and_then(|k| kind.params().get(k % kind.params().len().max(1)));
                key.map_or_else(|| (*value).to_owned(), |p| format!("{}={value}", p.key))
            })
            .collect();
        let node = format!("{}({})", kind.name(), args.join(","));
        below = match kind.shape() {
            Shape::Leaf => node,
            Shape::Branch { .. } if below.len() < 400 => {
                let all = vec![below; part.branches];
                format!("{node}[{}]", all.join(","))
            }
            _ => format!("{node}/{below}"),
        };
    }
    below
}

proptest! {
    // The same specs in every run: what they meet on the machine differs enough.
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn explain_answers_or_says_what_is_wrong(
        parts in prop::collection::vec(part(), 1..5),
        leaf in prop::sample::select(LEAVES),
    ) {
        let registry = registry();
        let spec = text(&registry, &parts, leaf);
        match registry.explain(&spec) {
            Ok(explain) => {
                let shown = explain.to_string();
                let lines = explain.levels.len();
                prop_assert!(shown.lines().count() >= lines, "{}: {}", spec, shown);
                // What is explained is explained the same way from its canonical form.
                let again = registry.explain(&explain.spec.to_string()).unwrap();
                prop_assert_eq!(again.to_string(), shown, "{}", spec);
            }
            Err(BuildError::Spec(e)) => {
                prop_assert!(e.column().is_some(), "{}: {}", spec, e);
            }
            // The system's answers name the file or the node.
            Err(e) => prop_assert!(e.to_string().contains('`'), "{}: {}", spec, e),
        }
    }
}

/// The table of checksums of a device that only pretends to be large is not taken at once.
#[test]
fn the_largest_devices_are_explained_and_opened() {
    let registry = registry();
    for layer in [
        "verify",
        "verify(block=512)",
        "cow",
        "cow(block=512)",
        "crash",
        "cache",
        "checkwrite",
        "blocksize(64k)",
        "stats",
        "mirror[null(15e),null(15e)]",
        "concat[null(15e)]",
        "stripe[null(15e)]",
        "retry",
        "slice(1-)",
    ] {
        let spec = if layer.contains('[') {
            layer.to_owned()
        } else {
            format!("{layer}/null(15e)")
        };
        registry.explain(&spec).unwrap();
        let stack = registry.open(&spec).unwrap();
        let device = stack.device();
        let info = device.info();
        let last = info.len - 4096;
        let mut buf = vec![1; 4096];
        device
            .read_vectored_at(
                &mut [std::io::IoSliceMut::new(&mut buf)],
                last,
                cairn_block::ReqFlags::empty(),
            )
            .unwrap();
    }
}
