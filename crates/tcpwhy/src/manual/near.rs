//! Which known names a mistyped word may have been meant for.

/// Most names that are offered. Ours: a line's worth.
const OFFERED: usize = 4;

/// The names nearest to `word`: those that begin with it or hold it as a part, and those that a few wrong letters
/// away; the nearest first.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = plain(word);
    let allowed = (typed.len() / 3).clamp(1, 3);
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let known = plain(name);
            let last = known.rsplit('.').next().unwrap_or(&known);
            let wrong = distance(&typed, &known).min(distance(&typed, last));
            let holds = typed.len() > 2 && (known.contains(&typed) || last.starts_with(&typed));
            let rank = if wrong <= allowed { wrong } else { 4 };
            (wrong <= allowed || holds).then_some((rank, name))
        })
        .collect();
    near.sort_by_key(|&(rank, name)| (rank, name.len(), name));
    near.dedup_by_key(|&mut (_, name)| plain(name));
    near.into_iter().map(|(_, name)| name).take(OFFERED).collect()
}

/// A name without what people write differently: capitals, hyphens, underscores and spaces.
pub(super) fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace(['-', ' ', '_', '/'], "_")
}

/// Letters to put in, leave out, change or swap with their neighbour to make one word of the other: the optimal string
/// alignment distance of Damerau and Levenshtein.
pub fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for at in 1..=one.len() {
        let mut next = vec![at];
        for place in 1..=other.len() {
            let same = one[at - 1] == other[place - 1];
            let mut least = (row[place - 1] + usize::from(!same)).min(row[place] + 1);
            least = least.min(next[place - 1] + 1);
            let swapped = at > 1
                && place > 1
                && one[at - 1] == other[place - 2]
                && one[at - 2] == other[place - 1];
            if swapped {
                least = least.min(before[place - 2] + 1);
            }
            next.push(least);
        }
        before = core::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_letters_are_one_mistake() {
        assert_eq!(distance("recrod", "record"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("tcp_rmem", "tcp_wmem"), 1);
    }

    #[test]
    fn a_short_word_is_not_near_to_everything() {
        let names = ["RTO", "MSS", "BDP", "slow start"];
        assert_eq!(nearest("rtoo", names.into_iter()), ["RTO"]);
        assert!(nearest("xyz", names.into_iter()).is_empty());
        assert_eq!(nearest("slowstart", names.into_iter()), ["slow start"]);
    }
}
