//! A layer and a policy of one's own, in the whole of Cairn without a change to it.
//!
//! ```sh
//! cargo run --release --example own_layer -- dash --stack 'stats/yielding/ram(256m)'
//! ```
//!
//! opens the dashboard on a stack with the layer in it; the letter `f` switches it. The other commands
//! know it as well: `-- list layers`, `-- list policies`, `-- stack explain 'yielding/ram(64m)'`.

use std::io::{IoSlice, IoSliceMut};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_block::{BlockDevice, Caps, Device, Node, ReqFlags, Result, Shape, forward};
use cairn_lab::{PolicyInfo, Registry};

/// Gives the processor away before each read and write while it is switched on.
struct Yielding {
    below: Device,
    on: Arc<AtomicBool>,
}

impl Yielding {
    fn pause(&self) {
        // Relaxed: the flag stands alone, nothing is read through it.
        if self.on.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }
}

impl BlockDevice for Yielding {
    // What is not named here is written below, or keeps the trait's own answer: no mapping, since
    // mapped bytes would pass this layer by.
    forward!(below: info flush discard write_zeroes extents cache resize snapshot children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        self.pause();
        self.below.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.pause();
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn describe(&self) -> Node {
        Node::new("yielding")
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would pass by")]
    }
}

fn main() -> ExitCode {
    let on = Arc::new(AtomicBool::new(false));
    let mut registry = Registry::default();
    let switch = Arc::clone(&on);
    registry.blocks().register(
        "yielding",
        "gives the processor away before each request",
        Shape::Layer,
        &[],
        move |site| {
            Ok(Arc::new(Yielding {
                below: site.below()?,
                on: Arc::clone(&switch),
            }))
        },
    );
    registry
        .register_policy(
            PolicyInfo::new(
                "yielding",
                'f',
                &["off", "on"],
                "whether requests yield first",
                "example",
            ),
            move |arm| on.store(arm == 1, Ordering::Relaxed),
        )
        .expect("neither the name nor the letter has another owner");
    cairn_tui::run(&registry)
}
