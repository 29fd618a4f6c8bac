//! Instance ids: a missing one becomes `name`, `name2`, ...

use std::collections::HashSet;

use super::{Spec, SpecError, SpecErrorKind};

/// The id of every node, each before those below it.
pub(crate) fn assign(spec: &Spec) -> Result<Vec<String>, SpecError> {
    let nodes = spec.nodes();
    let mut taken: HashSet<&str> = HashSet::new();
    for node in &nodes {
        if let Some(id) = node.id.as_deref()
            && !taken.insert(id)
        {
            return Err(SpecError::new(
                SpecErrorKind::DuplicateId,
                format!("two nodes have the id `{id}`"),
            )
            .at(node.span)
            .help("ids are unique in a spec; leave one out to have it named"));
        }
    }
    let mut made: HashSet<String> = HashSet::new();
    let mut ids = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let free = |id: &String| !taken.contains(id.as_str()) && !made.contains(id);
        let id = match &node.id {
            Some(id) => id.clone(),
            // Fewer ids than nodes are taken by others, so one of these is free.
            None => std::iter::once(node.name.clone())
                .chain((2..=nodes.len() + 1).map(|n| format!("{}{n}", node.name)))
                .find(free)
                .unwrap_or_default(),
        };
        made.insert(id.clone());
        ids.push(id);
    }
    Ok(ids)
}

/// Drops every id that would be made again without being written.
pub(crate) fn drop_defaults(spec: &mut Spec) -> Result<(), SpecError> {
    let full = assign(spec)?;
    set(spec, &full.iter().cloned().map(Some).collect::<Vec<_>>());
    let mut kept: Vec<Option<String>> = full.iter().cloned().map(Some).collect();
    for i in 0..kept.len() {
        let was = kept.get_mut(i).and_then(Option::take);
        set(spec, &kept);
        if assign(spec)? != full
            && let Some(slot) = kept.get_mut(i)
        {
            *slot = was;
        }
    }
    set(spec, &kept);
    Ok(())
}

fn set(spec: &mut Spec, ids: &[Option<String>]) {
    let mut ids = ids.iter();
    spec.for_each_node_mut(&mut |node| node.id = ids.next().cloned().flatten());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        assign(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn missing_ones_are_made() {
        assert_eq!(
            ids("delay/delay@delay2/delay/ram(1)"),
            ["delay", "delay2", "delay3", "ram"]
        );
    }

    #[test]
    fn default_ones_are_dropped() {
        let mut spec: Spec = "delay@delay/delay@x/delay@delay2/ram@ram(1)"
            .parse()
            .unwrap();
        let before = assign(&spec).unwrap();
        drop_defaults(&mut spec).unwrap();
        assert_eq!(spec.to_string(), "delay/delay@x/delay/ram(1)");
        assert_eq!(assign(&spec).unwrap(), before);
    }

    #[test]
    fn a_name_twice_is_refused() {
        let e = assign(&"a@x/b@x".parse().unwrap()).unwrap_err();
        assert_eq!(e.kind(), SpecErrorKind::DuplicateId);
    }
}
