//! Did you mean?

/// Edits (insert, delete, change, swap of neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let width = b.len() + 1;
    let mut older: Vec<usize> = vec![0; width];
    let mut previous: Vec<usize> = (0..width).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(width);
        row.push(i + 1);
        for (j, cb) in b.iter().enumerate() {
            let at = |list: &[usize], k: usize| list.get(k).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&previous, j) + usize::from(ca != cb))
                .min(at(&previous, j + 1) + 1)
                .min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(cb) && b.get(j - 1) == Some(ca);
            if swapped {
                best = best.min(at(&older, j - 1) + 1);
            }
            row.push(best);
        }
        older = std::mem::replace(&mut previous, row);
    }
    previous.last().copied().unwrap_or(0)
}

/// The candidate closest to `word`, if one is close enough to be meant.
///
/// ```
/// use cairn_fio::options::closest;
/// assert_eq!(closest("mixd", ["mixed", "randwrite"].into_iter()), Some("mixed"));
/// ```
pub fn closest<'n>(word: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Names beyond this are no typing errors, and the comparison costs their square; of one or two
    // letters anything would be close.
    if !(3..=64).contains(&word.len()) {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let limit = (lower.len() / 3).max(1);
    candidates
        .map(|name| (distance(&lower, name), name))
        .filter(|(edits, _)| *edits <= limit)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Every name and alias.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    super::all().flat_map(|def| std::iter::once(def.name).chain(def.aliases.iter().copied()))
}

/// The option name closest to `name`, if one is close enough to be meant.
pub fn nearest(name: &str) -> Option<&'static str> {
    let names =
        super::all().flat_map(|def| std::iter::once(def.name).chain(def.aliases.iter().copied()));
    closest(name, names)
}

/// The word closest to `word`, if one is close enough to be meant.
pub(crate) fn nearest_word(word: &str, words: &'static [&'static str]) -> Option<&'static str> {
    closest(word, words.iter().copied())
}

/// Message for a word that is none of the valid ones.
pub(super) fn wrong_word(word: &str, words: &'static [&'static str]) -> String {
    let list = words.join(", ");
    match nearest_word(word, words) {
        Some(near) => format!("did you mean {near}? Valid are {list}"),
        None => format!("valid are {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised() {
        assert_eq!(nearest("iodpeth"), Some("iodepth"));
        assert_eq!(nearest("blocksise"), Some("blocksize"));
        assert_eq!(nearest("NUMJOBS"), Some("numjobs"));
        assert_eq!(nearest("zzzzzz"), None);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
