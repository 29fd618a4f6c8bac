//! The handshake: each option's answers, every length field at its edges, and every way to be cut.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use cairn_nbd::codec::{
    ExportInfo, Exports, Framing, HandshakeLimits, ServerHandshake, ServerStep, TlsPolicy,
    TransmissionFlags, Violation, option,
};
use proptest::prelude::*;

struct Two;

impl Exports for Two {
    fn find(&self, name: &str) -> Option<ExportInfo> {
        let mut info = ExportInfo::new(1_000_003);
        "a description".clone_into(&mut info.description);
        (name.is_empty() || name == "disk" || name.len() == 4096).then_some(info)
    }

    fn each(&self, list: &mut dyn FnMut(&str, &str)) {
        list("", "the first");
        list("disk", "");
    }
}

fn opt(option: u32, data: &[u8]) -> Vec<u8> {
    let mut wire = b"IHAVEOPT".to_vec();
    wire.extend(option.to_be_bytes());
    wire.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    wire.extend(data);
    wire
}

fn go(option: u32, name: &str, infos: &[u16]) -> Vec<u8> {
    let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend(u16::try_from(infos.len()).unwrap().to_be_bytes());
    data.extend(infos.iter().flat_map(|i| i.to_be_bytes()));
    opt(option, &data)
}

fn meta(option: u32, name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    for q in queries {
        data.extend(u32::try_from(q.len()).unwrap().to_be_bytes());
        data.extend(q.as_bytes());
    }
    opt(option, &data)
}

const HELLO: [u8; 4] = [0, 0, 0, 3];

/// A reply: option, type, data.
type Reply = (u32, u32, Vec<u8>);

fn replies(mut out: &[u8]) -> Vec<Reply> {
    let mut all = Vec::new();
    while !out.is_empty() {
        assert_eq!(out[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
        let field = |at: usize| u32::from_be_bytes(out[at..at + 4].try_into().unwrap());
        let len = field(16) as usize;
        all.push((field(8), field(12), out[20..20 + len].to_vec()));
        out = &out[20 + len..];
    }
    all
}

struct Talk {
    server: ServerHandshake,
    out: Vec<u8>,
}

impl Talk {
    fn new(tls: TlsPolicy) -> Self {
        let mut talk = Self {
            server: ServerHandshake::new(HandshakeLimits::default(), tls),
            out: Vec::new(),
        };
        assert_eq!(talk.say(&HELLO).unwrap(), ServerStep::More);
        talk
    }

    /// Feeds everything and gives the last step.
    fn say(&mut self, wire: &[u8]) -> Result<ServerStep, Violation> {
        let mut rest = wire;
        loop {
            let (used, step) = self.server.step(rest, &Two, &mut self.out)?;
            assert!(used <= rest.len());
            rest = &rest[used..];
            if step != ServerStep::Went {
                return Ok(step);
            }
        }
    }

    /// Kinds of the replies to one option.
    fn ask(&mut self, wire: &[u8]) -> Vec<Reply> {
        self.out.clear();
        self.say(wire).unwrap();
        replies(&self.out)
    }

    fn kinds(&mut self, wire: &[u8]) -> Vec<u32> {
        self.ask(wire).into_iter().map(|r| r.1).collect()
    }
}

const ACK: u32 = 1;
const ERR: u32 = 1 << 31;

#[test]
fn each_option_has_its_answer() {
    let mut talk = Talk::new(TlsPolicy::Never);
    assert_eq!(talk.kinds(&opt(option::LIST, b"")), [2, 2, ACK]);
    assert_eq!(talk.kinds(&opt(option::LIST, b"x")), [ERR + 3]);
    assert_eq!(talk.kinds(&opt(option::STARTTLS, b"")), [ERR + 2]);
    assert_eq!(talk.kinds(&opt(77, b"whatever")), [ERR + 1]);
    assert_eq!(talk.kinds(&go(option::INFO, "nope", &[])), [ERR + 6]);
    assert_eq!(talk.kinds(&go(option::INFO, "disk", &[])), [3, ACK]);
    // Asked twice, answered alike; what nobody knows is ignored.
    let question = go(option::INFO, "disk", &[0, 1, 2, 3, 4444]);
    let first = talk.ask(&question);
    assert_eq!(first.len(), 5);
    assert_eq!(first, talk.ask(&question));
    assert_eq!(first[0].2.len(), 12);
    assert_eq!(first[1].2, b"\0\x01disk");
    assert_eq!(first[3].2.len(), 14);
    // Metadata contexts need structured replies.
    assert_eq!(
        talk.kinds(&meta(
            option::SET_META_CONTEXT,
            "disk",
            &["base:allocation"]
        )),
        [ERR + 3]
    );
    assert_eq!(talk.kinds(&opt(option::STRUCTURED_REPLY, b"")), [ACK]);
    assert_eq!(talk.kinds(&opt(option::STRUCTURED_REPLY, b"")), [ACK]);
    assert_eq!(talk.kinds(&opt(option::STRUCTURED_REPLY, b"1")), [ERR + 3]);
    let list = option::LIST_META_CONTEXT;
    assert_eq!(talk.kinds(&meta(list, "disk", &[])), [4, ACK]);
    assert_eq!(talk.kinds(&meta(list, "disk", &["base:"])), [4, ACK]);
    assert_eq!(talk.kinds(&meta(list, "disk", &["qemu:dirty"])), [ACK]);
    assert_eq!(talk.kinds(&meta(list, "disk", &["nocolon"])), [ERR + 3]);
    assert_eq!(talk.kinds(&meta(list, "nope", &[])), [ERR + 6]);
    let many = vec!["base:allocation"; 65];
    assert_eq!(talk.kinds(&meta(list, "disk", &many)), [ERR + 9]);
    assert_eq!(talk.kinds(&opt(option::EXTENDED_HEADERS, b"")), [ACK]);
    assert_eq!(talk.kinds(&opt(option::STRUCTURED_REPLY, b"")), [ERR + 10]);
    assert_eq!(talk.kinds(&opt(option::EXTENDED_HEADERS, b"")), [ERR + 3]);
    assert!(talk.say(&opt(option::EXPORT_NAME, b"disk")).is_err());
    assert_eq!(
        talk.say(&opt(option::ABORT, b"bye")).unwrap(),
        ServerStep::Close
    );
}

#[test]
fn contexts_are_replaced_even_by_a_choice_that_fails() {
    for (then, kept) in [
        (meta(option::SET_META_CONTEXT, "disk", &["bad"]), false),
        (
            meta(option::SET_META_CONTEXT, "nope", &["base:allocation"]),
            false,
        ),
        (meta(option::SET_META_CONTEXT, "disk", &["base:"]), false),
        (meta(option::SET_META_CONTEXT, "disk", &[]), false),
        (opt(99, b""), true),
    ] {
        let mut talk = Talk::new(TlsPolicy::Never);
        talk.say(&opt(option::STRUCTURED_REPLY, b"")).unwrap();
        let set = meta(
            option::SET_META_CONTEXT,
            "disk",
            &["x:y", "base:allocation"],
        );
        assert_eq!(talk.kinds(&set), [4, ACK]);
        talk.say(&then).unwrap();
        let ServerStep::Ready(n) = talk.say(&go(option::GO, "disk", &[3])).unwrap() else {
            panic!("GO is answered");
        };
        assert_eq!(n.allocation, kept);
        assert!(n.knows_blocks);
        assert!(n.flags().contains(TransmissionFlags::SEND_DF));
    }
    // Chosen for one export, gone with another.
    let mut talk = Talk::new(TlsPolicy::Never);
    talk.say(&opt(option::STRUCTURED_REPLY, b"")).unwrap();
    talk.say(&meta(
        option::SET_META_CONTEXT,
        "disk",
        &["base:allocation"],
    ))
    .unwrap();
    let ServerStep::Ready(n) = talk.say(&go(option::GO, "", &[])).unwrap() else {
        panic!("GO is answered");
    };
    assert!(!n.allocation);
}

#[test]
fn names_of_4096_bytes_are_fine_and_longer_ones_refused() {
    let long = "n".repeat(4096);
    let longer = "n".repeat(4097);
    let mut talk = Talk::new(TlsPolicy::Never);
    talk.say(&opt(option::STRUCTURED_REPLY, b"")).unwrap();
    assert_eq!(talk.kinds(&go(option::INFO, &long, &[1])), [3, 3, ACK]);
    assert_eq!(talk.kinds(&go(option::INFO, &longer, &[1])), [ERR + 3]);
    let set = option::SET_META_CONTEXT;
    assert_eq!(
        talk.kinds(&meta(set, &long, &["base:allocation"])),
        [4, ACK]
    );
    assert_eq!(talk.kinds(&meta(set, &longer, &[])), [ERR + 3]);
    assert_eq!(talk.kinds(&meta(set, &long, &[&longer])), [ERR + 3]);
    // No answer grows with what was sent.
    talk.out.clear();
    talk.say(&go(option::GO, &"u".repeat(4096), &[])).unwrap();
    assert!(talk.out.len() < 100 || talk.out.len() > 4096);
    assert!(
        talk.say(&opt(option::EXPORT_NAME, longer.as_bytes()))
            .is_err()
    );
}

#[test]
fn names_are_text_without_nul() {
    for bad in [&b"di\0sk"[..], b"\xff\xfe", b"\xc3"] {
        let len = u32::try_from(bad.len()).unwrap().to_be_bytes();
        let question = [&len[..], bad, &[0; 2]].concat();
        let context = [&len[..], bad, &[0; 4]].concat();
        let query = [&[0; 4][..], &1_u32.to_be_bytes(), &len, bad].concat();
        let mut talk = Talk::new(TlsPolicy::Never);
        talk.say(&opt(option::STRUCTURED_REPLY, b"")).unwrap();
        for wire in [
            opt(option::INFO, &question),
            opt(option::GO, &question),
            opt(option::SET_META_CONTEXT, &context),
            opt(option::LIST_META_CONTEXT, &query),
        ] {
            assert_eq!(talk.kinds(&wire), [ERR + 3], "{bad:?}");
        }
        assert!(talk.say(&opt(option::EXPORT_NAME, bad)).is_err());
    }
    // Neither does TLS take data, whether there is any or not.
    for tls in [TlsPolicy::Never, TlsPolicy::Offered, TlsPolicy::Required] {
        let mut talk = Talk::new(tls);
        assert_eq!(talk.kinds(&opt(option::STARTTLS, b"x")), [ERR + 3]);
    }
}

#[test]
fn every_length_field_at_its_edges() {
    let question = go(option::INFO, "disk", &[3]);
    let context = meta(option::SET_META_CONTEXT, "disk", &["base:allocation"]);
    for (wire, fields) in [(&question, &[16][..]), (&context, &[16, 24, 28][..])] {
        for &at in fields {
            let right = u32::from_be_bytes(wire[at..at + 4].try_into().unwrap());
            for value in [
                0,
                right - 1,
                right + 1,
                4096,
                4097,
                1 << 31,
                u32::MAX - 1,
                u32::MAX,
            ] {
                let mut talk = Talk::new(TlsPolicy::Never);
                talk.say(&opt(option::STRUCTURED_REPLY, b"")).unwrap();
                let mut bad = wire.clone();
                bad[at..at + 4].copy_from_slice(&value.to_be_bytes());
                let kinds = talk.kinds(&bad);
                assert_eq!(kinds.len(), 1, "field at {at} = {value}");
                assert!(kinds[0] > ERR, "field at {at} = {value}: {kinds:?}");
                // The next option parses.
                assert_eq!(talk.kinds(&opt(option::LIST, b"")), [2, 2, ACK]);
            }
        }
    }
}

#[test]
fn long_options_are_skipped_and_longer_ones_end_it() {
    let mut talk = Talk::new(TlsPolicy::Never);
    talk.out.clear();
    let wire = opt(55, &vec![7; (64 << 10) + 1]);
    for part in wire.chunks(1000) {
        // A machine keeps nothing of what it skips.
        let mut rest = part;
        while !rest.is_empty() {
            let (used, _) = talk.server.step(rest, &Two, &mut talk.out).unwrap();
            assert!(used > 0 || rest.len() < 16);
            rest = &rest[used..];
        }
    }
    assert_eq!(
        replies(&talk.out),
        [(55, ERR + 9, b"more data than any option needs".to_vec())]
    );
    assert_eq!(talk.kinds(&opt(option::LIST, b"")), [2, 2, ACK]);
    let mut huge = b"IHAVEOPT".to_vec();
    huge.extend(55_u32.to_be_bytes());
    huge.extend(((1_u32 << 20) + 1).to_be_bytes());
    assert!(matches!(
        talk.say(&huge),
        Err(Violation::OptionTooLong { .. })
    ));
}

#[test]
fn three_hundred_options_are_too_many() {
    let mut talk = Talk::new(TlsPolicy::Never);
    for _ in 0..255 {
        talk.say(&opt(option::LIST, b"")).unwrap();
        talk.out.clear();
    }
    talk.say(&opt(option::LIST, b"")).unwrap();
    assert!(matches!(
        talk.say(&opt(option::LIST, b"")),
        Err(Violation::TooManyOptions(256))
    ));
}

#[test]
fn unknown_handshake_flags_end_it() {
    for flags in [4_u32, 1 << 16, u32::MAX] {
        let mut server = ServerHandshake::new(HandshakeLimits::default(), TlsPolicy::Never);
        let got = server.step(&flags.to_be_bytes(), &Two, &mut Vec::new());
        assert_eq!(got, Err(Violation::ClientFlags(flags)));
    }
}

#[test]
fn zeros_follow_an_export_name_unless_agreed_away() {
    for (flags, len) in [(0_u32, 134), (1, 134), (2, 10), (3, 10)] {
        let mut server = ServerHandshake::new(HandshakeLimits::default(), TlsPolicy::Never);
        let mut out = Vec::new();
        server.step(&flags.to_be_bytes(), &Two, &mut out).unwrap();
        let wire = opt(option::EXPORT_NAME, b"disk");
        let (used, step) = server.step(&wire, &Two, &mut out).unwrap();
        assert_eq!((used, out.len()), (wire.len(), len));
        assert!(matches!(step, ServerStep::Ready(_)));
    }
    let mut talk = Talk::new(TlsPolicy::Never);
    assert!(talk.say(&opt(option::EXPORT_NAME, b"nope")).is_err());
}

#[test]
fn tls_forgets_what_was_agreed_before() {
    let mut talk = Talk::new(TlsPolicy::Offered);
    talk.say(&opt(option::STRUCTURED_REPLY, b"")).unwrap();
    talk.say(&meta(
        option::SET_META_CONTEXT,
        "disk",
        &["base:allocation"],
    ))
    .unwrap();
    assert_eq!(
        talk.say(&opt(option::STARTTLS, b"")).unwrap(),
        ServerStep::StartTls
    );
    talk.server.encrypted();
    assert_eq!(talk.kinds(&opt(option::STARTTLS, b"")), [ERR + 3]);
    let ServerStep::Ready(n) = talk.say(&go(option::GO, "disk", &[])).unwrap() else {
        panic!("GO is answered");
    };
    assert_eq!((n.framing, n.allocation), (Framing::Simple, false));
}

#[test]
fn required_tls_refuses_everything_else() {
    let mut talk = Talk::new(TlsPolicy::Required);
    for wire in [
        opt(option::LIST, b""),
        go(option::INFO, "disk", &[]),
        go(option::GO, "disk", &[]),
        opt(option::STRUCTURED_REPLY, b""),
        opt(123, b"junk"),
    ] {
        assert_eq!(talk.kinds(&wire), [ERR + 5]);
    }
    assert!(talk.say(&opt(option::EXPORT_NAME, b"disk")).is_err());
    assert_eq!(
        talk.say(&opt(option::ABORT, b"")).unwrap(),
        ServerStep::Close
    );
    assert_eq!(
        talk.say(&opt(option::STARTTLS, b"")).unwrap(),
        ServerStep::StartTls
    );
}

/// A whole negotiation, as one client sends it.
fn conversation() -> Vec<u8> {
    [
        HELLO.to_vec(),
        opt(option::LIST, b""),
        opt(200, b"unknown"),
        opt(option::STRUCTURED_REPLY, b""),
        meta(option::LIST_META_CONTEXT, "disk", &[]),
        meta(option::SET_META_CONTEXT, "disk", &["base:allocation"]),
        go(option::INFO, "disk", &[1, 2, 3]),
        go(option::GO, "disk", &[3]),
    ]
    .concat()
}

/// What a server says to bytes that arrive in these parts.
fn answers(parts: &[&[u8]]) -> (Vec<u8>, Option<ServerStep>) {
    let mut server = ServerHandshake::new(HandshakeLimits::default(), TlsPolicy::Never);
    let (mut out, mut have) = (Vec::new(), Vec::new());
    for part in parts {
        have.extend_from_slice(part);
        loop {
            match server.step(&have, &Two, &mut out) {
                Ok((used, step)) => {
                    have.drain(..used);
                    match step {
                        ServerStep::Went => {}
                        ServerStep::More => break,
                        done => return (out, Some(done)),
                    }
                }
                Err(_) => return (out, None),
            }
        }
    }
    (out, Some(ServerStep::More))
}

#[test]
fn delivery_in_parts_changes_nothing() {
    let wire = conversation();
    let whole = answers(&[&wire]);
    assert!(matches!(whole.1, Some(ServerStep::Ready(_))));
    for cut in 0..=wire.len() {
        let (a, b) = wire.split_at(cut);
        assert_eq!(answers(&[a, b]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = wire.chunks(1).collect();
    assert_eq!(answers(&bytes), whole);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut wire = conversation();
        for (at, to) in changes {
            let at = at.index(wire.len());
            wire[at] = to;
        }
        let (out, _) = answers(&[&wire]);
        // Bounded by what was sent.
        prop_assert!(out.len() < 16 * wire.len());
    }

    #[test]
    fn any_options_in_any_order(options in prop::collection::vec((0_u32..13, prop::collection::vec(any::<u8>(), 0..40)), 0..30)) {
        let mut wire = HELLO.to_vec();
        for (option, data) in &options {
            wire.extend(opt(*option, data));
        }
        answers(&[&wire]);
    }
}
