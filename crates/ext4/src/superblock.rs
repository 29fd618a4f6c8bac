//! The superblock: parsing, validation, feature bits, and the numbers that follow from it.

use crate::crc::{START, crc};
use crate::error::{Error, Object, Result};
use crate::num::{low16, low32, part, put_u16, put_u32, u8_at, u16_at, u32_at, us};

/// Bytes of the superblock, and where it lies on the device.
pub(crate) const SUPER_LEN: usize = 1024;
/// First byte of the superblock.
pub(crate) const SUPER_AT: u64 = 1024;
/// The format's magic number.
pub(crate) const MAGIC: u16 = 0xef53;

pub(crate) mod compat {
    pub(crate) const HAS_JOURNAL: u32 = 0x4;
    pub(crate) const ORPHAN_FILE: u32 = 0x1000;
}
pub(crate) mod incompat {
    pub(crate) const FILETYPE: u32 = 0x2;
    pub(crate) const EXTENTS: u32 = 0x40;
    pub(crate) const BIT64: u32 = 0x80;
    pub(crate) const FLEX_BG: u32 = 0x200;
    pub(crate) const CSUM_SEED: u32 = 0x2000;
    pub(crate) const KNOWN: u32 = FILETYPE | EXTENTS | BIT64 | FLEX_BG | CSUM_SEED;
}
pub(crate) mod ro_compat {
    pub(crate) const SPARSE_SUPER: u32 = 0x1;
    pub(crate) const LARGE_FILE: u32 = 0x2;
    pub(crate) const HUGE_FILE: u32 = 0x8;
    pub(crate) const GDT_CSUM: u32 = 0x10;
    pub(crate) const DIR_NLINK: u32 = 0x20;
    pub(crate) const EXTRA_ISIZE: u32 = 0x40;
    pub(crate) const BIGALLOC: u32 = 0x200;
    pub(crate) const METADATA_CSUM: u32 = 0x400;
    pub(crate) const READONLY: u32 = 0x1000;
    pub(crate) const KNOWN: u32 =
        SPARSE_SUPER | LARGE_FILE | HUGE_FILE | DIR_NLINK | EXTRA_ISIZE | METADATA_CSUM;
}

const COMPAT_NAMES: [(u32, &str); 6] = [
    (0x4, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x200, "sparse_super2"),
    (0x1000, "orphan_file"),
];
const INCOMPAT_KNOWN_NAMES: [(u32, &str); 5] = [
    (incompat::FILETYPE, "filetype"),
    (incompat::EXTENTS, "extent"),
    (incompat::BIT64, "64bit"),
    (incompat::FLEX_BG, "flex_bg"),
    (incompat::CSUM_SEED, "metadata_csum_seed"),
];
const RO_COMPAT_KNOWN_NAMES: [(u32, &str); 6] = [
    (ro_compat::SPARSE_SUPER, "sparse_super"),
    (ro_compat::LARGE_FILE, "large_file"),
    (ro_compat::HUGE_FILE, "huge_file"),
    (ro_compat::DIR_NLINK, "dir_nlink"),
    (ro_compat::EXTRA_ISIZE, "extra_isize"),
    (ro_compat::METADATA_CSUM, "metadata_csum"),
];
const INCOMPAT_NAMES: [(u32, &str); 14] = [
    (0x1, "compression"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x100, "mmp"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
    (0x20000, "casefold"),
    (0x20, "incompat bit 0x20"),
    (0x800, "incompat bit 0x800"),
    (0x40000, "incompat bit 0x40000"),
];
const RO_COMPAT_NAMES: [(u32, &str); 9] = [
    (0x4, "btree_dir"),
    (0x10, "uninit_bg"),
    (0x80, "has_snapshot"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x800, "replica"),
    (0x2000, "project"),
    (0x8000, "verity"),
    (0x10000, "orphan_present"),
];

/// Largest block this layer takes: lengths of directory records are 16 bits.
const MAX_LOG_BLOCK: u32 = 5;
/// Groups smaller than this make tables of descriptors that are larger than what they describe.
const MIN_GROUP: u32 = 256;

/// Bit of the state word: cleanly unmounted.
pub(crate) const STATE_CLEAN: u16 = 1;

/// The superblock as it is on disk, with the numbers that this layer changes.
#[derive(Debug, Clone)]
pub(crate) struct Super {
    pub(crate) raw: Vec<u8>,
}

/// What never changes while a file system is mounted.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a feature of its own"
)]
pub(crate) struct Geometry {
    pub(crate) block_size: usize,
    pub(crate) block_bits: u32,
    pub(crate) blocks: u64,
    pub(crate) first_data: u64,
    pub(crate) blocks_per_group: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inodes: u32,
    pub(crate) first_ino: u32,
    pub(crate) groups: u32,
    pub(crate) desc_size: usize,
    pub(crate) inode_size: usize,
    pub(crate) gdt_blocks: u64,
    pub(crate) reserved_gdt: u64,
    pub(crate) sparse: bool,
    pub(crate) filetype: bool,
    pub(crate) dir_nlink: bool,
    pub(crate) flex_bits: u32,
    pub(crate) checksums: bool,
    pub(crate) seed: u32,
}

fn wrong(why: impl Into<String>) -> Error {
    Error::corrupt(Object::Super, why)
}

/// The name of the lowest bit of `bits`.
fn name_of(bits: u32, names: &[(u32, &str)], class: &str) -> String {
    let bit = bits & bits.wrapping_neg();
    names
        .iter()
        .find(|(b, _)| *b == bit)
        .map_or_else(|| format!("{class} bit {bit:#x}"), |(_, n)| (*n).to_owned())
}

impl Super {
    /// Reads and validates; `device` is the length of the device in bytes.
    pub(crate) fn parse(raw: Vec<u8>, device: u64) -> Result<(Self, Geometry)> {
        let s = Self { raw };
        if s.u16(0x38) != MAGIC {
            return Err(Error::NotExt4 { magic: s.u16(0x38) });
        }
        if s.u32(0x4c) != 1 {
            return Err(wrong(format!("revision {}, only 1 is known", s.u32(0x4c))));
        }
        s.refuse_unknown()?;
        let geometry = s.geometry(device)?;
        if geometry.checksums && s.checksum() != s.u32(0x3fc) {
            return Err(wrong(format!(
                "checksum {:#010x}, {:#010x} would be right",
                s.u32(0x3fc),
                s.checksum()
            )));
        }
        Ok((s, geometry))
    }

    fn refuse_unknown(&self) -> Result<()> {
        let unknown = self.incompat() & !incompat::KNOWN;
        if unknown != 0 {
            return Err(Error::Feature {
                name: name_of(unknown, &INCOMPAT_NAMES, "incompat"),
                advice: "this layer cannot read it",
            });
        }
        if self.ro_compat() & ro_compat::BIGALLOC != 0 {
            return Err(Error::Feature {
                name: "bigalloc".to_owned(),
                advice: "this layer cannot read it",
            });
        }
        if self.incompat() & incompat::EXTENTS == 0 {
            return Err(Error::Feature {
                name: "extent".to_owned(),
                advice: "it is missing, and this layer needs it",
            });
        }
        Ok(())
    }

    fn geometry(&self, device: u64) -> Result<Geometry> {
        let log = self.u32(0x18);
        if log > MAX_LOG_BLOCK {
            return Err(wrong(format!(
                "block size 2^{log} KiB, at most 32 KiB are possible"
            )));
        }
        let block_size = 1024_usize << log;
        let bs = block_size as u64;
        let wide = self.incompat() & incompat::BIT64 != 0;
        let blocks = u64::from(self.u32(0x4))
            | if wide {
                u64::from(self.u32(0x150)) << 32
            } else {
                0
            };
        let first_data = u64::from(self.u32(0x14));
        if first_data != u64::from(log == 0) {
            return Err(wrong(format!(
                "first data block {first_data}, {} would be right",
                u64::from(log == 0)
            )));
        }
        if blocks <= first_data + 8 || blocks.checked_mul(bs).is_none_or(|len| len > device) {
            return Err(wrong(format!(
                "{blocks} blocks of {bs} bytes do not fit a device of {device} bytes"
            )));
        }
        let per_group = self.u32(0x20);
        let most = low32(8 * bs);
        if !(MIN_GROUP..=most).contains(&per_group) || !per_group.is_multiple_of(8) {
            return Err(wrong(format!(
                "{per_group} blocks per group, a multiple of 8 from {MIN_GROUP} to {most} would be right"
            )));
        }
        if self.u32(0x24) != per_group || self.u32(0x1c) != log {
            return Err(wrong(format!(
                "{} clusters per group, {per_group} would be right",
                self.u32(0x24)
            )));
        }
        let groups = (blocks - first_data).div_ceil(u64::from(per_group));
        let groups = u32::try_from(groups).map_err(|_| wrong(format!("{groups} groups")))?;
        let desc_size = self.desc_size()?;
        let (inode_size, per, inodes, first_ino) = self.inode_geometry(bs, groups)?;
        let gdt_blocks = (u64::from(groups) * desc_size as u64).div_ceil(bs);
        let reserved_gdt = u64::from(self.u16(0xce));
        if 1 + gdt_blocks + reserved_gdt + 2 >= u64::from(per_group)
            || first_data + 1 + gdt_blocks >= blocks
        {
            return Err(wrong(format!(
                "{gdt_blocks} descriptor blocks and {reserved_gdt} reserved ones do not fit a group of {per_group}"
            )));
        }
        let flex_bits = u32::from(u8_at(&self.raw, 0x174));
        if flex_bits > 31 {
            return Err(wrong(format!("2^{flex_bits} groups in a flex group")));
        }
        let ro = self.ro_compat();
        let checksums = ro & ro_compat::METADATA_CSUM != 0;
        if checksums && u8_at(&self.raw, 0x175) != 1 {
            return Err(wrong(format!(
                "checksum type {}, only 1 (crc32c) is known",
                u8_at(&self.raw, 0x175)
            )));
        }
        Ok(Geometry {
            block_size,
            block_bits: 10 + log,
            blocks,
            first_data,
            blocks_per_group: per_group,
            inodes_per_group: per,
            inodes,
            first_ino,
            groups,
            desc_size,
            inode_size,
            gdt_blocks,
            reserved_gdt,
            sparse: ro & ro_compat::SPARSE_SUPER != 0,
            filetype: self.incompat() & incompat::FILETYPE != 0,
            dir_nlink: ro & ro_compat::DIR_NLINK != 0,
            flex_bits: if self.incompat() & incompat::FLEX_BG != 0 {
                flex_bits
            } else {
                0
            },
            checksums,
            seed: if self.incompat() & incompat::CSUM_SEED != 0 {
                self.u32(0x270)
            } else {
                crc(START, part(&self.raw, 0x68, 16))
            },
        })
    }

    /// Bytes of an inode, inodes of a group and in all, and the first that is not reserved.
    fn inode_geometry(&self, bs: u64, groups: u32) -> Result<(usize, u32, u32, u32)> {
        let most = low32(8 * bs);
        let inode_size = usize::from(self.u16(0x58));
        if inode_size != 128 && inode_size != 256 {
            return Err(Error::Feature {
                name: format!("inodes of {inode_size} bytes"),
                advice: "this layer takes inodes of 128 or 256 bytes",
            });
        }
        let per = self.u32(0x28);
        let in_block = low32(bs / inode_size as u64);
        if per < in_block || per > most || !per.is_multiple_of(8) || !per.is_multiple_of(in_block) {
            return Err(wrong(format!(
                "{per} inodes per group, a multiple of {in_block} up to {most} would be right"
            )));
        }
        let inodes = self.u32(0);
        if groups.checked_mul(per) != Some(inodes) {
            return Err(wrong(format!(
                "{inodes} inodes, {groups} groups of {per} would be right"
            )));
        }
        let first_ino = self.u32(0x54);
        if first_ino < 11 || first_ino >= per {
            return Err(wrong(format!(
                "first inode {first_ino}, at least 11 would be right"
            )));
        }
        Ok((inode_size, per, inodes, first_ino))
    }

    /// Bytes of a descriptor.
    fn desc_size(&self) -> Result<usize> {
        if self.incompat() & incompat::BIT64 == 0 {
            return Ok(32);
        }
        let size = usize::from(self.u16(0xfe));
        if !size.is_power_of_two() || !(64..=1024).contains(&size) {
            return Err(wrong(format!(
                "descriptors of {size} bytes, a power of two from 64 to 1024 would be right"
            )));
        }
        Ok(size)
    }

    /// Why this image can only be read, if so.
    pub(crate) fn read_only(&self) -> Option<String> {
        let unknown = self.ro_compat() & !ro_compat::KNOWN;
        if unknown & ro_compat::READONLY != 0 {
            return Some("it is marked so (feature `read-only`)".to_owned());
        }
        // With checksums of metadata the older checksum of groups is not in use, whatever its bit says.
        let unknown = if self.ro_compat() & ro_compat::METADATA_CSUM != 0 {
            unknown & !ro_compat::GDT_CSUM
        } else {
            unknown
        };
        if unknown != 0 {
            let name = name_of(unknown, &RO_COMPAT_NAMES, "ro_compat");
            return Some(format!("feature `{name}` is not written by this layer"));
        }
        if self.compat() & compat::HAS_JOURNAL != 0 {
            return Some("feature `has_journal`: this layer writes no journal (`tune2fs -O ^has_journal` takes it off)".to_owned());
        }
        if self.compat() & compat::ORPHAN_FILE != 0 {
            return Some("feature `orphan_file` is not written by this layer".to_owned());
        }
        if self.u32(0xe8) != 0 {
            return Some("it has a list of orphans; `e2fsck -p` ends them".to_owned());
        }
        if self.u16(0x3a) & 2 != 0 {
            return Some("errors were found on it; `e2fsck -p` repairs them".to_owned());
        }
        None
    }

    /// Names of the features whose bits are set, as far as they have names.
    pub(crate) fn features(&self) -> Vec<&'static str> {
        let sets = [
            (self.compat(), &COMPAT_NAMES[..]),
            (self.incompat(), &INCOMPAT_KNOWN_NAMES),
            (self.incompat(), &INCOMPAT_NAMES),
            (self.ro_compat(), &RO_COMPAT_KNOWN_NAMES),
            (self.ro_compat(), &RO_COMPAT_NAMES),
        ];
        sets.into_iter()
            .flat_map(|(bits, names)| names.iter().filter(move |(bit, _)| bits & bit != 0))
            .map(|(_, name)| *name)
            .collect()
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16_at(&self.raw, at)
    }
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32_at(&self.raw, at)
    }
    pub(crate) fn compat(&self) -> u32 {
        self.u32(0x5c)
    }
    pub(crate) fn incompat(&self) -> u32 {
        self.u32(0x60)
    }
    pub(crate) fn ro_compat(&self) -> u32 {
        self.u32(0x64)
    }
    pub(crate) fn state(&self) -> u16 {
        self.u16(0x3a)
    }
    pub(crate) fn uuid(&self) -> [u8; 16] {
        part(&self.raw, 0x68, 16).try_into().unwrap_or_default()
    }
    pub(crate) fn reserved_blocks(&self) -> u64 {
        u64::from(self.u32(0x8)) | u64::from(self.u32(0x154)) << 32
    }
    pub(crate) fn free_blocks(&self) -> u64 {
        u64::from(self.u32(0xc)) | u64::from(self.u32(0x158)) << 32
    }
    pub(crate) fn set_free(&mut self, blocks: u64, inodes: u32) {
        put_u32(&mut self.raw, 0xc, low32(blocks));
        if self.incompat() & incompat::BIT64 != 0 {
            put_u32(&mut self.raw, 0x158, low32(blocks >> 32));
        }
        put_u32(&mut self.raw, 0x10, inodes);
    }
    pub(crate) fn set_state(&mut self, state: u16) {
        put_u16(&mut self.raw, 0x3a, state);
    }
    pub(crate) fn set_write_time(&mut self, secs: u32) {
        put_u32(&mut self.raw, 0x30, secs);
    }
    /// Notes a mount.
    pub(crate) fn mounted(&mut self, secs: u32) {
        put_u32(&mut self.raw, 0x2c, secs);
        let count = self.u16(0x34);
        put_u16(&mut self.raw, 0x34, count.wrapping_add(1));
    }
    /// Turns the feature on that files of 2 GiB and more need.
    pub(crate) fn need_large_file(&mut self) {
        let ro = self.ro_compat() | ro_compat::LARGE_FILE;
        put_u32(&mut self.raw, 0x64, ro);
    }

    fn checksum(&self) -> u32 {
        crc(START, part(&self.raw, 0, 0x3fc))
    }
    /// Seals the bytes for the disk.
    pub(crate) fn seal(&mut self) {
        if self.ro_compat() & ro_compat::METADATA_CSUM != 0 {
            let sum = self.checksum();
            put_u32(&mut self.raw, 0x3fc, sum);
        }
    }
}

impl Geometry {
    /// Block in which the superblock lies, and where in it.
    pub(crate) fn super_place(&self) -> (u64, usize) {
        if self.block_size == 1024 {
            (1, 0)
        } else {
            (0, 1024)
        }
    }

    /// First block of a group.
    pub(crate) fn group_start(&self, group: u32) -> u64 {
        self.first_data + u64::from(group) * u64::from(self.blocks_per_group)
    }

    /// Blocks of a group; the last may be short.
    pub(crate) fn group_len(&self, group: u32) -> u32 {
        let left = self.blocks.saturating_sub(self.group_start(group));
        low32(left.min(u64::from(self.blocks_per_group)))
    }

    /// Group of a block and the block's place in it.
    #[inline]
    pub(crate) fn group_of(&self, block: u64) -> (u32, u32) {
        let at = block.saturating_sub(self.first_data);
        let per = u64::from(self.blocks_per_group);
        (low32(at / per), low32(at % per))
    }

    /// Whether `len` blocks from `start` on lie where data and tables may be.
    pub(crate) fn holds(&self, start: u64, len: u64) -> bool {
        start > self.first_data && start.checked_add(len).is_some_and(|end| end <= self.blocks)
    }

    /// Whether the group has a copy of the superblock and the descriptors.
    pub(crate) fn has_backup(&self, group: u32) -> bool {
        if !self.sparse || group <= 1 {
            return true;
        }
        [3, 5, 7].into_iter().any(|base| {
            let mut power = base;
            while power < group {
                match power.checked_mul(base) {
                    Some(next) => power = next,
                    None => return false,
                }
            }
            power == group
        })
    }

    /// Blocks at the start of the group that hold such copies.
    pub(crate) fn backup_len(&self, group: u32) -> u64 {
        if self.has_backup(group) {
            1 + self.gdt_blocks + self.reserved_gdt
        } else {
            0
        }
    }

    /// Blocks of one inode table.
    pub(crate) fn table_blocks(&self) -> u64 {
        (u64::from(self.inodes_per_group) * self.inode_size as u64).div_ceil(self.block_size as u64)
    }

    /// Block of the table of descriptors that holds a group's, and where in it.
    pub(crate) fn desc_place(&self, group: u32) -> (u64, usize) {
        let at = u64::from(group) * self.desc_size as u64;
        let bs = self.block_size as u64;
        (self.first_data + 1 + at / bs, us(at % bs))
    }

    /// Group of an inode and its number in it, for inode numbers from 1 on.
    #[inline]
    pub(crate) fn inode_group(&self, ino: u32) -> (u32, u32) {
        let n = ino.saturating_sub(1);
        (n / self.inodes_per_group, n % self.inodes_per_group)
    }

    /// Seed of the checksums of an inode's blocks.
    #[inline]
    pub(crate) fn inode_seed(&self, ino: u32, generation: u32) -> u32 {
        let both = u64::from(ino) | u64::from(generation) << 32;
        crc(self.seed, &both.to_le_bytes())
    }

    /// Largest file: the last legal logical block is 2^32 - 2.
    pub(crate) fn max_size(&self) -> u64 {
        (u64::from(u32::MAX)) << self.block_bits
    }

    /// Free blocks as the descriptors count them: at most the blocks of a group, which fit 16 bits or 32.
    pub(crate) fn low_count(n: u32) -> u16 {
        low16(u64::from(n))
    }
}
