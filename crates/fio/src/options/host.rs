//! Options about the host a job runs on: accepted, mostly without effect.

use super::setter::{Set, U32};
use super::{OptionDef, Tier, opt};
use crate::job::Job;
use crate::value::Reason;
use Tier::{Next, Noted};

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "nice",
        &[],
        Noted,
        "0",
        "Nice value",
        Set::Custom("a number, -20 to 19", |_, v| match v.parse::<i32>() {
            Ok(-20..=19) => Ok(()),
            _ => Err("must be between -20 and 19".to_owned()),
        }),
    ),
    opt(
        "prio",
        &[],
        Noted,
        "",
        "I/O priority",
        Set::Int(0, 7, |_, _| {}),
    ),
    opt(
        "prioclass",
        &[],
        Noted,
        "",
        "I/O priority class",
        Set::Int(0, 3, |_, _| {}),
    ),
    opt(
        "ioscheduler",
        &[],
        Noted,
        "",
        "I/O scheduler of the device",
        Set::Text(|_, _| {}),
    ),
    opt(
        "write_hint",
        &[],
        Noted,
        "",
        "Expected life of what is written",
        Set::Words(&["none", "short", "medium", "long", "extreme"], |_, _| {}),
    ),
    opt(
        "lockmem",
        &[],
        Noted,
        "0",
        "Lock this much memory",
        Set::Int(0, u64::MAX, |_, _| {}),
    ),
    opt(
        "mem",
        &["iomem"],
        Next,
        "malloc",
        "Where buffers come from",
        Set::Custom(
            "malloc, shm, shmhuge, mmap, mmapshared or mmaphuge, and :FILE behind it",
            mem,
        ),
    )
    .unmodelled(),
    opt(
        "iomem_align",
        &["mem_align"],
        Noted,
        "",
        "Alignment of buffers",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "hugepage-size",
        &[],
        Noted,
        "2097152",
        "Size of huge pages",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "numa_cpu_nodes",
        &[],
        Noted,
        "",
        "NUMA nodes to run on",
        Set::Text(|_, _| {}),
    ),
    opt(
        "numa_mem_policy",
        &[],
        Noted,
        "",
        "NUMA policy of the memory",
        Set::Text(|_, _| {}),
    ),
    opt(
        "cgroup",
        &[],
        Noted,
        "",
        "Control group",
        Set::Text(|_, _| {}),
    ),
    opt(
        "cgroup_weight",
        &[],
        Noted,
        "",
        "Weight of the control group",
        Set::Int(100, 1000, |_, _| {}),
    ),
    opt(
        "cgroup_nodelete",
        &[],
        Noted,
        "0",
        "Keep the control group",
        Set::Bool(|_, _| {}),
    ),
    opt(
        "uid",
        &[],
        Noted,
        "",
        "User to run as",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "gid",
        &[],
        Noted,
        "",
        "Group to run as",
        Set::Int(0, U32, |_, _| {}),
    ),
    opt(
        "clocksource",
        &[],
        Noted,
        "",
        "Clock that is read",
        Set::Words(&["gettimeofday", "clock_gettime", "cpu"], |_, _| {}),
    ),
    opt(
        "gtod_cpu",
        &[],
        Noted,
        "",
        "CPU of a thread that reads the clock",
        Set::Int(0, U32, |_, _| {}),
    ),
];

fn mem(_: &mut Job, text: &str) -> Result<(), Reason> {
    const WORDS: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];
    let word = text.split(':').next().unwrap_or(text);
    if WORDS.contains(&word) {
        Ok(())
    } else {
        Err(super::suggest::wrong_word(word, WORDS))
    }
}
