//! The file layer beside the kernel's ext4 without a journal, both on memory, and what flags and counters cost
//! in it.
//!
//! `cargo bench -p cairn-rivals --bench ext4 [-- --quick] [-- --json]`
//!
//! The arms of a row take turns for a fifth of a second each, in an order that turns round with each round; a
//! ratio is the median over the rounds. The kernel's arms need root, a loop device and mke2fs, the
//! row of random writes needs fio; what is not there is left out, and said to be.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench: a run that fails ends it, and nothing is exported"
)]

mod kernel;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use cairn_block::Device;
use cairn_buffer::{AtomicBhState, SetPolicy};
use cairn_ext4::{Dir, Ext4, File, FormatOptions, MountOptions, format};
use cairn_extents::CounterMode;
use cairn_lab::{FioOptions, Registry, run_fio};
use cairn_percpu::{Batched, SharedCounter};
use serde_json::{Value, json};

use kernel::Kernel;

/// Bytes of both images.
pub(crate) const SIZE: u64 = 1 << 30;
/// Blocks of the file that is overwritten.
pub(crate) const BLOCKS: u64 = 65536;
/// Threads at most.
pub(crate) const THREADS: usize = 2;
/// Calls that set bits of a buffer's state in a triple of create, close and delete.
const SETS: f64 = 42.0;
/// Look-ups of a triple, and of an overwrite, each of which counts once.
const LOOKUPS: [f64; 2] = [3.0, 2.0];

/// Places to write at.
pub(crate) struct Rng(u64);

impl Rng {
    /// Goes on elsewhere each time, so that an arm that is run in short turns does not write the same few
    /// places over and over.
    pub(crate) fn new(thread: usize) -> Self {
        static TURNS: AtomicU64 = AtomicU64::new(0);
        let turn = TURNS.fetch_add(1, Ordering::Relaxed);
        let mut rng = Self(
            (turn << 8 | thread as u64)
                .wrapping_add(1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
        );
        rng.block();
        rng
    }

    #[inline]
    pub(crate) const fn block(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % BLOCKS
    }
}

/// The file layer, ready for both kinds of work.
struct Ours {
    fs: Ext4,
    shared: Dir,
    own: Vec<Dir>,
    file: File,
}

impl Ours {
    fn new(checksums: bool) -> Self {
        let disk: Device = Arc::new(cairn_ramdisk::Ram::with_len(SIZE).unwrap());
        format(&disk, &FormatOptions::new().checksums(checksums)).unwrap();
        let fs = Ext4::mount(disk, &MountOptions::new().counter_slots(THREADS + 1)).unwrap();
        fs.mkdir("/shared").unwrap();
        let file = fs.create("/file").unwrap();
        for piece in 0..BLOCKS / 256 {
            fs.write_at(&file, piece << 20, &vec![1; 1 << 20]).unwrap();
        }
        fs.sync().unwrap();
        Self {
            shared: fs.dir("/shared").unwrap(),
            own: (0..THREADS)
                .map(|n| {
                    fs.mkdir(format!("/own{n}")).unwrap();
                    fs.dir(format!("/own{n}")).unwrap()
                })
                .collect(),
            file,
            fs,
        }
    }

    fn triples(&self, own: bool, thread: usize, n: u64) {
        let dir = if own { &self.own[thread] } else { &self.shared };
        let name = format!("file{thread}");
        for _ in 0..n {
            self.fs
                .close(self.fs.create_in(dir, &name).unwrap())
                .unwrap();
            self.fs.unlink_in(dir, &name).unwrap();
        }
    }

    fn overwrites(&self, thread: usize, n: u64) {
        let mut rng = Rng::new(thread);
        for _ in 0..n {
            let at = rng.block() * 4096;
            self.fs
                .write_direct(&self.file, at, &[3; 4096], false)
                .unwrap();
        }
    }
}

/// One way to do the work of a row: thread, how often.
type Arm<'a> = (&'a str, &'a (dyn Fn(usize, u64) + Sync));

struct Plan {
    rounds: usize,
    each: Duration,
}

/// Operations a second of `threads` threads together.
fn rate(threads: usize, each: Duration, work: &(dyn Fn(usize, u64) + Sync)) -> f64 {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, done, start) = (&stop, &done, &start);
            scope.spawn(move || {
                work(thread, 8);
                start.wait();
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    work(thread, 32);
                    n += 32;
                }
                done.fetch_add(n, Ordering::Relaxed);
            });
        }
        start.wait();
        let began = Instant::now();
        std::thread::sleep(each);
        stop.store(true, Ordering::Relaxed);
        began
    });
    done.load(Ordering::Relaxed) as f64 / each.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the arms of a row in turns; prints and returns the rates and the ratios of the first over each.
fn row(plan: &Plan, what: &str, threads: usize, bar: Option<f64>, arms: &[Arm<'_>]) -> Value {
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); arms.len()];
    for round in 0..plan.rounds {
        for at in 0..arms.len() {
            let arm = (at + round) % arms.len();
            rates[arm].push(rate(threads, plan.each, arms[arm].1));
        }
    }
    println!(
        "{what}, {threads} thread{}",
        if threads == 1 { "" } else { "s" }
    );
    let mut rows = Vec::new();
    for (at, (name, _)) in arms.iter().enumerate() {
        let ratios: Vec<f64> = rates[0]
            .iter()
            .zip(&rates[at])
            .map(|(a, b)| a / b)
            .collect();
        let (low, high) = ratios
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
        let (rate, ratio) = (median(rates[at].clone()), median(ratios));
        let verdict = match bar.filter(|_| name.starts_with("kernel")) {
            Some(bar) if ratio >= bar => format!("  bar {bar}: met"),
            Some(bar) => format!("  bar {bar}: NOT met"),
            None => String::new(),
        };
        println!(
            "  {name:<28} {rate:>12.0}/s  cairn is {ratio:>6.2} x [{low:.2}, {high:.2}]{verdict}"
        );
        rows.push(json!({
            "arm": name, "per_s": rate, "cairn_over_it": ratio, "lowest": low, "highest": high,
        }));
    }
    json!({ "what": what, "threads": threads, "bar": bar, "arms": rows })
}

/// Nanoseconds of a thread in one call of `work`, which makes 64.
fn cost(plan: &Plan, threads: usize, work: &(dyn Fn() + Sync)) -> f64 {
    let all = |_: usize, n: u64| (0..n).for_each(|_| work());
    let rates = (0..3).map(|_| rate(threads, plan.each / 4, &all)).collect();
    1e9 * threads as f64 / (64.0 * median(rates))
}

/// What the calls that set flags and count cost alone, as shares of the operations of a row.
fn shares(plan: &Plan, triple_ns: [f64; 2], overwrite_ns: [f64; 2]) -> Value {
    let word = AtomicBhState::new();
    word.set_meta_with(SetPolicy::AlwaysRmw);
    let set = |policy| {
        let word = &word;
        move || {
            for _ in 0..64 {
                std::hint::black_box(word).set_meta_with(policy);
            }
        }
    };
    let (shared, own) = (SharedCounter::new(), Batched::new());
    let count_shared = || (0..64).for_each(|_| shared.inc());
    let count_own = || (0..64).for_each(|_| own.inc());
    let mut rows = Vec::new();
    println!("share of the time of one thread that these calls take when nothing else is done");
    for threads in 1..=THREADS {
        let (triple, overwrite) = (triple_ns[threads - 1], overwrite_ns[threads - 1]);
        let (rmw, check) = (set(SetPolicy::AlwaysRmw), set(SetPolicy::CheckFirst));
        let ways: [(&str, f64, f64, f64); 6] = [
            (
                "42 flag sets of a triple, always-rmw",
                cost(plan, threads, &rmw),
                SETS,
                triple,
            ),
            (
                "42 flag sets of a triple, check-first",
                cost(plan, threads, &check),
                SETS,
                triple,
            ),
            (
                "3 counts of a triple, shared",
                cost(plan, threads, &count_shared),
                LOOKUPS[0],
                triple,
            ),
            (
                "3 counts of a triple, per CPU",
                cost(plan, threads, &count_own),
                LOOKUPS[0],
                triple,
            ),
            (
                "2 counts of an overwrite, shared",
                cost(plan, threads, &count_shared),
                LOOKUPS[1],
                overwrite,
            ),
            (
                "2 counts of an overwrite, per CPU",
                cost(plan, threads, &count_own),
                LOOKUPS[1],
                overwrite,
            ),
        ];
        for (what, ns, times, of) in ways {
            let share = 100.0 * ns * times / of;
            println!(
                "  {threads} thread(s) {what:<40} {ns:>6.1} ns each, {share:>5.1} % of {of:.0} ns"
            );
            rows.push(json!({
                "threads": threads, "what": what, "ns": ns, "times": times, "of_ns": of, "share_percent": share,
            }));
        }
    }
    Value::Array(rows)
}

/// I/Os a second of real fio with `io_uring` on the kernel's file.
fn fio(words: &[String], path: &str) -> Option<f64> {
    let out = Command::new("fio")
        .args(words)
        .args(["--ioengine=io_uring", "--output-format=json"])
        .arg(format!("--filename={path}"))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let value: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    value["jobs"][0]["write"]["iops"].as_f64()
}

/// The same job here.
fn job(words: &[String]) -> f64 {
    let own = ["--ioengine=libaio", "--filename=/mnt/test1"].map(str::to_owned);
    let plan = cairn_fio::parse_command_line(words.iter().cloned().chain(own)).unwrap();
    let mut on_ext4 = false;
    let mut note = |text: &str| on_ext4 |= text == "file layer: ext4";
    let result = run_fio(
        &plan,
        FioOptions::default(),
        &Registry::default(),
        &mut note,
    )
    .unwrap();
    assert!(on_ext4, "the job did not run on the file layer");
    let job = &result.jobs[0];
    assert_eq!(job.error, 0);
    // Clones of a group run side by side.
    job.directions.write.iops_mean()
}

/// The published random-write command, both sides with eight jobs.
fn randwrite(plan: &Plan, kernel: &Kernel) -> Option<Value> {
    // Five seconds over 2 GiB; a quick run only looks whether it works.
    let (millis, size) = if plan.rounds > 1 {
        (5000, "2g")
    } else {
        (100, "64m")
    };
    let words: Vec<String> = [
        "--name=randwrite --numjobs=8 --rw=randwrite --direct=1 --iodepth=64 --sync=0 --norandommap",
        "--group_reporting --time_based --bs=4k",
    ]
    .iter()
    .flat_map(|part| part.split(' '))
    .map(str::to_owned)
    .chain([format!("--runtime={millis}ms"), format!("--size={size}")])
    .collect();
    let path = kernel.job_file().to_string_lossy().into_owned();
    // The first run lays the file out; it is thrown away.
    fio(&words, &path)?;
    let (mut ratios, mut theirs, mut mine) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..plan.rounds.min(5) {
        let (a, b) = if round % 2 == 0 {
            let a = fio(&words, &path)?;
            (a, job(&words))
        } else {
            let b = job(&words);
            (fio(&words, &path)?, b)
        };
        theirs.push(a);
        mine.push(b);
        ratios.push(b / a);
    }
    let ratio = median(ratios);
    let met = if ratio >= 10.0 { "met" } else { "NOT met" };
    println!(
        "random writes, 8 jobs of depth 64: fio with io_uring on the kernel's ext4 {:.0}/s, cairn {:.0}/s, \
         {ratio:.1} x  bar 10: {met}",
        median(theirs.clone()),
        median(mine.clone()),
    );
    Some(json!({
        "what": "randwrite", "bar": 10.0, "fio_io_uring_per_s": median(theirs), "cairn_per_s": median(mine),
        "ratio": ratio,
    }))
}

/// Everything that is compared.
struct Sides {
    ours: Ours,
    always: Ours,
    counted: Ours,
    unsummed: Ours,
    kernel: Option<Kernel>,
}

impl Sides {
    fn new(kernel: Option<Kernel>) -> Self {
        let sides = Self {
            ours: Ours::new(true),
            always: Ours::new(true),
            counted: Ours::new(true),
            unsummed: Ours::new(false),
            kernel,
        };
        sides.always.fs.buffers().set_policy(SetPolicy::AlwaysRmw);
        sides
            .counted
            .fs
            .extents()
            .set_counter_mode(CounterMode::Shared);
        sides
    }

    /// Creates, closes and deletes in one directory or in two.
    fn creates(&self, plan: &Plan, own: bool, threads: usize) -> Value {
        let theirs = |t: usize, n| {
            let dir = if own {
                format!("own{t}")
            } else {
                "shared".to_owned()
            };
            if let Some(kernel) = &self.kernel {
                kernel.triples(&dir, t, n);
            }
        };
        let mine = |t, n| self.ours.triples(own, t, n);
        let always = |t, n| self.always.triples(own, t, n);
        let counted = |t, n| self.counted.triples(own, t, n);
        let unsummed = |t, n| self.unsummed.triples(own, t, n);
        let mut arms: Vec<Arm<'_>> = vec![
            ("cairn", &mine),
            ("cairn, flags always-rmw", &always),
            ("cairn, counters shared", &counted),
            ("cairn, no checksums", &unsummed),
        ];
        if self.kernel.is_some() {
            arms.push(("kernel ext4, no journal", &theirs));
        }
        let dirs = if own {
            "own directories"
        } else {
            "one directory"
        };
        let what = format!("create, close, delete in {dirs}");
        row(plan, &what, threads, Some(4.0), &arms)
    }

    fn overwrites(&self, plan: &Plan, threads: usize) -> Value {
        let theirs = |t, n| {
            if let Some(kernel) = &self.kernel {
                kernel.overwrites(t, n);
            }
        };
        let mine = |t, n| self.ours.overwrites(t, n);
        let counted = |t, n| self.counted.overwrites(t, n);
        let mut arms: Vec<Arm<'_>> = vec![("cairn", &mine), ("cairn, counters shared", &counted)];
        if self.kernel.is_some() {
            arms.push(("kernel ext4, pwrite", &theirs));
        }
        row(plan, "direct 4 KiB random overwrite", threads, None, &arms)
    }
}

/// Nanoseconds of a thread for one operation of the first arm.
fn first_ns(found: &Value, threads: usize) -> f64 {
    1e9 * threads as f64 / found["arms"][0]["per_s"].as_f64().unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|a| a == "--quick" || a == "--test");
    let (rounds, millis) = if quick { (1, 20) } else { (7, 200) };
    let plan = Plan {
        rounds,
        each: Duration::from_millis(millis),
    };
    let kernel = Kernel::new();
    if let Err(why) = &kernel {
        println!("skipped: the kernel's arms: {why}");
    }
    let sides = Sides::new(kernel.ok());
    let mut rows = Vec::new();
    let (mut triple_ns, mut overwrite_ns) = ([0.0; THREADS], [0.0; THREADS]);
    for own in [false, true] {
        for threads in 1..=THREADS {
            let found = sides.creates(&plan, own, threads);
            triple_ns[threads - 1] = first_ns(&found, threads);
            rows.push(found);
        }
    }
    for threads in 1..=THREADS {
        let found = sides.overwrites(&plan, threads);
        overwrite_ns[threads - 1] = first_ns(&found, threads);
        rows.push(found);
    }
    let shares = shares(&plan, triple_ns, overwrite_ns);
    match &sides.kernel {
        Some(kernel) => match randwrite(&plan, kernel) {
            Some(found) => rows.push(found),
            None => println!("skipped: random writes: fio is not there or has no io_uring here"),
        },
        None => println!("skipped: random writes: they need the kernel's side"),
    }
    if args.iter().any(|a| a == "--json") {
        println!(
            "{}",
            json!({ "bench": "ext4", "rows": rows, "shares": shares })
        );
    }
}
