//! The pattern of accesses is the one that was recorded from Linux 6.18.

use std::sync::Arc;

use cairn_buffer::CountingProbe;
use cairn_ext4::{Ext4, FormatOptions, MountOptions};
use cairn_flags::SetPolicy;

use crate::support::formatted;

#[test]
fn create_close_unlink_touches_what_the_kernel_touches() {
    let disk = formatted(64 << 20, &FormatOptions::new());
    let fs = Ext4::<CountingProbe>::mount_probed(Arc::clone(&disk), &MountOptions::new()).unwrap();
    fs.mkdir("/d").unwrap();
    let dir = fs.dir("/d").unwrap();
    let triple = || {
        fs.close(fs.create_in(&dir, "name").unwrap()).unwrap();
        fs.unlink_in(&dir, "name").unwrap();
    };
    triple();
    for policy in [SetPolicy::AlwaysRmw, SetPolicy::CheckFirst] {
        fs.buffers().set_policy(policy);
        let before = (
            CountingProbe::counts(),
            fs.buffers().stats(),
            fs.extents().info(),
        );
        let n = 50;
        for _ in 0..n {
            triple();
        }
        let after = (
            CountingProbe::counts(),
            fs.buffers().stats(),
            fs.extents().info(),
        );
        let (mut rmws, mut avoided) = (0, 0);
        for (now, then) in after.0.iter().zip(&before.0) {
            let bit = now.since(then);
            match now.name {
                "META" | "PRIO" | "UPTODATE" => {
                    rmws += bit.rmw;
                    avoided += bit.avoided;
                }
                "DIRTY" => assert_eq!(bit.asked(), n * 14),
                _ => assert_eq!(bit.asked(), 0, "{}", now.name),
            }
        }
        let want = if policy == SetPolicy::AlwaysRmw {
            (n * 42, 0)
        } else {
            (0, n * 42)
        };
        assert_eq!((rmws, avoided), want, "{policy}");
        assert_eq!(after.1.hits - before.1.hits, n * 14);
        assert_eq!(after.2.hits - before.2.hits, n * 3);
        assert_eq!(after.2.misses, before.2.misses);
    }
}

#[test]
fn a_direct_overwrite_looks_up_twice() {
    let disk = formatted(64 << 20, &FormatOptions::new());
    let fs = Ext4::mount(disk, &MountOptions::new()).unwrap();
    let file = fs.create("/f").unwrap();
    fs.write_at(&file, 0, &vec![1; 1 << 20]).unwrap();
    fs.fsync(&file).unwrap();
    let before = (fs.extents().info(), fs.buffers().stats());
    for n in 0..100 {
        fs.write_direct(&file, n * 4096, &[2; 4096], false).unwrap();
    }
    let after = (fs.extents().info(), fs.buffers().stats());
    assert_eq!(after.0.hits - before.0.hits, 200);
    assert_eq!(after.0.misses, before.0.misses);
    assert_eq!(after.1, before.1, "no buffer was touched");
    fs.close(file).unwrap();
}
