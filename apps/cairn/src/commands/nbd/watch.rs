//! What passes a server, once a second: its clients and its layers.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use cairn_block::{Stack, Unit};
use cairn_nbd::{ServerStats, Stopper};

use crate::output::printable;

/// Time between two pictures.
const PERIOD: Duration = Duration::from_secs(1);

/// Draws over the last picture on a terminal, and adds lines elsewhere.
pub(super) struct Watch<'a> {
    stacks: &'a [(String, Stack)],
    redraw: bool,
    drawn: usize,
    last: Instant,
    before: HashMap<String, u64>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(stacks: &'a [(String, Stack)]) -> Self {
        Self {
            stacks,
            redraw: io::stderr().is_terminal(),
            drawn: 0,
            last: Instant::now(),
            before: HashMap::new(),
        }
    }

    /// Draws when it is time to.
    pub(super) fn look(&mut self, stopper: &Stopper) {
        let passed = self.last.elapsed();
        if passed < PERIOD {
            return;
        }
        self.last = Instant::now();
        let text = self.picture(&stopper.stats(), passed);
        let mut err = io::stderr().lock();
        if self.redraw && self.drawn > 0 {
            let _ = write!(err, "\x1b[{}A\x1b[J", self.drawn);
        }
        self.drawn = text.lines().count();
        // A closed stderr is no reason to stop serving.
        let _ = err.write_all(text.as_bytes());
    }

    /// How much a counter grew in a second.
    fn rate(&mut self, key: String, now: u64, passed: Duration) -> f64 {
        let before = self.before.insert(key, now).unwrap_or(now);
        now.saturating_sub(before) as f64 / passed.as_secs_f64()
    }

    fn picture(&mut self, stats: &ServerStats, passed: Duration) -> String {
        let mut text = format!(
            "{} clients, {} so far, {} errors\n",
            stats.clients.len(),
            stats.connections,
            stats.totals.errors
        );
        for client in &stats.clients {
            let t = client.totals;
            let id = client.id;
            let ops = self.rate(format!("{id} ops"), t.requests(), passed);
            let read = self.rate(format!("{id} read"), t.read_bytes, passed);
            let written = self.rate(format!("{id} written"), t.written_bytes, passed);
            let export = match client.export.as_deref() {
                None => "(handshake)".to_owned(),
                Some("") => "(default)".to_owned(),
                Some(name) => printable(name),
            };
            let _ = writeln!(
                text,
                "  client {id:<4} {export:<16} {ops:>9.0} requests/s {:>9.1} MiB/s read {:>9.1} MiB/s written  {} in flight",
                mib(read),
                mib(written),
                client.in_flight
            );
        }
        let stacks = self.stacks;
        for (name, stack) in stacks {
            for (id, device) in stack.devices() {
                let mut line = String::new();
                for stat in &device.stats() {
                    let rate = self.rate(format!("{name}/{id}/{}", stat.name), stat.value, passed);
                    if rate < 0.5 {
                        continue;
                    }
                    let _ = match stat.unit {
                        Unit::Bytes => write!(line, "  {} {:.1} MiB/s", stat.name, mib(rate)),
                        _ => write!(line, "  {} {rate:.0}/s", stat.name),
                    };
                }
                if !line.is_empty() {
                    let _ = writeln!(text, "  layer {}{line}", printable(id));
                }
            }
        }
        text
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
