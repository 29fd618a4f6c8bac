//! The contract suite over the leaf devices of this crate and every layer above them, and the proof
//! that it bites.
#![cfg(feature = "contract")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use cairn_block::contract::{Profile, run};
use cairn_block::{
    BlockDevice, BlockDeviceExt, Caps, Device, DeviceInfo, Error, Extent, Node, Null, Op, Registry,
    ReqFlags, Result, check, forward,
};

fn passes(spec: &str, profile: Profile<'_>) {
    let registry = Registry::new();
    let make = || registry.open(spec).unwrap().device().clone();
    if let Err(v) = run(&make, &profile.registry(&registry)) {
        panic!("{spec}: {v}");
    }
}

#[test]
fn leaves() {
    passes("null(1000003)", Profile::new().lossy());
    passes("null(1m,read=keep)", Profile::new().lossy());
    passes("zero(1000003)", Profile::new());
}

#[test]
fn layers_over_null() {
    for layer in [
        "passthru",
        "readonly",
        "stats",
        "stats(sample=0)",
        "delay",
        "offset(4k)",
        "offset(1,len=9999)",
        "slice(1k-9k)",
        "switch",
    ] {
        passes(&format!("{layer}/null(100003)"), Profile::new().lossy());
    }
    passes(
        "error(rate=20%)/null(100003)",
        Profile::new().lossy().errors(),
    );
}

#[test]
fn the_file_device() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new();
    let n = std::sync::atomic::AtomicU32::new(0);
    let fresh = || {
        let n = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        dir.path().join(n.to_string()).display().to_string()
    };
    for args in ["size=300003", "size=300003,sparse=0"] {
        let make = || {
            registry
                .open(&format!("file({},{args})", fresh()))
                .unwrap()
                .device()
                .clone()
        };
        run(&make, &Profile::new().cases(16)).unwrap();
    }
    let path = fresh();
    let open = |args: &str| registry.open(&format!("file({path},{args})"));
    let disk = open("size=1m").unwrap();
    disk.device().write_at(b"stays", 1000).unwrap();
    assert!(
        open("size=1m")
            .unwrap_err()
            .to_string()
            .contains("locked by another")
    );
    assert!(open("lock=0,readonly=1").is_ok());
    drop(disk);
    let make = || open("lock=0,readonly=1").unwrap().device().clone();
    run(&make, &Profile::new().cases(4).registry(&registry)).unwrap();
    assert_eq!(make().read_vec(1000, 5).unwrap(), b"stays");
    assert!(
        registry
            .open("file(/nonexistent/x)")
            .unwrap_err()
            .to_string()
            .contains("cannot be opened")
    );
    assert!(
        registry
            .open("file(/dev/null)")
            .unwrap_err()
            .to_string()
            .contains("neither a regular file")
    );
    let missing = fresh();
    let spec = format!("file({missing},size=1m)");
    let denied = registry.build(&spec.parse().unwrap(), cairn_block::Gate::Closed);
    assert!(denied.unwrap_err().to_string().contains("may not open"));
    assert!(registry.explain(&spec).is_ok());
    assert!(
        !std::path::Path::new(&missing).exists(),
        "a plan made a file"
    );
}

#[test]
fn direct_files_where_the_file_system_has_them() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let registry = Registry::new();
    let n = std::sync::atomic::AtomicU32::new(0);
    let spec = || {
        let n = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!(
            "file({},size=256k,direct=1)",
            dir.path().join(n.to_string()).display()
        )
    };
    if registry.open(&spec()).is_err() {
        eprintln!("skipped: no direct I/O on this file system");
        return;
    }
    let make = || registry.open(&spec()).unwrap().device().clone();
    run(&make, &Profile::new().cases(6)).unwrap();
}

#[test]
fn pattern() {
    passes("pattern(100003)", Profile::new().errors());
}

/// Bytes behind a lock: the plainest device there is.
struct Plain(std::sync::RwLock<Vec<u8>>);

impl Plain {
    fn make(len: usize) -> Device {
        Arc::new(Self(std::sync::RwLock::new(vec![0; len])))
    }
}

impl BlockDevice for Plain {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new(self.0.read().unwrap().len() as u64)
    }

    fn caps(&self) -> Caps {
        Caps::WRITE
            | Caps::FLUSH
            | Caps::FUA_NATIVE
            | Caps::DISCARD
            | Caps::DISCARD_ZEROES
            | Caps::ZERO
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], off: u64, f: ReqFlags) -> Result<()> {
        check::request(&self.info(), Op::Read, off, check::bytes_mut(bufs))?;
        check::flags(self.caps(), Op::Read, f)?;
        let mut at = usize::try_from(off).unwrap();
        for b in bufs {
            let n = b.len();
            b.copy_from_slice(&self.0.read().unwrap()[at..at + n]);
            at += n;
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, f: ReqFlags) -> Result<()> {
        check::request(&self.info(), Op::Write, off, check::bytes(bufs))?;
        check::flags(self.caps(), Op::Write, f)?;
        let mut at = usize::try_from(off).unwrap();
        for b in bufs {
            self.0.write().unwrap()[at..at + b.len()].copy_from_slice(b);
            at += b.len();
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        check::range(&self.info(), Op::Discard, &r)?;
        check::flags(self.caps(), Op::Discard, f)?;
        let r = usize::try_from(r.start).unwrap()..usize::try_from(r.end).unwrap();
        self.0.write().unwrap()[r].fill(0);
        Ok(())
    }

    fn write_zeroes(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        check::range(&self.info(), Op::WriteZeroes, &r)?;
        check::flags(self.caps(), Op::WriteZeroes, f)?;
        let r = usize::try_from(r.start).unwrap()..usize::try_from(r.end).unwrap();
        self.0.write().unwrap()[r].fill(0);
        Ok(())
    }

    fn describe(&self) -> Node {
        Node::new("plain")
    }
}

#[test]
fn a_device_from_outside_passes() {
    run(&|| Plain::make(50_001), &Profile::new()).unwrap();
}

/// How a broken layer is broken.
#[derive(Clone, Copy, PartialEq)]
enum Bug {
    AltersYetForwardsExtents,
    LosesTheLastPage,
    Overflows,
    ClaimsDiscard,
    ShortRead,
    IgnoresFlags,
    LyingExtents,
}

struct Broken {
    below: Device,
    bug: Bug,
}

impl BlockDevice for Broken {
    forward!(below: flush cache children);

    fn info(&self) -> DeviceInfo {
        self.below.info()
    }

    fn caps(&self) -> Caps {
        let caps = self.below.caps();
        match self.bug {
            Bug::LyingExtents | Bug::AltersYetForwardsExtents => caps | Caps::EXTENTS,
            _ => caps,
        }
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], off: u64, f: ReqFlags) -> Result<()> {
        let off = if self.bug == Bug::Overflows {
            off % self.info().len
        } else {
            off
        };
        if self.bug == Bug::ShortRead && check::bytes_mut(bufs) > 4096 {
            let n = bufs.len() - 1;
            return self.below.read_vectored_at(&mut bufs[..n], off, f);
        }
        self.below.read_vectored_at(bufs, off, f)?;
        if self.bug == Bug::AltersYetForwardsExtents {
            bufs.iter_mut()
                .flat_map(|b| b.iter_mut())
                .for_each(|b| *b ^= 0xff);
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, f: ReqFlags) -> Result<()> {
        let all: Vec<u8> = bufs.iter().flat_map(|b| b.iter().copied()).collect();
        let f = if self.bug == Bug::IgnoresFlags {
            ReqFlags::empty()
        } else {
            f
        };
        match self.bug {
            Bug::AltersYetForwardsExtents => {
                let all: Vec<u8> = all.iter().map(|b| b ^ 0xff).collect();
                self.below.write_vectored_at(&[IoSlice::new(&all)], off, f)
            }
            Bug::LosesTheLastPage if self.info().len.checked_sub(all.len() as u64) == Some(off) => {
                let whole = all.len() / 4096 * 4096;
                self.below
                    .write_vectored_at(&[IoSlice::new(&all[..whole])], off, f)
            }
            _ => self.below.write_vectored_at(bufs, off, f),
        }
    }

    fn discard(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        if self.bug == Bug::ClaimsDiscard {
            return Err(Error::unsupported(Op::Discard));
        }
        self.below.discard(r, f)
    }

    fn write_zeroes(&self, r: Range<u64>, f: ReqFlags) -> Result<()> {
        self.below.write_zeroes(r, f)
    }

    fn extents(
        &self,
        r: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info(), Op::Extents, &r)?;
        match self.bug {
            Bug::LyingExtents if len > 0 => {
                let _ = each(Extent::hole(len));
                Ok(())
            }
            Bug::AltersYetForwardsExtents if len > 0 => {
                let bytes = self
                    .below
                    .read_vec(r.start, usize::try_from(len).unwrap())?;
                let zero = bytes.iter().all(|b| *b == 0);
                let _ = each(if zero {
                    Extent::hole(len)
                } else {
                    Extent::data(len)
                });
                Ok(())
            }
            _ => self.below.extents(r, each),
        }
    }

    fn describe(&self) -> Node {
        Node::new("broken")
    }
}

#[test]
fn broken_layers_fail() {
    for (bug, rule) in [
        (
            Bug::AltersYetForwardsExtents,
            &["C10", "C11", "C13", "C7", "C6"][..],
        ),
        (Bug::LosesTheLastPage, &["C6", "C7"]),
        (Bug::Overflows, &["C1"]),
        (Bug::ClaimsDiscard, &["C1", "C16"]),
        (Bug::ShortRead, &["C6", "C7"]),
        (Bug::IgnoresFlags, &["C16"]),
        (Bug::LyingExtents, &["C13"]),
    ] {
        let make = || -> Device {
            Arc::new(Broken {
                below: Plain::make(50_001),
                bug,
            })
        };
        let v = run(&make, &Profile::new()).unwrap_err();
        assert!(rule.contains(&v.rule), "{v}");
    }
}

#[test]
fn a_device_that_claims_too_much_fails() {
    struct Claims(Null);
    impl BlockDevice for Claims {
        fn info(&self) -> DeviceInfo {
            self.0.info()
        }
        fn caps(&self) -> Caps {
            self.0.caps() | Caps::SNAPSHOT
        }
        fn read_vectored_at(&self, b: &mut [IoSliceMut<'_>], o: u64, f: ReqFlags) -> Result<()> {
            self.0.read_vectored_at(b, o, f)
        }
        fn write_vectored_at(&self, b: &[IoSlice<'_>], o: u64, f: ReqFlags) -> Result<()> {
            self.0.write_vectored_at(b, o, f)
        }
        fn describe(&self) -> Node {
            self.0.describe()
        }
    }
    let v = run(
        &|| Arc::new(Claims(Null::new(4096))),
        &Profile::new().lossy(),
    )
    .unwrap_err();
    assert!(["C1", "C2", "C16"].contains(&v.rule), "{v}");
}
