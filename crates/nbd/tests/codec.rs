//! The machines after the handshake, and the client's handshake, fed with anything.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use cairn_nbd::codec::{
    Body, ClientHandshake, ClientReady, ClientStep, ClientTransmission, ClientWishes, CommandFlags,
    Event, ExportInfo, Exports, Framing, HandshakeLimits, Negotiated, Reply, Request,
    ServerHandshake, ServerStep, ServerTransmission, Status, StatusFlags, TlsPolicy, WireError,
};
use proptest::prelude::*;

const FRAMINGS: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];

fn framing() -> impl Strategy<Value = Framing> {
    prop::sample::select(FRAMINGS.to_vec())
}

fn negotiated(framing: Framing) -> Negotiated {
    let mut n = Negotiated::simple("", 1 << 40);
    n.framing = framing;
    n.allocation = true;
    n
}

fn any_request() -> impl Strategy<Value = Request> {
    (
        any::<u64>(),
        any::<u16>(),
        any::<u16>(),
        any::<u64>(),
        any::<u32>(),
    )
        .prop_map(|(cookie, command, flags, offset, len)| Request {
            cookie,
            command: command % 12,
            flags: CommandFlags::from_bits_retain(flags),
            offset,
            len: len.into(),
            payload: 0,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_come_back_as_they_were_sent(sent in any_request(), framing in framing()) {
        let server = ServerTransmission::new(&negotiated(framing));
        let mut wire = Vec::new();
        sent.encode(framing, &mut wire);
        for cut in 0..wire.len() {
            prop_assert!(matches!(server.decode(&wire[..cut]), Ok(None)));
        }
        if let Ok(got) = server.decode(&wire) {
            let (got, used) = got.unwrap();
            prop_assert_eq!(used, wire.len());
            prop_assert_eq!(Request { payload: 0, ..got }, sent);
            // Whatever is asked, a request that is good lies inside the export.
            if server.check(&got).is_ok() && !matches!(got.command, 2 | 3) && !got.flags.contains(CommandFlags::PAYLOAD_LEN) {
                prop_assert!(got.offset + got.len <= 1 << 40);
            }
        } else {
            prop_assert!(sent.len > 2 * u64::from(ExportInfo::MAX_PAYLOAD));
        }
    }

    #[test]
    fn any_bytes_are_a_request_or_the_end(bytes in prop::collection::vec(any::<u8>(), 0..80), framing in framing()) {
        let server = ServerTransmission::new(&negotiated(framing));
        if let Ok(Some((request, used))) = server.decode(&bytes) {
            prop_assert!(used <= bytes.len());
            let _ = server.check(&request);
        }
    }

    #[test]
    fn replies_come_back_as_they_were_sent(
        request in any_request(),
        framing in framing(),
        message in "\\PC{0,50}",
        runs in prop::collection::vec((1_u64..1 << 20, 0_u32..4), 1..20),
    ) {
        let client = ClientTransmission::new(framing);
        let reply = Reply::to(framing, &request);
        let mut wire = Vec::new();
        reply.error(WireError::NoSpc, &message, &mut wire);
        match client.decode(&wire).unwrap().unwrap() {
            (Event::Simple { cookie, error }, _) => {
                prop_assert_eq!(cookie, request.cookie);
                prop_assert_eq!(error, Some(WireError::NoSpc));
            }
            (Event::Chunk { body: Body::Error { error, message: said }, done, .. }, used) => {
                prop_assert_eq!(error, WireError::NoSpc);
                prop_assert_eq!(said, message.as_bytes());
                prop_assert!(done && used == wire.len());
            }
            other => panic!("{other:?}"),
        }
        for cut in 0..wire.len() {
            prop_assert!(matches!(client.decode(&wire[..cut]), Ok(None)));
        }
        if framing == Framing::Simple {
            return Ok(());
        }
        let mut status = Status::new(false);
        for (len, bits) in runs {
            prop_assert!(status.push(len, StatusFlags::from_bits_truncate(bits)));
        }
        wire.clear();
        reply.status(&status, &mut wire);
        let Some((Event::Chunk { body: Body::Status(got), .. }, _)) = client.decode(&wire).unwrap() else {
            panic!("no status");
        };
        prop_assert_eq!(got.collect::<Vec<_>>(), status.runs());
    }

    #[test]
    fn any_bytes_are_a_reply_or_the_end(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        kind in prop::sample::select(vec![0_u16, 1, 2, 5, 6, 0x8001, 0x8002, 9]),
        framing in framing(),
    ) {
        let client = ClientTransmission::new(framing);
        let _ = client.decode(&bytes);
        // With a header that is right, so that what follows is looked at too.
        let magic: u32 = if framing == Framing::Extended { 0x6e8a_278c } else { 0x668e_33ef };
        let mut wire = magic.to_be_bytes().to_vec();
        wire.extend([0, 1]);
        wire.extend(kind.to_be_bytes());
        wire.extend(bytes);
        if let Ok(Some((_, used))) = client.decode(&wire) {
            prop_assert!(used <= wire.len());
        }
    }

    #[test]
    fn a_client_survives_any_server(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut wire = b"NBDMAGICIHAVEOPT\0\x03".to_vec();
        wire.extend(bytes);
        let mut client = ClientHandshake::new(ClientWishes::new("disk"));
        let mut rest = &wire[..];
        let mut out = Vec::new();
        while let Ok((used, step)) = client.step(rest, &mut out) {
            rest = &rest[used..];
            if step == ClientStep::More {
                break;
            }
        }
        prop_assert!(out.len() < 200);
    }
}

struct One;

impl Exports for One {
    fn find(&self, name: &str) -> Option<ExportInfo> {
        let mut info = ExportInfo::new(1 << 20);
        info.min_block = 512;
        (name == "disk").then_some(info)
    }

    fn each(&self, _: &mut dyn FnMut(&str, &str)) {}
}

/// Lets both sides talk until they agree.
fn agree(wishes: ClientWishes) -> Option<(Negotiated, Framing, bool, ExportInfo)> {
    let mut server = ServerHandshake::new(HandshakeLimits::default(), TlsPolicy::Never);
    let mut client = ClientHandshake::new(wishes);
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    server.greeting(&mut to_client);
    let mut negotiated = None;
    for _ in 0..100 {
        let (used, step) = client.step(&to_client, &mut to_server).ok()?;
        to_client.drain(..used);
        if let ClientStep::Ready(ready) = step {
            let allocation = ready.allocation.is_some();
            return Some((negotiated?, ready.framing, allocation, ready.info));
        }
        let (used, step) = server.step(&to_server, &One, &mut to_client).ok()?;
        to_server.drain(..used);
        if let ServerStep::Ready(n) = step {
            negotiated = Some(*n);
        }
    }
    None
}

#[test]
fn client_and_server_agree() {
    for framing in FRAMINGS {
        let mut wishes = ClientWishes::new("disk");
        wishes.framing = framing;
        let (server, client, allocation, info) = agree(wishes).unwrap();
        assert_eq!((server.framing, client), (framing, framing));
        assert_eq!(server.allocation, framing != Framing::Simple);
        assert_eq!(allocation, server.allocation);
        assert_eq!((info.size, info.min_block), (1 << 20, 512));
        assert_eq!(info.flags, server.flags());
        assert!(server.knows_blocks);
    }
    assert!(agree(ClientWishes::new("none")).is_none());
}

/// What a server without GO answers to each option, and what it is asked by the client.
fn old_server(
    wishes: ClientWishes,
    greeting: &[u8],
    go: u32,
) -> (Vec<u32>, Result<ClientReady, String>) {
    let mut client = ClientHandshake::new(wishes);
    let (mut wire, mut out, mut asked) = (greeting.to_vec(), Vec::new(), Vec::new());
    loop {
        let (used, step) = match client.step(&wire, &mut out) {
            Ok(went) => went,
            Err(error) => return (asked, Err(error.to_string())),
        };
        wire.drain(..used);
        if let ClientStep::Ready(ready) = step {
            assert!(wire.is_empty(), "something is left");
            return (asked, Ok(*ready));
        }
        // The first four bytes are the client's flags.
        let from = if asked.is_empty() { 4 } else { 0 };
        if out.len() < from + 16 {
            assert_eq!(step, ClientStep::Went);
            continue;
        }
        let option = u32::from_be_bytes(out[from + 8..from + 12].try_into().unwrap());
        asked.push(option);
        if option == 1 {
            assert_eq!(&out[from + 16..], b"disk", "the whole option is the name");
            wire.extend((3_u64 << 20).to_be_bytes());
            wire.extend([0, 0b111]);
            let padded = greeting[17] & 2 == 0;
            wire.resize(wire.len() + if padded { 124 } else { 0 }, 0);
        } else {
            let kind = if option == 7 { go } else { (1 << 31) + 1 };
            wire.extend(0x0003_e889_0455_65a9_u64.to_be_bytes());
            wire.extend(option.to_be_bytes());
            wire.extend(kind.to_be_bytes());
            wire.extend([0; 4]);
        }
        out.clear();
    }
}

#[test]
fn a_server_without_go_is_asked_by_name_and_no_other() {
    for greeting in [b"NBDMAGICIHAVEOPT\0\x01", b"NBDMAGICIHAVEOPT\0\x03"] {
        let (asked, ready) = old_server(ClientWishes::new("disk"), greeting, (1 << 31) + 1);
        assert_eq!(asked, [11, 8, 7, 1]);
        let ready = ready.unwrap();
        assert_eq!((ready.info.size, ready.info.flags.bits()), (3 << 20, 0b111));
        assert_eq!((ready.framing, ready.allocation), (Framing::Simple, None));
        // Every other refusal is final: policy, TLS, an unknown name, block sizes.
        for refusal in [2, 3, 5, 6, 8] {
            let (asked, ready) =
                old_server(ClientWishes::new("disk"), greeting, (1 << 31) + refusal);
            assert_eq!(asked, [11, 8, 7]);
            assert!(ready.is_err(), "{refusal}");
        }
        // Nothing is asked in plain text where TLS was wanted.
        let mut wishes = ClientWishes::new("disk");
        wishes.tls = true;
        let (asked, ready) = old_server(wishes, greeting, 1);
        assert_eq!(asked, [5]);
        assert!(ready.is_err());
    }
}
