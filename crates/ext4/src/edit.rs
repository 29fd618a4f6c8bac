//! Changing extent trees.
//!
//! A change is computed in memory first, new blocks included, and then written: what cannot be read or
//! allocated leaves the tree as it was.

use cairn_flags::Probe;

use crate::error::{Error, Object, Result};
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::{self, Child, Entries, ROOT_ENTRIES, Run};
use crate::num::us;
use crate::raw::Raw;
use crate::space::For;
use crate::tree::MAX_BLOCK;

/// What a range of a tree is to become.
#[derive(Debug, Clone, Copy)]
struct Change {
    from: u32,
    to: u32,
    new: Option<Run>,
}

struct Edit<'e, P: Probe> {
    fs: &'e Ext4<P>,
    inode: &'e Inode<P>,
    change: Change,
    goal: u64,
    writes: Vec<(u64, u16, Entries)>,
    fresh: Vec<u64>,
    dropped: Vec<u64>,
    removed: Vec<Run>,
    /// Nodes looked at: those of a damaged tree may hang in several places.
    nodes: u64,
}

impl<P: Probe> Ext4<P> {
    /// Makes the blocks from `from` to before `to` what `new` says, a run inside of that range, or a hole.
    /// Returns the runs that were mapped there; whether their blocks are free now is the caller's business.
    ///
    /// The caller holds the inode's fields, and writes them to the disk afterwards.
    pub(crate) fn replace(
        &self,
        inode: &Inode<P>,
        raw: &mut Raw,
        from: u32,
        to: u32,
        new: Option<Run>,
    ) -> Result<Vec<Run>> {
        let mut edit = Edit {
            fs: self,
            inode,
            change: Change { from, to, new },
            goal: new.map_or(0, |run| run.start),
            writes: Vec::new(),
            fresh: Vec::new(),
            dropped: Vec::new(),
            removed: Vec::new(),
            nodes: 0,
        };
        match edit.plan(raw) {
            Ok((root, depth)) => edit.apply(raw, &root, depth),
            Err(e) => {
                for block in edit.fresh {
                    // Allocated a moment ago; an error here would hide the one that matters.
                    let _ = self.give_blocks(block, 1);
                }
                Err(e)
            }
        }
    }
}

impl<P: Probe> Edit<'_, P> {
    /// The root after the change, with its depth.
    fn plan(&mut self, raw: &Raw) -> Result<(Entries, u16)> {
        let mut depth = node::depth(raw.root());
        let mut root = self.level(node::entries(raw.root()), depth)?;
        if root.len() > ROOT_ENTRIES {
            let block = self.new_block()?;
            let child = Child {
                lblk: root.first(),
                block,
            };
            self.writes.push((block, depth, root));
            root = Entries::Index(vec![child]);
            depth += 1;
        }
        while depth > 0 {
            let Entries::Index(children) = &root else {
                break;
            };
            match children.as_slice() {
                [] => {
                    root = Entries::Leaf(Vec::new());
                    depth = 0;
                }
                [only] => {
                    let only = *only;
                    let below = self.content(only, depth - 1)?;
                    if below.len() > ROOT_ENTRIES {
                        break;
                    }
                    self.writes.retain(|(block, _, _)| *block != only.block);
                    self.dropped.push(only.block);
                    root = below;
                    depth -= 1;
                }
                _ => break,
            }
        }
        Ok((root, depth))
    }

    /// What a child holds after the change.
    fn content(&self, child: Child, depth: u16) -> Result<Entries> {
        if let Some((_, _, entries)) = self
            .writes
            .iter()
            .find(|(block, _, _)| *block == child.block)
        {
            return Ok(entries.clone());
        }
        Ok(self
            .fs
            .extent_block(self.inode, child.block, depth, child.lblk)?
            .read(node::entries)?)
    }

    /// A node's entries after the change; perhaps more than a node holds.
    fn level(&mut self, entries: Entries, depth: u16) -> Result<Entries> {
        let children = match entries {
            Entries::Leaf(runs) => return Ok(Entries::Leaf(self.splice(&runs))),
            Entries::Index(children) => children,
        };
        let Change { from, to, new } = self.change;
        let into = new.map(|run| {
            children
                .partition_point(|c| c.lblk <= run.lblk)
                .saturating_sub(1)
        });
        let mut out = Vec::with_capacity(children.len() + 1);
        for (index, child) in children.iter().enumerate() {
            let first = if index == 0 { 0 } else { child.lblk };
            let end = children.get(index + 1).map_or(MAX_BLOCK, |next| next.lblk);
            let inserts = into == Some(index);
            if !inserts && (first >= to || end <= from) {
                out.push(*child);
                continue;
            }
            let below = self
                .fs
                .extent_block(self.inode, child.block, depth - 1, child.lblk)?
                .read(node::entries)?;
            self.nodes += 1;
            if self.nodes > self.fs.geo.blocks {
                return Err(Error::corrupt(
                    Object::Inode(self.inode.ino),
                    "its extent tree has no end",
                ));
            }
            let kept = self.change.new;
            if !inserts {
                self.change.new = None;
            }
            let after = self.level(below, depth - 1);
            self.change.new = kept;
            self.put(child.block, after?, depth - 1, &mut out)?;
        }
        Ok(Entries::Index(out))
    }

    /// Plans a node's new content: nothing, one block, or two.
    fn put(
        &mut self,
        block: u64,
        mut entries: Entries,
        depth: u16,
        out: &mut Vec<Child>,
    ) -> Result<()> {
        let most = node::capacity(&self.fs.geo);
        if entries.len() == 0 {
            self.dropped.push(block);
            return Ok(());
        }
        let mut rest = None;
        if entries.len() > most {
            // Files grow at the end, and some at the start: there the other node stays full.
            let at_end = match (&entries, self.change.new) {
                (Entries::Leaf(runs), Some(new)) => {
                    runs.last().is_some_and(|r| r.end() == new.end())
                }
                (Entries::Index(children), Some(new)) => {
                    children.last().is_some_and(|c| c.lblk <= new.lblk)
                }
                _ => false,
            };
            let at_start = match (&entries, self.change.new) {
                (Entries::Leaf(runs), Some(new)) => {
                    runs.first().is_some_and(|r| r.lblk == new.lblk)
                }
                (Entries::Index(children), Some(new)) => {
                    children.get(1).is_some_and(|c| c.lblk > new.lblk)
                }
                _ => false,
            };
            let at = if at_end {
                most
            } else if at_start {
                entries.len() - most
            } else {
                entries.len() / 2
            };
            rest = Some(entries.split_off(at));
        }
        out.push(Child {
            lblk: entries.first(),
            block,
        });
        self.writes.push((block, depth, entries));
        if let Some(rest) = rest {
            let block = self.new_block()?;
            out.push(Child {
                lblk: rest.first(),
                block,
            });
            self.writes.push((block, depth, rest));
        }
        Ok(())
    }

    /// A leaf's runs after the change.
    fn splice(&mut self, runs: &[Run]) -> Vec<Run> {
        let Change { from, to, new } = self.change;
        let mut out: Vec<Run> = Vec::with_capacity(runs.len() + 2);
        let mut new = new;
        let mut push = |run: Run| match out.last_mut() {
            Some(last) if last.joins(&run) => last.len += run.len,
            _ => out.push(run),
        };
        for run in runs {
            if let Some(left) = run.within(0, from) {
                push(left);
            }
            if let Some(gone) = run.within(from, to) {
                self.removed.push(gone);
            }
            if run.end() > to
                && let Some(run) = new.take()
            {
                push(run);
            }
            if let Some(right) = run.within(to, MAX_BLOCK) {
                push(right);
            }
        }
        if let Some(run) = new {
            push(run);
        }
        out
    }

    fn new_block(&mut self) -> Result<u64> {
        self.fs.space.claim(1, For::Tree)?;
        match self.fs.take_blocks(self.goal, 1) {
            Ok((block, _)) => {
                self.fresh.push(block);
                // Had now, so that writing it cannot fail for want of a buffer.
                self.fs.cache.get_new(block)?;
                Ok(block)
            }
            Err(e) => {
                self.fs.space.unclaim(1);
                Err(e)
            }
        }
    }

    fn apply(self, raw: &mut Raw, root: &Entries, depth: u16) -> Result<Vec<Run>> {
        let geo = &self.fs.geo;
        for (block, depth, entries) in &self.writes {
            let bytes = entries.block(geo, self.inode.seed, *depth);
            let buffer = if self.fresh.contains(block) {
                self.fs.cache.get_new(*block)?
            } else {
                self.fs.cache.get(*block)?
            };
            buffer.write(|to| crate::num::put(to, 0, &bytes))?;
            buffer.state().set_verified();
        }
        root.store(raw.root_mut(), depth, ROOT_ENTRIES);
        let per_block = geo.block_size as u64 / 512;
        let sectors = raw.sectors(geo) + per_block * self.fresh.len() as u64;
        raw.set_sectors(sectors.saturating_sub(per_block * self.dropped.len() as u64));
        for block in self.dropped {
            self.fs.give_metadata(block)?;
        }
        Ok(self.removed)
    }
}

/// Blocks of a list of runs.
pub(crate) fn total(runs: &[Run]) -> u64 {
    runs.iter().map(|r| u64::from(r.len)).sum()
}

impl<P: Probe> Ext4<P> {
    /// Changes the count of sectors by a number of blocks.
    pub(crate) fn add_sectors(&self, raw: &mut Raw, blocks: u64) {
        let sectors = raw.sectors(&self.geo) + blocks * (self.geo.block_size as u64 / 512);
        raw.set_sectors(sectors);
    }

    /// The opposite of [`add_sectors`](Self::add_sectors).
    pub(crate) fn sub_sectors(&self, raw: &mut Raw, blocks: u64) {
        let sectors = raw.sectors(&self.geo);
        raw.set_sectors(sectors.saturating_sub(blocks * (self.geo.block_size as u64 / 512)));
    }

    /// Where blocks of an inode are looked for first, if nothing of it has a place yet.
    pub(crate) fn home(&self, ino: u32) -> u64 {
        let (group, _) = self.geo.inode_group(ino);
        self.geo.group_start(us(group).try_into().unwrap_or(0))
    }
}
