//! Looking blocks up: in the extent status cache, and in the extent tree below.

use std::sync::atomic::Ordering;

use cairn_buffer::BufferRef;
use cairn_extents::{Extent, Status};
use cairn_flags::Probe;

use crate::error::{Error, Object, Result};
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::{self, Entries, Expect, Run};
use crate::raw::{EXTENTS_FL, Raw};

/// One past the last legal logical block.
pub(crate) const MAX_BLOCK: u32 = u32::MAX;

/// What a step down a tree found.
enum Step {
    Down { block: u64, from: u32, next: u32 },
    Found(Run),
    Hole { from: u32, to: u32 },
}

impl<P: Probe> Ext4<P> {
    /// What is known of a block: by the cache, and on a miss by the tree, which is then cached.
    #[inline]
    pub(crate) fn look_up(&self, inode: &Inode<P>, lblk: u32) -> Result<Extent> {
        if self.extent_cache.load(Ordering::Relaxed) {
            if let Some(hit) = inode.es.lookup(lblk) {
                return Ok(hit.extent);
            }
            return self.miss(inode, lblk);
        }
        self.find(inode, &inode.body(), lblk)
    }

    #[cold]
    fn miss(&self, inode: &Inode<P>, lblk: u32) -> Result<Extent> {
        let body = inode.body();
        // The number is read under the lock that guards the tree, so nothing can have changed since.
        let seq = inode.es.seq();
        let found = self.find(inode, &body, lblk)?;
        // Refused when the file changed meanwhile: the next look-up tries again.
        let _ = inode.es.cache_if(seq, found.lblk, found.len, found.status);
        Ok(found)
    }

    /// What the extent tree says of a block.
    pub(crate) fn find(&self, inode: &Inode<P>, raw: &Raw, lblk: u32) -> Result<Extent> {
        if raw.flags() & EXTENTS_FL == 0 {
            return Err(Error::unsupported(format!(
                "inode {} maps its blocks without extents",
                inode.ino
            )));
        }
        let mut depth = node::depth(raw.root());
        let mut step = step(raw.root(), depth, lblk, 0, MAX_BLOCK);
        loop {
            match step {
                Step::Found(run) => {
                    return Ok(Extent {
                        lblk: run.lblk,
                        len: run.len,
                        status: status_of(&run),
                        referenced: false,
                    });
                }
                Step::Hole { from, to } => {
                    return Ok(Extent {
                        lblk: from,
                        len: to - from,
                        status: Status::Hole,
                        referenced: false,
                    });
                }
                Step::Down { block, from, next } => {
                    // Deeper than the root says cannot be: the depth of each node was checked.
                    depth = depth.saturating_sub(1);
                    let buffer = self.extent_block(inode, block, depth, from)?;
                    step = buffer.read(|b| self::step(b, depth, lblk, from, next))?;
                }
            }
        }
    }

    /// A block of an extent tree; checked unless that was done before.
    pub(crate) fn extent_block(
        &self,
        inode: &Inode<P>,
        block: u64,
        depth: u16,
        from: u32,
    ) -> Result<BufferRef<'_, P>> {
        let buffer = self.cache.get(block)?;
        // A node that is trusted for its checksum may still hang in the wrong place of the tree.
        let right = buffer.state().verified() && buffer.read(|b| node::depth(b) == depth)?;
        if !right {
            let expect = Expect {
                ino: inode.ino,
                block,
                depth: Some(depth),
                from,
            };
            buffer.read(|b| node::check(&self.geo, inode.seed, b, &expect))??;
            buffer.state().set_verified();
        }
        Ok(buffer)
    }

    /// Calls `each` with every run of the tree in order, and `block` with every block of the tree.
    pub(crate) fn walk(
        &self,
        inode: &Inode<P>,
        raw: &Raw,
        each: &mut dyn FnMut(Run) -> Result<()>,
        block: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let (mut end, mut nodes) = (0, 0);
        let object = Object::Inode(inode.ino);
        // Nodes that hang in several places of a damaged tree would be walked without end.
        self.walk_node(
            inode,
            &node::entries(raw.root()),
            node::depth(raw.root()),
            &mut |run| {
                if run.lblk < end {
                    return Err(Error::corrupt(
                        object,
                        format!("extent at {} out of order", run.lblk),
                    ));
                }
                end = run.end();
                each(run)
            },
            &mut |at| {
                nodes += 1;
                if nodes > self.geo.blocks {
                    return Err(Error::corrupt(object, "its extent tree has no end"));
                }
                block(at)
            },
        )
    }

    fn walk_node(
        &self,
        inode: &Inode<P>,
        entries: &Entries,
        depth: u16,
        each: &mut dyn FnMut(Run) -> Result<()>,
        block: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        match entries {
            Entries::Leaf(runs) => runs.iter().try_for_each(|run| each(*run)),
            Entries::Index(children) => children.iter().try_for_each(|child| {
                block(child.block)?;
                let below = depth.saturating_sub(1);
                let entries = self
                    .extent_block(inode, child.block, below, child.lblk)?
                    .read(node::entries)?;
                self.walk_node(inode, &entries, below, each, block)
            }),
        }
    }
}

pub(crate) const fn status_of(run: &Run) -> Status {
    if run.unwritten {
        Status::Unwritten(run.start)
    } else {
        Status::Written(run.start)
    }
}

/// One node: `from..to` is what it may cover.
fn step(bytes: &[u8], depth: u16, lblk: u32, from: u32, to: u32) -> Step {
    let n = node::upper(bytes, lblk);
    if depth > 0 {
        let index = n.saturating_sub(1);
        let child = node::child_at(bytes, index);
        let next = if index + 1 < node::count(bytes) {
            node::child_at(bytes, index + 1).lblk
        } else {
            to
        };
        let first = if n == 0 { from } else { child.lblk };
        return Step::Down {
            block: child.block,
            from: first,
            next,
        };
    }
    let next = if n < node::count(bytes) {
        node::run_at(bytes, n).lblk
    } else {
        to
    };
    let mut start = from;
    if let Some(index) = n.checked_sub(1) {
        let run = node::run_at(bytes, index);
        if lblk < run.end() {
            return Step::Found(run);
        }
        start = run.end();
    }
    Step::Hole {
        from: start.min(lblk),
        to: next.max(lblk.saturating_add(1)),
    }
}
