//! Options about random offsets.

use super::setter::{Set, boolean, flag, word};
use super::{OptionDef, Tier, opt};
use crate::job::{Distribution, Job, RandomGenerator, ShapedDistribution};
use crate::value::{self, Reason};
use Tier::{Must, Next};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "randrepeat",
        &[],
        Must,
        "1",
        "Same offsets on every run",
        boolean!(random.randrepeat),
    ),
    opt(
        "randseed",
        &[],
        Next,
        "0x89",
        "Seed of the random sequences",
        Set::Int(0, u64::MAX, |j, v| {
            j.random.randseed = (v != 0x89).then_some(v);
        }),
    ),
    opt(
        "allrandrepeat",
        &[],
        Next,
        "0",
        "Same random decisions of every kind on every run",
        boolean!(random.allrandrepeat),
    ),
    opt(
        "norandommap",
        &[],
        Must,
        "",
        "Draw offsets freely instead of covering each block once",
        flag!(random.norandommap),
    ),
    opt(
        "softrandommap",
        &[],
        Next,
        "0",
        "Go on when there is no room for the map",
        boolean!(random.softrandommap),
    ),
    opt(
        "random_generator",
        &[],
        Next,
        "tausworthe",
        "Random generator",
        word!(RandomGenerator, random.generator),
    ),
    opt(
        "random_distribution",
        &[],
        Next,
        "random",
        "Distribution of random offsets",
        Set::Custom(
            "random, zipf:theta, pareto:h, normal:deviation, zoned:share/size%:..., zoned_abs:share/size:... or sequence:block,...",
            distribution,
        ),
    ),
    opt(
        "random_sequence_stride",
        &[],
        Next,
        "0",
        "Each round of a sequence behind the one before",
        boolean!(random.sequence_stride),
    ),
];

fn distribution(job: &mut Job, text: &str) -> Result<(), Reason> {
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    let base = job.report.kb_base;
    job.random.distribution = match word {
        "random" => Distribution::Uniform,
        "zipf" => {
            let shape = shaped(rest, 1.1)?;
            if (shape.parameter - 1.0).abs() < f64::EPSILON {
                return Err("zipf is not defined for theta 1; take 1.1 or 0.9, say".to_owned());
            }
            if shape.parameter < 0.0 {
                return Err("theta must not be negative".to_owned());
            }
            Distribution::Zipf(shape)
        }
        "pareto" => {
            let shape = shaped(rest, 0.2)?;
            if !(shape.parameter > 0.0 && shape.parameter < 1.0) {
                return Err("h must be between 0 and 1, without the ends".to_owned());
            }
            Distribution::Pareto(shape)
        }
        "normal" => {
            let shape = shaped(rest, 0.0)?;
            if !(0.0..100.0).contains(&shape.parameter) {
                return Err("the deviation must be at least 0 and below 100".to_owned());
            }
            Distribution::Normal(shape)
        }
        "zoned" | "zoned_abs" => {
            let mut lists = crate::job::PerDir::default();
            value::zones(rest, base, word == "zoned_abs")?.store(&mut lists, |zones| zones);
            Distribution::Zoned(lists)
        }
        "sequence" => Distribution::Sequence(sequence(rest)?),
        _ => {
            let words = &[
                "random",
                "zipf",
                "pareto",
                "normal",
                "zoned",
                "zoned_abs",
                "sequence",
            ];
            return Err(super::suggest::wrong_word(word, words));
        }
    };
    Ok(())
}

/// The numbers of blocks, by comma.
fn sequence(text: &str) -> Result<Vec<u64>, Reason> {
    // A longer list is a log: replay one with read_iolog.
    const MOST: usize = 1024;
    let blocks: Vec<u64> = text
        .split(',')
        .map(|part| {
            let part = part.trim();
            part.parse().map_err(|_| {
                format!("`{part}` is no block number; write for example sequence:2,0,1")
            })
        })
        .collect::<Result<_, Reason>>()?;
    if blocks.len() > MOST {
        return Err(format!(
            "{} blocks are more than {MOST}; replay a log instead",
            blocks.len()
        ));
    }
    Ok(blocks)
}

fn shaped(text: &str, default: f64) -> Result<ShapedDistribution, Reason> {
    let mut parts = text.split(':');
    let mut next = |name: &str| match parts.next().map(str::trim).filter(|p| !p.is_empty()) {
        None => Ok(None),
        Some(part) => part
            .parse::<f64>()
            .ok()
            .filter(|x| x.is_finite())
            .map(Some)
            .ok_or_else(|| format!("{part} is no number for the {name}")),
    };
    let parameter = next("parameter")?.unwrap_or(default);
    let center = next("centre")?;
    if center.is_some_and(|c| !(0.0..=1.0).contains(&c)) {
        return Err("the centre must be between 0 and 1".to_owned());
    }
    Ok(ShapedDistribution { parameter, center })
}
