//! Where names of large directories are, in memory alone.
//!
//! A directory of a few blocks is searched block by block, as Linux does without an index. For a larger
//! one the first search notes the block of every name by a hash; later ones look into one block, or none.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use cairn_flags::Probe;

use crate::dir::{records, records_end};
use crate::error::Result;
use crate::fs::Ext4;
use crate::inode::Inode;

/// Blocks from which on a directory has an index.
const LEAST: u32 = 4;
/// Stands for several blocks: names whose hashes are equal.
const SEVERAL: u32 = u32::MAX;

/// Blocks of a directory by the hashes of the names in them.
pub(crate) struct DirIndex {
    blocks: HashMap<u64, u32>,
}

/// Where a name may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// In no block.
    Nowhere,
    /// In this block or in none.
    Block(u32),
    /// In any block.
    Anywhere,
}

impl DirIndex {
    fn add(&mut self, hash: u64, lblk: u32) {
        match self.blocks.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(lblk);
            }
            Entry::Occupied(mut entry) => {
                entry.insert(SEVERAL);
            }
        }
    }
}

impl<P: Probe> Ext4<P> {
    /// Where a name of a directory may be. The caller holds the directory's lock.
    #[inline]
    pub(crate) fn dir_where(&self, dir: &Inode<P>, name: &[u8]) -> Result<Where> {
        if self.dir_blocks(dir) < LEAST {
            return Ok(Where::Anywhere);
        }
        let mut index = dir.index();
        if index.is_none() {
            *index = Some(self.make_index(dir)?);
            dir.set_has_index();
        }
        let found = index
            .as_ref()
            .and_then(|i| i.blocks.get(&self.hash(name)).copied());
        Ok(match found {
            None => Where::Nowhere,
            Some(SEVERAL) => Where::Anywhere,
            Some(lblk) => Where::Block(lblk),
        })
    }

    #[cold]
    fn make_index(&self, dir: &Inode<P>) -> Result<DirIndex> {
        let end = records_end(&self.geo);
        let mut index = DirIndex {
            blocks: HashMap::new(),
        };
        for lblk in 0..self.dir_blocks(dir) {
            self.dir_block(dir, lblk)?.read(|b| {
                for record in records(b, end).filter(|r| r.ino != 0) {
                    index.add(self.hash(record.name(b)), lblk);
                }
            })?;
        }
        Ok(index)
    }

    /// Notes a name that was entered. The caller holds the directory's lock alone.
    pub(crate) fn index_insert(&self, dir: &Inode<P>, name: &[u8], lblk: u32) {
        if dir.has_index()
            && let Some(index) = dir.index().as_mut()
        {
            index.add(self.hash(name), lblk);
        }
    }
}

/// Forgets a name that was taken out. The caller holds the directory's lock alone.
pub(crate) fn index_remove<P: Probe>(dir: &Inode<P>, hash: u64, lblk: u32) {
    if let Some(index) = dir.index().as_mut()
        && let Entry::Occupied(entry) = index.blocks.entry(hash)
        && *entry.get() == lblk
    {
        entry.remove();
    }
}
