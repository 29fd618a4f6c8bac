//! Tests of `stripes`, apart from it: that file is compiled once more for the models.

use std::hint;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::stripes::{REGION, Stripes, regions};
use crate::thread::SLOTS;

#[test]
fn ranges_split_at_borders() {
    assert_eq!(regions(5, 0).count(), 0);
    assert_eq!(
        regions(REGION - 1, REGION + 2).collect::<Vec<_>>(),
        [(REGION - 1, 1), (REGION, REGION), (2 * REGION, 1)]
    );
}

/// Writers raise a flag while they share, and who is alone must find none raised.
fn nobody_is_inside(threads: usize) {
    let stripes = Stripes::new(2 * REGION);
    let inside: [AtomicU64; 2] = Default::default();
    std::thread::scope(|s| {
        for t in 0..threads {
            let (stripes, inside) = (&stripes, &inside);
            s.spawn(move || {
                for n in 0..4000_usize {
                    let r = (n + t) % 2;
                    let share = stripes.share(r as u64 * REGION);
                    inside[r].fetch_add(1, Ordering::SeqCst);
                    hint::spin_loop();
                    inside[r].fetch_sub(1, Ordering::SeqCst);
                    drop(share);
                }
            });
        }
        s.spawn(|| {
            for n in 0..1000_usize {
                if n % 10 == 0 {
                    let all = stripes.own_all();
                    let seen: u64 = inside.iter().map(|i| i.load(Ordering::SeqCst)).sum();
                    assert_eq!(seen, 0);
                    drop(all);
                } else {
                    let one = stripes.own(n as u64 % 2 * REGION);
                    assert_eq!(inside[n % 2].load(Ordering::SeqCst), 0);
                    drop(one);
                }
            }
        });
    });
}

#[test]
fn who_is_alone_is_alone() {
    nobody_is_inside(3);
    // More threads than slots: some take the locks.
    nobody_is_inside(SLOTS + 8);
}
