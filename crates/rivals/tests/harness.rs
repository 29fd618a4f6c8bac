//! The harness on small arms: every arm gets its calls, with every number of threads.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cairn_rivals::{Bar, Bench, Options};

#[test]
fn arms_run_on_all_threads_and_are_reported() {
    let file = std::env::temp_dir().join(format!("cairn-rivals-{}.json", std::process::id()));
    let args = ["--quick", "--json", file.to_str().unwrap()].map(String::from);
    let mut bench = Bench::new("test", Options::parse(args).unwrap());
    let calls: Arc<[AtomicU64; 4]> = Arc::default();
    let (count, prepare) = (Arc::clone(&calls), Arc::clone(&calls));
    bench
        .group("g", &[1, 2, 3])
        .arm("spin", move |thread, n| {
            count[thread].fetch_add(n, Relaxed);
            for _ in 0..n {
                std::hint::spin_loop();
            }
        })
        .before(move || {
            prepare[3].fetch_add(1, Relaxed);
        })
        .arm("idle", |_, n| {
            std::hint::black_box(n);
        })
        .measure_first(1);
    bench.bar(Bar::at_least("", 1.0, "g", "spin", "idle"));
    bench.run().unwrap();

    let [first, second, third, prepared] = [0, 1, 2, 3].map(|i| calls[i].load(Relaxed));
    // How often depends on the machine: a thread goes on until all are done.
    assert!(first > 0 && second > 0 && third > 0);
    assert_eq!(prepared, 9, "three rounds at three numbers of threads");
    let json = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(json.contains("\"bench\": \"test\"") && json.contains("\"arm\": \"spin\""));
}
