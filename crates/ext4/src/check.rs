//! Checking a whole image: what is reachable against what the bitmaps and counts say.
//!
//! The device is read, and nothing of what a mounted file system holds in memory.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use cairn_block::Device;

use crate::bitmap;
use crate::error::{Error, Object, Result};
use crate::fs::{Ext4, MountOptions, ROOT_INO};
use crate::group::{self, BLOCK_UNINIT, INODE_UNINIT};
use crate::inode::Inode;
use crate::num::{low32, u32_at, us};
use crate::raw::{EXTENTS_FL, FileType, ROOT_LEN, Raw};
use crate::superblock::STATE_CLEAN;

/// Findings after which a check lists no more.
const MOST_FINDINGS: usize = 1000;
/// The inode that keeps room for descriptors, whose blocks are mapped without extents.
const RESIZE_INO: u32 = 7;

/// Something that contradicts the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// About what.
    pub object: Object,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.what)
    }
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong; empty for a sound image.
    pub findings: Vec<Finding>,
    /// Inodes in use, the reserved ones left out.
    pub inodes: u32,
    /// Directories.
    pub directories: u32,
    /// Blocks in use.
    pub used_blocks: u64,
    /// Whether the image was unmounted cleanly.
    pub clean: bool,
}

/// Checks the file system on a device without changing it.
///
/// ```
/// use cairn_ext4::{FormatOptions, check, format};
/// use std::sync::Arc;
///
/// let disk: cairn_block::Device = Arc::new(cairn_ramdisk::Ram::with_len(16 << 20)?);
/// format(&disk, &FormatOptions::new())?;
/// assert!(check(&disk)?.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What keeps a file system from being mounted at all; damage behind that is in the report.
pub fn check(device: &Device) -> Result<Report> {
    let fs = Ext4::mount(Arc::clone(device), &MountOptions::new().read_only(true))?;
    let mut check = Check {
        report: Report {
            clean: fs.sup().state() & STATE_CLEAN != 0,
            ..Report::default()
        },
        used: vec![0; us(fs.geo.blocks.div_ceil(8))],
        links: HashMap::new(),
        seen: HashSet::new(),
        fs: &fs,
    };
    check.run()?;
    Ok(check.report)
}

struct Check<'c> {
    fs: &'c Ext4,
    report: Report,
    /// A bit for each block that something owns.
    used: Vec<u8>,
    /// Names found of each inode.
    links: HashMap<u32, u32>,
    /// Directories walked.
    seen: HashSet<u32>,
}

impl Check<'_> {
    fn find(&mut self, object: Object, what: impl Into<String>) {
        if self.report.findings.len() < MOST_FINDINGS {
            self.report.findings.push(Finding {
                object,
                what: what.into(),
            });
        }
    }

    fn found(&mut self, fallback: Object, e: Error) {
        match e {
            Error::Corrupt { object, why } => self.find(object, why),
            e => self.find(fallback, e.to_string()),
        }
    }

    fn run(&mut self) -> Result<()> {
        self.tables();
        self.inode_tables();
        self.names();
        self.counts()
    }

    /// Blocks that belong to the format.
    fn tables(&mut self) {
        let geo = self.fs.geo;
        for number in 0..geo.groups {
            self.own(
                Object::Group(number),
                geo.group_start(number),
                geo.backup_len(number),
            );
            let Some(group) = self.fs.groups.get(us(number)) else {
                continue;
            };
            let places = group.places;
            self.own(Object::BlockBitmap(number), places.block_bitmap, 1);
            self.own(Object::InodeBitmap(number), places.inode_bitmap, 1);
            self.own(Object::Group(number), places.table, geo.table_blocks());
        }
    }

    fn own(&mut self, who: Object, start: u64, len: u64) {
        for block in start..start.saturating_add(len).min(self.fs.geo.blocks) {
            let at = us(block / 8);
            let bit = 1 << (block % 8);
            let Some(byte) = self.used.get_mut(at) else {
                continue;
            };
            if *byte & bit != 0 {
                self.find(who, format!("block {block} belongs to something else, too"));
            } else {
                *byte |= bit;
            }
        }
    }

    /// Every inode that is in use: its bytes, its blocks, its bit.
    fn inode_tables(&mut self) {
        let geo = self.fs.geo;
        for number in 0..geo.groups {
            let Some(group) = self.fs.groups.get(us(number)) else {
                continue;
            };
            let desc = *group.lock();
            let mut bits = vec![0; geo.block_size];
            if desc.flags & INODE_UNINIT == 0 {
                match self.bitmap(group.places.inode_bitmap) {
                    Ok(bytes) => {
                        if geo.checksums
                            && group::bitmap_sum(&geo, &bytes, geo.inodes_per_group)
                                != desc.inode_sum
                        {
                            self.find(Object::InodeBitmap(number), "its checksum is wrong");
                        }
                        bits = bytes;
                    }
                    Err(e) => self.found(Object::InodeBitmap(number), e),
                }
                if bitmap::next_clear(
                    &bits,
                    geo.inodes_per_group,
                    low32(8 * geo.block_size as u64),
                )
                .is_some()
                {
                    self.find(Object::InodeBitmap(number), "bits past its end are clear");
                }
            }
            let (mut free, mut dirs) = (0, 0);
            for bit in 0..geo.inodes_per_group {
                let ino = number * geo.inodes_per_group + bit + 1;
                if !bitmap::test(&bits, bit) {
                    free += 1;
                    if ino < geo.first_ino {
                        self.find(Object::Inode(ino), "a reserved inode is marked as free");
                    }
                    if bit < geo.inodes_per_group - desc.unused {
                        self.free_inode(ino);
                    }
                    continue;
                }
                if bit >= geo.inodes_per_group - desc.unused {
                    self.find(
                        Object::Inode(ino),
                        "it is in use in the part of the table that is said to be unused",
                    );
                    continue;
                }
                match self.used_inode(ino) {
                    Ok(dir) => dirs += u32::from(dir),
                    Err(e) => self.found(Object::Inode(ino), e),
                }
            }
            if (free, dirs) != (desc.free_inodes, desc.used_dirs) {
                self.find(
                    Object::Group(number),
                    format!(
                        "{} free inodes and {} directories, {free} and {dirs} would be right",
                        desc.free_inodes, desc.used_dirs
                    ),
                );
            }
        }
    }

    fn bitmap(&self, block: u64) -> Result<Vec<u8>> {
        Ok(self.fs.cache.get(block)?.read(<[u8]>::to_vec)?)
    }

    fn free_inode(&mut self, ino: u32) {
        match self.fs.read_raw(ino) {
            Ok(raw) if raw.links() == 0 && raw.mode() != 0 && raw.dtime() == 0 => {
                self.find(Object::Inode(ino), "it was freed without a time");
            }
            Ok(raw) if raw.links() > 0 && raw.dtime() == 0 => {
                self.find(Object::Inode(ino), "it has names and is marked as free");
            }
            // The bytes of an inode that was never used may be anything, as long as they are zero.
            Ok(_) => {}
            Err(e) => self.found(Object::Inode(ino), e),
        }
    }

    /// Whether it is a directory.
    fn used_inode(&mut self, ino: u32) -> Result<bool> {
        let geo = self.fs.geo;
        let reserved = ino < geo.first_ino && ino != ROOT_INO;
        let raw = match self.fs.read_raw(ino) {
            Ok(raw) => raw,
            // Reserved inodes that are not used are zeros, checksum included.
            Err(_) if reserved && self.is_blank(ino)? => return Ok(false),
            Err(e) => return Err(e),
        };
        if !reserved {
            self.report.inodes += 1;
            if raw.links() == 0 {
                self.find(Object::Inode(ino), "it has no name and is in use");
            }
        }
        let Some(kind) = raw.kind() else {
            if !reserved {
                self.find(
                    Object::Inode(ino),
                    format!("mode {:#o} is of no kind", raw.mode()),
                );
            }
            if ino == RESIZE_INO {
                self.resize_inode(&raw);
            }
            return Ok(false);
        };
        if ino == RESIZE_INO {
            self.resize_inode(&raw);
            return Ok(false);
        }
        if raw.has_attribute_block() {
            self.own(Object::Inode(ino), raw.attribute_block(), 1);
        }
        // Without a place: it is not written.
        let inode = Inode::new(&geo, ino, kind, raw.clone(), self.fs.es_map(ino), (0, 0));
        let mut blocks = u64::from(raw.has_attribute_block());
        if raw.flags() & EXTENTS_FL != 0 {
            let expect = crate::node::Expect {
                ino,
                block: 0,
                depth: None,
                from: 0,
            };
            crate::node::check(&geo, 0, raw.root(), &expect)?;
            let (mut runs, mut tree) = (Vec::new(), Vec::new());
            let walked = self.fs.walk(
                &inode,
                &raw,
                &mut |run| {
                    runs.push(run);
                    Ok(())
                },
                &mut |block| {
                    tree.push(block);
                    Ok(())
                },
            );
            if let Err(e) = walked {
                self.found(Object::Inode(ino), e);
            }
            let mut end = 0;
            for run in &runs {
                if run.lblk < end {
                    self.find(
                        Object::Inode(ino),
                        format!("extents overlap at block {}", run.lblk),
                    );
                }
                end = run.end();
                self.own(Object::Inode(ino), run.start, u64::from(run.len));
                blocks += u64::from(run.len);
            }
            for block in &tree {
                self.own(Object::ExtentBlock { ino, block: *block }, *block, 1);
            }
            blocks += tree.len() as u64;
            if let Some(last) = runs.iter().rfind(|r| !r.unwritten)
                && u64::from(last.end()) > raw.size().div_ceil(geo.block_size as u64)
            {
                self.find(
                    Object::Inode(ino),
                    format!(
                        "{} bytes, but block {} is written",
                        raw.size(),
                        last.end() - 1
                    ),
                );
            }
        } else if kind == FileType::Regular
            || kind == FileType::Directory
            || raw.size() >= ROOT_LEN as u64
        {
            return Err(Error::unsupported("blocks that are mapped without extents"));
        }
        let sectors = blocks * (geo.block_size as u64 / 512);
        if raw.sectors(&geo) != sectors {
            self.find(
                Object::Inode(ino),
                format!("{} sectors, {sectors} would be right", raw.sectors(&geo)),
            );
        }
        Ok(kind == FileType::Directory)
    }

    fn is_blank(&self, ino: u32) -> Result<bool> {
        let Some((block, at)) = self.fs.inode_place(ino) else {
            return Ok(false);
        };
        let raw = self
            .fs
            .cache
            .get(block)?
            .read(|b| Raw::load(&self.fs.geo, b, at))?;
        Ok(raw.is_blank())
    }

    /// The blocks of the inode that keeps room for descriptors: one block of pointers; what they point to
    /// is counted with the groups.
    fn resize_inode(&mut self, raw: &Raw) {
        let double = u64::from(u32_at(raw.root(), 13 * 4));
        if double != 0 && self.fs.geo.holds(double, 1) {
            self.own(Object::Inode(RESIZE_INO), double, 1);
        }
    }

    /// Every directory from the root on: names, their inodes, their kinds.
    fn names(&mut self) {
        let mut left = vec![(ROOT_INO, ROOT_INO)];
        while let Some((ino, parent)) = left.pop() {
            if !self.seen.insert(ino) {
                self.find(Object::Inode(ino), "the directory has two names");
                continue;
            }
            self.report.directories += 1;
            let dir = match self.fs.iget(ino) {
                Ok(dir) => dir,
                Err(e) => {
                    self.found(Object::Inode(ino), e);
                    continue;
                }
            };
            let mut entries = Vec::new();
            let walked = self.fs.dir_each(&dir, |name, ino, kind| {
                entries.push((name.to_vec(), ino, kind));
                Ok(())
            });
            if let Err(e) = walked {
                self.found(Object::Inode(ino), e);
            }
            for (name, target, kind) in entries {
                *self.links.entry(target).or_default() += 1;
                let want = match name.as_slice() {
                    b"." => Some(ino),
                    b".." => Some(parent),
                    _ => None,
                };
                if want.is_some_and(|w| w != target) {
                    self.find(
                        Object::Inode(ino),
                        format!("`{}` leads to inode {target}", crate::path::shown(&name)),
                    );
                }
                if want.is_some() {
                    continue;
                }
                match self.fs.iget(target) {
                    Ok(inode) => {
                        if self.fs.geo.filetype && inode.kind.entry() != kind {
                            self.find(
                                Object::Inode(ino),
                                format!(
                                    "`{}` has type {kind}, {} would be right",
                                    crate::path::shown(&name),
                                    inode.kind.entry()
                                ),
                            );
                        }
                        if inode.is_dir() {
                            left.push((target, ino));
                        }
                    }
                    Err(e) => self.found(Object::Inode(target), e),
                }
            }
        }
        self.link_counts();
    }

    fn link_counts(&mut self) {
        let geo = self.fs.geo;
        for number in 0..geo.groups {
            let Some(group) = self.fs.groups.get(us(number)) else {
                continue;
            };
            let desc = *group.lock();
            if desc.flags & INODE_UNINIT != 0 {
                continue;
            }
            let Ok(bits) = self.bitmap(group.places.inode_bitmap) else {
                continue;
            };
            let mut at = 0;
            while let Some(bit) = bitmap::next_set(&bits, at, geo.inodes_per_group) {
                at = bit + 1;
                let ino = number * geo.inodes_per_group + bit + 1;
                if ino < geo.first_ino && ino != ROOT_INO {
                    continue;
                }
                let Ok(raw) = self.fs.read_raw(ino) else {
                    continue;
                };
                let names = self.links.get(&ino).copied().unwrap_or(0);
                let links = u32::from(raw.links());
                let many = raw.kind() == Some(FileType::Directory) && links == 1;
                if links != names && !many {
                    self.find(Object::Inode(ino), format!("{links} links, {names} names"));
                }
            }
        }
    }

    /// Block bitmaps and counts.
    fn counts(&mut self) -> Result<()> {
        let geo = self.fs.geo;
        for number in 0..geo.groups {
            let Some(group) = self.fs.groups.get(us(number)) else {
                continue;
            };
            let desc = *group.lock();
            let mut expect = vec![0; geo.block_size];
            let (start, len) = (geo.group_start(number), geo.group_len(number));
            for bit in 0..len {
                let block = start + u64::from(bit);
                let byte = self.used.get(us(block / 8)).copied().unwrap_or(0);
                if byte >> (block % 8) & 1 == 1 {
                    bitmap::set(&mut expect, bit);
                }
            }
            bitmap::set_range(&mut expect, len, low32(8 * geo.block_size as u64));
            let free = bitmap::count_clear(&expect, len);
            self.report.used_blocks += u64::from(len - free);
            if desc.free_blocks != free {
                self.find(
                    Object::Group(number),
                    format!("{} free blocks, {free} would be right", desc.free_blocks),
                );
            }
            if desc.flags & BLOCK_UNINIT != 0 {
                continue;
            }
            let bits = self.bitmap(group.places.block_bitmap)?;
            if geo.checksums
                && group::bitmap_sum(&geo, &bits, geo.blocks_per_group) != desc.block_sum
            {
                self.find(Object::BlockBitmap(number), "its checksum is wrong");
            }
            let most = low32(8 * geo.block_size as u64);
            let differs = (0..most).find(|b| bitmap::test(&bits, *b) != bitmap::test(&expect, *b));
            if let Some(bit) = differs {
                let says = if bitmap::test(&bits, bit) {
                    "in use"
                } else {
                    "free"
                };
                self.find(
                    Object::BlockBitmap(number),
                    format!(
                        "block {} is marked as {says} and is not",
                        start + u64::from(bit)
                    ),
                );
            }
        }
        let (blocks, inodes) = {
            let sup = self.fs.sup();
            (sup.free_blocks(), sup.u32(0x10))
        };
        let right = self.fs.statfs();
        if (blocks, inodes) != (right.free_blocks, right.free_inodes) {
            self.find(
                Object::Super,
                format!(
                    "{blocks} free blocks and {inodes} free inodes, {} and {} would be right",
                    right.free_blocks, right.free_inodes
                ),
            );
        }
        Ok(())
    }
}
