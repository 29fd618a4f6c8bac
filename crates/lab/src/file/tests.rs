use std::sync::Arc;

use cairn_block::{BlockDevice, BlockDeviceExt, Device};
use cairn_extents::{Config, ExtentCache, Match};
use proptest::prelude::*;

use super::*;

fn device(bytes: u64) -> Device {
    let mut registry = cairn_block::Registry::new();
    cairn_ramdisk::register(&mut registry);
    let stack = registry.open(&format!("ram({bytes})")).unwrap();
    Arc::clone(stack.device())
}

struct Bench {
    file: FlatFile,
    cache: ExtentCache,
    switches: Arc<Switches>,
}

fn bench(device: &Device, start: u64, size: u64, fresh: Fresh) -> Bench {
    let cache = ExtentCache::new(Config::new());
    let switches = Arc::new(Switches::new());
    let spec = FileSpec {
        ino: 12,
        start,
        size,
        fresh,
    };
    Bench {
        file: FlatFile::new(
            &spec,
            Arc::clone(device),
            cache.map(12),
            Arc::clone(&switches),
        ),
        cache,
        switches,
    }
}

fn looked_up(b: &Bench) -> (u64, u64) {
    let info = b.cache.info();
    (info.hits, info.misses)
}

#[test]
fn a_direct_write_looks_up_twice_and_a_read_once() {
    let device = device(1 << 20);
    let b = bench(&device, 0, 1 << 20, Fresh::Written);
    let block = [7; 4096];
    b.file.write(8192, &block, false).unwrap();
    assert_eq!(looked_up(&b), (2, 0));
    let mut back = [0; 4096];
    b.file.read(8192, &mut back).unwrap();
    assert_eq!(looked_up(&b), (3, 0));
    assert_eq!(back, block);
}

#[test]
fn a_miss_is_filled_from_the_mapping_below() {
    let device = device(1 << 20);
    let b = bench(&device, 0, 1 << 20, Fresh::Written);
    let whole = b.cache.info().objects;
    b.file.map().clear();
    assert_eq!(b.cache.info().objects, 0);
    b.file.write(0, &[1; 512], false).unwrap();
    assert_eq!(looked_up(&b), (1, 1));
    assert_eq!(b.cache.info().objects, 1);
    let mut buf = vec![0; 1 << 20];
    b.file.read(0, &mut buf).unwrap();
    assert_eq!(b.cache.info().objects, whole);
}

#[test]
fn with_the_cache_off_nothing_is_counted_and_the_data_are_the_same() {
    let device = device(1 << 20);
    let b = bench(&device, 0, 1 << 20, Fresh::Unwritten);
    b.switches.set_extent_cache(false);
    b.file.write(5000, &[3; 10_000], false).unwrap();
    assert_eq!(looked_up(&b), (0, 0));
    b.switches.set_extent_cache(true);
    let mut buf = vec![9; 20_000];
    b.file.read(0, &mut buf).unwrap();
    assert!(buf[..5000].iter().all(|x| *x == 0));
    assert!(buf[5000..15_000].iter().all(|x| *x == 3));
    assert!(buf[15_000..].iter().all(|x| *x == 0));
}

#[test]
fn writes_turn_unwritten_blocks_into_written_ones() {
    let device = device(1 << 20);
    let b = bench(&device, 0, 1 << 20, Fresh::Unwritten);
    assert!(!b.file.map().scan_range(Match::WRITTEN, 0, 255));
    b.file.write(4096 * 10, &[1; 8192], false).unwrap();
    let written: u32 = b
        .file
        .map()
        .snapshot()
        .iter()
        .filter(|e| matches!(e.status, Status::Written(_)))
        .map(|e| e.len)
        .sum();
    assert_eq!(written, 2);
    // What was known is what the mapping below says, also after it was forgotten.
    b.file.map().clear();
    b.file.read(4096 * 10, &mut [0; 8192]).unwrap();
    assert!(b.file.map().scan_range(Match::WRITTEN, 10, 11));
    assert!(!b.file.map().scan_range(Match::WRITTEN, 12, 12));
}

#[test]
fn a_window_is_all_that_a_file_touches() {
    let device = device(3 << 20);
    device.write_at(&vec![0xee; 3 << 20], 0).unwrap();
    let b = bench(&device, 1 << 20, (1 << 20) - 100, Fresh::Written);
    b.file
        .write(0, &vec![0x11; (1 << 20) - 100], false)
        .unwrap();
    for off in [0, (2 << 20) as u64] {
        assert!(
            device
                .read_vec(off, 1 << 20)
                .unwrap()
                .iter()
                .all(|x| *x == 0xee)
        );
    }
    let error = b.file.write((1 << 20) - 100, &[0], false).unwrap_err();
    assert!(
        matches!(error, cairn_block::Error::OutOfRange { size, .. } if size == (1 << 20) - 100)
    );
    assert!(b.file.read(u64::MAX, &mut [0; 2]).is_err());
}

#[test]
fn what_lay_there_before_never_shows_in_a_fresh_file() {
    let device = device(1 << 20);
    device.write_at(&vec![0xee; 1 << 20], 0).unwrap();
    for fresh in [Fresh::Unwritten, Fresh::Hole] {
        let b = bench(&device, 0, 1 << 20, fresh);
        b.file.write(4096 * 3 + 100, &[5; 50], false).unwrap();
        let mut buf = vec![1; 1 << 20];
        b.file.read(0, &mut buf).unwrap();
        for (at, byte) in buf.iter().enumerate() {
            let want = if (12_388..12_438).contains(&at) { 5 } else { 0 };
            assert_eq!(*byte, want, "at {at}");
        }
    }
}

#[test]
fn large_requests_are_cut_to_what_the_device_takes() {
    let device: Device = Arc::new(Small(device(1 << 20)));
    let b = bench(&device, 0, 1 << 20, Fresh::Written);
    let data: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
    b.file.write(1000, &data, true).unwrap();
    let mut back = vec![0; data.len()];
    b.file.read(1000, &mut back).unwrap();
    assert_eq!(back, data);
}

/// Refuses requests above 8 KiB.
struct Small(Device);

impl BlockDevice for Small {
    fn info(&self) -> cairn_block::DeviceInfo {
        let mut info = self.0.info();
        info.max_transfer = 8192;
        info
    }

    fn caps(&self) -> cairn_block::Caps {
        self.0.caps()
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [std::io::IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> cairn_block::Result<()> {
        assert!(bufs.iter().map(|b| b.len()).sum::<usize>() <= 8192);
        self.0.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(
        &self,
        bufs: &[std::io::IoSlice<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> cairn_block::Result<()> {
        assert!(bufs.iter().map(|b| b.len()).sum::<usize>() <= 8192);
        self.0.write_vectored_at(bufs, off, flags)
    }

    fn flush(&self) -> cairn_block::Result<()> {
        self.0.flush()
    }

    fn describe(&self) -> cairn_block::Node {
        self.0.describe()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write { off: u64, len: usize, byte: u8 },
    Read { off: u64, len: usize },
    Forget,
    Shrink,
    Cache(bool),
}

fn op(size: u64) -> impl Strategy<Value = Op> {
    let place = (0..size, 1_usize..20_000);
    prop_oneof![
        4 => (place.clone(), any::<u8>()).prop_map(move |((off, len), byte)| Op::Write {
            off,
            len: len.min(usize::try_from(size - off).unwrap()),
            byte,
        }),
        4 => place.prop_map(move |(off, len)| Op::Read {
            off,
            len: len.min(usize::try_from(size - off).unwrap()),
        }),
        1 => Just(Op::Forget),
        1 => Just(Op::Shrink),
        1 => any::<bool>().prop_map(Op::Cache),
    ]
}

proptest! {
    #[test]
    fn a_file_is_its_bytes(
        fresh in prop::sample::select(vec![Fresh::Written, Fresh::Unwritten, Fresh::Hole]),
        blocks in 1_u64..70,
        odd in 0_u64..4096,
        ops in prop::collection::vec(op(100_000), 1..60),
    ) {
        let size = (blocks * 4096 - odd).max(1);
        let device = device(1 << 20);
        let b = bench(&device, 65_536, size, fresh);
        let mut model = vec![0_u8; usize::try_from(size).unwrap()];
        for op in ops {
            match op {
                Op::Write { off, len, byte } => {
                    let off = off % size;
                    let len = len.min(model.len() - usize::try_from(off).unwrap());
                    let at = usize::try_from(off).unwrap();
                    model[at..at + len].fill(byte);
                    b.file.write(off, &vec![byte; len], len % 2 == 0).unwrap();
                }
                Op::Read { off, len } => {
                    let off = off % size;
                    let at = usize::try_from(off).unwrap();
                    let len = len.min(model.len() - at);
                    let mut buf = vec![0xaa; len];
                    b.file.read(off, &mut buf).unwrap();
                    prop_assert_eq!(&buf[..], &model[at..at + len]);
                }
                Op::Forget => b.file.map().clear(),
                Op::Shrink => {
                    b.cache.shrink(3);
                }
                Op::Cache(on) => b.switches.set_extent_cache(on),
            }
        }
        let mut buf = vec![0; model.len()];
        b.file.read(0, &mut buf).unwrap();
        prop_assert_eq!(buf, model);
    }
}

#[test]
fn two_writers_into_one_fresh_block_lose_nothing() {
    let device = device(1 << 20);
    for round in 0..50 {
        let b = bench(&device, 0, 1 << 20, Fresh::Unwritten);
        std::thread::scope(|scope| {
            for half in 0..2_u64 {
                let file = &b.file;
                scope.spawn(move || {
                    for block in 0..32 {
                        let byte = u8::try_from(half + 1).unwrap();
                        file.write(block * 4096 + half * 2048, &[byte; 2048], false)
                            .unwrap();
                    }
                });
            }
        });
        let mut buf = vec![0; 32 * 4096];
        b.file.read(0, &mut buf).unwrap();
        for (i, half) in buf.chunks(2048).enumerate() {
            let want = u8::try_from(i % 2 + 1).unwrap();
            assert!(half.iter().all(|x| *x == want), "round {round}, half {i}");
        }
    }
}
