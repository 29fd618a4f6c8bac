//! fio's command line, by the rules of `getopt_long_only`.

use super::builder::Builder;
use super::{Parser, file, run_options};
use crate::error::{Location, ParseError, ParseErrorKind};
use crate::options;
use crate::plan::{OwnOption, Plan};

/// Whether an option takes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// None.
    Nothing,
    /// Behind `=` only.
    Maybe,
    /// Behind `=`, or the next word.
    Value,
    /// Like [`Takes::Value`], but a word that looks like an option is left alone and the value is 1.
    Bool,
}

/// What a word of the command line names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target<'a> {
    Run(&'static str),
    Own(&'a str),
    Job(&'static str),
}

pub(super) fn parse(parser: &Parser<'_>, words: &[String]) -> Result<Plan, ParseError> {
    let mut builder = Builder::new(parser);
    // Options of the run that shape how jobs are read hold wherever they stand.
    prepare(parser, words, &mut builder.plan)?;
    let mut files = Vec::new();
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let at = Location::Argument {
            position: index + 1,
        };
        index += 1;
        if word == "--" {
            files.extend(words.iter().skip(index).cloned());
            break;
        }
        let Some(body) = option_body(word) else {
            files.push(word.clone());
            continue;
        };
        let (key, inline) = body
            .split_once('=')
            .map_or((body, None), |(k, v)| (k, Some(v.to_owned())));
        let Some((target, takes)) = resolve(parser, key, &at)? else {
            if !builder.plan.run.lenient {
                return Err(unknown(parser, word, key, at));
            }
            builder.option(key, inline, at)?;
            continue;
        };
        let value = take_value(takes, key, inline, words, &mut index, &at)?;
        match target {
            Target::Run(name) => run_options::apply(
                &mut builder.plan.run,
                &mut builder.plan.notes,
                name,
                value.as_deref(),
                &at,
            )?,
            Target::Own(name) => builder.plan.own.push(OwnOption {
                name: name.to_owned(),
                value,
            }),
            Target::Job("name") => {
                let name = value
                    .filter(|v| !v.is_empty())
                    .ok_or_else(|| missing("name", "the job's name", &at))?;
                builder.end_section()?;
                builder.start_section(&name, at.clone());
                if !name.starts_with("global") {
                    builder.option("name", Some(name), at)?;
                }
            }
            Target::Job(name) => builder.option(name, value, at)?,
        }
    }
    builder.end_section()?;
    if builder
        .plan
        .run
        .show
        .as_ref()
        .is_some_and(run_options::needs_no_job)
    {
        return Ok(builder.plan);
    }
    for (index, path) in files.iter().enumerate() {
        if index > 0 {
            builder.further_file();
        }
        file::parse_path(&mut builder, path)?;
    }
    builder.finish()
}

fn unknown(parser: &Parser<'_>, word: &str, key: &str, at: Location) -> ParseError {
    let mut names: Vec<&str> = options::names().collect();
    names.extend(run_options::TABLE.iter().map(|(name, _)| *name));
    names.extend(parser.own.iter().map(|(name, _)| name.as_str()));
    let suggestion = options::closest(key, names.into_iter());
    let kind = ParseErrorKind::UnknownOption {
        option: word.to_owned(),
        suggestion: suggestion.map(str::to_owned),
    };
    ParseError::new(at, kind)
}

/// The part behind one or two dashes; `-` alone is standard input, no option.
fn option_body(word: &str) -> Option<&str> {
    let body = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    (!body.is_empty()).then_some(body)
}

fn prepare(parser: &Parser<'_>, words: &[String], plan: &mut Plan) -> Result<(), ParseError> {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let at = Location::Argument {
            position: index + 1,
        };
        index += 1;
        if word == "--" {
            break;
        }
        let Some(body) = option_body(word) else {
            continue;
        };
        let (key, inline) = body
            .split_once('=')
            .map_or((body, None), |(k, v)| (k, Some(v.to_owned())));
        if let Ok(Some((target, takes))) = resolve(parser, key, &at) {
            let value = take_value(takes, key, inline, words, &mut index, &at)?;
            match (target, value) {
                (Target::Run("lenient"), _) => plan.run.lenient = true,
                (Target::Run("section"), Some(name)) => plan.run.sections.push(name),
                _ => {}
            }
        }
    }
    Ok(())
}

fn missing(option: &str, expected: &str, at: &Location) -> ParseError {
    let kind = ParseErrorKind::MissingValue {
        option: option.to_owned(),
        expected: expected.to_owned(),
    };
    ParseError::new(at.clone(), kind)
}

fn take_value(
    takes: Takes,
    key: &str,
    inline: Option<String>,
    words: &[String],
    index: &mut usize,
    at: &Location,
) -> Result<Option<String>, ParseError> {
    match (takes, inline) {
        (Takes::Nothing, Some(value)) => {
            let kind = ParseErrorKind::UnexpectedValue {
                option: key.to_owned(),
                value,
            };
            Err(ParseError::new(at.clone(), kind))
        }
        (Takes::Nothing | Takes::Maybe, inline) => Ok(inline),
        (Takes::Value | Takes::Bool, Some(value)) => Ok(Some(value)),
        (Takes::Bool, None)
            if words
                .get(*index)
                .is_none_or(|next| option_body(next).is_some()) =>
        {
            Ok(Some("1".to_owned()))
        }
        (Takes::Value | Takes::Bool, None) => {
            let Some(value) = words.get(*index) else {
                let kind = options::find(key).map_or_else(
                    || "behind = or as the next word".to_owned(),
                    options::OptionDef::kind,
                );
                return Err(missing(key, &kind, at));
            };
            *index += 1;
            Ok(Some(value.clone()))
        }
    }
}

/// Exact names first, then prefixes that fit one option only.
fn resolve<'a>(
    parser: &'a Parser<'_>,
    key: &str,
    at: &Location,
) -> Result<Option<(Target<'a>, Takes)>, ParseError> {
    let mut fitting: Vec<(&str, Target<'a>, Takes)> = Vec::new();
    let mut consider = |name: &'a str, target: Target<'a>, takes: Takes| {
        if name == key {
            return Some((target, takes));
        }
        if name.starts_with(key) && !fitting.iter().any(|(_, t, _)| *t == target) {
            fitting.push((name, target, takes));
        }
        None
    };
    for (name, takes) in run_options::TABLE {
        if let Some(found) = consider(name, Target::Run(name), *takes) {
            return Ok(Some(found));
        }
    }
    for (name, takes_value) in &parser.own {
        let takes = if *takes_value {
            Takes::Value
        } else {
            Takes::Nothing
        };
        if let Some(found) = consider(name, Target::Own(name), takes) {
            return Ok(Some(found));
        }
    }
    for def in options::all() {
        let takes = job_takes(def);
        for name in std::iter::once(&def.name).chain(def.aliases) {
            if let Some(found) = consider(name, Target::Job(def.name), takes) {
                return Ok(Some(found));
            }
        }
    }
    match fitting.as_slice() {
        [] => Ok(None),
        [(_, target, takes)] => Ok(Some((*target, *takes))),
        many => {
            let kind = ParseErrorKind::Ambiguous {
                option: key.to_owned(),
                candidates: many.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            };
            Err(ParseError::new(at.clone(), kind))
        }
    }
}

fn job_takes(def: &options::OptionDef) -> Takes {
    if def.is_bool() {
        Takes::Bool
    } else if def.may_stand_alone() {
        Takes::Maybe
    } else {
        Takes::Value
    }
}
