//! The counts that must move if a policy works the way it is meant to, and how much of the cost they explain.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::cost::{self, Cost};
use super::run::Counted;
use crate::policy::Mechanism;

/// One count, for each operation of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// What is counted.
    pub name: Cow<'static, str>,
    /// Under arm A.
    pub a_per_op: f64,
    /// Under arm B.
    pub b_per_op: f64,
    /// Whether the policy is meant to move it.
    pub must_move: bool,
}

impl Count {
    /// Whether the arms differ by more than a hundredth of the larger.
    pub fn moved(&self) -> bool {
        let larger = self.a_per_op.abs().max(self.b_per_op.abs());
        (self.a_per_op - self.b_per_op).abs() > 0.01 * larger
    }
}

/// How much of an operation's cost the counted events are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// What an event is.
    pub event: Cow<'static, str>,
    /// Events that arm B does less of, for each operation; negative if it does more.
    pub saved_per_op: f64,
    /// What one costs more than what takes its place, alone and contended, in ns.
    pub saving_ns: [f64; 2],
    /// Threads of the contended measurement.
    pub threads: usize,
    /// CPU time of an operation under arm A, in ns.
    pub op_ns: f64,
    /// Share of it that the events explain, alone and contended.
    pub share: [f64; 2],
}

impl Explained {
    /// The figures in a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "{:.3} {} fewer for each operation, {:.1} ns each alone and {:.1} ns with {} threads on one line, \
             are {:.1} % to {:.1} % of the {:.0} ns of CPU time that an operation of A takes",
            self.saved_per_op,
            self.event,
            self.saving_ns.first().unwrap_or(&0.0),
            self.saving_ns.last().unwrap_or(&0.0),
            self.threads,
            100.0 * self.share.first().unwrap_or(&0.0),
            100.0 * self.share.last().unwrap_or(&0.0),
            self.op_ns
        )
    }
}

/// The counts of both arms, and what they explain.
pub(crate) fn compare(
    policy: &str,
    a: &Counted,
    b: &Counted,
    op_ns: f64,
) -> (Vec<Count>, Option<Explained>) {
    let mut counts = Vec::new();
    let mut count = |name: &'static str, a_per_op, b_per_op, must_move| {
        counts.push(Count {
            name: name.into(),
            a_per_op,
            b_per_op,
            must_move,
        });
    };
    if a.buffers {
        let on = policy == "flag-set";
        count("read-modify-writes of flag words", a.rmws, b.rmws, on);
        count("avoided read-modify-writes", a.avoided, b.avoided, on);
    }
    if a.hits + a.misses + b.hits + b.misses > 0.0 || policy == "extent-cache" {
        count(
            "extent look-ups that hit",
            a.hits,
            b.hits,
            policy == "extent-cache",
        );
        count(
            "extent look-ups that missed",
            a.misses,
            b.misses,
            policy == "extent-limit",
        );
        let on = matches!(policy, "es-counters" | "batch");
        count(
            "counter additions to shared lines",
            a.shared_adds,
            b.shared_adds,
            on,
        );
        count(
            "counter additions to own lines",
            a.own_adds,
            b.own_adds,
            policy == "es-counters",
        );
    }
    let explained = match (Mechanism::of_policy(policy), policy) {
        (Mechanism::BufferHeads, _) => Some(explain(
            "read-modify-writes",
            a.rmws - b.rmws,
            cost::set_again(),
            cost::test(),
            op_ns,
        )),
        (_, "es-counters" | "batch") => Some(explain(
            "additions to shared lines",
            a.shared_adds - b.shared_adds,
            cost::add(),
            cost::add_own(),
            op_ns,
        )),
        _ => None,
    };
    (counts, explained)
}

fn explain(
    event: &'static str,
    saved_per_op: f64,
    dear: Cost,
    cheap: Cost,
    op_ns: f64,
) -> Explained {
    let saving_ns = [
        (dear.alone_ns - cheap.alone_ns).max(0.0),
        (dear.contended_ns - cheap.contended_ns).max(0.0),
    ];
    Explained {
        event: event.into(),
        saved_per_op,
        saving_ns,
        threads: dear.threads,
        op_ns,
        share: saving_ns.map(|ns| saved_per_op * ns / op_ns.max(1e-9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(rmws: f64, avoided: f64) -> Counted {
        Counted {
            ops: 1000,
            buffers: true,
            rmws,
            avoided,
            hits: 3.0,
            ..Counted::default()
        }
    }

    #[test]
    fn the_policy_tells_what_must_move() {
        let (counts, explained) =
            compare("flag-set", &counted(42.0, 0.0), &counted(0.0, 42.0), 1000.0);
        let must: Vec<_> = counts
            .iter()
            .filter(|c| c.must_move)
            .map(|c| &*c.name)
            .collect();
        assert_eq!(
            must,
            [
                "read-modify-writes of flag words",
                "avoided read-modify-writes"
            ]
        );
        assert!(counts.iter().filter(|c| c.must_move).all(Count::moved));
        assert!(!counts[2].moved());
        let explained = explained.unwrap();
        assert!((explained.saved_per_op - 42.0).abs() < 1e-9);
        assert!(explained.share[0] >= 0.0);
        assert!(
            explained
                .sentence()
                .contains("42.000 read-modify-writes fewer")
        );
        let (_, none) = compare("extent-cache", &counted(0.0, 0.0), &counted(0.0, 0.0), 1.0);
        assert!(none.is_none());
    }
}
