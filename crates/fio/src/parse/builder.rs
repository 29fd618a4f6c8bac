//! Sections into jobs, for files and command lines alike.

use super::{Parser, finish};
use crate::error::{Location, ParseError, ParseErrorKind};
use crate::job::{EngineClass, IoEngine, Job};
use crate::lint::{self, Lint, LintCode};
use crate::options::{self, ApplyError, OptionDef, Tier};
use crate::plan::{Given, Plan};

/// The section being read.
struct Section {
    at: Location,
    global: bool,
    /// Left out by `--section`.
    skipped: bool,
    job: Job,
    /// Options of an engine, applied when the section ends and the engine is known.
    of_engine: Vec<(&'static OptionDef, Given)>,
    /// Options of a file's section, which are applied together.
    lines: Vec<(String, Option<String>, Location)>,
    /// From the command line: options are applied as they come.
    immediate: bool,
}

pub(super) struct Builder<'p> {
    parser: &'p Parser<'p>,
    pub(super) plan: Plan,
    section: Option<Section>,
    /// What later jobs start from.
    template: Job,
    /// Where the globals of the file at hand begin.
    globals_from: usize,
    /// The first job of a further file waits for those of the file before.
    wall: bool,
    /// Sections seen, for `--section` and lints.
    names: Vec<String>,
}

impl<'p> Builder<'p> {
    pub(super) fn new(parser: &'p Parser<'p>) -> Self {
        let mut plan = Plan::default();
        plan.run.lenient = parser.lenient;
        Self {
            parser,
            plan,
            section: None,
            template: Job::default(),
            globals_from: 0,
            wall: false,
            names: Vec::new(),
        }
    }

    pub(super) const fn parser(&self) -> &'p Parser<'p> {
        self.parser
    }

    pub(super) const fn in_section(&self) -> bool {
        self.section.is_some()
    }

    pub(super) fn skips(&self) -> bool {
        self.section.as_ref().is_some_and(|s| s.skipped)
    }

    /// A further job file begins: it starts without globals, and its first job waits for those before.
    ///
    /// The globals of the command line hold for the first file only, as in fio.
    pub(super) fn further_file(&mut self) {
        self.wall = !self.plan.jobs.is_empty();
        self.template = Job::default();
        self.globals_from = self.plan.globals.len();
    }

    pub(super) fn start_section(&mut self, name: &str, at: Location) {
        let global = name.starts_with("global");
        let wanted = &self.plan.run.sections;
        let skipped = !global && !wanted.is_empty() && !wanted.iter().any(|w| w == name);
        if !global {
            self.names.push(name.to_owned());
        }
        let mut job = self.template.clone();
        if !global {
            name.clone_into(&mut job.section);
            name.clone_into(&mut job.name);
            job.globals = self.globals_from..self.plan.globals.len();
        }
        self.section = Some(Section {
            immediate: matches!(at, Location::Argument { .. }),
            at,
            global,
            skipped,
            job,
            of_engine: Vec::new(),
            lines: Vec::new(),
        });
    }

    /// One line of a file: `key` or `key=value`.
    pub(super) fn line(&mut self, line: &str, at: Location) -> Result<(), ParseError> {
        if self.section.is_none() {
            let line = line.to_owned();
            return Err(ParseError::new(at, ParseErrorKind::OutsideSection { line }));
        }
        let (key, value) = match line.split_once('=') {
            // As in fio, blanks behind the = belong to the value.
            Some((key, value)) => (key.trim_end(), Some(value)),
            None => (line, None),
        };
        self.option(key, value.map(str::to_owned), at)
    }

    /// One option for the section at hand; on a command line without a job, for all later jobs.
    pub(super) fn option(
        &mut self,
        key: &str,
        value: Option<String>,
        at: Location,
    ) -> Result<(), ParseError> {
        if self.section.is_none() {
            self.start_section("global", at.clone());
        }
        let Some(section) = self.section.as_mut().filter(|s| !s.skipped) else {
            return Ok(());
        };
        if section.immediate {
            let (parser, lenient) = (self.parser, self.plan.run.lenient);
            store(
                parser,
                lenient,
                section,
                &mut self.plan.notes,
                key,
                value,
                at,
            )
        } else {
            section.lines.push((key.to_owned(), value, at));
            Ok(())
        }
    }

    /// A comment sign that touches a value has cut it.
    pub(super) fn cut_value(&mut self, kept: &str, at: &Location) {
        if !self.skips() {
            self.plan.lints.push(Lint {
                code: LintCode::CommentCut,
                at: at.clone(),
                text: format!("; and # start a comment anywhere, so this line is read as {kept}"),
            });
        }
    }

    /// Turns the section at hand into a job or into the template of later ones.
    pub(super) fn end_section(&mut self) -> Result<(), ParseError> {
        let Some(mut section) = self.section.take().filter(|s| !s.skipped) else {
            return Ok(());
        };
        let lenient = self.plan.run.lenient;
        let lines = std::mem::take(&mut section.lines);
        // kb_base holds for the whole section wherever it stands, since other values are read with it.
        for (_, value, _) in lines.iter().filter(|(key, ..)| key == "kb_base") {
            if let Some(def) = options::find("kb_base") {
                // What is wrong with it is said below, at its place.
                let _ = def.apply(&mut section.job, value.as_deref());
            }
        }
        for (key, value, at) in lines {
            store(
                self.parser,
                lenient,
                &mut section,
                &mut self.plan.notes,
                &key,
                value,
                at,
            )?;
        }
        engine_options(&mut section)?;
        if section.global {
            self.plan.global_starts.push(self.plan.globals.len());
            self.plan.globals.append(&mut section.job.given);
            self.plan.ignored.append(&mut section.job.ignored);
            self.template = section.job;
            return Ok(());
        }
        let mut job = section.job;
        if std::mem::take(&mut self.wall) {
            job.control.stonewall = true;
        }
        finish::job(&mut job, &section.at, &self.plan)?;
        self.plan.jobs.push(job);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Plan, ParseError> {
        self.end_section()?;
        finish::plan(&mut self.plan, &self.names)?;
        lint::check(&mut self.plan);
        if let Some(lint) = self
            .plan
            .lints
            .first()
            .filter(|_| self.plan.run.warnings_fatal)
        {
            let kind = ParseErrorKind::Warning(format!("[{}] {}", lint.code.word(), lint.text));
            return Err(ParseError::new(lint.at.clone(), kind));
        }
        Ok(self.plan)
    }
}

/// Options of engines need the engine, which the section may name last.
fn engine_options(section: &mut Section) -> Result<(), ParseError> {
    let engine = section.job.queue.ioengine;
    for (def, given) in std::mem::take(&mut section.of_engine) {
        if !def.engines.contains(&engine) {
            let kind = ParseErrorKind::OtherEngine {
                option: given.name.to_owned(),
                engine: engine.word(),
                engines: engine_words(def),
            };
            return Err(ParseError::new(given.at, kind));
        }
        apply(def, &mut section.job, &given)?;
    }
    Ok(())
}

fn engine_words(def: &OptionDef) -> Vec<&'static str> {
    def.engines.iter().map(|e| e.word()).collect()
}

fn store(
    parser: &Parser<'_>,
    lenient: bool,
    section: &mut Section,
    notes: &mut Vec<String>,
    key: &str,
    value: Option<String>,
    at: Location,
) -> Result<(), ParseError> {
    let Some(def) = options::find(key) else {
        return unknown(lenient, section, notes, key, value, at);
    };
    let value = match value
        .map(|v| parser.expand(&v).map_err(|reason| (v, reason)))
        .transpose()
    {
        Ok(value) => value,
        Err((value, reason)) => {
            let kind = ParseErrorKind::BadValue {
                option: def.name.to_owned(),
                value,
                reason,
            };
            return Err(ParseError::new(at, kind));
        }
    };
    let given = Given {
        name: def.name,
        value,
        at,
    };
    if def.name == "ioengine" {
        check_engine(&given)?;
    }
    if def.engines.is_empty() {
        apply(def, &mut section.job, &given)?;
    } else {
        section.of_engine.push((def, given.clone()));
    }
    if def.tier == Tier::Noted {
        notes.push(format!(
            "{}: {} is accepted without effect",
            given.at, given.name
        ));
    }
    section.job.given.push(given);
    Ok(())
}

fn unknown(
    lenient: bool,
    section: &mut Section,
    notes: &mut Vec<String>,
    key: &str,
    value: Option<String>,
    at: Location,
) -> Result<(), ParseError> {
    let suggestion = options::nearest(key).map(str::to_owned);
    let option = value
        .as_ref()
        .map_or_else(|| key.to_owned(), |v| format!("{key}={v}"));
    let error = ParseError::new(
        at.clone(),
        ParseErrorKind::UnknownOption { option, suggestion },
    );
    if !lenient {
        return Err(error);
    }
    notes.push(format!("{error} (ignored by --lenient)"));
    section.job.ignored.push(crate::plan::Ignored {
        name: key.to_owned(),
        value,
        at,
    });
    Ok(())
}

fn check_engine(given: &Given) -> Result<(), ParseError> {
    let Some(name) = given.value.as_deref().filter(|v| !v.is_empty()) else {
        return Ok(());
    };
    match IoEngine::from_word(name).map(|engine| (engine, engine.class())) {
        None => {
            let kind = ParseErrorKind::UnknownEngine {
                engine: name.to_owned(),
                suggestion: options::nearest_word(name, IoEngine::WORDS),
            };
            Err(ParseError::new(given.at.clone(), kind))
        }
        Some((engine, EngineClass::Outside)) => {
            let kind = ParseErrorKind::RefusedEngine {
                engine: engine.word(),
            };
            Err(ParseError::new(given.at.clone(), kind))
        }
        Some(_) => Ok(()),
    }
}

fn apply(def: &OptionDef, job: &mut Job, given: &Given) -> Result<(), ParseError> {
    let kind = match def.apply(job, given.value.as_deref()) {
        Ok(()) => return Ok(()),
        Err(ApplyError::Missing) => ParseErrorKind::MissingValue {
            option: def.name.to_owned(),
            expected: def.kind(),
        },
        Err(ApplyError::Bad(reason)) if def.tier == Tier::Refused => ParseErrorKind::Refused {
            option: def.name.to_owned(),
            reason,
        },
        Err(ApplyError::Bad(reason)) => ParseErrorKind::BadValue {
            option: def.name.to_owned(),
            value: given.value.clone().unwrap_or_default(),
            reason,
        },
    };
    Err(ParseError::new(given.at.clone(), kind))
}
