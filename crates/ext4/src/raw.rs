//! An inode as it is on disk.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::crc::crc;
use crate::num::{low16, low32, part, part_mut, put_u16, put_u32, u16_at, u32_at};
use crate::superblock::Geometry;

/// Longest inode this layer takes.
pub(crate) const LONGEST: usize = 256;
/// Bytes of the field that holds the root of the extent tree.
pub(crate) const ROOT_LEN: usize = 60;
const ROOT_AT: usize = 0x28;
/// Bytes of the fields after the first 128 that this layer writes.
const EXTRA: u16 = 32;

/// Flag: the blocks are mapped by extents.
pub(crate) const EXTENTS_FL: u32 = 0x8_0000;
/// Flag: the directory is hashed.
pub(crate) const INDEX_FL: u32 = 0x1000;
/// Flag: the number of blocks is in blocks, not in sectors.
const HUGE_FL: u32 = 0x4_0000;

/// Kinds of inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, pipe or socket, by the type bits of its mode.
    Other(u16),
}

impl FileType {
    /// From the mode of an inode.
    pub(crate) const fn of_mode(mode: u16) -> Option<Self> {
        match mode & 0xf000 {
            0x8000 => Some(Self::Regular),
            0x4000 => Some(Self::Directory),
            0xa000 => Some(Self::Symlink),
            0x1000 | 0x2000 | 0x6000 | 0xc000 => Some(Self::Other(mode & 0xf000)),
            _ => None,
        }
    }

    /// The bits of a mode.
    pub(crate) const fn mode(self) -> u16 {
        match self {
            Self::Regular => 0x8000,
            Self::Directory => 0x4000,
            Self::Symlink => 0xa000,
            Self::Other(mode) => mode,
        }
    }

    /// The number that directory records have for it.
    pub(crate) const fn entry(self) -> u8 {
        match self {
            Self::Regular => 1,
            Self::Directory => 2,
            Self::Symlink => 7,
            Self::Other(mode) => match mode {
                0x2000 => 3,
                0x6000 => 4,
                0x1000 => 5,
                _ => 6,
            },
        }
    }
}

/// The bytes of an inode.
#[derive(Clone)]
pub(crate) struct Raw {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Raw {
    /// An inode of zeros.
    pub(crate) const fn zeroed(geometry: &Geometry) -> Self {
        Self {
            bytes: [0; LONGEST],
            len: geometry.inode_size,
        }
    }

    /// A new inode.
    pub(crate) fn new(
        geometry: &Geometry,
        kind: FileType,
        permissions: u16,
        generation: u32,
        now: Time,
    ) -> Self {
        let mut raw = Self::zeroed(geometry);
        raw.set16(0, kind.mode() | permissions & 0o7777);
        raw.set32(0x64, generation);
        if geometry.inode_size > 128 {
            raw.set16(0x80, EXTRA);
        }
        raw.set_time(Which::Access, now);
        raw.set_time(Which::Change, now);
        raw.set_time(Which::Modify, now);
        raw.set_time(Which::Create, now);
        raw
    }

    /// From a block of an inode table.
    pub(crate) fn load(geometry: &Geometry, bytes: &[u8], at: usize) -> Self {
        let mut raw = Self::zeroed(geometry);
        let from = part(bytes, at, raw.len);
        part_mut(&mut raw.bytes, 0, from.len()).copy_from_slice(from);
        raw
    }

    /// Into a block of an inode table, with its checksum.
    #[inline]
    pub(crate) fn store(&mut self, geometry: &Geometry, seed: u32, bytes: &mut [u8], at: usize) {
        if geometry.checksums {
            self.set16(0x7c, 0);
            if self.has_high_sum() {
                self.set16(0x82, 0);
            }
            let sum = crc(seed, part(&self.bytes, 0, self.len));
            self.set16(0x7c, low16(u64::from(sum)));
            if self.has_high_sum() {
                self.set16(0x82, low16(u64::from(sum >> 16)));
            }
        }
        let to = part_mut(bytes, at, self.len);
        to.copy_from_slice(part(&self.bytes, 0, to.len()));
    }

    /// Whether the checksum in it is right.
    pub(crate) fn intact(&self, geometry: &Geometry, seed: u32) -> bool {
        if !geometry.checksums {
            return true;
        }
        let sum = self.checksum(seed);
        if self.has_high_sum() {
            sum == u32::from(self.u16(0x7c)) | u32::from(self.u16(0x82)) << 16
        } else {
            low16(u64::from(sum)) == self.u16(0x7c)
        }
    }

    /// Whether every byte is zero, as in inodes that were never used.
    pub(crate) fn is_blank(&self) -> bool {
        self.bytes.iter().all(|b| *b == 0)
    }

    fn has_high_sum(&self) -> bool {
        self.len > 128 && self.u16(0x80) >= 4
    }

    fn checksum(&self, seed: u32) -> u32 {
        // In one pass over a copy: five short ones take longer.
        let mut bytes = self.bytes;
        put_u16(&mut bytes, 0x7c, 0);
        if self.has_high_sum() {
            put_u16(&mut bytes, 0x82, 0);
        }
        crc(seed, part(&bytes, 0, self.len))
    }

    fn u16(&self, at: usize) -> u16 {
        u16_at(&self.bytes, at)
    }
    fn u32(&self, at: usize) -> u32 {
        u32_at(&self.bytes, at)
    }
    fn set16(&mut self, at: usize, value: u16) {
        put_u16(&mut self.bytes, at, value);
    }
    fn set32(&mut self, at: usize, value: u32) {
        put_u32(&mut self.bytes, at, value);
    }

    pub(crate) fn mode(&self) -> u16 {
        self.u16(0)
    }
    pub(crate) fn kind(&self) -> Option<FileType> {
        FileType::of_mode(self.mode())
    }
    pub(crate) fn uid(&self) -> u32 {
        u32::from(self.u16(2)) | u32::from(self.u16(0x78)) << 16
    }
    pub(crate) fn gid(&self) -> u32 {
        u32::from(self.u16(0x18)) | u32::from(self.u16(0x7a)) << 16
    }
    pub(crate) fn size(&self) -> u64 {
        u64::from(self.u32(4)) | u64::from(self.u32(0x6c)) << 32
    }
    pub(crate) fn set_size(&mut self, size: u64) {
        self.set32(4, low32(size));
        self.set32(0x6c, low32(size >> 32));
    }
    pub(crate) fn links(&self) -> u16 {
        self.u16(0x1a)
    }
    pub(crate) fn set_links(&mut self, links: u16) {
        self.set16(0x1a, links);
    }
    /// Sectors of 512 bytes, blocks of the extent tree included.
    pub(crate) fn sectors(&self, geometry: &Geometry) -> u64 {
        let n = u64::from(self.u32(0x1c)) | u64::from(self.u16(0x74)) << 32;
        if self.flags() & HUGE_FL != 0 {
            n << (geometry.block_bits - 9)
        } else {
            n
        }
    }
    pub(crate) fn set_sectors(&mut self, sectors: u64) {
        self.set32(0x1c, low32(sectors));
        self.set16(0x74, low16(sectors >> 32));
        let flags = self.flags() & !HUGE_FL;
        self.set_flags(flags);
    }
    pub(crate) fn flags(&self) -> u32 {
        self.u32(0x20)
    }
    pub(crate) fn set_flags(&mut self, flags: u32) {
        self.set32(0x20, flags);
    }
    pub(crate) fn generation(&self) -> u32 {
        self.u32(0x64)
    }
    pub(crate) fn has_attribute_block(&self) -> bool {
        self.u32(0x68) != 0 || self.u16(0x76) != 0
    }
    pub(crate) fn attribute_block(&self) -> u64 {
        u64::from(self.u32(0x68)) | u64::from(self.u16(0x76)) << 32
    }
    pub(crate) fn dtime(&self) -> u32 {
        self.u32(0x14)
    }
    pub(crate) fn set_dtime(&mut self, secs: u32) {
        self.set32(0x14, secs);
    }
    pub(crate) fn root(&self) -> &[u8] {
        part(&self.bytes, ROOT_AT, ROOT_LEN)
    }
    pub(crate) fn root_mut(&mut self) -> &mut [u8] {
        part_mut(&mut self.bytes, ROOT_AT, ROOT_LEN)
    }

    pub(crate) fn time(&self, which: Which) -> Time {
        let (at, extra) = which.places();
        let long = self.len > 128 && usize::from(self.u16(0x80)) + 128 >= extra + 4;
        let more = if long { self.u32(extra) } else { 0 };
        // 32 signed bits, then two bits of epoch, then 30 of nanoseconds.
        let low = i64::from(self.u32(at).cast_signed());
        Time {
            secs: low + (i64::from(more & 3) << 32),
            nanos: more >> 2,
        }
    }

    pub(crate) fn set_time(&mut self, which: Which, time: Time) {
        let (at, extra) = which.places();
        let low = low32(time.secs.cast_unsigned());
        if which != Which::Create || self.len > 128 {
            self.set32(at, low);
        }
        if self.len > 128 && usize::from(self.u16(0x80)) + 128 >= extra + 4 {
            let epoch = (time.secs - i64::from(low.cast_signed())) >> 32;
            let epoch = low32(epoch.cast_unsigned()) & 3;
            self.set32(extra, time.nanos << 2 | epoch);
        }
    }
}

/// Which time of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Access,
    Change,
    Modify,
    Create,
}

impl Which {
    const fn places(self) -> (usize, usize) {
        match self {
            Self::Access => (0x8, 0x8c),
            Self::Change => (0xc, 0x84),
            Self::Modify => (0x10, 0x88),
            Self::Create => (0x90, 0x94),
        }
    }
}

/// A time as inodes keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since 1970.
    pub secs: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

impl Time {
    /// The clock's time.
    #[inline]
    pub(crate) fn now() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
            secs: i64::try_from(since.as_secs()).unwrap_or(0),
            nanos: since.subsec_nanos(),
        }
    }

    /// The seconds as the fields of 32 bits have them.
    pub(crate) const fn secs32(self) -> u32 {
        low32(self.secs.cast_unsigned())
    }
}
