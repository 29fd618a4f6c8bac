//! The part of a line before the event: who, where, when.
//!
//! A task name may hold blanks, dashes, slashes, colons and brackets, and the text of a marker
//! may hold anything, so the first place that reads as `pid [cpu] flags time: event` counts, and
//! nothing to the right of it is looked at.

use super::fields::leading_number;
use crate::event::{Task, Time};

pub(super) struct Prefix<'a> {
    pub(super) task: Task,
    pub(super) time: Time,
    pub(super) name: &'a [u8],
    pub(super) fields: &'a [u8],
}

pub(super) fn split(line: &[u8]) -> Option<Prefix<'_>> {
    with_cpu(line).or_else(|| without_cpu(line))
}

/// `comm-pid (tgid) [cpu] flags time: event:` and perf's `comm pid [cpu] time: event:`.
fn with_cpu(line: &[u8]) -> Option<Prefix<'_>> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.iter().position(|&b| b == b'[')?;
        from = at + 1;
        let Some((cpu, rest)) = leading_number(line.get(from..)?) else {
            continue;
        };
        let Some(rest) = rest.strip_prefix(b"]") else {
            continue;
        };
        let Some(pid) = pid_before(line.get(..at)?) else {
            continue;
        };
        if let Some((time, name, fields)) = time_and_event(rest) {
            let task = Task {
                pid,
                cpu: u32::try_from(cpu).ok(),
            };
            return Some(Prefix {
                task,
                time,
                name,
                fields,
            });
        }
    }
}

/// perf without the CPU column: `comm pid time: event:`.
fn without_cpu(line: &[u8]) -> Option<Prefix<'_>> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.iter().position(|&b| b == b':')?;
        from = at + 1;
        let before = line.get(..at)?;
        let Some(start) = before.iter().rposition(|&b| b == b' ') else {
            continue;
        };
        let Some(time) = clock(before.get(start + 1..)?) else {
            continue;
        };
        let Some(pid) = pid_before(before.get(..start)?) else {
            continue;
        };
        if let Some((name, fields)) = event(line.get(from..)?) {
            let task = Task { pid, cpu: None };
            return Some(Prefix {
                task,
                time,
                name,
                fields,
            });
        }
    }
}

/// The number that ends `left`, after a dash, a blank or a slash; a `(tgid)` column may follow it.
fn pid_before(left: &[u8]) -> Option<u32> {
    let mut left = left.trim_ascii_end();
    if let Some(inner) = left.strip_suffix(b")") {
        let open = inner.iter().rposition(|&b| b == b'(')?;
        let tgid = inner.get(open + 1..)?;
        if !tgid
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b' ' | b'-'))
        {
            return None;
        }
        left = inner.get(..open)?.trim_ascii_end();
    }
    let digits = left.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (comm, digits) = left.split_at_checked(left.len() - digits)?;
    if !matches!(comm.last(), Some(b'-' | b' ' | b'/' | b'\t')) {
        return None;
    }
    let (pid, _) = leading_number(digits)?;
    u32::try_from(pid).ok()
}

/// `[flags] time: event: fields`.
fn time_and_event(rest: &[u8]) -> Option<(Time, &[u8], &[u8])> {
    let (mut token, mut rest) = token(rest)?;
    if token.last() != Some(&b':') {
        (token, rest) = self::token(rest)?;
    }
    let time = clock(token.strip_suffix(b":")?)?;
    let (name, fields) = event(rest)?;
    Some((time, name, fields))
}

/// The event is the first token; perf puts its group before it.
fn event(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, fields) = token(rest)?;
    let name = name.strip_suffix(b":")?;
    let name = name
        .iter()
        .rposition(|&b| b == b':')
        .map_or(name, |at| name.get(at + 1..).unwrap_or_default());
    Some((name, fields))
}

fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    if text.is_empty() {
        return None;
    }
    let end = text
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(text.len());
    text.split_at_checked(end)
}

/// `4328.749077` or a bare integer.
fn clock(text: &[u8]) -> Option<Time> {
    let (whole, rest) = leading_number(text)?;
    if rest.is_empty() {
        return Some(Time { whole, nanos: 0 });
    }
    let fraction = rest.strip_prefix(b".")?;
    if fraction.is_empty() {
        return None;
    }
    let mut nanos = 0;
    for i in 0..9 {
        let digit = match fraction.get(i) {
            Some(b) if b.is_ascii_digit() => u32::from(b - b'0'),
            Some(_) => return None,
            None => 0,
        };
        nanos = nanos * 10 + digit;
    }
    let rest = fraction.get(9..).unwrap_or_default();
    rest.iter()
        .all(u8::is_ascii_digit)
        .then_some(Time { whole, nanos })
}
