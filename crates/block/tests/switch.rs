//! The stack below a switch is exchanged under load that checks itself.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cairn_block::{
    BlockDevice, BlockDeviceExt, Caps, Cow, Device, ErrorLayer, ErrorRule, Null, Passthru, Pause,
    ReadOnly, Retry, StatsLayer, Switch, SwitchError, Verify, Window, Zero,
};

const BLOCK: usize = 512;
const EACH: u64 = 64;
const THREADS: u64 = 2;

fn media() -> Device {
    Arc::new(Cow::new(Arc::new(Zero::new(THREADS * EACH * BLOCK as u64))))
}

/// Each thread writes its own blocks and reads them back at once and later; half of the threads go
/// through the trait, half through a worker's handle.
fn load(switch: &Switch, stop: &AtomicBool, done: &AtomicU64) {
    std::thread::scope(|s| {
        for t in 0..THREADS {
            s.spawn(move || {
                let mut worker = switch.worker();
                let mut mine = vec![0_u8; EACH as usize];
                let mut n = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let i = n * 31 % EACH;
                    let off = (i * THREADS + t) * BLOCK as u64;
                    let byte = (n % 255) as u8 + 1;
                    let mut back = [0; BLOCK];
                    if t % 2 == 0 {
                        switch.write_at(&[byte; BLOCK], off).unwrap();
                        mine[i as usize] = byte;
                        let j = n * 17 % EACH;
                        switch
                            .read_at(&mut back, (j * THREADS + t) * BLOCK as u64)
                            .unwrap();
                        assert_eq!(back, [mine[j as usize]; BLOCK]);
                    } else {
                        worker.write_at(&[byte; BLOCK], off).unwrap();
                        mine[i as usize] = byte;
                        let j = n * 17 % EACH;
                        worker
                            .read_at(&mut back, (j * THREADS + t) * BLOCK as u64)
                            .unwrap();
                        assert_eq!(back, [mine[j as usize]; BLOCK]);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
}

/// A layer that holds nothing, over the media: of another kind each time.
fn over(media: &Device, n: u64) -> Device {
    let media = Arc::clone(media);
    match n % 4 {
        0 => Arc::new(Passthru::new(media)),
        1 => Arc::new(StatsLayer::new(media)),
        2 => Arc::new(Retry::new(media, 1, std::time::Duration::ZERO)),
        _ => Arc::new(Window::new(media, 0, None).unwrap()),
    }
}

/// The media below a switch holds data of its own (it is a cow), so the exchange must be drained; this
/// hides it, since all stacks of the test end in the same one.
struct Leaf(Device);

impl BlockDevice for Leaf {
    fn info(&self) -> cairn_block::DeviceInfo {
        self.0.info()
    }
    fn caps(&self) -> Caps {
        Caps::WRITE | Caps::FLUSH
    }
    fn read_vectored_at(
        &self,
        b: &mut [std::io::IoSliceMut<'_>],
        o: u64,
        f: cairn_block::ReqFlags,
    ) -> cairn_block::Result<()> {
        self.0.read_vectored_at(b, o, f)
    }
    fn write_vectored_at(
        &self,
        b: &[std::io::IoSlice<'_>],
        o: u64,
        f: cairn_block::ReqFlags,
    ) -> cairn_block::Result<()> {
        self.0.write_vectored_at(b, o, f)
    }
    fn flush(&self) -> cairn_block::Result<()> {
        self.0.flush()
    }
    fn describe(&self) -> cairn_block::Node {
        cairn_block::Node::new("leaf")
    }
}

fn exchanges(drained: bool, count: u64) {
    let media: Device = Arc::new(Leaf(media()));
    let switch = Switch::new(over(&media, 0));
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let mut old: Vec<Weak<dyn BlockDevice>> = Vec::new();
    std::thread::scope(|s| {
        s.spawn(|| load(&switch, &stop, &done));
        for n in 1..=count {
            old.push(Arc::downgrade(&switch.current()));
            let next = over(&media, n);
            let result = if drained {
                switch.swap_drained(next)
            } else {
                switch.swap(next)
            };
            result.unwrap();
            // Some work between two exchanges, so that each is under load.
            let seen = done.load(Ordering::Relaxed);
            while done.load(Ordering::Relaxed) == seen {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(switch.stats().get("exchanges"), Some(count));
    // The workers are gone, so nothing keeps an old stack.
    assert_eq!(old.iter().filter(|w| w.strong_count() > 0).count(), 0);
    assert_eq!(Arc::strong_count(&media), 2);
}

#[test]
fn a_thousand_live_exchanges_then_drained_ones() {
    exchanges(false, 1000);
    exchanges(true, 200);
}

#[test]
fn a_request_that_is_inside_is_waited_for() {
    let pause = Arc::new(Pause::new(Arc::new(Null::new(1 << 20))).closed(true));
    let switch = Switch::new(pause.clone());
    let swapped = AtomicBool::new(false);
    std::thread::scope(|s| {
        let trait_path = s.spawn(|| switch.write_at(&[1], 0));
        let mut worker = switch.worker();
        let worker_path = s.spawn(move || worker.write_at(&[1], 0));
        while pause.waited() < 2 {
            std::thread::yield_now();
        }
        let exchange = s.spawn(|| {
            let drained = switch.swap(Arc::new(Null::new(1 << 20))).unwrap();
            swapped.store(true, Ordering::Release);
            drained
        });
        // New requests go to the new stack at once, although the old ones are still inside.
        while switch.current().describe().name != "null" {
            std::thread::yield_now();
        }
        switch.write_at(&[1], 0).unwrap();
        assert!(!swapped.load(Ordering::Acquire));
        pause.open();
        // The exchange shows before the requests inside are counted, and by then some may be through.
        assert!(exchange.join().unwrap().requests <= 2);
        assert!(trait_path.join().unwrap().is_ok());
        assert!(worker_path.join().unwrap().is_ok());
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let switch = Switch::new(Arc::new(Null::new(1 << 20)));
    let refuse = |stack: Device| switch.swap(stack).unwrap_err().to_string();
    assert!(refuse(Arc::new(Null::new(4096))).contains("must hold 1048576"));
    assert!(refuse(Arc::new(ReadOnly::new(Arc::new(Null::new(1 << 20))))).contains("read_only"));
    assert!(refuse(Arc::new(Verify::new(Arc::new(Null::new(1 << 20))))).contains("lacks"));
    let cow = || -> Device { Arc::new(Cow::new(Arc::new(Null::new(1 << 20)))) };
    let switch = Switch::new(cow());
    assert!(
        switch
            .swap(cow())
            .unwrap_err()
            .to_string()
            .contains("drained")
    );
    assert!(switch.swap_drained(cow()).is_ok());
    // A stack that does not flush stays.
    let failing = ErrorRule {
        op: Some(cairn_block::Op::Flush),
        ..ErrorRule::default()
    };
    let null: Device = Arc::new(Null::new(1 << 20));
    let switch = Switch::new(Arc::new(ErrorLayer::new(null.clone(), failing)));
    let e = switch.swap_drained(null).unwrap_err();
    assert!(matches!(e, SwitchError::Flush(_)), "{e}");
    assert_eq!(switch.current().describe().name, "error");
    assert!(switch.write_at(&[1], 0).is_ok());
}
