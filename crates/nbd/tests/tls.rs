//! TLS: this server under its own client and under those that people use.
#![cfg(feature = "tls")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and says what it leaves out"
)]

#[path = "support/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use cairn_block::{BlockDeviceExt as _, BuildError, Stack};
use cairn_nbd::codec::TlsPolicy;
use cairn_nbd::{ServerConfig, ServerTls};
use wire::{Raw, Running, opt, ram, registry};

/// A folder of certificates, made by openssl: an authority, and a certificate of `localhost`.
struct Papers(tempfile::TempDir);

impl Papers {
    /// `None`, aloud, where there is no openssl.
    fn new() -> Option<Self> {
        if !installed("openssl") {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(
            at("server.ext"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
        )
        .unwrap();
        std::fs::write(at("own.ext"), "basicConstraints=CA:FALSE\n").unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for line in [
            format!("req -x509 {key} -keyout ca-key.pem -out ca-cert.pem -days 2 -subj /CN=ca"),
            format!("req {key} -keyout server-key.pem -out server.csr -subj /CN=localhost"),
            "x509 -req -in server.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -days 2 \
             -extfile server.ext -out server-cert.pem"
                .to_owned(),
            format!("req {key} -keyout own-key.pem -out own.csr -subj /CN=client"),
            "x509 -req -in own.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -days 2 \
             -extfile own.ext -out own-cert.pem"
                .to_owned(),
        ] {
            let mut openssl = Command::new("openssl");
            let out = openssl
                .args(line.split_whitespace())
                .current_dir(dir.path())
                .output()
                .unwrap();
            assert!(out.status.success(), "openssl {line}: {out:?}");
        }
        Some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn server(&self, policy: TlsPolicy) -> ServerConfig {
        let at = |name: &str| self.path().join(name);
        let tls = ServerTls::from_files(&at("server-cert.pem"), &at("server-key.pem")).unwrap();
        ServerConfig::new().tls(tls, policy)
    }

    /// A URI for this client and those on libnbd, which reads the parameters in the same way.
    fn uri(&self, socket: &Path, name: &str) -> String {
        format!(
            "nbds+unix:///?socket={}&tls-certificates={}&tls-hostname={name}",
            socket.display(),
            self.path().display()
        )
    }
}

fn installed(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

fn open(uri: &str) -> Result<Stack, BuildError> {
    let mut registry = registry();
    cairn_nbd::register(&mut registry);
    registry.open(&format!("nbd({uri},timeout=20s)"))
}

#[test]
fn this_client_over_tls() {
    let Some(papers) = Papers::new() else { return };
    for policy in [TlsPolicy::Offered, TlsPolicy::Required] {
        let server = Running::new(ram("ram(8m)"), papers.server(policy));
        let stack = open(&papers.uri(&server.path, "localhost")).unwrap();
        let device = stack.device();
        let data: Vec<u8> = (0..=250_u8).cycle().take(3 << 20).collect();
        device.write_at(&data, 4097).unwrap();
        device.flush().unwrap();
        assert_eq!(device.read_vec(4097, data.len()).unwrap(), data);
        std::thread::scope(|scope| {
            for t in 0..8_u8 {
                scope.spawn(move || {
                    for i in 0..50_u64 {
                        let at = u64::from(t) * (1 << 20) + i * 4096;
                        device.write_at(&[t; 4096], at).unwrap();
                        assert_eq!(device.read_vec(at, 4096).unwrap(), [t; 4096]);
                    }
                });
            }
        });
        drop(stack);
        if policy == TlsPolicy::Offered {
            // Who does not ask for TLS is served all the same.
            let mut plain = Raw::go(server.connect(), true);
            assert_eq!(plain.read(1 << 20, 4).unwrap(), [1; 4]);
        }
        server.wait_for_clients(0);
        server.stop();
    }
}

#[test]
fn nobody_is_taken_for_another_and_nothing_falls_back() {
    let Some(papers) = Papers::new() else { return };
    let Some(others) = Papers::new() else { return };
    let config = papers.server(TlsPolicy::Required);
    let server = Running::new(ram("ram(1m)"), config);
    let says = |uri: &str| open(uri).map(drop).unwrap_err().to_string();
    let plain = format!("nbd+unix:///?socket={}", server.path.display());
    let why = says(&plain);
    assert!(why.contains("requires TLS"), "{why}");
    // Another name, and an authority that did not sign.
    says(&papers.uri(&server.path, "example.org"));
    says(&others.uri(&server.path, "localhost"));
    server.wait_for_clients(0);
    server.stop();
    // A server without TLS is not talked to in plain text.
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    let why = says(&papers.uri(&server.path, "localhost"));
    assert!(why.contains("policy") || why.contains("option"), "{why}");
    server.wait_for_clients(0);
    server.stop();
    let why = says("nbds://localhost/");
    assert!(why.contains("tls-certificates"), "{why}");
}

#[test]
fn words_from_before_tls_are_dropped_and_noise_ends_only_its_own_connection() {
    let Some(papers) = Papers::new() else { return };
    let config = papers
        .server(TlsPolicy::Offered)
        .handshake_time(Duration::from_secs(5));
    let server = Running::new(ram("ram(1m)"), config);
    let hello = |rest: &[u8]| {
        let mut c = server.connect();
        let mut wire = vec![0, 0, 0, 3];
        wire.extend(opt(5, b""));
        wire.extend(rest);
        c.write_all(&wire).unwrap();
        let _ = c.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        // The server may hang up on it.
        let _ = c.read_to_end(&mut said);
        said
    };
    let quiet = hello(b"").len();
    // One answer, to STARTTLS; what was pushed in behind it is not answered in plain text.
    let said = hello(&opt(8, b""));
    let (plain, rest) = said.split_at(said.len().min(18 + 20));
    assert_eq!(&plain[30..34], [0, 0, 0, 1], "TLS begins");
    assert!(rest.len() <= 64 && !rest.windows(8).any(|w| w == plain[18..26].to_vec()));
    assert!(quiet >= 18 + 20);
    for n in [1, 5, 100, 70_000] {
        hello(&vec![0x16; n]);
        hello(&[&[0x16, 3, 1, 0xff, 0xff][..], &vec![1; n]].concat());
    }
    server.wait_for_clients(0);
    let mut next = Raw::go(server.connect(), true);
    assert_eq!(next.write(0, &[7; 512]), 0);
    drop(next);
    server.stop();
}

#[test]
fn a_client_may_have_to_show_its_own_certificate() {
    let Some(papers) = Papers::new() else { return };
    let Some(others) = Papers::new() else { return };
    let at = |name: &str| papers.path().join(name);
    let tls = ServerTls::for_known_clients(
        &at("server-cert.pem"),
        &at("server-key.pem"),
        &at("ca-cert.pem"),
    )
    .unwrap();
    let config = ServerConfig::new().tls(tls, TlsPolicy::Required);
    let server = Running::new(ram("ram(1m)"), config);
    let uri = papers.uri(&server.path, "localhost");
    let reads = || {
        let stack = open(&uri).map_err(|e| e.to_string())?;
        stack.device().read_vec(0, 4).map_err(|e| e.to_string())
    };
    // Without one, and with one that another authority gave out.
    reads().unwrap_err();
    for file in ["cert.pem", "key.pem"] {
        let from = others.path().join(format!("own-{file}"));
        std::fs::copy(from, at(&format!("client-{file}"))).unwrap();
    }
    reads().unwrap_err();
    if installed("nbdinfo") {
        let refused = Command::new("nbdinfo").arg(&uri).output().unwrap();
        assert!(!refused.status.success());
    }
    for file in ["cert.pem", "key.pem"] {
        std::fs::copy(at(&format!("own-{file}")), at(&format!("client-{file}"))).unwrap();
    }
    assert_eq!(reads().unwrap(), [0; 4]);
    if installed("nbdinfo") {
        ran(Command::new("nbdinfo").arg(&uri));
    }
    // Half of it is said to be missing.
    std::fs::remove_file(at("client-key.pem")).unwrap();
    assert!(reads().unwrap_err().contains("client-key.pem"));
    server.wait_for_clients(0);
    server.stop();
    let none = ServerTls::for_known_clients(
        &at("server-cert.pem"),
        &at("server-key.pem"),
        &at("server-key.pem"),
    );
    assert!(none.unwrap_err().to_string().contains("server-key.pem"));
}

fn ran(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {out:?}");
    out
}

#[test]
fn libnbd_and_qemu_over_tls() {
    let Some(papers) = Papers::new() else { return };
    let server = Running::new(ram("ram(4m)"), papers.server(TlsPolicy::Required));
    let uri = papers.uri(&server.path, "localhost");
    let image = papers.path().join("image");
    let data: Vec<u8> = (0..=252_u8).cycle().take(4 << 20).collect();
    std::fs::write(&image, &data).unwrap();
    if installed("nbdinfo") && installed("nbdcopy") {
        let out = ran(Command::new("nbdinfo").arg(&uri));
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(text.contains("with TLS"), "{text}");
        ran(Command::new("nbdcopy")
            .args(["--connections=4", "--flush"])
            .arg(&image)
            .arg(&uri));
        let back = papers.path().join("back");
        ran(Command::new("nbdcopy").arg(&uri).arg(&back));
        assert_eq!(std::fs::read(&back).unwrap(), data);
        let plain = format!("nbd+unix:///?socket={}", server.path.display());
        let refused = Command::new("nbdinfo").arg(plain).output().unwrap();
        assert!(!refused.status.success());
    }
    if installed("qemu-img") {
        let back = papers.path().join("qemu");
        ran(Command::new("qemu-img")
            .args(["convert", "-O", "raw", "--object"])
            .arg(format!(
                "tls-creds-x509,id=t,endpoint=client,dir={}",
                papers.path().display()
            ))
            .arg("--image-opts")
            .arg(format!(
                "driver=nbd,server.type=unix,server.path={},tls-creds=t,tls-hostname=localhost",
                server.path.display()
            ))
            .arg(&back));
        if installed("nbdcopy") {
            assert_eq!(std::fs::read(&back).unwrap(), data);
        }
    }
    server.stop();
}
