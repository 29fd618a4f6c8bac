//! Directories: records, checks, looking names up, listing.

use cairn_buffer::BufferRef;
use cairn_extents::Status;
use cairn_flags::Probe;

use crate::crc::{changed, crc};
use crate::dirindex::Where;
use crate::error::{Error, Object, Result};
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::num::{low32, part, put_u8, put_u16, put_u32, u8_at, u16_at, u32_at};
use crate::superblock::Geometry;

/// Bytes of the record that holds a block's checksum.
pub(crate) const TAIL: usize = 12;
/// Type of that record.
const TAIL_TYPE: u8 = 0xde;
/// Most bytes whose change is worth a checksum of its own: two records with the longest names.
const LONGEST_CHANGE: usize = 544;
/// Longest name.
pub(crate) const MAX_NAME: usize = 255;

/// A record of a directory block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) at: usize,
    pub(crate) ino: u32,
    pub(crate) len: usize,
    pub(crate) name_len: usize,
    pub(crate) kind: u8,
}

impl Record {
    #[inline]
    pub(crate) fn load(bytes: &[u8], at: usize) -> Self {
        Self {
            at,
            ino: u32_at(bytes, at),
            len: usize::from(u16_at(bytes, at + 4)),
            name_len: usize::from(u8_at(bytes, at + 6)),
            kind: u8_at(bytes, at + 7),
        }
    }

    pub(crate) fn name<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        part(bytes, self.at + 8, self.name_len)
    }

    /// Bytes that it needs.
    pub(crate) const fn used(&self) -> usize {
        if self.ino == 0 {
            0
        } else {
            need(self.name_len)
        }
    }
}

/// Bytes that a record with a name of `len` bytes needs.
pub(crate) const fn need(len: usize) -> usize {
    (8 + len + 3) & !3
}

/// Writes a record.
pub(crate) fn store(bytes: &mut [u8], at: usize, ino: u32, len: usize, name: &[u8], kind: u8) {
    put_u32(bytes, at, ino);
    put_u16(bytes, at + 4, u16::try_from(len).unwrap_or(0));
    put_u8(bytes, at + 6, u8::try_from(name.len()).unwrap_or(0));
    put_u8(bytes, at + 7, kind);
    crate::num::put(bytes, at + 8, name);
}

/// Where records end in a block.
pub(crate) const fn records_end(geometry: &Geometry) -> usize {
    if geometry.checksums {
        geometry.block_size - TAIL
    } else {
        geometry.block_size
    }
}

/// Writes the tail with the checksum of a block of records.
#[inline]
pub(crate) fn seal(geometry: &Geometry, seed: u32, bytes: &mut [u8]) {
    if geometry.checksums {
        let at = geometry.block_size - TAIL;
        store(bytes, at, 0, TAIL, &[], TAIL_TYPE);
        let sum = crc(seed, part(bytes, 0, at));
        put_u32(bytes, at + 8, sum);
    }
}

/// Changes the bytes `from..to` of a block whose checksum is right, and the checksum with them.
#[inline]
pub(crate) fn change_sealed(
    geometry: &Geometry,
    seed: u32,
    bytes: &mut [u8],
    (from, to): (usize, usize),
    change: impl FnOnce(&mut [u8]),
) {
    let mut old = [0; LONGEST_CHANGE];
    let at = geometry.block_size - TAIL;
    let len = to.saturating_sub(from);
    if !geometry.checksums || len > LONGEST_CHANGE || to > at {
        change(bytes);
        seal(geometry, seed, bytes);
        return;
    }
    let old = crate::num::part_mut(&mut old, 0, len);
    old.copy_from_slice(part(bytes, from, len));
    change(bytes);
    match changed(u32_at(bytes, at + 8), old, part(bytes, from, len), at - to) {
        Some(sum) => put_u32(bytes, at + 8, sum),
        None => seal(geometry, seed, bytes),
    }
}

/// The records of a checked block in order, those without an inode included.
pub(crate) fn records(bytes: &[u8], end: usize) -> impl Iterator<Item = Record> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at + 8 > end {
            return None;
        }
        let record = Record::load(bytes, at);
        // A length of 0 cannot come out of a check; it would be the last in any case.
        at = if record.len == 0 {
            end
        } else {
            at + record.len
        };
        Some(record)
    })
}

/// The form of a block of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Records,
    /// Index of a hashed directory; the table of entries begins at this byte.
    Index(usize),
}

/// Tells which form a block of a directory has.
pub(crate) fn form(geometry: &Geometry, bytes: &[u8], hashed: bool, lblk: u32) -> Form {
    if hashed && lblk == 0 {
        Form::Index(0x20)
    } else if hashed
        && u32_at(bytes, 0) == 0
        && usize::from(u16_at(bytes, 4)) == geometry.block_size
    {
        Form::Index(8)
    } else {
        Form::Records
    }
}

/// Checks a block of a directory: the checksum, and that its records tile it.
pub(crate) fn check(
    geometry: &Geometry,
    seed: u32,
    bytes: &[u8],
    form: Form,
    ino: u32,
    lblk: u32,
) -> Result<()> {
    let wrong = |why: String| Err(Error::corrupt(Object::DirBlock { ino, lblk }, why));
    let size = geometry.block_size;
    let mut end = size;
    if geometry.checksums {
        let (found, right) = match form {
            Form::Records => {
                let at = size - TAIL;
                let tail = Record::load(bytes, at);
                if (tail.ino, tail.len, tail.name_len, tail.kind) != (0, TAIL, 0, TAIL_TYPE) {
                    return wrong("it has no room for its checksum at the end".to_owned());
                }
                end = at;
                (u32_at(bytes, at + 8), crc(seed, part(bytes, 0, at)))
            }
            Form::Index(table) => {
                let (limit, count) = (
                    usize::from(u16_at(bytes, table)),
                    usize::from(u16_at(bytes, table + 2)),
                );
                let tail = table + 8 * limit;
                if count > limit || tail + 8 > size {
                    return wrong(format!("index of {count} entries with room for {limit}"));
                }
                let sum = crc(seed, part(bytes, 0, table + 8 * count));
                let sum = crc(sum, part(bytes, tail, 4));
                (u32_at(bytes, tail + 4), crc(sum, &[0; 4]))
            }
        };
        if found != right {
            return wrong(format!(
                "checksum {found:#010x}, {right:#010x} would be right"
            ));
        }
    }
    let mut at = 0;
    while at < end {
        let record = Record::load(bytes, at);
        let least = 8.max(record.used());
        if record.len < least || !record.len.is_multiple_of(4) || at + record.len > end {
            return wrong(format!("record at byte {at} of length {}", record.len));
        }
        if record.ino > geometry.inodes {
            return wrong(format!(
                "record at byte {at} names inode {} of {}",
                record.ino, geometry.inodes
            ));
        }
        let name = record.name(bytes);
        if record.ino != 0 && (name.is_empty() || name.contains(&b'/') || name.contains(&0)) {
            return wrong(format!("record at byte {at} with a name that cannot be"));
        }
        at += record.len;
    }
    Ok(())
}

/// Where a name was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) ino: u32,
    pub(crate) kind: u8,
    pub(crate) lblk: u32,
    pub(crate) at: usize,
}

/// Searches a block for a name.
#[inline]
pub(crate) fn search(bytes: &[u8], end: usize, name: &[u8]) -> Option<Record> {
    records(bytes, end).find(|r| r.ino != 0 && r.name_len == name.len() && r.name(bytes) == name)
}

impl<P: Probe> Ext4<P> {
    /// Blocks of a directory.
    pub(crate) fn dir_blocks(&self, dir: &Inode<P>) -> u32 {
        low32(dir.size() >> self.geo.block_bits)
    }

    /// A block of a directory: one look-up of its place, one of its buffer.
    #[inline]
    pub(crate) fn dir_block(&self, dir: &Inode<P>, lblk: u32) -> Result<BufferRef<'_, P>> {
        let extent = self.look_up(dir, lblk)?;
        let Status::Written(start) = extent.status else {
            return Err(Error::corrupt(
                Object::DirBlock { ino: dir.ino, lblk },
                "it is a hole",
            ));
        };
        let buffer = self.cache.get(start + u64::from(lblk - extent.lblk))?;
        if !buffer.state().verified() {
            let hashed = dir.hashed();
            buffer.read(|b| {
                let form = form(&self.geo, b, hashed, lblk);
                check(&self.geo, dir.seed, b, form, dir.ino, lblk)
            })??;
            buffer.state().set_verified();
        }
        Ok(buffer)
    }

    /// Searches a directory for a name. The caller holds its lock.
    pub(crate) fn dir_find(&self, dir: &Inode<P>, name: &[u8]) -> Result<Option<Found>> {
        Ok(self.dir_find_in(dir, name)?.map(|(found, _)| found))
    }

    /// As [`dir_find`](Self::dir_find), with the buffer in which the name stands.
    pub(crate) fn dir_find_in(
        &self,
        dir: &Inode<P>,
        name: &[u8],
    ) -> Result<Option<(Found, BufferRef<'_, P>)>> {
        let end = records_end(&self.geo);
        let range = match self.dir_where(dir, name)? {
            Where::Nowhere => return Ok(None),
            Where::Block(lblk) => lblk..lblk + 1,
            Where::Anywhere => 0..self.dir_blocks(dir),
        };
        for lblk in range {
            let buffer = self.dir_block(dir, lblk)?;
            if let Some(record) = buffer.read(|b| search(b, end, name))? {
                let found = Found {
                    ino: record.ino,
                    kind: record.kind,
                    lblk,
                    at: record.at,
                };
                return Ok(Some((found, buffer)));
            }
        }
        Ok(None)
    }

    /// Calls `each` with name, inode and type of every entry. The caller holds the directory's lock.
    pub(crate) fn dir_each(
        &self,
        dir: &Inode<P>,
        mut each: impl FnMut(&[u8], u32, u8) -> Result<()>,
    ) -> Result<()> {
        let end = records_end(&self.geo);
        for lblk in 0..self.dir_blocks(dir) {
            self.dir_block(dir, lblk)?.read(|b| {
                records(b, end)
                    .filter(|r| r.ino != 0)
                    .try_for_each(|r| each(r.name(b), r.ino, r.kind))
            })??;
        }
        Ok(())
    }
}
