//! Entering names into directories and taking them out.

use std::sync::atomic::Ordering;

use cairn_buffer::BufferRef;
use cairn_extents::Status;
use cairn_flags::Probe;

use crate::dir::{self, Found, Record, form, records, records_end};
use crate::dirindex::index_remove;
use crate::error::{Error, Object, Result};
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::Run;
use crate::num::{put_u8, put_u16, put_u32};
use crate::raw::{INDEX_FL, Raw, Time, Which};
use crate::space::For;
use crate::superblock::Geometry;

/// The first record with room for a name behind its own.
#[inline]
fn room(bytes: &[u8], end: usize, need: usize) -> Option<Record> {
    records(bytes, end).find(|r| r.len - r.used().min(r.len) >= need)
}

/// Writes a record for the name into the room behind another.
#[inline]
fn insert(
    geo: &Geometry,
    seed: u32,
    bytes: &mut [u8],
    record: Record,
    (name, ino, kind): (&[u8], u32, u8),
) {
    let kind = if geo.filetype { kind } else { 0 };
    let used = record.used();
    let range = (record.at, record.at + used + dir::need(name.len()));
    dir::change_sealed(geo, seed, bytes, range, |bytes| {
        if used > 0 {
            put_u16(bytes, record.at + 4, u16::try_from(used).unwrap_or(0));
        }
        dir::store(bytes, record.at + used, ino, record.len - used, name, kind);
    });
}

/// Takes the record at `at` out: the one before grows over it, or it becomes an empty one.
fn remove(geo: &Geometry, seed: u32, bytes: &mut [u8], at: usize) {
    let gone = Record::load(bytes, at);
    let before = records(bytes, records_end(geo))
        .take_while(|r| r.at < at)
        .last();
    let from = before.map_or(at, |before| before.at);
    dir::change_sealed(geo, seed, bytes, (from, at + 4), |bytes| {
        put_u32(bytes, at, 0);
        if let Some(before) = before {
            let len = u16::try_from(before.len + gone.len).unwrap_or(0);
            put_u16(bytes, before.at + 4, len);
        }
    });
}

impl<P: Probe> Ext4<P> {
    /// Enters a name. The caller holds the directory's lock alone and knows that the name is not there.
    pub(crate) fn dir_insert(&self, dir: &Inode<P>, name: &[u8], ino: u32, kind: u8) -> Result<()> {
        if dir.hashed() {
            self.unhash(dir)?;
        }
        let blocks = self.dir_blocks(dir);
        let first = dir
            .room
            .load(Ordering::Relaxed)
            .min(blocks.saturating_sub(1));
        for lblk in first..blocks {
            let buffer = self.dir_block(dir, lblk)?;
            if self.insert_into(&buffer, dir, name, ino, kind)? {
                dir.room.store(lblk, Ordering::Relaxed);
                self.index_insert(dir, name, lblk);
                return Ok(());
            }
        }
        let buffer = self.grow_dir(dir)?;
        dir.room.store(blocks, Ordering::Relaxed);
        self.insert_into(&buffer, dir, name, ino, kind)?;
        self.index_insert(dir, name, blocks);
        Ok(())
    }

    fn insert_into(
        &self,
        buffer: &BufferRef<'_, P>,
        dir: &Inode<P>,
        name: &[u8],
        ino: u32,
        kind: u8,
    ) -> Result<bool> {
        // Looked for before it is changed: a full block is not made dirty.
        let (need, end) = (dir::need(name.len()), records_end(&self.geo));
        let done = buffer.write_if(
            |b| room(b, end, need),
            |b, record| insert(&self.geo, dir.seed, b, record, (name, ino, kind)),
        )?;
        Ok(done.is_some())
    }

    /// Takes out a name that was found. The caller holds the directory's lock alone since.
    pub(crate) fn dir_remove(
        &self,
        dir: &Inode<P>,
        found: &Found,
        buffer: &BufferRef<'_, P>,
    ) -> Result<()> {
        let name = buffer.write(|b| {
            let name = dir.has_index().then(|| {
                let record = Record::load(b, found.at);
                self.hash(record.name(b))
            });
            remove(&self.geo, dir.seed, b, found.at);
            name
        })?;
        if let Some(hash) = name {
            index_remove(dir, hash, found.lblk);
        }
        if found.lblk < dir.room.load(Ordering::Relaxed) {
            dir.room.store(found.lblk, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets a name that was found stand for another inode.
    pub(crate) fn dir_redirect(
        &self,
        dir: &Inode<P>,
        found: &Found,
        buffer: &BufferRef<'_, P>,
        ino: u32,
        kind: u8,
    ) -> Result<()> {
        if found.lblk == 0 && dir.hashed() {
            // `..` stands in the root of the index.
            self.unhash(dir)?;
        }
        buffer.write(|b| {
            put_u32(b, found.at, ino);
            put_u8(b, found.at + 7, if self.geo.filetype { kind } else { 0 });
            dir::seal(&self.geo, dir.seed, b);
        })?;
        Ok(())
    }

    /// Adds an empty block to a directory.
    pub(crate) fn grow_dir(&self, dir: &Inode<P>) -> Result<BufferRef<'_, P>> {
        let lblk = self.dir_blocks(dir);
        let mut raw = dir.body_mut();
        let (start, buffer) = self.metadata_block(dir.ino)?;
        let filled = buffer.write(|b| {
            b.fill(0);
            let end = records_end(&self.geo);
            dir::store(b, 0, 0, end, &[], 0);
            dir::seal(&self.geo, dir.seed, b);
        });
        buffer.state().set_verified();
        let run = Run {
            lblk,
            len: 1,
            start,
            unwritten: false,
        };
        let mapped = match filled {
            Ok(()) => self.replace(dir, &mut raw, lblk, lblk + 1, Some(run)),
            Err(e) => Err(e.into()),
        };
        if let Err(e) = mapped {
            // The error that matters is the first.
            let _ = self.give_metadata(start);
            return Err(e);
        }
        self.add_sectors(&mut raw, 1);
        let size = raw.size() + self.geo.block_size as u64;
        raw.set_size(size);
        dir.size.store(size, Ordering::Release);
        // What the cache cannot keep it reads again.
        let _ = dir.es.insert(lblk, 1, Status::Written(start));
        self.write_inode(dir, &mut raw);
        Ok(buffer)
    }

    /// A block for metadata of an inode, and its buffer.
    pub(crate) fn metadata_block(&self, ino: u32) -> Result<(u64, BufferRef<'_, P>)> {
        self.space.claim(1, For::Data)?;
        let (start, _) = self
            .take_blocks(self.home(ino), 1)
            .inspect_err(|_| self.space.unclaim(1))?;
        match self.cache.get_new(start) {
            Ok(buffer) => Ok((start, buffer)),
            Err(e) => {
                self.give_blocks(start, 1)?;
                Err(e.into())
            }
        }
    }

    /// Turns a hashed directory into a linear one: its index blocks become blocks of records.
    ///
    /// Leaves are blocks of records already. The index has `.` and `..` in its root and one empty record in
    /// its other blocks; what lies behind them goes.
    fn unhash(&self, dir: &Inode<P>) -> Result<()> {
        let end = records_end(&self.geo);
        let mut index = Vec::new();
        for lblk in 0..self.dir_blocks(dir) {
            let buffer = self.dir_block(dir, lblk)?;
            if buffer.read(|b| form(&self.geo, b, true, lblk))? != dir::Form::Records {
                index.push((lblk, buffer));
            }
        }
        for (lblk, buffer) in index {
            buffer.write(|b| {
                let (keep, last) = if lblk == 0 { (24, 12) } else { (8, 0) };
                if let Some(rest) = b.get_mut(keep..) {
                    rest.fill(0);
                }
                put_u16(b, last + 4, u16::try_from(end - last).unwrap_or(0));
                dir::seal(&self.geo, dir.seed, b);
            })?;
        }
        let mut raw = dir.body_mut();
        let flags = raw.flags() & !INDEX_FL;
        raw.set_flags(flags);
        dir.set_hashed(false);
        self.write_inode(dir, &mut raw);
        Ok(())
    }

    /// Notes a change of a directory's names, and what else `change` does to its inode.
    pub(crate) fn touch_dir(&self, dir: &Inode<P>, now: Time, change: impl FnOnce(&mut Raw)) {
        let mut raw = dir.body_mut();
        raw.set_time(Which::Modify, now);
        raw.set_time(Which::Change, now);
        change(&mut raw);
        self.write_inode(dir, &mut raw);
    }

    /// Whether a directory has no names but `.` and `..`. The caller holds its lock.
    pub(crate) fn dir_is_empty(&self, dir: &Inode<P>) -> Result<bool> {
        let mut empty = true;
        self.dir_each(dir, |name, _, _| {
            empty &= name == b"." || name == b"..";
            Ok(())
        })?;
        Ok(empty)
    }

    /// Where `..` leads. The caller holds the directory's lock.
    pub(crate) fn dir_parent(&self, dir: &Inode<P>) -> Result<(Found, BufferRef<'_, P>)> {
        self.dir_find_in(dir, b"..")?.ok_or_else(|| {
            Error::corrupt(
                Object::DirBlock {
                    ino: dir.ino,
                    lblk: 0,
                },
                "it has no `..`",
            )
        })
    }
}
