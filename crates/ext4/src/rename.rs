//! Moving names.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_flags::Probe;

use crate::error::{Error, Result};
use crate::fs::{Ext4, ROOT_INO};
use crate::inode::Inode;
use crate::names::{add_link, sub_link};
use crate::path::shown;
use crate::raw::{Time, Which};

/// The old or the new place of what moves.
struct End<'e, P: Probe> {
    dir: &'e Arc<Inode<P>>,
    name: &'e [u8],
    /// The directory and all above it; empty if nothing moves to another directory.
    above: &'e HashSet<u32>,
}

impl<P: Probe> Ext4<P> {
    /// Gives a file or directory another name, perhaps in another directory. What had that name before
    /// goes, if it is of the same kind and no directory with entries.
    ///
    /// # Errors
    /// No such name, kinds that differ, a directory with entries in the way, a directory moved into itself.
    pub fn rename(&self, old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<()> {
        self.writable()?;
        let (old_dir, old_name) = self.parent(old.as_ref())?;
        let (new_dir, new_name) = self.parent(new.as_ref())?;
        if Arc::ptr_eq(&old_dir, &new_dir) {
            let (dir, above) = (&old_dir, &HashSet::new());
            let end = |name| End { dir, name, above };
            let _alone = dir.alone();
            return self.rename_locked(&end(old_name), &end(new_name));
        }
        // Where directories hang changes under this lock alone, so ancestors stay ancestors, and those of a
        // directory that is still there when it is locked are the ones found here. They are looked for
        // now: who holds a directory must not wait for one above it.
        let _one = self
            .renames
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (above_old, above_new) = (&self.line(&old_dir)?, &self.line(&new_dir)?);
        let old_first = above_new.contains(&old_dir.ino)
            || !above_old.contains(&new_dir.ino) && old_dir.ino < new_dir.ino;
        let (first, second) = if old_first {
            (&old_dir, &new_dir)
        } else {
            (&new_dir, &old_dir)
        };
        let _first = first.alone();
        let _second = second.alone();
        let old = End {
            dir: &old_dir,
            name: old_name,
            above: above_old,
        };
        let new = End {
            dir: &new_dir,
            name: new_name,
            above: above_new,
        };
        self.rename_locked(&old, &new)
    }

    /// A directory and all above it. The caller holds the lock of renames and no directory's.
    fn line(&self, dir: &Arc<Inode<P>>) -> Result<HashSet<u32>> {
        let mut line = HashSet::new();
        let mut at = Arc::clone(dir);
        while line.insert(at.ino) {
            if at.ino == ROOT_INO {
                return Ok(line);
            }
            let up = {
                let _shared = at.shared();
                crate::path::alive(&at, b"..")?;
                self.dir_parent(&at)?.0.ino
            };
            at = self.iget(up)?;
        }
        Err(Error::corrupt(
            crate::error::Object::Inode(dir.ino),
            "its parents form a ring",
        ))
    }

    fn rename_locked(&self, old: &End<'_, P>, new: &End<'_, P>) -> Result<()> {
        let (old_dir, old_name) = (old.dir, old.name);
        let (new_dir, new_name) = (new.dir, new.name);
        let missing = |name: &[u8]| Error::NotFound { name: shown(name) };
        if old_dir.gone() || new_dir.gone() {
            return Err(missing(old_name));
        }
        // Names are taken out of and put into blocks of records.
        let (found, _) = self
            .dir_find_in(old_dir, old_name)?
            .ok_or_else(|| missing(old_name))?;
        let inode = self.iget(found.ino)?;
        let across = !Arc::ptr_eq(old_dir, new_dir);
        // A directory in itself is damage; its lock is held.
        if [old_dir.ino, new_dir.ino].contains(&inode.ino) || new.above.contains(&inode.ino) {
            return Err(Error::IntoItself {
                name: shown(old_name),
            });
        }
        let target = match self.dir_find_in(new_dir, new_name)? {
            None => None,
            Some((at, buffer)) => Some((at, buffer, self.iget(at.ino)?)),
        };
        let now = Time::now();
        if let Some((at, buffer, target)) = target {
            if target.ino == inode.ino {
                return Ok(());
            }
            // What the old place lies in is not empty, and its lock is held or comes before that of the old place.
            if [old_dir.ino, new_dir.ino].contains(&target.ino) || old.above.contains(&target.ino) {
                return Err(Error::NotEmpty {
                    name: shown(new_name),
                });
            }
            match (inode.is_dir(), target.is_dir()) {
                (true, false) => {
                    return Err(Error::NotADirectory {
                        name: shown(new_name),
                    });
                }
                (false, true) => {
                    return Err(Error::IsADirectory {
                        name: shown(new_name),
                    });
                }
                _ => {}
            }
            if target.is_dir() {
                let _child = target.alone();
                if !self.dir_is_empty(&target)? {
                    return Err(Error::NotEmpty {
                        name: shown(new_name),
                    });
                }
                self.dir_redirect(new_dir, &at, &buffer, inode.ino, inode.kind.entry())?;
                target.body_mut().set_links(0);
                target
                    .dead
                    .store(true, std::sync::atomic::Ordering::Release);
            } else {
                self.dir_redirect(new_dir, &at, &buffer, inode.ino, inode.kind.entry())?;
            }
            self.touch_dir(new_dir, now, |raw| {
                if target.is_dir() {
                    sub_link(raw);
                }
            });
            if target.is_dir() {
                self.evict(&target, now);
            } else {
                self.drop_link(&target, now);
            }
        } else {
            self.dir_insert(new_dir, new_name, inode.ino, inode.kind.entry())?;
            self.touch_dir(new_dir, now, |_| {});
        }
        // Entering the new name may have moved records.
        let (found, buffer) = self
            .dir_find_in(old_dir, old_name)?
            .ok_or_else(|| missing(old_name))?;
        self.dir_remove(old_dir, &found, &buffer)?;
        self.touch_dir(old_dir, now, |_| {});
        if inode.is_dir() && across {
            let _child = inode.alone();
            let (up, buffer) = self.dir_parent(&inode)?;
            self.dir_redirect(&inode, &up, &buffer, new_dir.ino, up.kind)?;
            self.touch_dir(old_dir, now, sub_link);
            self.touch_dir(new_dir, now, add_link);
        }
        let mut raw = inode.body_mut();
        raw.set_time(Which::Change, now);
        self.write_inode(&inode, &mut raw);
        Ok(())
    }
}
