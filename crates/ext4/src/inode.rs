//! Inodes in memory, and the table of those that are in use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
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
const LOOKS: u32 = 16;
/// Looks after which a thread offers its CPU between two: who holds the lock may be waiting for one.
const LOOKS_ALONE: u32 = 4;
/// Pauses after the first look, and between later ones; of 50 ns on recent server CPUs, in which the one who has
/// the lock does a dozen operations or two.
const PAUSES: [u32; 2] = [128, 256];
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
    /// Its block of the inode tables, and where in it.
    pub(crate) place: (u64, usize),
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
    /// There is an index. Changed under its lock; looked at by who holds `lock`, under which it is made.
    indexed: AtomicBool,
    /// Files open on it. Changed under the table's shard lock or with the directory locked.
    pub(crate) opens: AtomicU32,
    /// Its last link is gone. Stored before `opens` is looked at, where a close looks at the two the other way
    /// round: one of both sees what the other did.
    nameless: AtomicBool,
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
        place: (u64, usize),
    ) -> Self {
        Self {
            ino,
            kind,
            place,
            seed: geometry.inode_seed(ino, raw.generation()),
            lock: RwLock::new(()),
            lanes: OnceLock::new(),
            size: AtomicU64::new(raw.size()),
            hashed: AtomicBool::new(kind == FileType::Directory && raw.flags() & INDEX_FL != 0),
            body: RwLock::new(raw),
            es,
            pages: Mutex::new(Pages::new()),
            index: Mutex::new(None),
            indexed: AtomicBool::new(false),
            opens: AtomicU32::new(0),
            nameless: AtomicBool::new(false),
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
        // A change of a directory takes half a microsecond. Going to sleep for one, and being woken, takes
        // hundreds, and makes everybody else sleep as well. Handing the lock over after each change costs more than the
        // change, as all that it touches moves from one CPU to the other. So who waits looks seldom, which lets
        // the other do some operations in a row.
        let [mut pauses, most] = PAUSES;
        for look in 0..LOOKS {
            match self.lock.try_write() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(e)) => return e.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
            pauses = (2 * pauses).min(most);
            if look >= LOOKS_ALONE {
                std::thread::yield_now();
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
    #[inline]
    pub(crate) fn has_index(&self) -> bool {
        self.indexed.load(Ordering::Acquire)
    }
    pub(crate) fn set_has_index(&self) {
        self.indexed.store(true, Ordering::Release);
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
    /// Notes that the last link is gone; whether nobody has it open.
    #[inline]
    pub(crate) fn lose_name(&self) -> bool {
        self.nameless.store(true, Ordering::SeqCst);
        self.opens.load(Ordering::SeqCst) == 0
    }
    #[inline]
    pub(crate) fn is_nameless(&self) -> bool {
        self.nameless.load(Ordering::SeqCst)
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

/// Hashes inode numbers by one multiplication: they come in sequence, and nobody else chooses them.
#[derive(Default)]
pub(crate) struct InoHasher(u64);

impl Hasher for InoHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.0 = spread(self.0 ^ u64::from(n));
    }
}

/// The multiplier of Fibonacci hashing; the high half is the better one, and tables use both.
const fn spread(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n ^ (n >> 32)
}

/// Inodes of a shard by number.
pub(crate) struct Inodes<P: Probe> {
    map: HashMap<u32, Arc<Inode<P>>, BuildHasherDefault<InoHasher>>,
    /// The map of the inode that ended last, empty: the next inode with this number uses it.
    spare: Option<(u32, Arc<ExtentMap>)>,
}

impl<P: Probe> std::ops::Deref for Inodes<P> {
    type Target = HashMap<u32, Arc<Inode<P>>, BuildHasherDefault<InoHasher>>;
    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl<P: Probe> std::ops::DerefMut for Inodes<P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.map
    }
}

/// On lines of its own: inodes of different directories are created and end side by side.
#[repr(align(128))]
struct Shard<P: Probe>(Mutex<Inodes<P>>);

/// Inodes in memory by number.
pub(crate) struct Table<P: Probe> {
    shards: Box<[Shard<P>]>,
}

impl<P: Probe> Table<P> {
    pub(crate) fn new() -> Self {
        let shard = |_| {
            Shard(Mutex::new(Inodes {
                map: HashMap::default(),
                spare: None,
            }))
        };
        Self {
            shards: (0..SHARDS).map(shard).collect(),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a remainder of the length is below it"
    )]
    #[inline]
    pub(crate) fn shard(&self, ino: u32) -> MutexGuard<'_, Inodes<P>> {
        // Not the number itself: the first inodes of all groups would share a shard.
        self.shards[us(spread(u64::from(ino)) >> 40) % SHARDS]
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out an inode that ended, and keeps its map, which is empty, for the next of this number. Returns
    /// the number whose map is not kept any longer.
    pub(crate) fn remove(&self, ino: u32, map: Arc<ExtentMap>) -> Option<u32> {
        let mut shard = self.shard(ino);
        // Dropped when the shard is free again.
        let ended = shard.map.remove(&ino);
        let (old, _) = shard.spare.replace((ino, map)).unzip();
        drop(shard);
        drop(ended);
        old.filter(|old| *old != ino)
    }

    /// The map that was kept for an inode of this number.
    #[inline]
    pub(crate) fn take_spare(&self, ino: u32) -> Option<Arc<ExtentMap>> {
        let spare = &mut self.shard(ino).spare;
        let (_, map) = spare.take_if(|(kept, _)| *kept == ino)?;
        Some(map)
    }

    /// All inodes at this moment.
    pub(crate) fn all(&self) -> Vec<Arc<Inode<P>>> {
        self.shards
            .iter()
            .flat_map(|s| {
                let shard = s.0.lock().unwrap_or_else(PoisonError::into_inner);
                shard.values().cloned().collect::<Vec<_>>()
            })
            .collect()
    }

    /// Forgets inodes that nobody uses, once there are many.
    pub(crate) fn trim(shard: &mut Inodes<P>, mut forget: impl FnMut(u32)) {
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
