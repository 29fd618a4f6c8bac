//! Options that belong to one engine or some.

use super::setter::{Set, U32, n8};
use super::{OptionDef, Tier, opt};
use crate::job::IoEngine::{
    self, CpuIo, IoUring, IoUringCmd, Libaio, Mmap, Nbd, Pvsync2, Sg, SpdkBdev, Xnvme,
};
use Tier::{Next, Noted, Refused};

const URING: &[IoEngine] = &[IoUring, IoUringCmd];
const PRIO: &[IoEngine] = &[Libaio, IoUring, IoUringCmd];
const SCSI: &str = "commands of SCSI devices are not modelled";
const NVME: &str = "commands of NVMe devices are not modelled";

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt(
        "userspace_reap",
        &[],
        Noted,
        "",
        "Reap completions without a system call",
        Set::Flag(|_, _| {}),
    )
    .of(&[Libaio]),
    opt(
        "nowait",
        &[],
        Noted,
        "0",
        "Fail instead of waiting",
        Set::Bool(|_, _| {}),
    )
    .of(&[Libaio, IoUring, IoUringCmd, Pvsync2]),
    opt(
        "cmdprio_percentage",
        &[],
        Noted,
        "",
        "I/Os of high priority",
        Set::Text(|_, _| {}),
    )
    .of(PRIO),
    opt(
        "cmdprio_class",
        &[],
        Noted,
        "",
        "Class of those",
        Set::Text(|_, _| {}),
    )
    .of(PRIO),
    opt(
        "cmdprio",
        &[],
        Noted,
        "",
        "Priority of those",
        Set::Text(|_, _| {}),
    )
    .of(PRIO),
    opt(
        "cmdprio_bssplit",
        &[],
        Noted,
        "",
        "Priorities by block size",
        Set::Text(|_, _| {}),
    )
    .of(PRIO),
    opt(
        "hipri",
        &[],
        Noted,
        "",
        "Poll for completions",
        Set::Flag(|_, _| {}),
    )
    .of(&[IoUring, IoUringCmd, Pvsync2, Sg, Xnvme]),
    opt(
        "hipri_percentage",
        &[],
        Noted,
        "100",
        "I/Os that are polled",
        Set::Int(0, 100, |_, _| {}),
    )
    .of(&[Pvsync2]),
    opt(
        "fixedbufs",
        &[],
        Noted,
        "",
        "Register the buffers",
        Set::Flag(|_, _| {}),
    )
    .of(URING),
    opt(
        "registerfiles",
        &[],
        Noted,
        "",
        "Register the files",
        Set::Flag(|_, _| {}),
    )
    .of(URING),
    opt(
        "sqthread_poll",
        &[],
        Noted,
        "",
        "A kernel thread submits",
        Set::Flag(|_, _| {}),
    )
    .of(&[IoUring, IoUringCmd, Xnvme]),
    opt(
        "sqthread_poll_cpu",
        &[],
        Noted,
        "",
        "CPU of that thread",
        Set::Int(0, U32, |_, _| {}),
    )
    .of(URING),
    opt(
        "nonvectored",
        &[],
        Noted,
        "",
        "Plain instead of vectored calls",
        Set::Int(0, U32, |_, _| {}),
    )
    .of(URING),
    opt(
        "uncached",
        &[],
        Noted,
        "0",
        "Buffered I/O that leaves no cache behind",
        Set::Int(0, U32, |_, _| {}),
    )
    .of(&[IoUring, IoUringCmd, Pvsync2]),
    opt(
        "force_async",
        &[],
        Noted,
        "",
        "Each this many-th I/O is asynchronous",
        Set::Int(0, U32, |_, _| {}),
    )
    .of(URING),
    opt(
        "cmd_type",
        &[],
        Noted,
        "nvme",
        "Kind of passthrough command",
        Set::Words(&["nvme"], |_, _| {}),
    )
    .of(URING),
    opt(
        "thp",
        &[],
        Noted,
        "0",
        "Huge pages for the mapping",
        Set::Int(0, 1, |_, _| {}),
    )
    .of(&[Mmap]),
    opt(
        "cpuload",
        &[],
        Next,
        "",
        "Percent of a CPU that is burnt",
        Set::Int(0, 100, |j, v| j.engine.cpu.load_percent = n8(v)),
    )
    .of(&[CpuIo]),
    opt(
        "cpuchunks",
        &[],
        Next,
        "50000",
        "Length of a burn cycle in us",
        Set::Int(1, U32, |j, v| j.engine.cpu.chunk_us = v),
    )
    .of(&[CpuIo]),
    opt(
        "cpumode",
        &[],
        Next,
        "noop",
        "How the CPU is burnt",
        Set::Words(&["noop", "qsort"], |_, _| {}),
    )
    .of(&[CpuIo])
    .unmodelled(),
    opt(
        "exit_on_io_done",
        &[],
        Next,
        "0",
        "End when the other jobs have ended",
        Set::Bool(|j, on| j.engine.cpu.exit_on_io_done = on),
    )
    .of(&[CpuIo]),
    opt(
        "uri",
        &[],
        Next,
        "",
        "Address of the export",
        Set::Text(|j, v| j.engine.uri = Some(v.to_owned())),
    )
    .of(&[Nbd]),
    opt(
        "spdk_conf",
        &[],
        Noted,
        "",
        "SPDK configuration",
        Set::Text(|_, _| {}),
    )
    .of(&[SpdkBdev]),
    opt(
        "spdk_json_conf",
        &[],
        Noted,
        "",
        "SPDK configuration",
        Set::Text(|_, _| {}),
    )
    .of(&[SpdkBdev]),
    opt(
        "spdk_mem",
        &[],
        Noted,
        "",
        "SPDK memory",
        Set::Text(|_, _| {}),
    )
    .of(&[SpdkBdev]),
    opt(
        "readfua",
        &[],
        Refused,
        "0",
        "Reads with forced unit access",
        Set::Refused(SCSI),
    )
    .of(&[Sg]),
    opt(
        "writefua",
        &[],
        Refused,
        "0",
        "Writes with forced unit access",
        Set::Refused(SCSI),
    )
    .of(&[Sg]),
    opt(
        "sg_write_mode",
        &[],
        Refused,
        "write",
        "SCSI command of writes",
        Set::Refused(SCSI),
    )
    .of(&[Sg]),
    opt(
        "stream_id",
        &[],
        Refused,
        "0",
        "Stream of writes",
        Set::Refused(SCSI),
    )
    .of(&[Sg]),
    opt(
        "fdp",
        &[],
        Refused,
        "0",
        "Flexible data placement",
        Set::Refused(NVME),
    )
    .of(&[IoUringCmd, Xnvme]),
    opt(
        "fdp_pli",
        &[],
        Refused,
        "",
        "Placement identifiers",
        Set::Refused(NVME),
    )
    .of(&[IoUringCmd, Xnvme]),
    opt(
        "pi_act",
        &[],
        Refused,
        "1",
        "Protection information action",
        Set::Refused(NVME),
    )
    .of(&[IoUringCmd, Xnvme]),
    opt(
        "pi_chk",
        &[],
        Refused,
        "",
        "Protection information checks",
        Set::Refused(NVME),
    )
    .of(&[IoUringCmd, Xnvme]),
    opt(
        "md_per_io_size",
        &[],
        Refused,
        "0",
        "Separate metadata buffer",
        Set::Refused(NVME),
    )
    .of(&[IoUringCmd, Xnvme]),
];
