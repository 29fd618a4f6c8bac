//! From inode number to map. Callers keep the map beside the inode, so this is off the hot path;
//! shards keep files that come and go (create, close, delete) from meeting on one lock.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::map::ExtentMap;
use crate::sync::Arc;

const SHARDS: usize = 64;

type Shard = RwLock<HashMap<u64, Arc<ExtentMap>>>;

pub(super) struct Registry {
    shards: [Shard; SHARDS],
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
        }
    }
}

impl Registry {
    #[expect(clippy::indexing_slicing, reason = "the remainder is below the length")]
    fn shard(&self, ino: u64) -> &Shard {
        // Inodes are handed out in sequence, so the low bits spread evenly.
        let i = ino % SHARDS as u64;
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        &self.shards[i as usize]
    }

    pub(super) fn get(&self, ino: u64) -> Option<Arc<ExtentMap>> {
        read(self.shard(ino)).get(&ino).cloned()
    }

    pub(super) fn get_or_insert(
        &self,
        ino: u64,
        make: impl FnOnce() -> Arc<ExtentMap>,
    ) -> Arc<ExtentMap> {
        if let Some(map) = self.get(ino) {
            return map;
        }
        write(self.shard(ino))
            .entry(ino)
            .or_insert_with(make)
            .clone()
    }

    pub(super) fn remove(&self, ino: u64) -> Option<Arc<ExtentMap>> {
        write(self.shard(ino)).remove(&ino)
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|s| read(s).len()).sum()
    }

    pub(super) fn inodes(&self) -> Vec<u64> {
        self.shards
            .iter()
            .flat_map(|s| read(s).keys().copied().collect::<Vec<_>>())
            .collect()
    }
}

fn read(shard: &Shard) -> RwLockReadGuard<'_, HashMap<u64, Arc<ExtentMap>>> {
    shard.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(shard: &Shard) -> RwLockWriteGuard<'_, HashMap<u64, Arc<ExtentMap>>> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}
