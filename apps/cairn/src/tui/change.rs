//! Changes of a scenario while its dashboard is open: each is checked before anything is stopped for it.

use cairn_block::BuildError;
use cairn_lab::{FioSource, Lab, Registry, Scenario, WorkloadKind};

use super::update::Refusal;

/// Most tasks of a creat-clo workload, as scenarios have it.
const MOST_TASKS: usize = 65_536;

/// The scenario of a lab with its policies as they stand now.
pub(super) fn as_it_stands(lab: &Lab) -> Scenario {
    let mut scenario = lab.scenario().clone();
    let policies = lab.policies();
    for (index, policy) in policies.list().iter().enumerate() {
        if let Some(arm) = policy.arms.get(policies.arm(index)) {
            scenario.policies.insert(policy.name.clone(), arm.clone());
        }
    }
    scenario
}

/// The workloads with what of them can be edited.
pub(super) fn editable(scenario: &Scenario) -> Vec<(String, String)> {
    let text = |kind: &WorkloadKind| match kind {
        WorkloadKind::Fio(FioSource::Options(options)) => options.clone(),
        WorkloadKind::Fio(FioSource::Job(path)) => path.display().to_string(),
        WorkloadKind::CreatClo { tasks } | WorkloadKind::CreatCloFiles { tasks } => {
            format!("tasks={tasks}")
        }
        _ => String::new(),
    };
    let workloads = scenario.workloads.iter();
    workloads.map(|w| (w.name.clone(), text(&w.kind))).collect()
}

/// Gives the scenario another stack.
///
/// # Errors
/// What the spec's parser or the limits of a layer say.
pub(super) fn stack(
    scenario: &mut Scenario,
    spec: &str,
    registry: &Registry,
) -> Result<String, Refusal> {
    let explained = registry.block_registry().explain(spec);
    explained.map_err(|error| refusal(&error))?;
    spec.clone_into(&mut scenario.stack);
    Ok(format!("stack {spec}"))
}

/// What is wrong with a stack, and where; the picture of the place is left to who shows the text that was typed.
pub fn refusal(error: &BuildError) -> Refusal {
    let BuildError::Spec(fault) = error else {
        return error.to_string().into();
    };
    let column = fault.column().map(|c| format!(" (column {c})"));
    let mut text = format!("{}{}", fault.message(), column.unwrap_or_default());
    if let Some(hint) = fault.hint() {
        text = format!("{text}; {hint}");
    }
    Refusal {
        text,
        place: fault.column().and_then(|column| column.checked_sub(1)),
    }
}

/// Gives a workload other options.
///
/// # Errors
/// What would be right.
pub(super) fn workload(
    scenario: &mut Scenario,
    index: usize,
    text: &str,
) -> Result<String, Refusal> {
    let Some(workload) = scenario.workloads.get_mut(index) else {
        return Err(format!("no workload number {index}").into());
    };
    match &mut workload.kind {
        WorkloadKind::Fio(source) => {
            if let FioSource::Job(path) = source
                && !text.trim_start().starts_with('-')
            {
                return Err(format!(
                    "its jobs stand in {}; options that begin with -- take their place",
                    path.display()
                )
                .into());
            }
            let name = format!("--name={}", workload.name);
            let words = std::iter::once(name).chain(text.split_whitespace().map(str::to_owned));
            let plan = cairn_fio::parse_command_line(words.collect::<Vec<_>>());
            plan.map_err(|error| error.to_string())?;
            *source = FioSource::Options(text.to_owned());
        }
        WorkloadKind::CreatClo { tasks } | WorkloadKind::CreatCloFiles { tasks } => {
            let number = text.strip_prefix("tasks=").unwrap_or(text).trim();
            let wanted = number.parse().ok();
            let wanted = wanted.filter(|n| (1..=MOST_TASKS).contains(n));
            *tasks = wanted
                .ok_or_else(|| format!("`{text}`: write tasks=N with N from 1 to {MOST_TASKS}"))?;
        }
        _ => return Err(format!("{} has no options to edit", workload.name).into()),
    }
    Ok(format!("{} {text}", workload.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> Scenario {
        Scenario::preset("mixed").unwrap()
    }

    #[test]
    fn what_is_wrong_changes_nothing_and_says_why() {
        let registry = Registry::default();
        let mut scenario = mixed();
        let said = stack(&mut scenario, "stats/ram(1g", &registry).unwrap_err();
        assert_eq!(said.place, Some(9));
        assert!(said.text.contains("never closed"), "{said:?}");
        let said = workload(&mut scenario, 0, "--rw=randwrite --iodeth=4")
            .unwrap_err()
            .text;
        assert!(said.contains("iodepth"), "{said}");
        for tasks in ["tasks=0", "tasks=99999", "many", ""] {
            let said = workload(&mut scenario, 1, tasks).unwrap_err().text;
            assert!(said.contains("tasks=N"), "{said}");
        }
        assert!(workload(&mut scenario, 2, "tasks=1").is_err());
        assert_eq!(scenario, mixed());
    }

    #[test]
    fn what_is_right_is_what_can_be_edited_next() {
        let registry = Registry::default();
        let mut scenario = mixed();
        stack(&mut scenario, "stats/ram(300m)", &registry).unwrap();
        workload(&mut scenario, 0, "--rw=randread --bs=8k --size=64m").unwrap();
        workload(&mut scenario, 1, "tasks=3").unwrap();
        assert_eq!(scenario.stack, "stats/ram(300m)");
        let texts = editable(&scenario);
        assert_eq!(texts[0].1, "--rw=randread --bs=8k --size=64m");
        assert_eq!(texts[1], ("creat-clo".to_owned(), "tasks=3".to_owned()));
    }
}
