//! Descriptors of groups.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_buffer::Handle;

use crate::crc::{self, crc};
use crate::error::{Error, Object, Result};
use crate::num::{low16, low32, part, part_mut, put_u16, put_u32, u16_at, u32_at};
use crate::superblock::Geometry;

/// Inode bitmap and table were never written.
pub(crate) const INODE_UNINIT: u16 = 1;
/// The block bitmap was never written.
pub(crate) const BLOCK_UNINIT: u16 = 2;
/// The inode table reads as zeros where it is unused.
pub(crate) const TABLE_ZEROED: u16 = 4;

/// What changes in a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Desc {
    pub(crate) free_blocks: u32,
    pub(crate) free_inodes: u32,
    pub(crate) used_dirs: u32,
    pub(crate) flags: u16,
    pub(crate) block_sum: u32,
    pub(crate) inode_sum: u32,
    pub(crate) unused: u32,
    /// All inodes below this one of the group are in use.
    pub(crate) first_free: u32,
    /// Where the last allocation of blocks ended.
    pub(crate) next_block: u32,
    /// Not stored yet.
    pub(crate) stale: bool,
}

/// What never changes in a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Places {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) table: u64,
}

/// A group: its lock guards its descriptor and both bitmaps. On lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Group {
    pub(crate) places: Places,
    /// The block of the table of descriptors, kept at hand as a mounted kernel keeps it.
    pub(crate) table_block: Handle,
    desc: Mutex<Desc>,
}

impl Group {
    pub(crate) const fn new(places: Places, desc: Desc, table_block: Handle) -> Self {
        Self {
            places,
            table_block,
            desc: Mutex::new(desc),
        }
    }

    // What a panic could leave half-way is a count, which the next check finds; nothing worse.

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Desc> {
        self.desc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, unless another thread works in the group.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Desc>> {
        match self.desc.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// Longest descriptor whose checksum is taken in one pass.
const LONGEST: usize = 64;

/// Checksum of a descriptor.
pub(crate) fn checksum(geometry: &Geometry, group: u32, raw: &[u8]) -> u16 {
    // The number, then the descriptor without the sum: in one pass over a copy, as five short ones take longer.
    let mut bytes = [0; 4 + LONGEST];
    if let Some(all) = bytes.get_mut(..4 + raw.len()) {
        put_u32(all, 0, group);
        crate::num::put(all, 4, raw);
        put_u16(all, 4 + 0x1e, 0);
        return low16(u64::from(crc(geometry.seed, all)));
    }
    let sum = crc(geometry.seed, &group.to_le_bytes());
    let sum = crc(sum, part(raw, 0, 0x1e));
    let sum = crc(sum, &[0, 0]);
    let sum = crc(
        sum,
        part(raw, 0x20, geometry.desc_size.saturating_sub(0x20)),
    );
    low16(u64::from(sum))
}

/// Whether the high halves of fields are there.
fn wide(geometry: &Geometry) -> bool {
    geometry.desc_size >= 64
}

/// Reads and validates the descriptor in `raw`.
pub(crate) fn parse(geometry: &Geometry, group: u32, raw: &[u8]) -> Result<(Places, Desc)> {
    let wrong = |why: String| Err(Error::corrupt(Object::Group(group), why));
    let wide = wide(geometry);
    if geometry.checksums {
        let right = checksum(geometry, group, raw);
        if u16_at(raw, 0x1e) != right {
            return wrong(format!(
                "checksum {:#06x}, {right:#06x} would be right",
                u16_at(raw, 0x1e)
            ));
        }
    }
    let block = |low, high| {
        u64::from(u32_at(raw, low))
            | if wide {
                u64::from(u32_at(raw, high)) << 32
            } else {
                0
            }
    };
    let count = |low, high| {
        u32::from(u16_at(raw, low))
            | if wide {
                u32::from(u16_at(raw, high)) << 16
            } else {
                0
            }
    };
    let places = Places {
        block_bitmap: block(0, 0x20),
        inode_bitmap: block(4, 0x24),
        table: block(8, 0x28),
    };
    let sums = geometry.checksums;
    let mut desc = Desc {
        free_blocks: count(0xc, 0x2c),
        free_inodes: count(0xe, 0x2e),
        used_dirs: count(0x10, 0x30),
        flags: if sums { u16_at(raw, 0x12) } else { 0 },
        block_sum: count(0x18, 0x38),
        inode_sum: count(0x1a, 0x3a),
        unused: if sums { count(0x1c, 0x32) } else { 0 },
        first_free: 0,
        next_block: 0,
        stale: false,
    };
    let (flex, own) = (geometry.flex_bits > 0, geometry.group_start(group));
    let reach = |start: u64, len: u64| {
        geometry.holds(start, len)
            && start > geometry.first_data + geometry.gdt_blocks
            && (flex || start >= own && start + len <= own + u64::from(geometry.blocks_per_group))
    };
    for (what, start, len) in [
        ("block bitmap", places.block_bitmap, 1),
        ("inode bitmap", places.inode_bitmap, 1),
        ("inode table", places.table, geometry.table_blocks()),
    ] {
        if !reach(start, len) {
            return wrong(format!(
                "its {what} at block {start} lies where it cannot be"
            ));
        }
    }
    if desc.free_blocks > geometry.group_len(group) || desc.free_inodes > geometry.inodes_per_group
    {
        return wrong(format!(
            "{} free blocks and {} free inodes, more than there are",
            desc.free_blocks, desc.free_inodes
        ));
    }
    if desc.used_dirs > geometry.inodes_per_group || desc.unused > geometry.inodes_per_group {
        return wrong(format!(
            "{} directories and {} unused inodes, more than there are",
            desc.used_dirs, desc.unused
        ));
    }
    if !sums {
        desc.flags = 0;
    }
    Ok((places, desc))
}

/// Writes the descriptor into the block of descriptors `bytes` at `at`, with its checksum.
pub(crate) fn store(geometry: &Geometry, group: u32, desc: &Desc, bytes: &mut [u8], at: usize) {
    let raw = part_mut(bytes, at, geometry.desc_size);
    let wide = wide(geometry);
    let mut count = |low: usize, high: usize, n: u32| {
        put_u16(raw, low, Geometry::low_count(n));
        if wide {
            put_u16(raw, high, low16(u64::from(n >> 16)));
        }
    };
    count(0xc, 0x2c, desc.free_blocks);
    count(0xe, 0x2e, desc.free_inodes);
    count(0x10, 0x30, desc.used_dirs);
    if geometry.checksums {
        count(0x18, 0x38, desc.block_sum);
        count(0x1a, 0x3a, desc.inode_sum);
        count(0x1c, 0x32, desc.unused);
        put_u16(raw, 0x12, desc.flags);
        let sum = checksum(geometry, group, raw);
        put_u16(raw, 0x1e, sum);
    }
}

/// Writes the fixed places into a fresh descriptor.
pub(crate) fn store_places(geometry: &Geometry, places: &Places, bytes: &mut [u8], at: usize) {
    let raw = part_mut(bytes, at, geometry.desc_size);
    for (low, high, block) in [
        (0, 0x20, places.block_bitmap),
        (4, 0x24, places.inode_bitmap),
        (8, 0x28, places.table),
    ] {
        put_u32(raw, low, low32(block));
        if wide(geometry) {
            put_u32(raw, high, low32(block >> 32));
        }
    }
}

/// Checksum of a bitmap in which one bit was turned round, from the one before.
pub(crate) fn bitmap_sum_flipped(
    geometry: &Geometry,
    sum: u32,
    bytes: &[u8],
    bit: u32,
    bits: u32,
) -> u32 {
    let after = (bits as usize / 8).checked_sub(bit as usize / 8 + 1);
    let flipped = after.and_then(|after| crc::flipped(sum, bit, after));
    match flipped {
        Some(sum) if wide(geometry) => sum,
        // Each half of a checksum changes by its half of the difference.
        Some(sum) => sum & 0xffff,
        None => bitmap_sum(geometry, bytes, bits),
    }
}

/// Checksum of a bitmap as the descriptor keeps it; `bits` bits are covered.
pub(crate) fn bitmap_sum(geometry: &Geometry, bytes: &[u8], bits: u32) -> u32 {
    let sum = crc(geometry.seed, part(bytes, 0, bits as usize / 8));
    if wide(geometry) { sum } else { sum & 0xffff }
}
