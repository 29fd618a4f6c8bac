//! The figures of a run as OpenMetrics text: over HTTP on a loopback address, or in a file for a textfile
//! collector. Off unless asked for.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_lab::{CounterView, PolicyInfo, Sample};

/// The kind of text, as OpenMetrics 1.0 names it.
const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Longest head of a request that is read.
const HEAD: usize = 8 << 10;

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two writings of the file.
const EVERY: Duration = Duration::from_secs(1);

/// What does not change during a run.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) scenario: String,
    pub(crate) stack: String,
    pub(crate) policies: Vec<PolicyInfo>,
}

/// Takes samples in and shows the newest to whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    latest: Option<Arc<Mutex<String>>>,
    file: Option<PathBuf>,
    about: Option<About>,
    written: Option<Duration>,
    /// The file could not be written, which is said once.
    broken: bool,
}

impl Metrics {
    /// Listens, if an address is given, and notes the file.
    ///
    /// # Errors
    /// When the address is taken, or the file cannot be written.
    pub(crate) fn open(
        listen: Option<SocketAddr>,
        file: Option<&Path>,
        about: About,
        note: impl FnOnce(&str),
    ) -> io::Result<Self> {
        let mut metrics = Self {
            file: file.map(PathBuf::from),
            about: Some(about),
            ..Self::default()
        };
        if let Some(file) = file {
            // A wrong path is told before the run.
            write_whole(file, "# EOF\n")?;
        }
        if let Some(address) = listen {
            let listener = TcpListener::bind(address)?;
            note(&format!(
                "metrics at http://{}/metrics",
                listener.local_addr()?
            ));
            let latest = Arc::new(Mutex::new("# EOF\n".to_owned()));
            metrics.latest = Some(Arc::clone(&latest));
            thread::Builder::new()
                .name("metrics".to_owned())
                .spawn(move || serve(&listener, &latest))?;
        }
        Ok(metrics)
    }

    /// Takes a sample in; one that cannot be written to the file is said once.
    pub(crate) fn take(&mut self, sample: &Sample) -> Option<String> {
        let about = self.about.as_ref()?;
        let due = self.written.is_none_or(|at| sample.elapsed >= at + EVERY);
        let file = self.file.as_ref().filter(|_| due && !self.broken);
        if self.latest.is_none() && file.is_none() {
            return None;
        }
        let text = text(sample, about);
        let written = file.map(|file| write_whole(file, &text));
        if let Some(latest) = &self.latest {
            *latest.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        match written? {
            Ok(()) => {
                self.written = Some(sample.elapsed);
                None
            }
            Err(error) => {
                self.broken = true;
                Some(format!(
                    "the metrics file cannot be written any more: {error}"
                ))
            }
        }
    }
}

/// Replaces the file, so that a reader never sees half of it.
fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, file));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Answers one request after the other: a collector asks every few seconds.
fn serve(listener: &TcpListener, latest: &Mutex<String>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Too many open files, say; asking at once again would spin.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let text = || {
            latest
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        };
        // A client that went away is its own affair.
        let _ = answer(stream, text);
    }
}

fn answer(mut stream: TcpStream, text: impl FnOnce() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") && head.len() < HEAD {
        match stream.read(&mut part)? {
            0 => break,
            n => head.extend_from_slice(part.get(..n).unwrap_or_default()),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => ("200 OK", text()),
        (Some("GET"), Some(_)) => ("404 Not Found", "only /metrics is here\n".to_owned()),
        (Some(_), Some(_)) => ("405 Method Not Allowed", "only GET\n".to_owned()),
        _ => ("400 Bad Request", "no request\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A family of metrics: its type line, then its values.
struct Family<'a> {
    out: &'a mut String,
    name: &'a str,
}

impl<'a> Family<'a> {
    fn new(out: &'a mut String, name: &'a str, kind: &str, help: &str) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(out, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
        Self { out, name }
    }

    fn add(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let name = self.name;
        let _ = write!(self.out, "{name}{suffix}");
        for (i, (key, text)) in labels.iter().enumerate() {
            let open = if i == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{open}{key}=\"{}\"", escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{close} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A sample as OpenMetrics text. Totals count from the last reset of the statistics.
pub(crate) fn text(sample: &Sample, about: &About) -> String {
    let mut out = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let labels = [
        ("version", version),
        ("scenario", &about.scenario),
        ("stack", &about.stack),
    ];
    Family::new(&mut out, "cairn_build", "info", "What runs.").add("_info", &labels, 1);
    let mut up = Family::new(
        &mut out,
        "cairn_running",
        "gauge",
        "1 while the workers run.",
    );
    up.add("", &[], u8::from(sample.running));
    workloads(&mut out, sample);
    policies(&mut out, sample, about);
    counters(&mut out, sample);
    let mut drops = Family::new(
        &mut out,
        "cairn_samples_dropped",
        "counter",
        "Samples that a slow reader lost.",
    );
    drops.add("_total", &[], sample.dropped);
    out.push_str("# EOF\n");
    out
}

fn workloads(out: &mut String, sample: &Sample) {
    let mut count = |name: &str, help: &str, of: fn(&cairn_lab::WorkloadSample) -> u64| {
        let mut family = Family::new(out, name, "counter", help);
        for w in &sample.workloads {
            family.add("_total", &[("workload", &w.name)], of(w));
        }
    };
    count("cairn_operations", "Operations done.", |w| w.ops);
    count("cairn_bytes", "Bytes moved.", |w| w.bytes);
    count("cairn_errors", "Operations that failed.", |w| w.errors);
    let mut rate = Family::new(
        out,
        "cairn_operations_per_second",
        "gauge",
        "Operations a second in the last sample.",
    );
    for w in &sample.workloads {
        rate.add("", &[("workload", &w.name)], w.ops_per_s);
    }
    let help = "Latency since the reset, from HDR histograms.";
    let mut latency = Family::new(out, "cairn_latency_seconds", "summary", help);
    for w in &sample.workloads {
        let l = &w.total;
        for (quantile, ns) in [
            ("0.5", l.p50),
            ("0.9", l.p90),
            ("0.99", l.p99),
            ("0.999", l.p999),
            ("0.9999", l.p9999),
        ] {
            let labels = [("workload", &*w.name), ("quantile", quantile)];
            latency.add("", &labels, ns as f64 / 1e9);
        }
        let labels = [("workload", &*w.name)];
        latency.add("_count", &labels, l.n);
        latency.add("_sum", &labels, l.mean * l.n as f64 / 1e9);
    }
}

fn policies(out: &mut String, sample: &Sample, about: &About) {
    let mut arms = Family::new(
        out,
        "cairn_policy",
        "stateset",
        "The chosen arm of each policy.",
    );
    for (policy, chosen) in about.policies.iter().zip(&sample.arms) {
        for (i, arm) in policy.arms.iter().enumerate() {
            let labels = [("policy", policy.name.as_str()), ("cairn_policy", arm)];
            arms.add("", &labels, u8::from(i == *chosen));
        }
    }
}

fn counters(out: &mut String, sample: &Sample) {
    let e = &sample.extents;
    let views = [
        ("hits", e.hits),
        ("misses", e.misses),
        ("objects", e.objects),
        ("reclaimable", e.reclaimable),
    ];
    let mut view = |name: &str, help: &str, of: fn(CounterView) -> i64| {
        let mut family = Family::new(out, name, "gauge", help);
        for (counter, view) in views {
            family.add("", &[("counter", counter)], of(view));
        }
    };
    view("cairn_extent_cache_exact", "Exact sum of a counter.", |v| {
        v.exact
    });
    view(
        "cairn_extent_cache_approximate",
        "What one load reads.",
        |v| v.approx,
    );
    view(
        "cairn_extent_cache_bound",
        "Most that the two can differ by.",
        |v| i64::try_from(v.bound).unwrap_or(i64::MAX),
    );
    for (name, help, n) in [
        (
            "cairn_extent_cache_scans",
            "Scans of the extent cache's shrinker.",
            e.shrinks.scans,
        ),
        (
            "cairn_extent_cache_scanned",
            "Entries that they visited.",
            e.shrinks.scanned,
        ),
        (
            "cairn_extent_cache_reclaimed",
            "Entries that they reclaimed.",
            e.shrinks.reclaimed,
        ),
    ] {
        Family::new(out, name, "counter", help).add("_total", &[], n);
    }
    let f = &sample.flags;
    if f.probe {
        for (name, help, n) in [
            ("cairn_flag_sets", "Set calls of flag bits.", f.sets),
            (
                "cairn_flag_rmws",
                "Set calls that did a read-modify-write.",
                f.rmws,
            ),
            (
                "cairn_flag_avoided",
                "Set calls that left the word alone.",
                f.avoided,
            ),
        ] {
            Family::new(out, name, "counter", help).add("_total", &[], n);
        }
    }
}
