//! Making a file system.

use cairn_block::{BlockDevice, BlockDeviceExt, Caps, Device, ReqFlags};

use crate::alloc::fill_block_bitmap;
use crate::bitmap;
use crate::dir;
use crate::error::{Error, Result};
use crate::fs::ROOT_INO;
use crate::group::{self, Desc, Places, TABLE_ZEROED};
use crate::node::{Entries, ROOT_ENTRIES, Run};
use crate::num::{low16, low32, put, put_u8, put_u16, put_u32, us};
use crate::raw::{EXTENTS_FL, FileType, Raw, Time};
use crate::superblock::{
    Geometry, MAGIC, STATE_CLEAN, SUPER_AT, SUPER_LEN, Super, incompat, ro_compat,
};

/// Groups whose tables lie together.
const FLEX_BITS: u8 = 4;
/// First inode of files; the one before is lost+found's.
const FIRST_INO: u32 = 11;
/// Bytes of an inode.
const INODE_SIZE: u64 = 256;
/// Bytes of a descriptor.
const DESC_SIZE: u64 = 64;
/// Blocks at most: the descriptors of more groups do not fit into the first of them.
const MOST_BLOCKS: u64 = 1 << 36;
/// Bytes written at once when tables are cleared.
const CLEAR_STEP: u64 = 1 << 20;

/// How a file system is made.
///
/// ```
/// use cairn_ext4::FormatOptions;
///
/// let options = FormatOptions::new().block_size(1024).inode_ratio(8192);
/// ```
#[derive(Debug, Clone)]
pub struct FormatOptions {
    block_size: u32,
    ratio: u64,
    checksums: bool,
    wide: bool,
    uuid: Option<[u8; 16]>,
    label: Vec<u8>,
}

impl FormatOptions {
    /// Blocks of 4 KiB, an inode for each 16 KiB, checksums, 64-bit block numbers.
    pub const fn new() -> Self {
        Self {
            block_size: 4096,
            ratio: 16384,
            checksums: true,
            wide: true,
            uuid: None,
            label: Vec::new(),
        }
    }

    /// Bytes in a block: 1024, 2048 or 4096. Kernels mount no larger ones.
    #[must_use]
    pub const fn block_size(mut self, bytes: u32) -> Self {
        self.block_size = bytes;
        self
    }

    /// Bytes of the device for each inode.
    #[must_use]
    pub const fn inode_ratio(mut self, bytes: u64) -> Self {
        self.ratio = bytes;
        self
    }

    /// Whether metadata has checksums.
    #[must_use]
    pub const fn checksums(mut self, yes: bool) -> Self {
        self.checksums = yes;
        self
    }

    /// Whether block numbers have 48 bits.
    #[must_use]
    pub const fn wide(mut self, yes: bool) -> Self {
        self.wide = yes;
        self
    }

    /// The identity; a random one by default.
    #[must_use]
    pub const fn uuid(mut self, uuid: [u8; 16]) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// The name, at most 16 bytes.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        self.label = label.as_bytes().to_vec();
        self
    }

    /// Whether a device of `len` bytes can be formatted so.
    ///
    /// ```
    /// use cairn_ext4::FormatOptions;
    ///
    /// assert!(FormatOptions::new().fits(64 << 20).is_ok());
    /// assert!(FormatOptions::new().fits(4096).is_err());
    /// ```
    ///
    /// # Errors
    /// Wrong options, or a device that is too small or too large for them.
    pub fn fits(&self, len: u64) -> Result<()> {
        self.check()?;
        layout(len, self).map(drop)
    }

    fn check(&self) -> Result<()> {
        let wrong = |key, why| Err(Error::Option { key, why });
        if ![1024, 2048, 4096].contains(&self.block_size) {
            return wrong(
                "block_size",
                format!("{}: 1024, 2048 or 4096 would be right", self.block_size),
            );
        }
        if !(1024..=1 << 26).contains(&self.ratio) {
            return wrong(
                "inode_ratio",
                format!("{}: from 1024 to 64 MiB would be right", self.ratio),
            );
        }
        if self.label.len() > 16 {
            return wrong(
                "label",
                format!("{} bytes: at most 16 would be right", self.label.len()),
            );
        }
        Ok(())
    }
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a file system on the whole device. What was on it is lost.
///
/// # Errors
/// Wrong options, a device that is too small, or one that fails.
pub fn format(device: &Device, options: &FormatOptions) -> Result<()> {
    options.check()?;
    let (sup, geo, places) = layout(device.info().len, options)?;
    Formatter {
        device: &**device,
        geo,
        sup,
        places,
    }
    .write()
}

/// Where everything will lie on a device of `len` bytes.
fn layout(len: u64, options: &FormatOptions) -> Result<(Super, Geometry, Vec<Places>)> {
    let bs = u64::from(options.block_size);
    let first = u64::from(bs == 1024);
    let per_group = 8 * bs;
    let mut blocks = len / bs;
    if !options.wide {
        blocks = blocks.min(u64::from(u32::MAX));
    }
    let bad = |what: &str| Error::Option {
        key: "size",
        why: format!("{len} bytes are too {what} for a file system"),
    };
    if blocks > MOST_BLOCKS {
        return Err(bad("many"));
    }
    loop {
        if blocks < first + 64 {
            return Err(bad("few"));
        }
        let sup = raw_super(options, blocks, first, per_group);
        let (sup, geo) = Super::parse(sup, len)
            .map_err(|_| bad(if blocks >> 32 > 0 { "many" } else { "few" }))?;
        // A last group too short for its own tables and a little data is left out.
        let last = geo.groups - 1;
        let overhead = geo.backup_len(last) + geo.table_blocks() + 2;
        let short = u64::from(geo.group_len(last)) < overhead + 50;
        if short && last > 0 {
            blocks = geo.group_start(last);
            continue;
        }
        if short {
            return Err(bad("few"));
        }
        let places = place(&geo).ok_or_else(|| bad("few"))?;
        return Ok((sup, geo, places));
    }
}

struct Formatter<'d> {
    device: &'d dyn BlockDevice,
    geo: Geometry,
    sup: Super,
    places: Vec<Places>,
}

impl Formatter<'_> {
    fn put_block(&self, block: u64, bytes: &[u8]) -> Result<()> {
        self.device.write_at(bytes, block << self.geo.block_bits)?;
        Ok(())
    }

    fn clear(&self, start: u64, blocks: u64) -> Result<()> {
        let range = start << self.geo.block_bits..(start + blocks) << self.geo.block_bits;
        if self.device.caps().contains(Caps::ZERO) {
            self.device.write_zeroes(range, ReqFlags::MAY_UNMAP)?;
            return Ok(());
        }
        let most = match self.device.info().max_transfer {
            0 => CLEAR_STEP,
            n => u64::from(n).min(CLEAR_STEP),
        };
        let zeros = vec![0; us(most)];
        let mut at = range.start;
        while at < range.end {
            let n = most.min(range.end - at);
            self.device
                .write_at(crate::num::part(&zeros, 0, us(n)), at)?;
            at += n;
        }
        Ok(())
    }

    fn write(mut self) -> Result<()> {
        let geo = self.geo;
        let bs = geo.block_size;
        // Anything that could be taken for a file system is gone first.
        self.clear(0, geo.first_data + 1)?;
        let places = self.places.clone();
        for place in &places {
            self.clear(place.table, geo.table_blocks())?;
        }
        // Two blocks of data: the root directory's and lost+found's.
        let mut bitmaps: Vec<Vec<u8>> = Vec::new();
        for number in 0..geo.groups {
            let mut bytes = vec![0; bs];
            fill_block_bitmap(&geo, &places, number, &mut bytes);
            bitmaps.push(bytes);
        }
        let mut data = Vec::new();
        for (number, bytes) in (0..).zip(&mut bitmaps) {
            while data.len() < 2 {
                let Some(bit) = bitmap::next_clear(bytes, 0, geo.group_len(number)) else {
                    break;
                };
                bitmap::set(bytes, bit);
                data.push(geo.group_start(number) + u64::from(bit));
            }
        }
        let [root, lost] = data.as_slice() else {
            return Err(Error::NoSpace { asked: 2, free: 0 });
        };
        self.directories(*root, *lost)?;
        let (free_blocks, free_inodes, table) = self.groups(&bitmaps)?;
        self.sup.set_free(free_blocks, free_inodes);
        for number in (0..geo.groups).filter(|g| geo.has_backup(*g)) {
            let start = geo.group_start(number);
            self.put_block(start + 1, &table)?;
            let mut sup = self.sup.clone();
            put_u16(&mut sup.raw, 0x5a, low16(u64::from(number)));
            sup.seal();
            let at = if number == 0 {
                SUPER_AT
            } else {
                start << geo.block_bits
            };
            self.device.write_at(&sup.raw, at)?;
        }
        if self.device.caps().contains(Caps::FLUSH) {
            self.device.flush()?;
        }
        Ok(())
    }

    /// Bitmaps and descriptors. Returns free blocks, free inodes and the table of descriptors.
    fn groups(&self, bitmaps: &[Vec<u8>]) -> Result<(u64, u32, Vec<u8>)> {
        let geo = &self.geo;
        let per = geo.inodes_per_group;
        let mut table = vec![0; us(geo.gdt_blocks) * geo.block_size];
        let (mut free_blocks, mut free_inodes) = (0, 0);
        for ((number, place), blocks) in (0..).zip(&self.places).zip(bitmaps) {
            let mut inodes = vec![0; geo.block_size];
            let used = if number == 0 { FIRST_INO } else { 0 };
            bitmap::set_range(&mut inodes, 0, used);
            bitmap::set_range(&mut inodes, per, low32(8 * geo.block_size as u64));
            let desc = Desc {
                free_blocks: bitmap::count_clear(blocks, geo.group_len(number)),
                free_inodes: per - used,
                used_dirs: if number == 0 { 2 } else { 0 },
                flags: TABLE_ZEROED,
                block_sum: group::bitmap_sum(geo, blocks, geo.blocks_per_group),
                inode_sum: group::bitmap_sum(geo, &inodes, per),
                unused: per - used,
                ..Desc::default()
            };
            self.put_block(place.block_bitmap, blocks)?;
            self.put_block(place.inode_bitmap, &inodes)?;
            let at = us(number) * geo.desc_size;
            group::store_places(geo, place, &mut table, at);
            group::store(geo, number, &desc, &mut table, at);
            free_blocks += u64::from(desc.free_blocks);
            free_inodes += desc.free_inodes;
        }
        Ok((free_blocks, free_inodes, table))
    }

    fn directories(&self, root: u64, lost: u64) -> Result<()> {
        let geo = &self.geo;
        let table = self.places.first().map_or(0, |p| p.table);
        let mut inodes =
            vec![0; us(u64::from(FIRST_INO) * INODE_SIZE).next_multiple_of(geo.block_size)];
        // The reserved inodes are empty but have their checksums.
        for ino in 1..=FIRST_INO {
            let seed = geo.inode_seed(ino, 0);
            let at = us((u64::from(ino) - 1) * INODE_SIZE);
            let mut raw = match ino {
                ROOT_INO => self.dir_inode(0o755, 3, root),
                FIRST_INO => self.dir_inode(0o700, 2, lost),
                _ => continue,
            };
            raw.store(geo, seed, &mut inodes, at);
        }
        self.device.write_at(&inodes, table << geo.block_bits)?;
        let end = dir::records_end(geo);
        let kind = FileType::Directory.entry();
        for (ino, block, names) in [
            (
                ROOT_INO,
                root,
                &[(ROOT_INO, "."), (ROOT_INO, ".."), (FIRST_INO, "lost+found")][..],
            ),
            (FIRST_INO, lost, &[(FIRST_INO, "."), (ROOT_INO, "..")]),
        ] {
            let mut bytes = vec![0; geo.block_size];
            let mut at = 0;
            for (index, (target, name)) in names.iter().enumerate() {
                let is_last = index + 1 == names.len();
                let len = if is_last {
                    end - at
                } else {
                    dir::need(name.len())
                };
                dir::store(&mut bytes, at, *target, len, name.as_bytes(), kind);
                at += len;
            }
            dir::seal(geo, geo.inode_seed(ino, 0), &mut bytes);
            self.put_block(block, &bytes)?;
        }
        Ok(())
    }

    fn dir_inode(&self, permissions: u16, links: u16, block: u64) -> Raw {
        let geo = &self.geo;
        let mut raw = Raw::new(geo, FileType::Directory, permissions, 0, Time::now());
        raw.set_links(links);
        raw.set_size(geo.block_size as u64);
        raw.set_sectors(geo.block_size as u64 / 512);
        raw.set_flags(EXTENTS_FL);
        let run = Run {
            lblk: 0,
            len: 1,
            start: block,
            unwritten: false,
        };
        Entries::Leaf(vec![run]).store(raw.root_mut(), 0, ROOT_ENTRIES);
        raw
    }
}

/// Bitmaps and tables of a flex group one after the other, from its first group on, past copies of the
/// superblock.
fn place(geo: &Geometry) -> Option<Vec<Places>> {
    let mut places = vec![Places::default(); us(geo.groups)];
    let flex = 1 << geo.flex_bits;
    let mut first = 0;
    while first < geo.groups {
        let last = (first + flex).min(geo.groups);
        let mut at = geo.group_start(first);
        // The next run of `len` blocks that touches no copy of the superblock and the descriptors.
        let mut next = |len: u64| -> Option<u64> {
            loop {
                let mut moved = false;
                let (from, _) = geo.group_of(at);
                let (to, _) = geo.group_of(at + len - 1);
                for number in from..=to {
                    let (a, b) = (
                        geo.group_start(number),
                        geo.group_start(number) + geo.backup_len(number),
                    );
                    if at < b && at + len > a {
                        at = b;
                        moved = true;
                        break;
                    }
                }
                if at + len > geo.blocks {
                    return None;
                }
                if !moved {
                    at += len;
                    return Some(at - len);
                }
            }
        };
        let range = us(first)..us(last);
        for place in places.get_mut(range.clone())? {
            place.block_bitmap = next(1)?;
        }
        for place in places.get_mut(range.clone())? {
            place.inode_bitmap = next(1)?;
        }
        for place in places.get_mut(range)? {
            place.table = next(geo.table_blocks())?;
        }
        first = last;
    }
    Some(places)
}

/// The superblock for that many blocks.
fn raw_super(options: &FormatOptions, blocks: u64, first: u64, per_group: u64) -> Vec<u8> {
    let mut raw = vec![0; SUPER_LEN];
    let bs = u64::from(options.block_size);
    let groups = blocks.saturating_sub(first).div_ceil(per_group).max(1);
    let per_block = (bs / INODE_SIZE).max(8);
    let wanted = (blocks * bs / options.ratio).div_ceil(groups);
    let inodes = wanted
        .clamp(32, 8 * bs)
        .next_multiple_of(per_block)
        .min(8 * bs / per_block * per_block);
    let now = Time::now().secs32();
    let log = options.block_size.trailing_zeros() - 10;
    let mut set = |at, value| put_u32(&mut raw, at, value);
    set(0x0, low32((groups * inodes).min(u64::from(u32::MAX))));
    set(0x4, low32(blocks));
    set(0x150, low32(blocks >> 32));
    set(0x14, low32(first));
    set(0x18, log);
    set(0x1c, log);
    set(0x20, low32(per_group));
    set(0x24, low32(per_group));
    set(0x28, low32(inodes));
    set(0x30, now);
    set(0x40, now);
    set(0x108, now);
    set(0x4c, 1);
    set(0x54, FIRST_INO);
    let mut incompat = incompat::FILETYPE | incompat::EXTENTS | incompat::FLEX_BG;
    let mut ro = ro_compat::SPARSE_SUPER
        | ro_compat::LARGE_FILE
        | ro_compat::HUGE_FILE
        | ro_compat::DIR_NLINK
        | ro_compat::EXTRA_ISIZE;
    if options.wide {
        incompat |= incompat::BIT64;
    }
    if options.checksums {
        ro |= ro_compat::METADATA_CSUM;
    }
    set(0x60, incompat);
    set(0x64, ro);
    put_u16(&mut raw, 0x36, 0xffff); // no check after a number of mounts
    put_u16(&mut raw, 0x38, MAGIC);
    put_u16(&mut raw, 0x3a, STATE_CLEAN);
    put_u16(&mut raw, 0x3c, 1); // go on after errors
    put_u16(&mut raw, 0x58, low16(INODE_SIZE));
    put(&mut raw, 0x68, &options.uuid.unwrap_or_else(random_uuid));
    put(&mut raw, 0x78, &options.label);
    put(&mut raw, 0xec, &random_uuid()); // seed of name hashes
    put_u8(&mut raw, 0xfc, 1); // half MD4
    put_u16(
        &mut raw,
        0xfe,
        if options.wide { low16(DESC_SIZE) } else { 0 },
    );
    put_u16(&mut raw, 0x15c, 32);
    put_u16(&mut raw, 0x15e, 32);
    put_u32(&mut raw, 0x160, 1); // names are hashed as signed bytes
    put_u8(&mut raw, 0x174, FLEX_BITS);
    put_u8(&mut raw, 0x175, u8::from(options.checksums));
    let mut sup = Super { raw };
    sup.seal();
    sup.raw
}

fn random_uuid() -> [u8; 16] {
    let mut uuid = fastrand::u128(..).to_le_bytes();
    // Version 4, variant 1.
    if let Some(b) = uuid.get_mut(6) {
        *b = *b & 0x0f | 0x40;
    }
    if let Some(b) = uuid.get_mut(8) {
        *b = *b & 0x3f | 0x80;
    }
    uuid
}
