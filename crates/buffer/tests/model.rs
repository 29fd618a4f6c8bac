//! The cache against a plain model, with a device that fails when it is told to.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cairn_block::{BlockDevice, BlockDeviceExt, Device, Error, Node, ReqFlags, Result, forward};
use cairn_buffer::{BhState, BufferCache, BufferError, CacheConfig, CountingProbe, SetPolicy};
use cairn_ramdisk::Ram;
use proptest::prelude::*;

const BLOCK: usize = 512;

/// A disk that fails while it is told to.
struct Flaky {
    below: Device,
    reads_fail: AtomicBool,
    writes_fail: AtomicBool,
    flushes_fail: AtomicBool,
    failures: AtomicU64,
}

impl Flaky {
    fn new(len: u64) -> Arc<Self> {
        Arc::new(Self {
            below: Arc::new(Ram::with_len(len).unwrap()),
            reads_fail: AtomicBool::new(false),
            writes_fail: AtomicBool::new(false),
            flushes_fail: AtomicBool::new(false),
            failures: AtomicU64::new(0),
        })
    }

    fn maybe(&self, fails: &AtomicBool, off: u64) -> Result<()> {
        if fails.load(Ordering::Relaxed) {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(Error::io(off, io::Error::other("told to fail")));
        }
        Ok(())
    }

    fn heal(&self) {
        for f in [&self.reads_fail, &self.writes_fail, &self.flushes_fail] {
            f.store(false, Ordering::Relaxed);
        }
    }
}

impl BlockDevice for Flaky {
    forward!(below: info caps discard write_zeroes extents children);

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], off: u64, f: ReqFlags) -> Result<()> {
        self.maybe(&self.reads_fail, off)?;
        self.below.read_vectored_at(bufs, off, f)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, f: ReqFlags) -> Result<()> {
        self.maybe(&self.writes_fail, off)?;
        self.below.write_vectored_at(bufs, off, f)
    }

    fn flush(&self) -> Result<()> {
        self.maybe(&self.flushes_fail, 0)?;
        self.below.flush()
    }

    fn describe(&self) -> Node {
        Node::new("flaky")
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64, u8),
    WriteNew(u64, u8),
    Read(u64),
    WriteBack(u64),
    Flush,
    Fail {
        reads: bool,
        writes: bool,
        flushes: bool,
    },
    Policy(SetPolicy),
}

const BLOCKS: u64 = 14;

fn step() -> impl Strategy<Value = Step> {
    let block = 0..BLOCKS + 1;
    prop_oneof![
        6 => (block.clone(), 1_u8..).prop_map(|(b, x)| Step::Write(b, x)),
        2 => (block.clone(), 1_u8..).prop_map(|(b, x)| Step::WriteNew(b, x)),
        6 => block.clone().prop_map(Step::Read),
        1 => block.prop_map(Step::WriteBack),
        2 => Just(Step::Flush),
        2 => any::<[bool; 3]>().prop_map(|[reads, writes, flushes]| Step::Fail { reads, writes, flushes }),
        1 => any::<bool>().prop_map(|a| Step::Policy(SetPolicy::ALL[usize::from(a)])),
    ]
}

/// The last block is a short one.
const LEN: usize = BLOCKS as usize * BLOCK - 100;

fn range(block: u64) -> std::ops::Range<usize> {
    let start = block as usize * BLOCK;
    start..LEN.min(start + BLOCK)
}

fn run(capacity: usize, steps: Vec<Step>) {
    let disk = Flaky::new(LEN as u64);
    let config = CacheConfig::new(BLOCK, capacity);
    let cache = BufferCache::new(disk.clone(), config).unwrap();
    let mut truth = vec![0_u8; LEN];
    let failing = |e: &BufferError| {
        assert!(
            disk.failures.load(Ordering::Relaxed) > 0
                || matches!(e, BufferError::OutOfRange { .. }),
            "{e}"
        );
    };
    for step in steps {
        match step {
            Step::Write(block, byte) => {
                let done = cache.get(block).and_then(|b| {
                    assert!(b.state().uptodate());
                    b.write(|data| data.fill(byte))
                });
                match done {
                    Ok(()) => truth[range(block)].fill(byte),
                    Err(e) => failing(&e),
                }
            }
            Step::WriteNew(block, byte) => {
                let done = cache
                    .get_new(block)
                    .and_then(|b| b.write_data(|data| data.fill(byte)));
                match done {
                    Ok(()) => truth[range(block)].fill(byte),
                    Err(e) => failing(&e),
                }
            }
            Step::Read(block) => match cache.get(block).and_then(|b| b.read(<[u8]>::to_vec)) {
                Ok(data) => assert_eq!(data, truth[range(block)], "block {block}"),
                Err(e) => failing(&e),
            },
            Step::WriteBack(block) => {
                if let Ok(b) = cache.get(block) {
                    match b.write_back() {
                        Ok(()) => assert!(!b.state().dirty()),
                        Err(e) => {
                            failing(&e);
                            assert!(b.state().dirty());
                            assert!(b.state().write_eio(Ordering::Acquire));
                        }
                    }
                }
            }
            Step::Flush => match cache.flush() {
                Ok(()) => {
                    assert!(disk.below.read_vec(0, LEN).unwrap() == truth);
                    assert_eq!(cache.stats().dirty, 0);
                }
                Err(e) => failing(&e),
            },
            Step::Fail {
                reads,
                writes,
                flushes,
            } => {
                disk.reads_fail.store(reads, Ordering::Relaxed);
                disk.writes_fail.store(writes, Ordering::Relaxed);
                disk.flushes_fail.store(flushes, Ordering::Relaxed);
            }
            Step::Policy(p) => cache.set_policy(p),
        }
        assert!(cache.stats().cached <= capacity as u64);
    }
    disk.heal();
    cache.flush().unwrap();
    assert!(disk.below.read_vec(0, LEN).unwrap() == truth);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn like_a_vector(capacity in 1_usize..20, steps in prop::collection::vec(step(), 1..120)) {
        run(capacity, steps);
    }
}

#[test]
fn threads_that_share_few_buffers_lose_no_change() {
    const THREADS: u64 = 4;
    const CHANGES: u64 = 5000;
    let disk: Device = Arc::new(Ram::with_len(32 * BLOCK as u64).unwrap());
    for capacity in [2 + THREADS as usize, 8, 64] {
        disk.write_zeroes(0..32 * BLOCK as u64, ReqFlags::empty())
            .unwrap();
        let cache = BufferCache::new(disk.clone(), CacheConfig::new(BLOCK, capacity)).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let workers: Vec<_> = (0..THREADS)
                .map(|t| {
                    let cache = &cache;
                    s.spawn(move || {
                        // A reference is kept over other look-ups, so that it goes stale at times.
                        let mut kept = cache.get(t).unwrap();
                        for n in 0..CHANGES {
                            let block = (n * 17 + t * 5) % 32;
                            let buffer = cache.get(block).unwrap();
                            buffer.write(add_one).unwrap();
                            if n % 7 == 0 {
                                kept.write(add_one).unwrap();
                                kept = buffer;
                            }
                        }
                    })
                })
                .collect();
            s.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    cache.flush().unwrap();
                    std::thread::yield_now();
                }
            });
            for w in workers {
                w.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        cache.flush().unwrap();
        let total: u64 = (0..32)
            .map(|b| {
                let bytes = disk.read_vec(b * BLOCK as u64, 8).unwrap();
                u64::from_le_bytes(bytes.try_into().unwrap())
            })
            .sum();
        assert_eq!(
            total,
            THREADS * (CHANGES + CHANGES.div_ceil(7)),
            "capacity {capacity}"
        );
    }
}

fn add_one(data: &mut [u8]) {
    let (head, _) = data.split_first_chunk_mut::<8>().unwrap();
    *head = (u64::from_le_bytes(*head) + 1).to_le_bytes();
}

#[test]
fn both_policies_do_what_they_say() {
    let disk: Device = Arc::new(Ram::with_len(1 << 20).unwrap());
    let config = CacheConfig::new(4096, 16).policy(SetPolicy::AlwaysRmw);
    let cache = BufferCache::<CountingProbe>::probed(disk, config).unwrap();
    for block in 0..4 {
        cache.get(block).unwrap().mark_dirty();
    }
    for (policy, rmw, avoided) in [
        (SetPolicy::AlwaysRmw, 4000, 0),
        (SetPolicy::CheckFirst, 0, 4000),
    ] {
        cache.set_policy(policy);
        let before = CountingProbe::counts();
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for n in 0..2000 {
                        cache.get(n % 4).unwrap().mark_dirty();
                    }
                });
            }
        });
        for (now, before) in CountingProbe::counts().iter().zip(&before) {
            let now = now.since(before);
            if ["META", "PRIO", "UPTODATE"].contains(&now.name) {
                assert_eq!(
                    (now.rmw, now.avoided),
                    (rmw, avoided),
                    "{policy} {}",
                    now.name
                );
                assert_eq!(now.redundant, rmw, "{policy} {}", now.name);
            }
            if now.name == "DIRTY" {
                assert_eq!((now.rmw, now.avoided), (0, 4000));
            }
        }
    }
    let shown = cache.heads(3);
    assert_eq!(shown.len(), 3);
    assert!(shown.iter().all(|h| {
        h.state
            .contains(BhState::META | BhState::PRIO | BhState::UPTODATE | BhState::DIRTY)
    }));
}

#[test]
fn a_full_cache_of_failing_buffers_says_so() {
    let disk = Flaky::new(64 * BLOCK as u64);
    let cache = BufferCache::new(disk.clone(), CacheConfig::new(BLOCK, 4)).unwrap();
    disk.writes_fail.store(true, Ordering::Relaxed);
    for b in 0..4 {
        cache.get(b).unwrap().write(|d| d.fill(1)).unwrap();
    }
    let e = cache.get(4).unwrap_err();
    assert!(matches!(e, BufferError::Write { .. }), "{e}");
    disk.heal();
    cache.get(4).unwrap();
    cache.flush().unwrap();
    assert_eq!(
        disk.below.read_vec(0, 4 * BLOCK).unwrap(),
        vec![1; 4 * BLOCK]
    );
}

#[test]
fn settings_are_checked() {
    let disk: Device = Arc::new(Ram::with_len(1 << 20).unwrap());
    for (size, capacity, why) in [
        (1000, 4, "power of two"),
        (256, 4, "from 512"),
        (512, 0, "one buffer"),
    ] {
        let e = BufferCache::new(disk.clone(), CacheConfig::new(size, capacity))
            .err()
            .unwrap();
        assert!(e.to_string().contains(why), "{e}");
    }
    let cache = BufferCache::new(disk, CacheConfig::new(4096, 4)).unwrap();
    let e = cache.get(u64::MAX).unwrap_err();
    assert_eq!(
        e.to_string(),
        format!("block {} is past the device (256 blocks)", u64::MAX)
    );
}
