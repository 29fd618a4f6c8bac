//! The machines under anything that a peer may send. The fuzz targets and their twins among the tests
//! share this file.

use cairn_nbd::codec::{
    Body, ClientHandshake, ClientStep, ClientTransmission, ClientWishes, Event, ExportInfo,
    Exports, Framing, HandshakeLimits, ServerHandshake, ServerStep, ServerTransmission, TlsPolicy,
    TransmissionFlags,
};

/// Exports of a server: the default one, `disk`, and one with a name of the greatest length.
struct Three;

impl Exports for Three {
    fn find(&self, name: &str) -> Option<ExportInfo> {
        let mut info = ExportInfo::new(1 << 20);
        info.flags = TransmissionFlags::all() - TransmissionFlags::READ_ONLY;
        "a description".clone_into(&mut info.description);
        (name.is_empty() || name == "disk" || name.len() == 4096).then_some(info)
    }

    fn each(&self, list: &mut dyn FnMut(&str, &str)) {
        list("", "the first");
        list("disk", "");
        list("third", "");
    }
}

/// What a conversation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Everything that was said.
    said: Vec<u8>,
    /// Requests or replies that were understood.
    pub(crate) understood: u32,
    /// The peer broke the protocol.
    broken: bool,
}

/// A server under one client, whose bytes arrive in these parts. Panics where a machine does, makes no
/// headway, uses what is not there, or says far more than it was told.
pub(crate) fn server(parts: &[&[u8]], tls: TlsPolicy) -> Outcome {
    let mut handshake = ServerHandshake::new(HandshakeLimits::default(), tls);
    let mut rules: Option<ServerTransmission> = None;
    let mut outcome = Outcome {
        said: Vec::new(),
        understood: 0,
        broken: false,
    };
    let (mut have, mut payload, mut told) = (Vec::new(), 0_u64, 0);
    handshake.greeting(&mut outcome.said);
    'parts: for part in parts {
        have.extend_from_slice(part);
        told += part.len();
        loop {
            let n = usize::try_from(payload).map_or(have.len(), |n| n.min(have.len()));
            have.drain(..n);
            payload -= n as u64;
            if payload > 0 {
                continue 'parts;
            }
            if let Some(rules) = &rules {
                let Ok(found) = rules.decode(&have) else {
                    outcome.broken = true;
                    return outcome;
                };
                let Some((request, used)) = found else {
                    continue 'parts;
                };
                assert!(used > 0 && used <= have.len(), "{used} of {}", have.len());
                assert!(
                    request.payload <= 2 * rules.max_payload(),
                    "a payload of {} is taken",
                    request.payload
                );
                if rules.check(&request).is_ok() {
                    outcome.understood += 1;
                }
                have.drain(..used);
                payload = request.payload;
                continue;
            }
            let before = outcome.said.len();
            let Ok((used, step)) = handshake.step(&have, &Three, &mut outcome.said) else {
                outcome.broken = true;
                return outcome;
            };
            assert!(used <= have.len(), "{used} of {}", have.len());
            assert!(
                outcome.said.len() - before <= 16 << 10,
                "one option is answered with {} bytes",
                outcome.said.len() - before
            );
            have.drain(..used);
            match step {
                ServerStep::More => continue 'parts,
                ServerStep::Went => assert!(used > 0, "no headway"),
                ServerStep::Ready(negotiated) => rules = Some(ServerTransmission::new(&negotiated)),
                ServerStep::StartTls => {
                    // What came before is dropped.
                    have.clear();
                    handshake.encrypted();
                }
                ServerStep::Close => return outcome,
            }
            assert!(
                outcome.said.len() <= 32 * told + 1024,
                "{} bytes for {told}",
                outcome.said.len()
            );
        }
    }
    outcome
}

/// A client under one server, likewise.
pub(crate) fn client(parts: &[&[u8]], name: &str, framing: Framing) -> Outcome {
    let mut wishes = ClientWishes::new(name);
    wishes.framing = framing;
    let mut handshake = ClientHandshake::new(wishes);
    let mut rules: Option<ClientTransmission> = None;
    let mut outcome = Outcome {
        said: Vec::new(),
        understood: 0,
        broken: false,
    };
    let (mut have, mut data) = (Vec::new(), 0_u64);
    'parts: for part in parts {
        have.extend_from_slice(part);
        loop {
            let n = usize::try_from(data).map_or(have.len(), |n| n.min(have.len()));
            have.drain(..n);
            data -= n as u64;
            if data > 0 {
                continue 'parts;
            }
            let Some(rules) = &rules else {
                let Ok((used, step)) = handshake.step(&have, &mut outcome.said) else {
                    outcome.broken = true;
                    return outcome;
                };
                assert!(used <= have.len(), "{used} of {}", have.len());
                have.drain(..used);
                assert!(outcome.said.len() <= 256 + 4 * name.len(), "it never ends");
                match step {
                    ClientStep::More => continue 'parts,
                    ClientStep::Went => assert!(used > 0, "no headway"),
                    ClientStep::StartTls => panic!("TLS was not wished for"),
                    ClientStep::Ready(ready) => {
                        rules = Some(ClientTransmission::new(ready.framing));
                    }
                }
                continue;
            };
            let Ok(found) = rules.decode(&have) else {
                outcome.broken = true;
                return outcome;
            };
            let Some((event, used)) = found else {
                continue 'parts;
            };
            assert!(used > 0 && used <= have.len(), "{used} of {}", have.len());
            if let Event::Chunk { body, .. } = event {
                match body {
                    Body::Data { len, .. } => data = len,
                    Body::Status(extents) => assert!(extents.count() * 8 <= used),
                    Body::None | Body::Hole { .. } | Body::Error { .. } => {}
                }
            }
            outcome.understood += 1;
            have.drain(..used);
        }
    }
    outcome
}

/// Bytes in two parts.
pub(crate) fn halves(wire: &[u8], at: usize) -> [&[u8]; 2] {
    let (a, b) = wire.split_at(at.min(wire.len()));
    [a, b]
}
