//! fio's JSON and JSON+.

use super::view::{GroupDirection, share_of_group};
use super::{
    Direction, DiskUtil, FIO_VERSION, JobResult, Json, Latency, RunResult, SteadyResult,
    time_in_words,
};
use crate::job::{Ddir, PerDir};

/// `eta` when nobody knows.
const UNKNOWN_ETA: u64 = i32::MAX as u64;

const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
const LATENCIES: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];

impl RunResult {
    /// The whole result as JSON; with `bins` as JSON+.
    ///
    /// ```
    /// use cairn_fio::output::{JobResult, RunResult};
    /// let plan = cairn_fio::parse_job_text("j", "[j]\nrw=read\n")?;
    /// let run = RunResult { jobs: vec![JobResult::of_job(&plan.jobs[0])], ..RunResult::default() };
    /// let json = run.json(false);
    /// assert!(json.get("fio version").is_some());
    /// println!("{}", json.pretty());
    /// # Ok::<(), cairn_fio::ParseError>(())
    /// ```
    pub fn json(&self, bins: bool) -> Json {
        let seconds = self.timestamp_ms / 1000;
        let mut members = vec![
            (
                "fio version".to_owned(),
                Json::Text(format!("{FIO_VERSION}{}", self.version_suffix)),
            ),
            ("timestamp".to_owned(), Json::from(seconds)),
            ("timestamp_ms".to_owned(), Json::from(self.timestamp_ms)),
            (
                "time".to_owned(),
                Json::Text(time_in_words(seconds, self.utc_offset_s)),
            ),
        ];
        if !self.global_options.is_empty() {
            members.push((
                "global options".to_owned(),
                Json::texts(&self.global_options),
            ));
        }
        let groups = self.group_of_jobs();
        let jobs = self
            .jobs
            .iter()
            .zip(&groups)
            .map(|(result, group)| job(result, group, bins));
        members.push(("jobs".to_owned(), Json::List(jobs.collect())));
        if let Some(disks) = self.disk_util.as_ref().filter(|disks| !disks.is_empty()) {
            members.push((
                "disk_util".to_owned(),
                Json::List(disks.iter().map(disk).collect()),
            ));
        }
        own(&mut members, &self.own);
        Json::Object(members)
    }
}

fn own(members: &mut Vec<(String, Json)>, own: &[(String, Json)]) {
    if !own.is_empty() {
        members.push(("cairn".to_owned(), Json::Object(own.to_vec())));
    }
}

fn job(result: &JobResult, group: &PerDir<GroupDirection>, bins: bool) -> Json {
    let mut members = vec![
        ("jobname".to_owned(), Json::from(result.jobname.as_str())),
        ("groupid".to_owned(), Json::from(result.groupid)),
        ("error".to_owned(), Json::from(result.error)),
        (
            "eta".to_owned(),
            Json::from(result.eta_s.unwrap_or(UNKNOWN_ETA)),
        ),
        ("elapsed".to_owned(), Json::from(result.elapsed_s)),
        ("job options".to_owned(), Json::texts(&result.options)),
    ];
    let mut push = |key: &str, value: Json| members.push((key.to_owned(), value));
    if result.unified {
        push(
            "mixed",
            direction(&result.directions.read, &group.read, result, bins),
        );
    } else {
        for dir in Ddir::ALL {
            push(
                dir.word(),
                direction(result.directions.get(dir), group.get(dir), result, bins),
            );
        }
        let latency = latency(&result.sync, true, result, bins);
        let total = Json::from(result.sync.stats.count());
        push(
            "sync",
            Json::object([("total_ios", total), ("lat_ns", latency)]),
        );
    }
    let (usr, sys) = result.cpu_percent();
    push("job_runtime", Json::from(result.job_runtime_ms));
    push("usr_cpu", Json::from(usr));
    push("sys_cpu", Json::from(sys));
    push("ctx", Json::from(result.cpu.ctx));
    push("majf", Json::from(result.cpu.majf));
    push("minf", Json::from(result.cpu.minf));
    push("iodepth_level", shares(&DEPTHS, &result.depth_percent()));
    push(
        "iodepth_submit",
        shares(&BATCHES, &result.submit.percent(result.submit.total)),
    );
    push(
        "iodepth_complete",
        shares(&BATCHES, &result.complete.percent(result.complete.total)),
    );
    let (ns, us, ms) = result.latency_percent();
    push("latency_ns", shares(&LATENCIES, &ns));
    push("latency_us", shares(&LATENCIES, &us));
    push("latency_ms", shares(&LATENCIES, &ms));
    if let Some((count, first)) = result.errors {
        push("total_err", Json::from(count));
        push("first_error", Json::from(first));
    }
    push("latency_depth", Json::from(result.latency_depth.depth));
    push("latency_target", Json::from(result.latency_depth.target_us));
    push(
        "latency_percentile",
        Json::from(result.latency_depth.percentile),
    );
    push("latency_window", Json::from(result.latency_depth.window_us));
    if let Some(text) = &result.description {
        push("desc", Json::from(text.as_str()));
    }
    if let Some(steady) = &result.steadystate {
        push("steadystate", steadystate(steady));
    }
    own(&mut members, &result.own);
    Json::Object(members)
}

fn shares(labels: &[&str], values: &[f64]) -> Json {
    Json::object(
        labels
            .iter()
            .zip(values)
            .map(|(label, value)| (*label, Json::from(*value))),
    )
}

fn direction(figures: &Direction, group: &GroupDirection, result: &JobResult, bins: bool) -> Json {
    let (bw, iops) = (&figures.bw, &figures.iops);
    Json::object([
        ("io_bytes", Json::from(figures.io_bytes)),
        ("io_kbytes", Json::from(figures.io_bytes >> 10)),
        ("bw_bytes", Json::from(figures.bw_bytes())),
        ("bw", Json::from(figures.bw_bytes() >> 10)),
        ("iops", Json::from(figures.iops_mean())),
        ("runtime", Json::from(figures.runtime_ms)),
        ("total_ios", Json::from(figures.total_ios)),
        ("short_ios", Json::from(figures.short_ios)),
        ("drop_ios", Json::from(figures.drop_ios)),
        (
            "slat_ns",
            latency(&figures.slat, result.slat_percentiles, result, bins),
        ),
        (
            "clat_ns",
            latency(&figures.clat, result.clat_percentiles, result, bins),
        ),
        (
            "lat_ns",
            latency(&figures.lat, result.lat_percentiles, result, bins),
        ),
        ("bw_min", Json::from(bw.min())),
        ("bw_max", Json::from(bw.max())),
        ("bw_agg", Json::from(share_of_group(figures, group))),
        ("bw_mean", Json::from(bw.mean())),
        ("bw_dev", Json::from(bw.stddev())),
        ("bw_samples", Json::from(bw.count())),
        ("iops_min", Json::from(iops.min())),
        ("iops_max", Json::from(iops.max())),
        ("iops_mean", Json::from(iops.mean())),
        ("iops_stddev", Json::from(iops.stddev())),
        ("iops_samples", Json::from(iops.count())),
    ])
}

fn latency(latency: &Latency, percentiles: bool, result: &JobResult, bins: bool) -> Json {
    let stats = &latency.stats;
    let mut members = vec![
        ("min".to_owned(), Json::from(stats.min())),
        ("max".to_owned(), Json::from(stats.max())),
        ("mean".to_owned(), Json::from(stats.mean())),
        ("stddev".to_owned(), Json::from(stats.stddev())),
        ("N".to_owned(), Json::from(stats.count())),
    ];
    if let Some(values) = latency.shown_percentiles(percentiles, &result.percentiles) {
        let pairs = result.percentiles.iter().zip(values);
        let object = Json::object(
            pairs.map(|(percent, value)| (format!("{percent:.6}"), Json::from(value))),
        );
        members.push(("percentile".to_owned(), object));
        if let Some(histogram) = latency.histogram.as_ref().filter(|_| bins) {
            let object = Json::object(
                histogram
                    .iter()
                    .map(|b| (b.value.to_string(), Json::from(b.count))),
            );
            members.push(("bins".to_owned(), object));
        }
    }
    Json::Object(members)
}

fn steadystate(steady: &SteadyResult) -> Json {
    let sign = if steady.percent { "%" } else { "" };
    let numbers = |list: &[u64]| Json::List(list.iter().map(|n| Json::from(*n)).collect());
    let data = Json::object([
        ("bw_mean", Json::from(mean(&steady.bw))),
        ("iops_mean", Json::from(mean(&steady.iops))),
        ("iops", numbers(&steady.iops)),
        ("bw", numbers(&steady.bw)),
    ]);
    Json::object([
        (
            "ss",
            Json::Text(format!("{}:{:.6}{sign}", steady.metric, steady.limit)),
        ),
        ("duration", Json::from(steady.duration_s)),
        ("attained", Json::from(u32::from(steady.attained))),
        (
            "criterion",
            Json::Text(format!("{:.6}{sign}", steady.criterion)),
        ),
        ("max_deviation", Json::from(steady.max_deviation)),
        ("slope", Json::from(steady.slope)),
        ("data", data),
    ])
}

/// Mean of whole numbers, rounded down.
pub(super) fn mean(list: &[u64]) -> u64 {
    let sum: u128 = list.iter().map(|n| u128::from(*n)).sum();
    u64::try_from(sum / list.len().max(1) as u128).unwrap_or(u64::MAX)
}

fn disk(disk: &DiskUtil) -> Json {
    let ([reads, writes], [read_merges, write_merges], [read_ticks, write_ticks]) =
        (disk.ios, disk.merges, disk.ticks);
    Json::object([
        ("name", Json::from(disk.name.as_str())),
        ("read_ios", Json::from(reads)),
        ("write_ios", Json::from(writes)),
        ("read_merges", Json::from(read_merges)),
        ("write_merges", Json::from(write_merges)),
        ("read_ticks", Json::from(read_ticks)),
        ("write_ticks", Json::from(write_ticks)),
        ("in_queue", Json::from(disk.in_queue)),
        ("util", Json::from(disk.util)),
    ])
}
