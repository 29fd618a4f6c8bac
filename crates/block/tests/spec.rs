//! Spec strings: round trips by property, and mistakes with their messages.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fmt::Write as _;
use std::sync::Arc;

use cairn_block::{Caps, DeviceInfo, Node, Planned, Registry, Shape, Spec, SpecErrorKind};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9/:._?=+-]{1,12}",
        "[ -~]{0,12}",
        "\\PC{0,6}",
        Just("a=b".to_owned()),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    let arg = (proptest::option::of("[a-z][a-z0-9_]{0,6}"), value());
    (
        "[a-z][a-z0-9_-]{0,8}",
        proptest::option::of("[A-Za-z0-9_.-]{1,6}"),
        prop::collection::vec(arg, 0..4),
    )
        .prop_map(|(name, id, args)| {
            let mut node = Node::new(name).with_id(id.as_deref());
            for (key, value) in args {
                node = node.arg(key.as_deref().unwrap_or("k"), value);
                if key.is_none()
                    && let Some(last) = node.args.last_mut()
                {
                    last.key = None;
                }
            }
            node
        })
}

fn spec() -> impl Strategy<Value = Spec> {
    let leaf = node().prop_map(Spec::leaf);
    leaf.prop_recursive(5, 40, 4, |inner| {
        (node(), prop::collection::vec(inner, 1..4)).prop_map(|(n, below)| Spec::over(n, below))
    })
}

proptest! {
    #[test]
    fn any_tree_prints_and_parses_to_itself(spec in spec()) {
        let text = spec.to_string();
        let again: Spec = text.parse().map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(&again, &spec, "{}", text);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn any_text_is_parsed_or_refused_with_a_place(text in "\\PC{0,40}") {
        if let Err(e) = text.parse::<Spec>() {
            prop_assert!(e.column().is_some_and(|c| c <= text.chars().count() + 1), "{}", e);
        }
    }

    #[test]
    fn grammar_like_text_never_panics(text in "[a-z@()\\[\\]/|,=\" \\\\0-9]{0,60}") {
        let registry = Registry::new();
        // Both answers are fine; a panic is not.
        let _ = registry.explain(&text).map_err(|e| e.to_string());
    }

    #[test]
    fn canonical_is_a_fixed_point(
        layers in prop::collection::vec(0_usize..7, 0..6),
        size in 1_u64..1 << 40,
        leaf in any::<bool>(),
    ) {
        let all = ["passthru", "stats(sample=1)", "stats( sample = 64 )", "delay(read=1000us)",
            "error(rate=1%,errno=EIO)", "readonly", "delay@slow(write=50us,p99=1ms)"];
        let mut text = String::new();
        let mut slow = false;
        for l in layers {
            // An id is unique.
            if l == 6 && std::mem::replace(&mut slow, true) { continue; }
            write!(text, "{} / ", all[l]).unwrap();
        }
        write!(text, "{}(size={size})", if leaf { "null" } else { "zero" }).unwrap();
        let registry = Registry::new();
        let once = registry.canonical_text(&text).unwrap();
        prop_assert_eq!(registry.canonical_text(&once).unwrap(), once.clone());
        // What a running stack describes is the same tree.
        let stack = registry.open(&text).unwrap();
        prop_assert_eq!(stack.spec().to_string(), once.clone());
        let described = registry.canonical(&Spec::of(&**stack.device())).unwrap();
        let rebuilt = registry.canonical(&once.parse().unwrap()).unwrap();
        if !once.contains("p99") {
            prop_assert_eq!(described, rebuilt);
        }
    }
}

#[cfg(feature = "serde")]
mod documents {
    use super::*;

    /// A branch kind and a leaf, so that trees of every shape can be written.
    fn registry() -> Registry {
        let mut registry = Registry::new();
        registry.register("pair", "two", Shape::Branch { least: 2 }, &[], |site| {
            Ok(site.branches()[0].clone())
        });
        registry
    }

    fn tree() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null(1g)"),
            Just("zero(1000003)"),
            Just("null(4k,read=keep)")
        ]
        .prop_map(str::to_owned);
        leaf.prop_recursive(4, 20, 3, |inner| {
            let layer = prop_oneof![
                Just("stats"),
                Just("stats(sample=64)"),
                Just("delay(read=50us,p99=400us,seed=7)"),
                Just("error(rate=1%,op=write,armed=\"/tmp/a b\",errno=ENOSPC,range=4k-)"),
                Just("offset(4k)"),
            ];
            prop_oneof![
                (layer, inner.clone()).prop_map(|(l, below)| format!("{l}/{below}")),
                prop::collection::vec(inner, 2..4).prop_map(|b| format!("pair[{}]", b.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn string_tree_toml_tree_json_tree_string(text in tree(), slow in any::<bool>()) {
            let registry = registry();
            let text = if slow { format!("delay@a-slow.one(write=1ms)/{text}") } else { text };
            let spec = registry.canonical(&text.parse().unwrap()).unwrap();
            let toml = registry.to_toml(&spec).unwrap();
            let from_toml = registry.from_toml(&toml).unwrap();
            prop_assert_eq!(&from_toml, &spec, "{}", toml);
            let json = registry.to_json(&from_toml).unwrap();
            let from_json = registry.from_json(&json).unwrap();
            prop_assert_eq!(from_json.to_string(), spec.to_string());
        }
    }

    #[test]
    fn values_need_no_quotes() {
        let spec = registry()
            .from_toml(
                "[device.d]\nkind='null'\nsize=4096\n[device.e]\nkind='error'\nover='d'\nrate=0.5\nonce=true\n[workload]\nanything = 1",
            )
            .unwrap();
        assert_eq!(spec.to_string(), "error@e(rate=0.5,once=1)/null@d(4k)");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("", "no `[device.NAME]` table"),
            ("x = 1", "unknown field"),
            (
                "[device.a]\nkind='null'\nsize=1\n[device.b]\nkind='null'\nsize=1",
                "several devices are on top: a, b",
            ),
            (
                "[device.a]\nkind='stats'\nover='b'",
                "`device.a.over` names `b`, which is no device",
            ),
            ("[device.a]\nkind='stats'\nover='a'", "there is no top"),
            (
                "[stack]\ntop='a'\n[device.a]\nkind='stats'\nover='a'",
                "under itself",
            ),
            (
                "[stack]\ntop='x'\n[device.a]\nkind='null'\nsize=1",
                "names `x`",
            ),
            (
                "[stack]\ntop='a'\n[device.a]\nkind='null'\nsize=1\n[device.b]\nkind='null'\nsize=1",
                "`device.b` is not part",
            ),
            (
                "[device.a]\nkind='nul'\nsize=1",
                "no device or layer is called `nul`",
            ),
            (
                "[device.a]\nkind='null'\nsize=1\nsizes=1",
                "no parameter `sizes`",
            ),
            ("[device.a]\nsize=1", "missing field `kind`"),
            ("[device.'a b']\nkind='null'\nsize=1", "`a b` is no id"),
        ] {
            let e = registry().from_toml(text).unwrap_err();
            assert!(e.to_string().contains(why), "{text}\n{e}");
        }
        assert!(registry().from_json("{").is_err());
    }

    #[test]
    fn an_explanation_is_data_too() {
        let explain = Registry::new().explain("readonly/null(1k)").unwrap();
        let json: serde_json::Value = serde_json::to_value(&explain).unwrap();
        assert_eq!(json["levels"][0]["kind"], "readonly");
        assert_eq!(json["levels"][0]["ends_here"][0]["caps"][0], "WRITE");
        assert_eq!(json["levels"][1]["len"], 1024);
        assert_eq!(json["levels"][1]["len_at_most"], false);
        assert!(json["levels"][1].get("depends_on_content").is_none());
    }
}

#[test]
fn canonical_forms() {
    let registry = Registry::new();
    for (given, canonical) in [
        ("null(1024)", "null(1k)"),
        ("null(size=4GiB)", "null(4g)"),
        ("null(4GB,read=zeros)", "null(4g)"),
        (
            " stats | stats/stats @ stats ( sample = 1 ) / zero ( 1536 )",
            "stats/stats/stats@stats/zero(1536)",
        ),
        (
            "delay@delay(read=1000us,p99=0)/zero(1)",
            "delay(read=1ms,p99=0)/zero(1)",
        ),
        ("error(rate=100%)/zero(1)", "error/zero(1)"),
        ("error(rate=0.5)/zero(1)", "error(rate=0.5)/zero(1)"),
        ("slice(0-1k)/zero(1m)", "slice(0-1k)/zero(1m)"),
        ("offset(0)/zero(1m)", "offset(0)/zero(1m)"),
    ] {
        assert_eq!(
            registry.canonical_text(given).unwrap(),
            canonical,
            "{given}"
        );
    }
}

#[test]
fn mistakes_have_their_messages() {
    let registry = Registry::new();
    let deep = format!("{}null(1){}", "mirror[".repeat(17), "]".repeat(17));
    let wide = vec!["passthru"; 65].join("/");
    let mut out = String::new();
    for text in [
        "",
        "Stats/null(1)",
        "stats//null(1)",
        "stats/null(1)x",
        "stats/null(1",
        "stats/null(1 2)",
        "stats/null(\"1",
        "stats/null(\"\\1\")",
        "stats/null()",
        "stats@/null(1)",
        "a@x/a@x",
        "stats@x/stats@x/null(1)",
        "mirror[null(1)",
        "mirror[null(1)]/null(1)",
        "statss/null(1)",
        "xyzzy/null(1)",
        "delay(reed=1us)/null(1)",
        "passthru(x=1)/null(1)",
        "passthru(1)/null(1)",
        "stats(3)/null(1)",
        "delay(read=1)/null(1)",
        "delay(read=1us,read=2us)/null(1)",
        "delay(dist=lognorm)/null(1)",
        "error(rate=2)/null(1)",
        "error(range=5-3)/null(1)",
        "stats(sample=99999999999)/null(1)",
        "null(0)",
        "null(4x)",
        "null(99999999999999999999)",
        "null(16e)",
        "null(1)/null(1)",
        "stats",
        "stats[null(1),null(1)]",
        "offset(2k)/null(1k)",
        "slice(1k-2k)/null(1k)",
        "offset(0,len=0)/null(1k)",
        deep.as_str(),
        wide.as_str(),
    ] {
        let shown: String = text.chars().take(70).collect();
        let error = match registry.explain(text) {
            Ok(e) => panic!("{shown} is taken: {e}"),
            Err(e) => e.to_string(),
        };
        writeln!(out, "{shown}\n{error}\n").unwrap();
    }
    let golden = include_str!("golden/mistakes.txt");
    if std::env::var_os("CAIRN_BLESS").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/mistakes.txt"),
            &out,
        )
        .unwrap();
        return;
    }
    assert_eq!(
        out, golden,
        "run with CAIRN_BLESS=1 after looking at the difference"
    );
}

#[test]
fn limits_hold_at_their_edges() {
    let registry = Registry::new();
    let wide = format!("{}/null(1)", vec!["passthru"; 63].join("/"));
    assert!(registry.open(&wide).is_ok());
    let deep = format!("{}a{}", "a[a,".repeat(16), "]".repeat(16));
    assert!(deep.parse::<Spec>().is_ok());
    let deeper = format!("{}a{}", "a[a,".repeat(17), "]".repeat(17));
    assert_eq!(
        deeper.parse::<Spec>().unwrap_err().kind(),
        SpecErrorKind::TooDeep
    );
    let mut tall = Spec::leaf(Node::new("null").arg("size", 1));
    for _ in 0..64 {
        tall = Spec::over(Node::new("passthru"), vec![tall]);
    }
    assert_eq!(
        registry.canonical(&tall).unwrap_err().kind(),
        SpecErrorKind::TooManyNodes
    );
}

#[test]
fn explain_shows_where_things_end() {
    let registry = Registry::new();
    let text = registry
        .explain("stats@top/readonly/delay(read=1us)/null(4g)")
        .unwrap()
        .to_string();
    let mut registry = Registry::new();
    registry.register("later", "made later", Shape::Leaf, &[], |site| {
        let node = Node::new("later");
        assert!(site.planning(), "nothing is made");
        let info = DeviceInfo::new(1 << 30);
        Ok(Arc::new(Planned::new(info, Caps::EXTENTS, node)))
    });
    let open = registry.explain("stats/partition(2)/later").unwrap();
    let text = format!("{text}\n\n{open}");
    let golden = include_str!("golden/explain.txt");
    if std::env::var_os("CAIRN_BLESS").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/explain.txt"),
            format!("{text}\n"),
        )
        .unwrap();
        return;
    }
    assert_eq!(format!("{text}\n"), golden);
}

#[test]
fn a_plan_neither_waits_nor_guesses() {
    let registry = Registry::new();
    let said = |spec: &str| registry.explain(spec).err().map(|e| e.to_string());
    // Bytes that are there are read, those of a file also.
    let no = said("partition(1)/zero(1m)").unwrap();
    assert!(no.contains("no partition table"), "{no}");
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let no = said(&format!("partition(1)/file({})", file.path().display())).unwrap();
    assert!(no.contains("no partition table"), "{no}");
    let no = said("partition(1)/delay(read=9h)/zero(1m)").unwrap();
    assert!(no.contains("no partition table"), "{no}");
    for spec in [
        "partition(1)/pause(closed=1)/zero(1m)",
        "partition(x)/stats/pause(closed=1)/zero(1m)",
    ] {
        let no = registry.open(spec).err().unwrap().to_string();
        assert!(no.contains("`pause` below is closed"), "{no}");
    }
}
