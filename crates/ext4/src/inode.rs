//! Inodes in memory, and the table of those that are in use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};

use cairn_extents::ExtentMap;
use cairn_flags::Probe;

use crate::dirindex::DirIndex;
use crate::num::us;
use crate::pages::Pages;
use crate::raw::{FileType, INDEX_FL, Raw};
use crate::superblock::Geometry;

/// Shards of the table.
const SHARDS: usize = 64;
/// Locks that the readers of a file spread over.
const LANES: usize = 8;
/// Looks at a lock before a thread goes to sleep for it.
const SPINS: u32 = 400;
/// Inodes that a shard keeps although nobody uses them.
const IDLE: usize = 1024;

/// One of the locks that threads which share a file spread over; on a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Lane(RwLock<()>);

/// The lane of this thread.
#[inline]
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % LANES);
    LANE.with(|lane| *lane)
}

/// An inode's lock held alone.
pub(crate) struct Alone<'i> {
    _lanes: Option<[RwLockWriteGuard<'i, ()>; LANES]>,
    _lock: RwLockWriteGuard<'i, ()>,
}

/// An inode in memory.
///
/// Locks in the order in which they are taken: `lock`, which says who may change names or data; `body`,
/// which guards the fields and the extent tree; `pages`.
pub(crate) struct Inode<P: Probe> {
    pub(crate) ino: u32,
    pub(crate) kind: FileType,
    /// Seed of the checksums of its blocks.
    pub(crate) seed: u32,
    lock: RwLock<()>,
    /// Of a file that is written directly: readers take one each instead of `lock`.
    lanes: OnceLock<Box<[Lane; LANES]>>,
    body: RwLock<Raw>,
    /// The size, where those read it who hold `lock` alone.
    pub(crate) size: AtomicU64,
    pub(crate) es: Arc<ExtentMap>,
    pages: Mutex<Pages<P>>,
    /// Where the names of a large directory are.
    index: Mutex<Option<DirIndex>>,
    /// Files open on it. Changed under the table's shard lock or with the directory locked.
    pub(crate) opens: AtomicU32,
    /// Its end was begun.
    pub(crate) gone: AtomicBool,
    /// Data changed since its times were set.
    pub(crate) touched: AtomicBool,
    /// It has pages. Changed with `lock` held alone.
    pub(crate) paged: AtomicBool,
    /// Its fields could not be stored; they are right in memory.
    pub(crate) stale: AtomicBool,
    /// A directory that was removed: nothing can be made in it.
    pub(crate) dead: AtomicBool,
    /// A directory with an index of hashes.
    hashed: AtomicBool,
    /// Where a search for room in a directory begins.
    pub(crate) room: AtomicU32,
}

impl<P: Probe> Inode<P> {
    pub(crate) fn new(
        geometry: &Geometry,
        ino: u32,
        kind: FileType,
        raw: Raw,
        es: Arc<ExtentMap>,
    ) -> Self {
        Self {
            ino,
            kind,
            seed: geometry.inode_seed(ino, raw.generation()),
            lock: RwLock::new(()),
            lanes: OnceLock::new(),
            size: AtomicU64::new(raw.size()),
            hashed: AtomicBool::new(kind == FileType::Directory && raw.flags() & INDEX_FL != 0),
            body: RwLock::new(raw),
            es,
            pages: Mutex::new(Pages::new()),
            index: Mutex::new(None),
            opens: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            touched: AtomicBool::new(false),
            paged: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            room: AtomicU32::new(0),
        }
    }

    // A panic inside a lock leaves fields that were changed one by one; there is no more to lose.

    #[inline]
    pub(crate) fn shared(&self) -> RwLockReadGuard<'_, ()> {
        let lane = self.lanes.get().and_then(|lanes| lanes.get(lane()));
        let lock = lane.map_or(&self.lock, |lane| &lane.0);
        lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn alone(&self) -> Alone<'_> {
        let lock = self.lock_alone();
        let lanes = self.lanes.get().map(|lanes| {
            lanes
                .each_ref()
                .map(|lane| lane.0.write().unwrap_or_else(PoisonError::into_inner))
        });
        Alone {
            _lanes: lanes,
            _lock: lock,
        }
    }

    /// Lets threads that share the lock from now on do so without sharing a line. Who came before and waits for
    /// the one lock gets it: whoever is alone holds that as well.
    #[cold]
    pub(crate) fn split_lock(&self) {
        let _lock = self.lock_alone();
        // Another thread may have been quicker.
        let _ = self.lanes.set(Box::default());
    }

    /// Whether [`split_lock`](Self::split_lock) was called.
    #[inline]
    pub(crate) fn is_split(&self) -> bool {
        self.lanes.get().is_some()
    }

    fn lock_alone(&self) -> RwLockWriteGuard<'_, ()> {
        // Changes of a directory take a few microseconds. Going to sleep for one, and being woken, takes longer, and
        // makes everybody else sleep as well.
        for _ in 0..SPINS {
            match self.lock.try_write() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(e)) => return e.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.lock.write().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn body(&self) -> RwLockReadGuard<'_, Raw> {
        self.body.read().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn body_mut(&self) -> RwLockWriteGuard<'_, Raw> {
        self.body.write().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages<P>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn has_index(&self) -> bool {
        self.index().is_some()
    }
    pub(crate) fn index(&self) -> MutexGuard<'_, Option<DirIndex>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }
    /// Notes that its times are to be set. Looked at first: threads that write one file share the flag.
    #[inline]
    pub(crate) fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Release);
        }
    }
    /// Whether its end was begun, or it is a directory that was removed.
    pub(crate) fn gone(&self) -> bool {
        self.dead.load(Ordering::Acquire) || self.gone.load(Ordering::Acquire)
    }
    pub(crate) fn hashed(&self) -> bool {
        self.hashed.load(Ordering::Acquire)
    }
    pub(crate) fn set_hashed(&self, yes: bool) {
        self.hashed.store(yes, Ordering::Release);
    }
    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }
}

type Shard<P> = Mutex<HashMap<u32, Arc<Inode<P>>>>;

/// Inodes in memory by number.
pub(crate) struct Table<P: Probe> {
    shards: Box<[Shard<P>]>,
}

impl<P: Probe> Table<P> {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(HashMap::new())).collect(),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a remainder of the length is below it"
    )]
    pub(crate) fn shard(&self, ino: u32) -> MutexGuard<'_, HashMap<u32, Arc<Inode<P>>>> {
        self.shards[us(ino) % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an inode out.
    pub(crate) fn remove(&self, ino: u32) {
        self.shard(ino).remove(&ino);
    }

    /// All inodes at this moment.
    pub(crate) fn all(&self) -> Vec<Arc<Inode<P>>> {
        self.shards
            .iter()
            .flat_map(|s| {
                let shard = s.lock().unwrap_or_else(PoisonError::into_inner);
                shard.values().cloned().collect::<Vec<_>>()
            })
            .collect()
    }

    /// Forgets inodes that nobody uses, once there are many.
    pub(crate) fn trim(shard: &mut HashMap<u32, Arc<Inode<P>>>, mut forget: impl FnMut(u32)) {
        if shard.len() < IDLE {
            return;
        }
        shard.retain(|ino, inode| {
            // New references come from the table alone, whose lock is held.
            let keep = Arc::strong_count(inode) > 1
                || inode.touched.load(Ordering::Relaxed)
                || inode.stale.load(Ordering::Relaxed)
                || inode.paged.load(Ordering::Relaxed);
            if !keep {
                forget(*ino);
            }
            keep
        });
    }
}
