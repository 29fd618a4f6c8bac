//! Damages an image and uses it.

#![no_main]

use std::sync::{Arc, OnceLock};

use cairn_block::{BlockDeviceExt, Device};
use cairn_ext4::{Ext4, FormatOptions, MountOptions, format};
use cairn_ramdisk::Ram;
use libfuzzer_sys::fuzz_target;

#[path = "../../tests/image/damage.rs"]
mod damage;

/// A small image without checksums, so that damage reaches those who use the fields.
fn image() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let disk: Device = Arc::new(Ram::with_len(2 << 20).expect("memory"));
        format(&disk, &FormatOptions::new().block_size(1024).checksums(false)).expect("it fits");
        let fs = Ext4::mount(Arc::clone(&disk), &MountOptions::new()).expect("just made");
        for dir in ["/a", "/a/b", "/c"] {
            fs.mkdir(dir).expect("room");
        }
        let deep = fs.create("/deep").expect("room");
        for n in 0..180 {
            fs.write_at(&deep, n * 4096, b"x").expect("room");
        }
        fs.close(deep).expect("ram");
        fs.symlink("y".repeat(100), "/c/long").expect("room");
        fs.unmount().expect("ram");
        let len = usize::try_from(disk.info().len).expect("2 MiB");
        disk.read_vec(0, len).expect("ram")
    })
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = image().to_vec();
    damage::damage(&mut bytes, 1024, input);
    damage::survive(&bytes);
});
