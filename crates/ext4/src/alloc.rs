//! Taking and giving back blocks and inodes: bitmaps, and the descriptors of their groups.
//!
//! A group's lock guards its descriptor and both bitmaps. What fails before the bitmap was changed
//! changes nothing. A descriptor that cannot be stored afterwards is right in memory, and the next sync
//! stores it.

use cairn_buffer::BufferRef;
use cairn_flags::Probe;

use crate::bitmap;
use crate::error::{Error, Object, Result};
use crate::fs::Ext4;
use crate::group::{self, BLOCK_UNINIT, Desc, Group, INODE_UNINIT};
use crate::num::{low32, us};
use crate::superblock::Geometry;

/// Runs at least this long are looked for in all groups before shorter ones are taken.
const GOOD_RUN: u32 = 64;

impl<P: Probe> Ext4<P> {
    fn group(&self, number: u32) -> Result<&Group> {
        self.groups
            .get(us(number))
            .ok_or_else(|| Error::corrupt(Object::Group(number), "there is no such group"))
    }

    /// Stores a descriptor, or notes that this is still to be done.
    pub(crate) fn store_desc(&self, number: u32, group: &Group, desc: &mut Desc) {
        let (_, at) = self.geo.desc_place(number);
        let stored = self
            .cache
            .again(group.table_block)
            .and_then(|b| b.write(|bytes| group::store(&self.geo, number, desc, bytes, at)));
        desc.stale = stored.is_err();
    }

    /// Stores what could not be stored before.
    pub(crate) fn store_stale_descs(&self) -> Result<()> {
        for (number, group) in (0..).zip(self.groups.iter()) {
            let mut desc = group.lock();
            if desc.stale {
                self.store_desc(number, group, &mut desc);
                if desc.stale {
                    // Once more, for the error.
                    self.cache.again(group.table_block)?;
                }
            }
        }
        Ok(())
    }

    /// The block bitmap of a locked group, made if it never was, and checked.
    pub(crate) fn block_bitmap(
        &self,
        number: u32,
        group: &Group,
        desc: &mut Desc,
    ) -> Result<BufferRef<'_, P>> {
        let geo = &self.geo;
        if desc.flags & BLOCK_UNINIT != 0 {
            let buffer = self.cache.get_new(group.places.block_bitmap)?;
            desc.block_sum = buffer.write(|b| {
                self.make_block_bitmap(number, b);
                group::bitmap_sum(geo, b, geo.blocks_per_group)
            })?;
            buffer.state().set_verified();
            desc.flags &= !BLOCK_UNINIT;
            self.store_desc(number, group, desc);
            return Ok(buffer);
        }
        let buffer = self.cache.get(group.places.block_bitmap)?;
        if !buffer.state().verified() {
            let wrong = |why: &str| Err(Error::corrupt(Object::BlockBitmap(number), why));
            let (sum, own) = buffer.read(|b| {
                (
                    group::bitmap_sum(geo, b, geo.blocks_per_group),
                    self.marks_own_tables(number, group, b),
                )
            })?;
            if geo.checksums && sum != desc.block_sum {
                return wrong("its checksum is wrong");
            }
            if !own {
                return wrong("tables of the group are marked as free");
            }
            buffer.state().set_verified();
        }
        Ok(buffer)
    }

    /// Whether the group's own bitmaps and table are marked as used, where they lie in the group.
    fn marks_own_tables(&self, number: u32, group: &Group, bytes: &[u8]) -> bool {
        let places = &group.places;
        let used = |block: u64| {
            let (g, bit) = self.geo.group_of(block);
            g != number || bitmap::test(bytes, bit)
        };
        used(places.block_bitmap)
            && used(places.inode_bitmap)
            && (places.table..places.table + self.geo.table_blocks()).all(used)
    }

    /// What the block bitmap of a group is before anything was allocated in it.
    pub(crate) fn make_block_bitmap(&self, number: u32, bytes: &mut [u8]) {
        let places: Vec<_> = self.groups.iter().map(|g| g.places).collect();
        fill_block_bitmap(&self.geo, &places, number, bytes);
    }

    /// The inode bitmap of a locked group, made if it never was, and checked.
    fn inode_bitmap(
        &self,
        number: u32,
        group: &Group,
        desc: &mut Desc,
    ) -> Result<BufferRef<'_, P>> {
        let geo = &self.geo;
        if desc.flags & INODE_UNINIT != 0 {
            let buffer = self.cache.get_new(group.places.inode_bitmap)?;
            desc.inode_sum = buffer.write(|b| {
                b.fill(0);
                bitmap::set_range(b, geo.inodes_per_group, low32(8 * b.len() as u64));
                group::bitmap_sum(geo, b, geo.inodes_per_group)
            })?;
            buffer.state().set_verified();
            desc.flags &= !INODE_UNINIT;
            // A group whose inodes are in use has its block bitmap too.
            self.block_bitmap(number, group, desc)?;
            return Ok(buffer);
        }
        let buffer = self.cache.get(group.places.inode_bitmap)?;
        if !buffer.state().verified() {
            let sum = buffer.read(|b| group::bitmap_sum(geo, b, geo.inodes_per_group))?;
            if geo.checksums && sum != desc.inode_sum {
                return Err(Error::corrupt(
                    Object::InodeBitmap(number),
                    "its checksum is wrong",
                ));
            }
            buffer.state().set_verified();
        }
        Ok(buffer)
    }

    /// Takes up to `want` adjacent blocks near `goal`. The caller has claimed at least `want`.
    ///
    /// # Errors
    /// A bitmap that cannot be read or is damaged; no block although one was claimed, which is damage.
    pub(crate) fn take_blocks(&self, goal: u64, want: u32) -> Result<(u64, u32)> {
        let first = if self.geo.holds(goal, 1) {
            goal
        } else {
            self.geo.first_data + 1
        };
        let (home, goal_bit) = self.geo.group_of(first);
        // First a good run in a group that nobody else works in, then in any group, then whatever there is.
        for (good, wait) in [(true, false), (true, true), (false, true)] {
            for step in 0..self.geo.groups {
                let number = (home + step) % self.geo.groups;
                let group = self.group(number)?;
                let desc = if wait {
                    Some(group.lock())
                } else {
                    group.try_lock()
                };
                let Some(mut desc) = desc else { continue };
                let least = if good { want.min(GOOD_RUN) } else { 1 };
                if desc.free_blocks < least {
                    continue;
                }
                let from = if step == 0 { goal_bit } else { desc.next_block };
                if let Some(found) = self.take_in(number, group, &mut desc, (from, want, least))? {
                    return Ok(found);
                }
            }
        }
        Err(Error::NoSpace {
            asked: u64::from(want),
            free: self.space.free_blocks(),
        })
    }

    fn take_in(
        &self,
        number: u32,
        group: &Group,
        desc: &mut Desc,
        (from, want, least): (u32, u32, u32),
    ) -> Result<Option<(u64, u32)>> {
        let len = self.geo.group_len(number);
        let buffer = self.block_bitmap(number, group, desc)?;
        let found = buffer.read(|b| bitmap::find_run(b, from, len, want))?;
        let Some((bit, n)) = found.filter(|(_, n)| *n >= least) else {
            return Ok(None);
        };
        desc.block_sum = buffer.write(|b| {
            bitmap::set_range(b, bit, bit + n);
            group::bitmap_sum(&self.geo, b, self.geo.blocks_per_group)
        })?;
        desc.free_blocks = desc.free_blocks.saturating_sub(n);
        desc.next_block = bit + n;
        self.store_desc(number, group, desc);
        self.space.allocated(u64::from(n));
        Ok(Some((self.geo.group_start(number) + u64::from(bit), n)))
    }

    /// Gives blocks back.
    ///
    /// # Errors
    /// A bitmap that cannot be read, or that says they are free already.
    pub(crate) fn give_blocks(&self, start: u64, len: u64) -> Result<()> {
        let (mut at, end) = (start, start.saturating_add(len));
        while at < end {
            let (number, bit) = self.geo.group_of(at);
            let group = self.group(number)?;
            let n =
                low32((end - at).min(u64::from(self.geo.group_len(number).saturating_sub(bit))));
            if n == 0 {
                return Err(Error::corrupt(
                    Object::Group(number),
                    format!("block {at} is past the end"),
                ));
            }
            let mut desc = group.lock();
            let buffer = self.block_bitmap(number, group, &mut desc)?;
            if let Some(free) = buffer.read(|b| bitmap::next_clear(b, bit, bit + n))? {
                return Err(Error::corrupt(
                    Object::BlockBitmap(number),
                    format!(
                        "block {} is to be freed and is free",
                        self.geo.group_start(number) + u64::from(free)
                    ),
                ));
            }
            desc.block_sum = buffer.write(|b| {
                bitmap::clear_range(b, bit, bit + n);
                group::bitmap_sum(&self.geo, b, self.geo.blocks_per_group)
            })?;
            desc.free_blocks += n;
            self.store_desc(number, group, &mut desc);
            drop(desc);
            self.space.freed(u64::from(n));
            at += u64::from(n);
        }
        Ok(())
    }

    /// Gives a block of metadata back; its buffer is not written any more.
    pub(crate) fn give_metadata(&self, block: u64) -> Result<()> {
        {
            let buffer = self.cache.get(block)?;
            // A write that is under way must not land on the block's next content.
            let _io = buffer.state().lock();
            buffer.forget();
        }
        self.give_blocks(block, 1)
    }

    /// Takes an inode, in the parent's group if that has one.
    ///
    /// # Errors
    /// None is free, or a bitmap cannot be read or is damaged.
    pub(crate) fn take_inode(&self, parent: u32, dir: bool) -> Result<u32> {
        self.space.blow()?;
        let home = self.home_group(parent, dir);
        for step in 0..self.geo.groups {
            let number = (home + step) % self.geo.groups;
            let group = self.group(number)?;
            let mut desc = group.lock();
            if desc.free_inodes == 0 {
                continue;
            }
            if let Some(ino) = self.take_inode_in(number, group, &mut desc, dir)? {
                return Ok(ino);
            }
        }
        Err(Error::NoInodes {
            inodes: self.geo.inodes,
        })
    }

    fn take_inode_in(
        &self,
        number: u32,
        group: &Group,
        desc: &mut Desc,
        dir: bool,
    ) -> Result<Option<u32>> {
        let per = self.geo.inodes_per_group;
        let buffer = self.inode_bitmap(number, group, desc)?;
        let least = if number == 0 {
            self.geo.first_ino - 1
        } else {
            0
        };
        let from = desc.first_free.max(least);
        let Some(bit) = buffer.read(|b| bitmap::next_clear(b, from, per))? else {
            return Ok(None);
        };
        let ino = number * per + bit + 1;
        // The block of the table is had before anything changes: what cannot be read is not taken.
        if let Some((block, _)) = self.inode_place(ino) {
            self.cache.get(block)?;
        }
        let sum = desc.inode_sum;
        desc.inode_sum = buffer.write(|b| {
            bitmap::set(b, bit);
            group::bitmap_sum_flipped(&self.geo, sum, b, bit, per)
        })?;
        desc.first_free = bit + 1;
        desc.free_inodes = desc.free_inodes.saturating_sub(1);
        desc.unused = desc.unused.min(per - bit - 1);
        if dir {
            desc.used_dirs += 1;
        }
        self.store_desc(number, group, desc);
        self.space.inode_taken(dir);
        Ok(Some(ino))
    }

    /// Gives an inode back. Its bytes were cleared before.
    pub(crate) fn give_inode(&self, ino: u32, dir: bool) -> Result<()> {
        let (number, bit) = self.geo.inode_group(ino);
        let group = self.group(number)?;
        let mut desc = group.lock();
        let buffer = self.inode_bitmap(number, group, &mut desc)?;
        let sum = desc.inode_sum;
        let cleared = buffer.write_if(
            |b| bitmap::test(b, bit).then_some(()),
            |b, ()| {
                bitmap::clear(b, bit);
                group::bitmap_sum_flipped(&self.geo, sum, b, bit, self.geo.inodes_per_group)
            },
        )?;
        let Some(sum) = cleared else {
            return Err(Error::corrupt(
                Object::InodeBitmap(number),
                format!("inode {ino} is to be freed and is free"),
            ));
        };
        desc.inode_sum = sum;
        desc.first_free = desc.first_free.min(bit);
        desc.free_inodes += 1;
        if dir {
            desc.used_dirs = desc.used_dirs.saturating_sub(1);
        }
        self.store_desc(number, group, &mut desc);
        drop(desc);
        self.space.inode_freed(dir);
        Ok(())
    }

    /// Group in which a new inode is looked for first: files go with their directory; directories of
    /// the root are spread over groups that have more free than the mean.
    fn home_group(&self, parent: u32, dir: bool) -> u32 {
        let (own, _) = self.geo.inode_group(parent);
        if !dir || parent != crate::fs::ROOT_INO || self.geo.groups == 1 {
            return own;
        }
        let (inodes, blocks) = self.space.roughly();
        let groups = u64::from(self.geo.groups);
        let start = fastrand::u32(..self.geo.groups);
        let mut best: Option<(u32, u32)> = None;
        for step in 0..self.geo.groups {
            let number = (start + step) % self.geo.groups;
            let Ok(group) = self.group(number) else {
                continue;
            };
            let Some(desc) = group.try_lock() else {
                continue;
            };
            let enough = u64::from(desc.free_inodes) >= inodes / groups
                && u64::from(desc.free_blocks) >= blocks / groups;
            if enough && desc.free_inodes > 0 && best.is_none_or(|(_, dirs)| desc.used_dirs < dirs)
            {
                best = Some((number, desc.used_dirs));
            }
        }
        best.map_or(own, |(number, _)| number)
    }
}

/// Writes the block bitmap that a group has when nothing is allocated in it but what the format needs.
pub(crate) fn fill_block_bitmap(
    geo: &Geometry,
    places: &[group::Places],
    number: u32,
    bytes: &mut [u8],
) {
    bytes.fill(0);
    let start = geo.group_start(number);
    let len = geo.group_len(number);
    let end = start + u64::from(len);
    bitmap::set_range(bytes, 0, low32(geo.backup_len(number)).min(len));
    let mut mark = |from: u64, blocks: u64| {
        let (a, b) = (from.max(start), (from + blocks).min(end));
        if a < b {
            bitmap::set_range(bytes, low32(a - start), low32(b - start));
        }
    };
    for place in places {
        mark(place.block_bitmap, 1);
        mark(place.inode_bitmap, 1);
        mark(place.table, geo.table_blocks());
    }
    bitmap::set_range(bytes, len, low32(8 * bytes.len() as u64));
}
