//! A server as the dashboard sees it: exports are what makes load, clients and layers what it passes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use cairn_block::Stack;
use cairn_lab::{LayerSample, LayerWatch, Sample, Unit};
use cairn_nbd::{ClientStats, Stopper, Totals};

use crate::output::printable;
use crate::recorded::{blank, blank_workload};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// One export: its name, and what its clients did so far.
struct Export<'a> {
    name: &'a str,
    spec: String,
    ops: u64,
    bytes: u64,
    errors: u64,
    layers: LayerWatch,
}

/// Samples a server.
pub(super) struct Sampler<'a> {
    exports: Vec<Export<'a>>,
    before: HashMap<u64, Totals>,
    begun: Instant,
    last: Instant,
    seq: u64,
    dropped: u64,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(stacks: &'a [(String, Stack)]) -> Self {
        let now = Instant::now();
        Self {
            exports: stacks
                .iter()
                .map(|(name, stack)| Export {
                    name,
                    spec: stack.spec().to_string(),
                    ops: 0,
                    bytes: 0,
                    errors: 0,
                    layers: LayerWatch::new(stack),
                })
                .collect(),
            before: HashMap::new(),
            begun: now,
            last: now,
            seq: 0,
            dropped: 0,
        }
    }

    /// Takes a sample when it is time to; `false` once nobody looks any more.
    pub(super) fn look(
        &mut self,
        stopper: &Stopper,
        over: bool,
        to: &SyncSender<Arc<Sample>>,
    ) -> bool {
        let now = Instant::now();
        if now - self.last < INTERVAL && !over {
            return true;
        }
        let mut sample = self.sample(&stopper.stats().clients, now);
        if over {
            sample.failure = Some(Arc::from("the server has ended"));
        }
        match to.try_send(Arc::new(sample)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.dropped += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    fn sample(&mut self, clients: &[ClientStats], now: Instant) -> Sample {
        let interval = now - self.last;
        let seconds = interval.as_secs_f64().max(1e-9);
        let elapsed = now - self.begun;
        let mut sample = blank(self.seq, elapsed, interval, Vec::new());
        sample.dropped = self.dropped;
        self.seq += 1;
        self.last = now;
        let before: Vec<(u64, u64, u64)> = self
            .exports
            .iter()
            .map(|e| (e.ops, e.bytes, e.errors))
            .collect();
        let gone = std::mem::take(&mut self.before);
        for client in clients {
            let was = gone.get(&client.id).copied().unwrap_or_default();
            sample.layers.push(self.client(client, was, seconds));
            self.before.insert(client.id, client.totals);
        }
        let several = self.exports.len() > 1;
        for (export, was) in self.exports.iter_mut().zip(before) {
            let name = shown(export.name);
            let mut w = blank_workload(&name, &export.spec, Unit::Io);
            let on_it = |c: &&ClientStats| c.export.as_deref() == Some(export.name);
            w.workers = clients.iter().filter(on_it).count();
            (w.ops, w.bytes, w.errors) = (export.ops, export.bytes, export.errors);
            (w.errors_in_all, w.ran) = (export.errors, elapsed);
            w.ops_per_s = (export.ops - was.0) as f64 / seconds;
            w.bytes_per_s = (export.bytes - was.1) as f64 / seconds;
            sample.workloads.push(w);
            let mut layers = export.layers.take(seconds);
            if several {
                for layer in &mut layers {
                    layer.name = format!("{name}: {}", layer.name).into();
                }
            }
            sample.layers.extend(layers);
        }
        sample
    }

    /// One client, whose doings since the last sample count for its export.
    fn client(&mut self, client: &ClientStats, was: Totals, seconds: f64) -> LayerSample {
        let t = client.totals;
        let ops = t.requests().saturating_sub(was.requests());
        let bytes = |t: &Totals| t.read_bytes.saturating_add(t.written_bytes);
        let moved = bytes(&t).saturating_sub(bytes(&was));
        let export = self
            .exports
            .iter_mut()
            .find(|e| client.export.as_deref() == Some(e.name));
        let name = match export {
            None => "handshake".to_owned(),
            Some(export) => {
                export.ops += ops;
                export.bytes += moved;
                export.errors += t.errors.saturating_sub(was.errors);
                shown(export.name)
            }
        };
        LayerSample {
            name: format!("client {}", client.id).into(),
            per_s: Some(ops as f64 / seconds),
            bytes_per_s: Some(moved as f64 / seconds),
            facts: vec![name, format!("{} reads, {} writes", t.reads, t.writes)],
        }
    }
}

/// An export's name as it is shown.
fn shown(name: &str) -> String {
    if name.is_empty() {
        "default".to_owned()
    } else {
        printable(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_nbd::{Export, Listener, NbdConfig, NbdDevice, Server, ServerConfig};

    #[test]
    fn clients_and_layers_are_seen() {
        let registry = cairn_lab::Registry::default();
        let stack = registry
            .block_registry()
            .open("stats/ram(1m)")
            .expect("it is a spec");
        let stacks = vec![(String::new(), stack)];
        let dir = tempfile::tempdir().expect("a folder");
        let listener = Listener::unix(dir.path().join("s")).expect("a socket");
        let exports = vec![Export::new("", stacks[0].1.device().clone()).expect("an export")];
        let server = Server::new(ServerConfig::new(), exports).expect("a server");
        let stopper = server.stopper();
        let uri = listener.uri("");
        std::thread::scope(|scope| {
            scope.spawn(|| server.serve(&listener));
            let parsed = uri.parse().expect("a URI");
            let device = NbdDevice::open(&uri, parsed, NbdConfig::default()).expect("a client");
            let mut sampler = Sampler::new(&stacks);
            let stats = || stopper.stats().clients;
            sampler.sample(&stats(), Instant::now());
            for at in 0..8 {
                cairn_block::BlockDeviceExt::write_at(&device, &[1; 4096], at * 4096)
                    .expect("it is written");
            }
            let later = Instant::now() + Duration::from_secs(1);
            let mut sample = sampler.sample(&stats(), later);
            // Counters are booked just after the answer is out.
            for i in 1..1000 {
                if sample.workloads[0].ops == 8 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
                sample = sampler.sample(&stats(), later + Duration::from_secs(i));
            }
            assert_eq!(sample.workloads[0].ops, 8);
            assert_eq!(sample.workloads[0].bytes, 8 * 4096);
            assert_eq!(sample.workloads[0].workers, 1);
            let names: Vec<&str> = sample.layers.iter().map(|l| &*l.name).collect();
            assert_eq!(names, ["client 1", "stats", "ram"]);
            assert_eq!(sample.layers[0].facts[1], "0 reads, 8 writes");
            drop(device);
            stopper.stop();
        });
    }
}
