//! What the sampler sees below the workloads: layers, extent cache, flag words, buffers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_block::Device;
use cairn_buffer::{BitCount, CountingProbe};
use cairn_extents::{CounterMode, ExtentMap, Kind, Reading};

use crate::files::AnyFile;
use crate::pattern::DIRTIES;
use crate::sample::{
    BitSample, BufferSample, Cell, CellStatus, CounterView, ExtentSample, FlagSample, HeadSample,
    LayerSample, ShrinkSample, SlotSample, Strip, Unit, WorkloadSample,
};
use crate::sampler::Rates;
use crate::shared::Shared;
use crate::shrinker::Shrink;
use crate::slots::Slots;

/// Bits that a dirty call sets as the policy says.
const SET_CALLS: [&str; 3] = ["META", "PRIO", "UPTODATE"];

/// Buffer heads shown.
const WORDS: usize = 256;

/// Cells of an extent strip.
const CELLS: u32 = 512;

/// Entries up to which a strip is drawn anew for every sample; larger maps are walked once a second.
const CHEAP: u64 = 2048;

/// What was seen.
pub(crate) struct Seen {
    pub(crate) layers: Vec<LayerSample>,
    pub(crate) extents: ExtentSample,
    pub(crate) flags: FlagSample,
    pub(crate) buffers: BufferSample,
}

/// Remembers what is needed for rates and for counting from a reset.
pub(crate) struct Look {
    probe: bool,
    rates: Rates,
    base: Base,
    before: (i64, i64),
    slots: Slots,
    shrunk: Shrink,
    strip: Option<Strip>,
    strip_age: u32,
    window: (usize, u64),
    names: Vec<(Arc<str>, Device)>,
}

#[derive(Default)]
struct Base {
    hits: i64,
    misses: i64,
    shrunk: Shrink,
    flags: Vec<BitCount>,
}

impl Look {
    pub(crate) fn new(shared: &Shared, probe: bool) -> Self {
        let names = shared
            .stack
            .devices()
            .map(|(id, device)| (Arc::from(id), Arc::clone(device)))
            .collect();
        let mut look = Self {
            probe,
            rates: Rates::default(),
            base: Base::default(),
            before: (0, 0),
            slots: Slots::new(),
            shrunk: Shrink::default(),
            strip: None,
            strip_age: 0,
            window: (0, 0),
            names,
        };
        look.reset(shared);
        let report = shared.cache.counters().report();
        look.before = (report.hits.exact, report.misses.exact);
        look
    }

    /// Counts begin again here.
    pub(crate) fn reset(&mut self, shared: &Shared) {
        let (hits, misses) = self.slots.reset(shared.cache.counters());
        self.base = Base {
            hits,
            misses,
            shrunk: shared.shrinker.done().sum,
            flags: if self.probe {
                CountingProbe::counts()
            } else {
                Vec::new()
            },
        };
    }

    pub(crate) fn take(
        &mut self,
        shared: &Shared,
        seconds: f64,
        workloads: &[WorkloadSample],
    ) -> Seen {
        let extents = self.extents(shared, seconds);
        let flags = self.flags(shared, seconds);
        let buffers = self.buffers(shared, seconds, workloads);
        let mut layers = Vec::with_capacity(workloads.len() + self.names.len() + 2);
        for w in workloads {
            layers.push(LayerSample {
                name: Arc::clone(&w.name),
                per_s: Some(w.ops_per_s),
                bytes_per_s: (w.unit == Unit::Io).then_some(w.bytes_per_s),
                facts: vec![
                    w.about.to_string(),
                    workers(w.workers),
                    match (w.unit, &shared.buffers) {
                        (Unit::Op, Some(_)) => "served by the buffer cache".to_owned(),
                        _ => "passes to the media".to_owned(),
                    },
                ],
            });
        }
        layers.push(LayerSample {
            name: Arc::from("extent cache"),
            per_s: Some(extents.hits_per_s + extents.misses_per_s),
            bytes_per_s: None,
            facts: facts(&extents),
        });
        if shared.buffers.is_some() {
            layers.push(LayerSample {
                name: Arc::from("buffer cache"),
                // A workload that holds its heads looks none up; what it asks of them passes all the same.
                per_s: Some(buffers.lookups_per_s.max(buffers.dirties_per_s)),
                bytes_per_s: None,
                facts: vec![
                    format!("{} heads, {} dirty", buffers.heads, buffers.dirty),
                    if flags.sets > 0 {
                        let share = 100.0 * flags.avoided as f64 / flags.sets as f64;
                        format!("{share:.1} % of sets avoided")
                    } else {
                        format!("{:.1} M dirty calls/s", buffers.dirties_per_s / 1e6)
                    },
                ],
            });
        }
        for (name, device) in &self.names {
            layers.push(layer(&mut self.rates, name, device, seconds));
        }
        Seen {
            layers,
            extents,
            flags,
            buffers,
        }
    }

    fn flags(&mut self, shared: &Shared, seconds: f64) -> FlagSample {
        let Some(buffers) = &shared.buffers else {
            return FlagSample::default();
        };
        let words = buffers
            .heads(WORDS)
            .into_iter()
            .map(|head| HeadSample {
                block: head.block,
                bits: head.state.bits(),
            })
            .collect();
        if !self.probe {
            return FlagSample {
                words,
                ..FlagSample::default()
            };
        }
        let counts = CountingProbe::counts();
        let mut sample = FlagSample {
            probe: true,
            words,
            ..FlagSample::default()
        };
        let (mut rmws, mut avoided) = (0, 0);
        for (i, count) in counts.iter().enumerate() {
            let total = match self.base.flags.get(i) {
                Some(base) => count.since(base),
                None => *count,
            };
            if total.asked() > 0 {
                sample.bits.push(BitSample {
                    name: count.name,
                    rmws: total.rmw,
                    avoided: total.avoided,
                    governed: SET_CALLS.contains(&count.name),
                });
            }
            if SET_CALLS.contains(&count.name) {
                sample.rmws += total.rmw;
                sample.avoided += total.avoided;
                rmws += self.rates.step(&format!("{} rmw", count.name), count.rmw);
                avoided += self
                    .rates
                    .step(&format!("{} avoided", count.name), count.avoided);
            }
        }
        sample.sets = sample.rmws + sample.avoided;
        sample.rmws_per_s = rmws as f64 / seconds;
        sample.avoided_per_s = avoided as f64 / seconds;
        sample.sets_per_s = sample.rmws_per_s + sample.avoided_per_s;
        sample
    }

    fn buffers(
        &mut self,
        shared: &Shared,
        seconds: f64,
        workloads: &[WorkloadSample],
    ) -> BufferSample {
        let Some(buffers) = &shared.buffers else {
            return BufferSample::default();
        };
        let stats = buffers.stats();
        // Every dirty call of a buffer cache in a lab comes from the pattern, which makes a fixed
        // number of them for each operation.
        let files: f64 = workloads
            .iter()
            .filter(|w| w.unit == Unit::Op)
            .map(|w| w.ops_per_s)
            .sum();
        let lookups = self.rates.step("buffer lookups", stats.hits + stats.misses);
        BufferSample {
            heads: stats.cached,
            dirty: stats.dirty,
            lookups_per_s: lookups as f64 / seconds,
            dirties_per_s: files * DIRTIES as f64,
            writebacks_per_s: self.rates.step("buffer writes", stats.writes) as f64 / seconds,
        }
    }

    fn extents(&mut self, shared: &Shared, seconds: f64) -> ExtentSample {
        let (rows, report) = self.slots.take(shared.cache.counters());
        let rate = |now: i64, before: i64| (now - before).max(0) as f64 / seconds;
        let hits_per_s = rate(report.hits.exact, self.before.0);
        let misses_per_s = rate(report.misses.exact, self.before.1);
        self.before = (report.hits.exact, report.misses.exact);
        let number = shared.shown_file.load(Ordering::Relaxed);
        if let Some((path, file)) = shared.files.get(number) {
            let cheap = u64::from(file.map().len()) <= CHEAP;
            let window = (number, shared.window.load(Ordering::Relaxed));
            let moved = std::mem::replace(&mut self.window, window) != window;
            if self.strip.is_none() || cheap || moved || self.strip_age >= 10 {
                let mut strip = strip(file, window.1);
                strip.path = Arc::from(path.as_str());
                strip.file = (number, shared.files.len());
                self.strip = Some(strip);
                self.strip_age = 0;
            }
            self.strip_age += 1;
        }
        let sum = |of: fn(&SlotSample) -> u64| {
            i64::try_from(rows.iter().map(of).sum::<u64>()).unwrap_or(i64::MAX)
        };
        // Counts since the reset are not negative, the approximate one neither.
        let since = |exact: i64, reading: Reading, base: i64| CounterView {
            exact,
            approx: (reading.approximate - base).max(0),
            bound: reading.bound,
        };
        ExtentSample {
            hits: since(sum(|r| r.hits), report.hits, self.base.hits),
            misses: since(sum(|r| r.misses), report.misses, self.base.misses),
            objects: view(report.all),
            reclaimable: view(report.reclaimable),
            hits_per_s,
            misses_per_s,
            slots: rows.into_iter().filter(|r| self.slots.shown(r)).collect(),
            shared: report.mode == CounterMode::Shared,
            backend: report.backend.kind().name(),
            batch: report.batch,
            shrinks: self.shrinks(shared, seconds),
            strip: self.strip.clone(),
        }
    }

    fn shrinks(&mut self, shared: &Shared, seconds: f64) -> ShrinkSample {
        let done = shared.shrinker.done();
        let before = std::mem::replace(&mut self.shrunk, done.sum);
        let base = self.base.shrunk;
        ShrinkSample {
            limit: done.limit,
            scans: done.sum.scans - base.scans,
            scanned: done.sum.scanned - base.scanned,
            reclaimed: done.sum.reclaimed - base.reclaimed,
            reclaimed_per_s: (done.sum.reclaimed - before.reclaimed) as f64 / seconds,
            longest_us: shared.cache.averages().max_scan_micros,
            last: done.last.map(|(at, shrink)| (at.elapsed(), shrink)),
        }
    }
}

/// What the stack says of the extent cache.
fn facts(extents: &ExtentSample) -> Vec<String> {
    let held = match extents.objects.exact {
        1 => "1 extent".to_owned(),
        n => format!("{n} extents"),
    };
    let looked = extents.hits.exact + extents.misses.exact;
    let hit = if looked > 0 {
        format!(
            "look-ups; hit {:.1} %",
            100.0 * extents.hits.exact as f64 / looked as f64
        )
    } else {
        "no look-ups".to_owned()
    };
    match extents.shrinks.limit {
        Some(limit) => vec![format!("{held}, limit {limit}"), hit],
        None => vec![held, hit],
    }
}

fn view(reading: Reading) -> CounterView {
    CounterView {
        exact: reading.exact,
        approx: reading.approximate,
        bound: reading.bound,
    }
}

pub(crate) fn layer(
    rates: &mut Rates,
    name: &Arc<str>,
    device: &Device,
    seconds: f64,
) -> LayerSample {
    const REQUESTS: &[&str] = &["reads", "writes", "flushes", "discards", "zeroes"];
    const BYTES: &[&str] = &["read_bytes", "write_bytes"];
    let stats = device.stats();
    let mut sum = |names: &[&str]| {
        let mut found = None;
        for stat in names {
            if let Some(now) = stats.get(stat) {
                let step = rates.step(&format!("{name} {stat}"), now);
                *found.get_or_insert(0) += step;
            }
        }
        found.map(|n| n as f64 / seconds)
    };
    let per_s = sum(REQUESTS);
    // A device that counts only its rarer requests does not count what passes it.
    let counts = ["reads", "writes"].iter().any(|s| stats.get(s).is_some());
    let per_s = per_s.filter(|_| counts);
    let bytes_per_s = sum(BYTES);
    let facts = stats
        .iter()
        .filter(|s| s.value > 0 && !REQUESTS.contains(&s.name) && !BYTES.contains(&s.name))
        .take(2)
        .map(|s| match s.unit {
            cairn_block::Unit::Bytes => format!("{} {}", words(s.name), size(s.value)),
            cairn_block::Unit::Nanos => format!("{} {}", words(s.name), time(s.value)),
            _ => format!("{} {}", words(s.name), s.value),
        })
        .collect();
    LayerSample {
        name: Arc::clone(name),
        per_s,
        bytes_per_s,
        facts,
    }
}

/// A time in the unit that leaves it between 1 and 1000: `4.1 us`, `661.5 ms`.
fn time(ns: u64) -> String {
    scaled(ns as f64, 1000.0, &["ns", "us", "ms", "s"])
}

/// A size in the unit that leaves it between 1 and 1024: `128.0 MiB`.
fn size(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = "";
    for (i, next) in units.iter().enumerate() {
        unit = next;
        // What would be printed as a whole step belongs to the next unit.
        if value < step - 0.05 || i + 1 == units.len() {
            break;
        }
        value /= step;
    }
    if units.first() == Some(&unit) {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

fn workers(n: usize) -> String {
    match n {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Sums a file's entries up; those in the window in cells of equal length.
fn strip(file: &AnyFile, window: u64) -> Strip {
    let blocks = file.blocks();
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    let (from, wanted) = (half(window >> 32), half(window));
    let from = if wanted == 0 { 0 } else { from.min(blocks) };
    let rest = blocks - from;
    let shown = if wanted == 0 { rest } else { rest.min(wanted) };
    let cells = CELLS.min(shown).max(1);
    let mut strip = Strip {
        path: Arc::from(""),
        file: (0, 1),
        ino: file.ino(),
        blocks,
        block_size: 4096,
        extents: 0,
        written: 0,
        unwritten: 0,
        delayed: 0,
        holes: 0,
        from,
        shown,
        cells: Vec::new(),
    };
    let mut share = vec![[0_u32; 5]; cells as usize];
    fill(file.map(), cells, &mut strip, &mut share);
    let bound = |cell: u32| u64::from(cell) * u64::from(shown) / u64::from(cells);
    strip.cells = share
        .iter()
        .zip(0..cells)
        .map(|(known, i)| {
            let len = bound(i + 1) - bound(i);
            let sum: u64 = known.iter().skip(1).map(|n| u64::from(*n)).sum();
            let mut all = known.map(u64::from);
            if let Some(unknown) = all.first_mut() {
                *unknown = len.saturating_sub(sum);
            }
            let (status, _) = all
                .iter()
                .zip(STATUSES)
                .map(|(n, status)| (status, *n))
                .max_by_key(|(_, n)| *n)
                .unwrap_or((CellStatus::Unknown, 0));
            Cell {
                status,
                mixed: all.iter().filter(|n| **n > 0).count() > 1,
            }
        })
        .collect();
    strip
}

const STATUSES: [CellStatus; 5] = [
    CellStatus::Unknown,
    CellStatus::Written,
    CellStatus::Unwritten,
    CellStatus::Delayed,
    CellStatus::Hole,
];

fn fill(map: &ExtentMap, cells: u32, strip: &mut Strip, share: &mut [[u32; 5]]) {
    let (from, until) = (strip.from, strip.from + strip.shown);
    let shown = u64::from(strip.shown.max(1));
    for extent in map.iter_from(0) {
        let end = extent.end().min(strip.blocks);
        let len = u64::from(end.saturating_sub(extent.lblk));
        strip.extents += 1;
        let slot = match extent.status.kind() {
            Kind::Written => {
                strip.written += len;
                1
            }
            Kind::Unwritten => {
                strip.unwritten += len;
                2
            }
            Kind::Delayed | Kind::DelayedUnwritten => {
                strip.delayed += len;
                3
            }
            Kind::Hole => {
                strip.holes += len;
                4
            }
        };
        let (mut at, end) = (extent.lblk.max(from), end.min(until));
        while at < end {
            let cell = u64::from(at - from) * u64::from(cells) / shown;
            // First block of the next cell: the smallest that divides into it.
            let next = u64::from(from) + ((cell + 1) * shown).div_ceil(u64::from(cells));
            let next = u32::try_from(next).unwrap_or(end).min(end).max(at + 1);
            if let Some(count) = usize::try_from(cell)
                .ok()
                .and_then(|c| share.get_mut(c))
                .and_then(|c| c.get_mut(slot))
            {
                *count += next - at;
            }
            at = next;
        }
    }
}
