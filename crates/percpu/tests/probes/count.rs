//! A program that counts under both backends, built in many ways.

use cairn_percpu::{BackendKind, Batched, Counter};

fn main() {
    const THREADS: u64 = 4;
    const ADDS: u64 = 200_000;
    for kind in [BackendKind::Owned, BackendKind::RseqCpu] {
        let counter = Counter::builder().backend(kind).build();
        let batched = Batched::builder().backend(kind).build();
        std::thread::scope(|s| {
            for _ in 0..THREADS {
                s.spawn(|| {
                    let handle = counter.handle();
                    for _ in 0..ADDS {
                        counter.inc();
                        handle.inc();
                        batched.add(3);
                    }
                });
            }
        });
        assert_eq!(counter.sum(), 2 * THREADS * ADDS);
        assert_eq!(batched.sum().unsigned_abs(), 3 * THREADS * ADDS);
        println!("{kind}: {} counted on {}", counter.sum(), counter.backend());
    }
}
