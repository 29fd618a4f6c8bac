//! Moving names.

use std::sync::Arc;

use cairn_flags::Probe;

use crate::error::{Error, Result};
use crate::fs::{Ext4, ROOT_INO};
use crate::inode::Inode;
use crate::names::{add_link, sub_link};
use crate::path::shown;
use crate::raw::{Time, Which};

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
            let _alone = old_dir.alone();
            return self.rename_locked((&old_dir, old_name), (&new_dir, new_name));
        }
        // Where directories hang changes under this lock alone, so ancestors stay ancestors.
        let _one = self
            .renames
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let old_first = if self.descends(&new_dir, &old_dir)? {
            true
        } else if self.descends(&old_dir, &new_dir)? {
            false
        } else {
            old_dir.ino < new_dir.ino
        };
        let (first, second) = if old_first {
            (&old_dir, &new_dir)
        } else {
            (&new_dir, &old_dir)
        };
        let _first = first.alone();
        let _second = second.alone();
        self.rename_locked((&old_dir, old_name), (&new_dir, new_name))
    }

    /// Whether `inode` is `above` or lies below it. The caller holds the lock of renames.
    fn descends(&self, inode: &Arc<Inode<P>>, above: &Inode<P>) -> Result<bool> {
        let mut at = Arc::clone(inode);
        for _ in 0..=self.geo.inodes {
            if at.ino == above.ino {
                return Ok(true);
            }
            if at.ino == ROOT_INO {
                return Ok(false);
            }
            let up = {
                let _shared = at.shared();
                crate::path::alive(&at, b"..")?;
                self.dir_parent(&at)?.0.ino
            };
            at = self.iget(up)?;
        }
        Err(Error::corrupt(
            crate::error::Object::Inode(inode.ino),
            "its parents form a ring",
        ))
    }

    fn rename_locked(
        &self,
        old: (&Arc<Inode<P>>, &[u8]),
        new: (&Arc<Inode<P>>, &[u8]),
    ) -> Result<()> {
        let ((old_dir, old_name), (new_dir, new_name)) = (old, new);
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
        if inode.is_dir()
            && (inode.ino == new_dir.ino
                || across && self.descends_locked(new_dir, &inode, old_dir)?)
        {
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
            if target.ino == old_dir.ino {
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

    /// As [`descends`](Self::descends), where the locks of `from` and `held` are held alone already.
    fn descends_locked(
        &self,
        from: &Arc<Inode<P>>,
        above: &Inode<P>,
        held: &Inode<P>,
    ) -> Result<bool> {
        let mut at = Arc::clone(from);
        for _ in 0..=self.geo.inodes {
            if at.ino == above.ino {
                return Ok(true);
            }
            if at.ino == ROOT_INO {
                return Ok(false);
            }
            let locked = at.ino == from.ino || at.ino == held.ino;
            let up = {
                let _shared = (!locked).then(|| at.shared());
                self.dir_parent(&at)?.0.ino
            };
            at = self.iget(up)?;
        }
        Ok(true)
    }
}
