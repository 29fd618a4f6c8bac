//! The server on real sockets: abuse, cuts at every byte, limits, and a stop in every state.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "support/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_block::{Null, Pause};
use cairn_nbd::{Export, ExportError, ListenError, Listener, Server, ServerConfig};
use wire::{Raw, Running, opt, ram};

#[test]
fn a_conversation_cut_at_every_byte_leaves_the_server_up() {
    // More connections than there are cuts, for they end later than they are made.
    let server = Running::new(ram("ram(1m)"), ServerConfig::new().connections(10_000));
    for talk in wire::conversations() {
        for cut in 0..=talk.len() {
            let mut client = server.connect();
            client.write_all(&talk[..cut]).unwrap();
            drop(client);
        }
        // The next client is served.
        let mut client = Raw::go(server.connect(), true);
        client.write(4096, &[7; 512]);
        assert_eq!(client.read(4096, 512).unwrap(), [7; 512]);
    }
    server.wait_for_clients(0);
    server.stop();
}

#[test]
fn flags_one_and_an_empty_export_name_then_gone() {
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    for _ in 0..20 {
        let mut client = server.connect();
        client.write_all(&[0, 0, 0, 1]).unwrap();
        client.write_all(&opt(1, b"")).unwrap();
    }
    let mut client = Raw::go(server.connect(), false);
    assert_eq!(client.read(0, 4).unwrap(), [0; 4]);
    drop(client);
    server.stop();
}

#[test]
fn a_handshake_has_a_time_limit_even_in_drips() {
    let config = ServerConfig::new().handshake_time(Duration::from_millis(300));
    let server = Running::new(ram("ram(1m)"), config);
    let mut slow = server.connect();
    let begun = Instant::now();
    let mut ended = false;
    while begun.elapsed() < Duration::from_secs(20) {
        // A byte now and then does not buy more time.
        if slow.write_all(&[0]).is_err() {
            ended = true;
            break;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(ended);
    server.wait_for_clients(0);
    assert_eq!(server.stats().broken, 1);
    server.stop();
}

#[test]
fn connections_are_limited() {
    let server = Running::new(ram("ram(1m)"), ServerConfig::new().connections(2));
    let a = Raw::go(server.connect(), true);
    let b = Raw::go(server.connect(), true);
    let mut c = server.connect();
    assert_eq!(c.read(&mut [0; 1]).unwrap_or(0), 0);
    drop(a);
    server.wait_for_clients(1);
    let mut d = Raw::go(server.connect(), true);
    d.read(0, 16).unwrap();
    assert_eq!(server.stats().refused, 1);
    drop((b, d));
    server.stop();
}

#[test]
fn a_client_that_takes_no_answers_is_dropped_and_holds_bounded_memory() {
    let config = ServerConfig::new()
        .in_flight(256, 8 << 20)
        .stalled(Duration::from_millis(300));
    let server = Running::new(ram("ram(64m)"), config);
    let mut client = Raw::go(server.connect(), false);
    client.socket.set_nonblocking(true).unwrap();
    let request = wire::request(0, 0, 1, 0, 1 << 20);
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut sent = 0_u64;
    // Goes on asking; in the end the server hears no more, and then hangs up.
    loop {
        assert!(Instant::now() < deadline, "never dropped");
        match client.socket.write(&request) {
            Ok(n) => sent += n as u64,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
                if server.clients() == 0 {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    assert!(sent > 0);
    server.wait_for_clients(0);
    server.stop();
}

#[test]
fn idle_clients_are_dropped_on_demand() {
    let config = ServerConfig::new().idle(Some(Duration::from_millis(200)));
    let server = Running::new(ram("ram(1m)"), config);
    let mut client = Raw::go(server.connect(), true);
    client.read(0, 16).unwrap();
    server.wait_for_clients(0);
    server.stop();
}

#[test]
fn a_stop_meets_clients_in_every_state() {
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    let silent = server.connect();
    let mut half = server.connect();
    half.write_all(&[0, 0, 0, 3, b'I', b'H']).unwrap();
    let idle = Raw::go(server.connect(), true);
    let mut within = Raw::go(server.connect(), true);
    let payload = wire::request(1, 0, 9, 0, 1 << 20);
    within.socket.write_all(&payload).unwrap();
    within.socket.write_all(&[1; 5000]).unwrap();
    let path = server.path.clone();
    assert!(path.exists());
    server.stop();
    assert!(!path.exists());
    drop((silent, half, idle, within));
}

#[test]
fn what_was_asked_before_a_stop_is_finished() {
    let pause = Arc::new(Pause::new(ram("ram(1m)")));
    let server = Running::new(pause.clone(), ServerConfig::new());
    let mut client = Raw::go(server.connect(), true);
    client.write(0, &[1; 512]);
    pause.close();
    client.send(1, 0, 4096, 512, &[2; 512]);
    let deadline = Instant::now() + wire::PATIENCE;
    while pause.waited() == 0 {
        assert!(Instant::now() < deadline, "never asked");
        std::thread::yield_now();
    }
    server.stopper().stop();
    pause.open();
    assert_eq!(client.answer(0).1, 0);
    server.stop();
}

#[test]
fn sockets_are_private_and_stale_ones_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let first = Listener::unix(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(Listener::unix(&path), Err(ListenError::InUse(_))));
    drop(first);
    assert!(!path.exists());
    // Left behind by a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Listener::unix(&path).unwrap());
    std::fs::write(&path, b"precious").unwrap();
    assert!(matches!(
        Listener::unix(&path),
        Err(ListenError::NotASocket(_))
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn the_network_is_shut_out_unless_asked_in() {
    let any = "0.0.0.0:0".parse().unwrap();
    let refused = Listener::tcp(any, false).unwrap_err();
    assert!(refused.to_string().contains("127.0.0.1"));
    assert!(Listener::tcp(any, true).is_ok());
    let here = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap();
    assert!(here.uri("a b").starts_with("nbd://127.0.0.1:"));
    assert!(here.uri("a b").ends_with("/a%20b"));
}

#[test]
fn exports_that_cannot_be() {
    let null = || Arc::new(Null::new(1 << 20));
    let keep = cairn_block::Registry::new()
        .open("stats/null(1m,read=keep)")
        .unwrap();
    assert_eq!(
        Export::new("", keep.device().clone()).unwrap_err(),
        ExportError::KeepsBuffers
    );
    assert!(Export::new("n".repeat(4097), null()).is_err());
    assert!(Export::new("a\0b", null()).is_err());
    let two = vec![
        Export::new("x", null()).unwrap(),
        Export::new("x", null()).unwrap(),
    ];
    assert!(Server::new(ServerConfig::new(), two).is_err());
    assert!(Server::new(ServerConfig::new(), Vec::new()).is_err());
}

#[test]
fn a_wrong_magic_ends_only_its_own_connection() {
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    let mut good = Raw::go(server.connect(), true);
    let mut bad = Raw::go(server.connect(), true);
    bad.socket.write_all(&[0xee; 28]).unwrap();
    assert_eq!(bad.socket.read(&mut [0; 1]).unwrap_or(0), 0);
    good.write(0, &[3; 100]);
    assert_eq!(good.read(0, 100).unwrap(), [3; 100]);
    drop((good, bad));
    server.stop();
}
