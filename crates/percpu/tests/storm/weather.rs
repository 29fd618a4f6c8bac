//! The storm: workers, a thread that throws them from CPU to CPU, and a timer that interrupts them.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cairn_percpu::Counter;

/// Worker threads: three on each of two CPUs.
const WORKERS: u64 = 6;
/// Adds between looks at the rest of the world.
const CHUNK: u64 = 1_000;
/// Moves that a storm must make before it may end.
const MOVES: u64 = 500;
/// When a storm ends in any case.
const DEADLINE: Duration = Duration::from_mins(5);

/// What handlers add to, and how.
static PLAIN: AtomicPtr<Counter> = AtomicPtr::new(ptr::null_mut());
static SAFE: AtomicPtr<Counter> = AtomicPtr::new(ptr::null_mut());
static SIGNALS: AtomicU64 = AtomicU64::new(0);
/// Handlers that have not ended, on any thread of the process.
static INSIDE: AtomicU64 = AtomicU64::new(0);

/// CPU ids in use here, as a bound.
pub(crate) fn cpus() -> usize {
    // SAFETY: no pointer is involved.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(configured).unwrap().max(1)
}

/// A storm to be.
pub(crate) struct Storm {
    adds: u64,
    plain: Option<&'static Counter>,
    safe: Option<&'static Counter>,
}

/// What happened in it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) adds: u64,
    pub(crate) moves: u64,
    pub(crate) signals: u64,
    per_worker: Vec<u64>,
}

impl Seen {
    /// The sum of workers that add 1 to 40 and then take 819 away, over and over.
    pub(crate) fn expected_of_rounds(&self) -> i64 {
        let of = |calls: &u64| {
            let (rounds, rest) = (calls / 40, calls % 40);
            i64::try_from(rounds + rest * (rest + 1) / 2).unwrap()
        };
        self.per_worker.iter().map(of).sum()
    }
}

impl Storm {
    pub(crate) fn new(adds: u64) -> Self {
        Self {
            adds,
            plain: None,
            safe: None,
        }
    }

    /// Signal handlers add 1 too.
    pub(crate) fn signals_add(mut self, to: &'static Counter) -> Self {
        self.plain = Some(to);
        self
    }

    /// Signal handlers add 1 by the call made for them.
    pub(crate) fn signals_add_safely(mut self, to: &'static Counter) -> Self {
        self.safe = Some(to);
        self
    }

    /// Has each worker make its add, and repeat it until all together have made enough.
    pub(crate) fn run<F: FnMut()>(self, make: impl Fn() -> F + Sync) -> Seen {
        let (total, moves) = (AtomicU64::new(0), AtomicU64::new(0));
        let stop = AtomicBool::new(false);
        let tids = Mutex::new(Vec::new());
        let per_worker = Mutex::new(Vec::new());
        let ready = Barrier::new(usize::try_from(WORKERS).unwrap() + 1);
        let timer = Timer::start(self.plain, self.safe);
        let until = Instant::now() + DEADLINE;
        thread::scope(|scope| {
            let work = || {
                scope.spawn(|| {
                    let mut add = make();
                    // SAFETY: no argument.
                    tids.lock().unwrap().push(unsafe { libc::gettid() });
                    ready.wait();
                    let mut mine = 0;
                    while !stop.load(Ordering::Relaxed) {
                        (0..CHUNK).for_each(|_| add());
                        mine += CHUNK;
                        let all = total.fetch_add(CHUNK, Ordering::Relaxed) + CHUNK;
                        let enough = moves.load(Ordering::Relaxed) >= MOVES || cpus() == 1;
                        if all >= self.adds && enough || Instant::now() >= until {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    per_worker.lock().unwrap().push(mine);
                })
            };
            let workers: Vec<_> = (0..WORKERS).map(|_| work()).collect();
            ready.wait();
            let tids = tids.lock().unwrap().clone();
            while !stop.load(Ordering::Relaxed) {
                for (turn, tid) in tids.iter().enumerate() {
                    let before = moves.fetch_add(1, Ordering::Relaxed);
                    let turn = usize::try_from(before).unwrap() + turn;
                    pin(*tid, turn.wrapping_mul(7) / 3 % cpus());
                }
                thread::sleep(Duration::from_micros(50));
            }
            // By handle: at the end of the scope a worker may still be running, and take a signal.
            for worker in workers {
                worker.join().unwrap();
            }
        });
        // Before the signals are counted: the last ones come while the timer is stopped.
        drop(timer);
        while INSIDE.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
        let seen = Seen {
            adds: total.into_inner(),
            moves: moves.into_inner(),
            signals: SIGNALS.swap(0, Ordering::Relaxed),
            per_worker: per_worker.into_inner().unwrap(),
        };
        assert!(Instant::now() < until, "the deadline came first: {seen:?}");
        seen
    }
}

/// Moves a thread to one CPU. It may not be allowed, or the CPU may be offline: then it stays.
fn pin(tid: libc::pid_t, cpu: usize) {
    // SAFETY: all zero is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the index is checked by the function against the size of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set outlives the call.
    unsafe { libc::sched_setaffinity(tid, size_of_val(&set), &raw const set) };
}

/// A signal about once a millisecond of process time, as long as it lives.
struct Timer {
    before: libc::sigaction,
}

extern "C" fn on_signal(_: libc::c_int) {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    for (to, safe) in [(&PLAIN, false), (&SAFE, true)] {
        let to = to.load(Ordering::Relaxed);
        // SAFETY: null, or a counter that lives for ever.
        if let Some(counter) = unsafe { to.as_ref() } {
            if safe {
                counter.add_signal_safe(1);
            } else {
                counter.inc();
            }
            SIGNALS.fetch_add(1, Ordering::Relaxed);
        }
    }
    INSIDE.fetch_sub(1, Ordering::SeqCst);
}

impl Timer {
    fn start(plain: Option<&'static Counter>, safe: Option<&'static Counter>) -> Self {
        let address = |counter: Option<&'static Counter>| {
            counter.map_or(ptr::null_mut(), |counter| ptr::from_ref(counter).cast_mut())
        };
        SIGNALS.store(0, Ordering::Relaxed);
        PLAIN.store(address(plain), Ordering::Relaxed);
        SAFE.store(address(safe), Ordering::Relaxed);
        // SAFETY: all zero is a valid action.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: as above.
        let mut before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: the handler only touches atomics and counters.
        unsafe { libc::sigaction(libc::SIGPROF, &raw const action, &raw mut before) };
        set_timer(1_000);
        Self { before }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        set_timer(0);
        // SAFETY: what was there before; a signal still under way finds the old disposition only after the timer
        // is off, and pending ones are taken first.
        unsafe { libc::raise(libc::SIGPROF) };
        // SAFETY: as above.
        unsafe { libc::sigaction(libc::SIGPROF, &raw const self.before, ptr::null_mut()) };
    }
}

/// Every so many microseconds of CPU time of the process.
fn set_timer(micros: libc::suseconds_t) {
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: micros,
    };
    let timer = libc::itimerval {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: the value outlives the call.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
}
