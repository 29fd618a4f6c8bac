//! Bars: what a ratio of two arms must be.

use crate::bench::Group;
use crate::worker::Placement;

/// Fewer samples than this say nothing about a tenth percentile.
const ENOUGH: usize = 10;

/// On which side of the bar a ratio must lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// What the ratio of two arms' tenth percentiles must be.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) group: String,
    pub(crate) arm: String,
    pub(crate) over: String,
    pub(crate) over_group: String,
    pub(crate) threads: Option<usize>,
    pub(crate) over_threads: Option<usize>,
}

/// One placement's verdict on a bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) threads: usize,
    pub(crate) placement: Placement,
    pub(crate) ratio: f64,
    pub(crate) holds: bool,
}

impl Bar {
    fn new(what: &str, bound: Bound, group: &str, arm: &str, over: &str) -> Self {
        Self {
            what: what.into(),
            bound,
            group: group.into(),
            arm: arm.into(),
            over: over.into(),
            over_group: group.into(),
            threads: None,
            over_threads: None,
        }
    }

    /// `arm` takes at most `ratio` times as long as `over`, at each number of threads of `group`.
    pub fn at_most(what: &str, ratio: f64, group: &str, arm: &str, over: &str) -> Self {
        Self::new(what, Bound::AtMost(ratio), group, arm, over)
    }

    /// `arm` takes at least `ratio` times as long as `over`, at each number of threads of `group`.
    pub fn at_least(what: &str, ratio: f64, group: &str, arm: &str, over: &str) -> Self {
        Self::new(what, Bound::AtLeast(ratio), group, arm, over)
    }

    /// Judges this number of threads only.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Takes the other side of the ratio from another group.
    #[must_use]
    pub fn over_group(mut self, group: &str) -> Self {
        self.over_group = group.into();
        self
    }

    /// Takes the other side of the ratio at another number of threads, for example an arm alone
    /// as the measure of the same arm in company.
    #[must_use]
    pub fn over_threads(mut self, threads: usize) -> Self {
        self.over_threads = Some(threads);
        self
    }

    pub(crate) fn bound_text(&self) -> String {
        match self.bound {
            Bound::AtMost(r) => format!("<= {r}"),
            Bound::AtLeast(r) => format!(">= {r}"),
        }
    }

    /// The verdicts at each number of threads and placement with enough samples.
    pub(crate) fn judge(&self, groups: &[Group]) -> Vec<Verdict> {
        let find = |group: &str, arm: &str| {
            let group = groups.iter().find(|g| g.name == group)?;
            group.arms.iter().find(|a| a.name == arm)
        };
        let (Some(arm), Some(over)) = (
            find(&self.group, &self.arm),
            find(&self.over_group, &self.over),
        ) else {
            return Vec::new();
        };
        arm.seen
            .keys()
            .filter(|(threads, _)| self.threads.is_none_or(|t| t == *threads))
            .filter_map(|&(threads, placement)| {
                let a = arm.spread(threads, placement)?;
                let b = match self.over_threads {
                    None => over.spread(threads, placement),
                    Some(t) => {
                        let only = if t == 2 { placement } else { Placement::Any };
                        over.spread(t, only)
                    }
                }?;
                let ratio = a.p10 / b.p10;
                let holds = match self.bound {
                    Bound::AtMost(most) => ratio <= most,
                    Bound::AtLeast(least) => ratio >= least,
                };
                (a.samples >= ENOUGH && b.samples >= ENOUGH).then_some(Verdict {
                    threads,
                    placement,
                    ratio,
                    holds,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bench, Options};

    /// A bench as if each arm had been measured `samples` times at the given ns per operation.
    fn measured(arms: &[(&str, usize, Placement, f64)], samples: usize) -> Vec<Group> {
        let mut bench = Bench::new("test", Options::default());
        let group = bench.group("g", &[1, 2]);
        for &(name, threads, placement, ns) in arms {
            if group.arms.last().is_none_or(|a| a.name != name) {
                group.arm(name, |_, _| ());
            }
            let arm = group.arms.last_mut().unwrap();
            arm.seen.insert((threads, placement), vec![ns; samples]);
        }
        bench.into_groups()
    }

    #[test]
    fn a_bar_is_judged_at_each_placement() {
        use Placement::{Any, Far, Near};
        let arms = [
            ("a", 1, Any, 2.0),
            ("a", 2, Near, 8.0),
            ("a", 2, Far, 40.0),
            ("b", 1, Any, 1.0),
            ("b", 2, Near, 1.0),
            ("b", 2, Far, 5.0),
        ];
        let groups = measured(&arms, ENOUGH);
        let verdicts = Bar::at_least("", 5.0, "g", "a", "b").judge(&groups);
        let seen: Vec<_> = verdicts
            .iter()
            .map(|v| (v.placement, v.ratio, v.holds))
            .collect();
        assert_eq!(
            seen,
            [(Any, 2.0, false), (Near, 8.0, true), (Far, 8.0, true)]
        );

        let alone = Bar::at_most("", 4.0, "g", "a", "a")
            .threads(2)
            .over_threads(1);
        let verdicts = alone.judge(&groups);
        let seen: Vec<_> = verdicts.iter().map(|v| (v.ratio, v.holds)).collect();
        assert_eq!(seen, [(4.0, true), (20.0, false)]);
    }

    #[test]
    fn too_few_samples_are_not_judged() {
        let arms = [("a", 1, Placement::Any, 1.0), ("b", 1, Placement::Any, 1.0)];
        let groups = measured(&arms, ENOUGH - 1);
        assert!(
            Bar::at_most("", 2.0, "g", "a", "b")
                .judge(&groups)
                .is_empty()
        );
        assert!(
            Bar::at_most("", 2.0, "g", "a", "nobody")
                .judge(&groups)
                .is_empty()
        );
    }
}
