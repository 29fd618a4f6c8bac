//! The programs that serve.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cairn_nbd::{Export, Listener, ServerConfig};

/// Who serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    CairnRam,
    CairnNull,
    Nbdkit,
    NbdkitMalloc,
    QemuNbd,
}

impl Arm {
    pub(crate) const ALL: [Self; 5] = [
        Self::CairnRam,
        Self::CairnNull,
        Self::Nbdkit,
        Self::NbdkitMalloc,
        Self::QemuNbd,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CairnRam => "cairn ram",
            Self::CairnNull => "cairn null",
            Self::Nbdkit => "nbdkit memory",
            Self::NbdkitMalloc => "nbdkit malloc",
            Self::QemuNbd => "qemu-nbd tmpfs",
        }
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) arm: Arm,
    child: Child,
    socket: PathBuf,
    image: Option<PathBuf>,
}

impl Server {
    pub(crate) fn start(arm: Arm, size: &str) -> Result<Self, String> {
        let me = std::process::id();
        let name = arm.name().replace(' ', "-");
        let socket = std::env::temp_dir().join(format!("cairn-bench-{me}-{name}.sock"));
        // One that was killed, with this process's number, may have left its socket.
        let _ = std::fs::remove_file(&socket);
        let mut image = None;
        let mut command = match arm {
            Arm::CairnRam | Arm::CairnNull => {
                let kind = if arm == Arm::CairnRam { "ram" } else { "null" };
                let mut c = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
                c.arg("--serve").arg(format!("{kind}({size})")).arg(&socket);
                c
            }
            Arm::Nbdkit | Arm::NbdkitMalloc => {
                let mut c = Command::new("nbdkit");
                c.args(["--exit-with-parent", "-f", "-U"])
                    .arg(&socket)
                    .args(["memory", size]);
                if arm == Arm::NbdkitMalloc {
                    c.arg("allocator=malloc");
                }
                c
            }
            Arm::QemuNbd => {
                let path = PathBuf::from(format!("/dev/shm/cairn-bench-{me}.img"));
                let bytes = cairn_block::spec::units::parse_size(size)?;
                std::fs::File::create(&path)
                    .and_then(|f| f.set_len(bytes))
                    .map_err(|e| format!("{}: {e}", path.display()))?;
                let mut c = Command::new("qemu-nbd");
                c.args(["-t", "-e", "16", "-f", "raw", "--cache=writeback", "-k"])
                    .arg(&socket)
                    .arg(&path);
                image = Some(path);
                c
            }
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", arm.name()))?;
        let server = Self {
            arm,
            child,
            socket,
            image,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(&server.socket).is_err() {
            if Instant::now() > deadline {
                return Err(format!("{} does not listen", arm.name()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.socket);
        if let Some(image) = &self.image {
            let _ = std::fs::remove_file(image);
        }
    }
}

/// Serves a stack in this process until it is killed.
pub(crate) fn serve(spec: &str, socket: &str) {
    let mut registry = cairn_block::Registry::new();
    cairn_ramdisk::register(&mut registry);
    let stack = registry
        .open(spec)
        .expect("the spec is one of this bench's");
    let export = Export::new("", stack.device().clone()).expect("it can be exported");
    let listener = Listener::unix(socket).expect("the socket is free");
    let server = cairn_nbd::Server::new(ServerConfig::new(), vec![export]).expect("one export");
    server.serve(&listener).expect("it serves");
}
