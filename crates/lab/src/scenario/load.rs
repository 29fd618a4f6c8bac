//! Reading and printing scenario files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor, value};
use toml::Spanned;

use super::{FioSource, Scenario, ScenarioError, WorkloadKind, WorkloadSpec};
use crate::duration::parse_duration;

/// Most tasks a workload may ask for: each is a thread.
pub(crate) const MAX_TASKS: usize = 4096;

/// Warm-up where a file names none.
const WARMUP: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    stack: Spanned<String>,
    #[serde(default = "default_seed")]
    seed: u64,
    workload: OneOrMany,
    #[serde(default)]
    policies: BTreeMap<String, String>,
}

const fn default_seed() -> u64 {
    42
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    name: Option<Spanned<String>>,
    kind: Spanned<String>,
    job: Option<Spanned<String>>,
    options: Option<Spanned<String>>,
    runtime: Option<Spanned<String>>,
    warmup: Option<Spanned<String>>,
    tasks: Option<Spanned<i64>>,
    on: Option<Spanned<String>>,
}

/// `[workload]` or `[[workload]]`.
struct OneOrMany(Vec<Spanned<Workload>>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table `[workload]` or tables `[[workload]]`")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMany, A::Error> {
                let one = Workload::deserialize(value::MapAccessDeserializer::new(map))?;
                Ok(OneOrMany(vec![Spanned::new(0..0, one)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element::<Spanned<Workload>>()? {
                    all.push(one);
                }
                if all.is_empty() {
                    return Err(de::Error::custom("a scenario needs at least one workload"));
                }
                Ok(OneOrMany(all))
            }
        }
        deserializer.deserialize_any(V)
    }
}

/// Turns positions into lines and errors into sentences.
struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

impl Source<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.get(..span.start).unwrap_or("");
        before.matches('\n').count() + 1
    }

    fn error(&self, span: &Range<usize>, field: &str, message: impl Into<String>) -> ScenarioError {
        ScenarioError::Invalid {
            file: self.file.to_owned(),
            line: self.line(span),
            field: field.to_owned(),
            message: message.into(),
        }
    }
}

pub(super) fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
    // Some editors begin a file with a byte order mark, which is no part of its text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source { text, file };
    let parsed: File = toml::from_str(text).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        let field = field_at(text, &span);
        source.error(&span, field, e.message())
    })?;
    if parsed.name.get_ref().trim().is_empty() {
        return Err(source.error(&parsed.name.span(), "name", "a scenario needs a name"));
    }
    if let Err(e) = parsed.stack.get_ref().parse::<cairn_block::Spec>() {
        return Err(source.error(&parsed.stack.span(), "stack", e.to_string()));
    }
    let mut workloads: Vec<WorkloadSpec> = Vec::new();
    for raw in parsed.workload.0 {
        let span = raw
            .get_ref()
            .name
            .as_ref()
            .map_or_else(|| raw.get_ref().kind.span(), Spanned::span);
        let spec = workload(&source, raw.into_inner())?;
        if workloads.iter().any(|w| w.name == spec.name) {
            let message = format!(
                "two workloads are called `{}`; give each a name of its own",
                spec.name
            );
            return Err(source.error(&span, "name", message));
        }
        workloads.push(spec);
    }
    Ok(Scenario {
        name: parsed.name.into_inner(),
        about: parsed.about,
        stack: parsed.stack.into_inner(),
        seed: parsed.seed,
        workloads,
        policies: parsed.policies,
    })
}

fn workload(source: &Source<'_>, raw: Workload) -> Result<WorkloadSpec, ScenarioError> {
    let time = |value: Option<Spanned<String>>, field: &str| {
        value
            .map(|v| parse_duration(v.get_ref()).map_err(|e| source.error(&v.span(), field, e)))
            .transpose()
    };
    let runtime = time(raw.runtime, "runtime")?;
    let warmup = time(raw.warmup, "warmup")?.unwrap_or(WARMUP);
    let kind = match raw.kind.get_ref().as_str() {
        "fio" => {
            if let Some(tasks) = &raw.tasks {
                let message = "only workloads of kind `aim7` have tasks; fio jobs have --numjobs";
                return Err(source.error(&tasks.span(), "tasks", message));
            }
            if let Some(on) = &raw.on {
                let message = "only workloads of kind `aim7` choose between `pattern` and `file`";
                return Err(source.error(&on.span(), "on", message));
            }
            match (raw.options, raw.job) {
                (Some(options), None) => {
                    WorkloadKind::Fio(FioSource::Options(options.into_inner()))
                }
                (None, Some(job)) => {
                    WorkloadKind::Fio(FioSource::Job(PathBuf::from(job.into_inner())))
                }
                (Some(_), Some(job)) => {
                    let message = "give either `job` or `options`, not both";
                    return Err(source.error(&job.span(), "job", message));
                }
                (None, None) => {
                    let message =
                        "a fio workload needs `options = \"--rw=...\"` or `job = \"FILE.fio\"`";
                    return Err(source.error(&raw.kind.span(), "kind", message));
                }
            }
        }
        "aim7" => {
            for (value, field) in [(&raw.options, "options"), (&raw.job, "job")] {
                if let Some(value) = value {
                    let message = "only workloads of kind `fio` have this";
                    return Err(source.error(&value.span(), field, message));
                }
            }
            let tasks = match raw.tasks {
                None => 8,
                Some(tasks) => usize::try_from(*tasks.get_ref())
                    .ok()
                    .filter(|n| (1..=MAX_TASKS).contains(n))
                    .ok_or_else(|| {
                        let message = format!("{} is not in 1..={MAX_TASKS}", tasks.get_ref());
                        source.error(&tasks.span(), "tasks", message)
                    })?,
            };
            match raw.on.as_ref().map(|on| on.get_ref().as_str()) {
                None | Some("pattern") => WorkloadKind::CreatClo { tasks },
                Some("file") => WorkloadKind::CreatCloFiles { tasks },
                Some(other) => {
                    let message = format!("`{other}`: `pattern` or `file` would be right");
                    let span = raw.on.as_ref().map(Spanned::span).unwrap_or_default();
                    return Err(source.error(&span, "on", message));
                }
            }
        }
        other => {
            let message = format!("`{other}` is no kind of workload; kinds are fio, aim7");
            return Err(source.error(&raw.kind.span(), "kind", message));
        }
    };
    let name = raw.name.map_or_else(
        || match &kind {
            WorkloadKind::Fio(_) => "fio".to_owned(),
            WorkloadKind::CreatClo { .. } | WorkloadKind::CreatCloFiles { .. } => {
                "creat-clo".to_owned()
            }
        },
        Spanned::into_inner,
    );
    Ok(WorkloadSpec {
        name,
        kind,
        runtime,
        warmup,
    })
}

/// The key on the line of an error, so that the message names a field and not only a place.
fn field_at<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    let start = text
        .get(..span.start)
        .and_then(|t| t.rfind('\n'))
        .map_or(0, |i| i + 1);
    let line = text
        .get(start..)
        .and_then(|t| t.lines().next())
        .unwrap_or("");
    match line.split_once('=') {
        Some((key, _)) => key.trim(),
        None => line.trim().trim_matches(|c| c == '[' || c == ']'),
    }
}

/// A basic string, which is also legal as a key.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(super) fn print(scenario: &Scenario) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{key} = {value}");
    };
    line("name", quote(&scenario.name));
    if !scenario.about.is_empty() {
        line("about", quote(&scenario.about));
    }
    line("stack", quote(&scenario.stack));
    line("seed", scenario.seed.to_string());
    for workload in &scenario.workloads {
        out.push_str("\n[[workload]]\n");
        let mut line = |key: &str, value: String| {
            let _ = writeln!(out, "{key} = {value}");
        };
        line("name", quote(&workload.name));
        match &workload.kind {
            WorkloadKind::Fio(FioSource::Options(options)) => {
                line("kind", quote("fio"));
                line("options", quote(options));
            }
            WorkloadKind::Fio(FioSource::Job(path)) => {
                line("kind", quote("fio"));
                line("job", quote(&path.display().to_string()));
            }
            WorkloadKind::CreatClo { tasks } => {
                line("kind", quote("aim7"));
                line("tasks", tasks.to_string());
            }
            WorkloadKind::CreatCloFiles { tasks } => {
                line("kind", quote("aim7"));
                line("on", quote("file"));
                line("tasks", tasks.to_string());
            }
        }
        if let Some(runtime) = workload.runtime {
            line("runtime", quote(&format!("{}ns", runtime.as_nanos())));
        }
        line(
            "warmup",
            quote(&format!("{}ns", workload.warmup.as_nanos())),
        );
    }
    if !scenario.policies.is_empty() {
        out.push_str("\n[policies]\n");
        for (policy, arm) in &scenario.policies {
            let _ = writeln!(out, "{} = {}", quote(policy), quote(arm));
        }
    }
    out
}
