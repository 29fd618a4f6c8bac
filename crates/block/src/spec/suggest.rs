//! Did-you-mean.

/// "did you mean `x`?" for the nearest of `known`, if one is near enough, followed by the whole list.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let known: Vec<&str> = known.into_iter().collect();
    if known.is_empty() {
        return None;
    }
    // A third of the word may be wrong, and always one letter.
    let most = (given.chars().count() / 3).max(1);
    let near = known
        .iter()
        .map(|k| (distance(given, k), *k))
        .filter(|(d, _)| *d <= most)
        .min_by_key(|(d, _)| *d);
    let all = known.join(", ");
    Some(match near {
        Some((_, k)) => format!("did you mean `{k}`? allowed: {all}"),
        None => format!("allowed: {all}"),
    })
}

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (i, x) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        let mut left = i + 1;
        for (j, y) in b.iter().enumerate() {
            let at = |v: &[usize], k: usize| v.get(k).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&above, j) + usize::from(x != *y))
                .min(at(&above, j + 1) + 1)
                .min(left + 1);
            let swapped = j > 0 && last == Some(*y) && b.get(j - 1) == Some(&x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
            left = best;
        }
        before = std::mem::replace(&mut above, row);
        last = Some(x);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, d) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("dealy", "delay", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ] {
            assert_eq!(distance(a, b), d, "{a} {b}");
            assert_eq!(distance(b, a), d, "{b} {a}");
        }
    }

    #[test]
    fn suggestions() {
        let s = did_you_mean("dealy", ["delay", "ram"]).unwrap();
        assert_eq!(s, "did you mean `delay`? allowed: delay, ram");
        assert_eq!(did_you_mean("xyzzy", ["ram"]).unwrap(), "allowed: ram");
        assert_eq!(did_you_mean("x", []), None);
    }
}
