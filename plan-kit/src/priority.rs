//! User-chosen update order, on top of the default one.

use kruise_api::priority::{OrderTerm, PriorityStrategy, WeightTerm};
use kruise_api::scatter::ScatterTerm;
use kruise_views::Labels;

/// Sorts candidates by the strategy; equal ones keep their order. `labels` are those of a candidate's pod.
pub fn prioritise<'a, T>(
    candidates: &mut [T],
    labels: impl Fn(&T) -> &'a Labels,
    strategy: &PriorityStrategy,
) {
    if !strategy.weight_priority.is_empty() {
        let terms = &strategy.weight_priority;
        candidates.sort_by_cached_key(|item| std::cmp::Reverse(weight(labels(item), terms)));
    } else if !strategy.order_priority.is_empty() {
        candidates.sort_by_cached_key(|item| order(labels(item), &strategy.order_priority));
    }
}

fn weight(labels: &Labels, terms: &[WeightTerm]) -> i64 {
    let matching = terms
        .iter()
        .filter(|term| term.match_selector.matches_by(|key| labels.get(key)));
    matching.map(|term| i64::from(term.weight)).sum()
}

/// Level of the first key found, `None` before all others; within a level the larger trailing number first.
fn order(labels: &Labels, terms: &[OrderTerm]) -> (Option<usize>, std::cmp::Reverse<u64>) {
    let found = terms
        .iter()
        .enumerate()
        .find_map(|(level, term)| labels.get(&term.ordered_key).map(|value| (level, value)));
    match found {
        None => (None, std::cmp::Reverse(0)),
        Some((level, value)) => (Some(level), std::cmp::Reverse(trailing_number(value))),
    }
}

fn trailing_number(value: &str) -> u64 {
    let head = value.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    value
        .get(head..)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

/// Spreads the candidates that a term matches over the whole order. `all` are the labels of all pods.
pub fn scatter<'a, T: Copy>(
    candidates: Vec<T>,
    labels: impl Fn(T) -> &'a Labels,
    all: &[&Labels],
    terms: &[ScatterTerm],
) -> Vec<T> {
    let matched = |term: &ScatterTerm| {
        candidates
            .iter()
            .filter(|item| matches(labels(**item), term))
            .count()
    };
    let mut used: Vec<(&ScatterTerm, usize)> = terms
        .iter()
        .map(|term| (term, matched(term)))
        .filter(|(_, matched)| *matched > 0)
        .collect();
    used.sort_by_key(|(_, matched)| std::cmp::Reverse(*matched));
    used.into_iter().fold(candidates, |order, (term, _)| {
        let total = all.iter().filter(|labels| matches(labels, term)).count();
        spread(
            order,
            |item| matches(labels(item), term),
            total,
            all.len() - total,
        )
    })
}

fn matches(labels: &Labels, term: &ScatterTerm) -> bool {
    labels.get(&term.key) == Some(&*term.value)
}

fn spread<T: Copy>(
    order: Vec<T>,
    matched: impl Fn(T) -> bool,
    mut total_matched: usize,
    total_unmatched: usize,
) -> Vec<T> {
    let (mut marked, unmarked): (Vec<T>, Vec<T>) = order.iter().partition(|&&item| matched(item));
    if marked.len() <= 1 || unmarked.len() <= 1 {
        return order;
    }
    let last = marked.pop();
    total_matched = total_matched.saturating_sub(1).max(1);
    let (m, u) = (marked.len(), unmarked.len());
    let ((take_m, take_u), rounds, lead) = if total_unmatched * m >= u * total_matched {
        (group(m, u), m.min(u), 0)
    } else {
        let (take_m, take_u) = group(total_matched, total_unmatched);
        let rounds = (m / take_m.max(1)).min(u / take_u.max(1));
        ((take_m, take_u), rounds, u - rounds * take_u)
    };
    let (mut marked, mut unmarked) = (marked.into_iter(), unmarked.into_iter());
    let mut out: Vec<T> = unmarked.by_ref().take(lead).collect();
    for _ in 0..rounds {
        out.extend(marked.by_ref().take(take_m));
        out.extend(unmarked.by_ref().take(take_u));
    }
    out.extend(marked);
    out.extend(unmarked);
    out.extend(last);
    out
}

/// Sizes of the pieces when `m` and `u` items are dealt out in as many rounds as the smaller has items.
fn group(m: usize, u: usize) -> (usize, usize) {
    let rounds = m.min(u).max(1);
    // Rounded half up.
    let size = |items: usize| (2 * items + rounds) / (2 * rounds);
    (size(m), size(u))
}

#[cfg(test)]
mod tests {
    use super::{spread, trailing_number};

    #[test]
    fn scatter_spreads_as_the_published_vectors_say() {
        for (pods, matched, expected) in [
            (10, &[0, 1, 2][..], &[0, 3, 4, 5, 6, 1, 7, 8, 9, 2][..]),
            (10, &[1, 7, 8, 9], &[1, 0, 2, 7, 3, 4, 8, 5, 6, 9]),
            (10, &[0, 1, 2, 3, 4, 5, 6], &[0, 1, 7, 2, 3, 8, 4, 5, 9, 6]),
            (7, &[0, 1, 2], &[0, 3, 4, 1, 5, 6, 2]),
            (6, &[0], &[0, 1, 2, 3, 4, 5]),
        ] {
            let order: Vec<usize> = (0..pods).collect();
            let total = matched.len();
            assert_eq!(
                spread(order, |item| matched.contains(&item), total, pods - total),
                expected
            );
        }
    }

    #[test]
    fn a_value_without_digits_counts_zero() {
        assert_eq!(["sts-10", "5", "zz", "a-20"].map(trailing_number), [10, 5, 0, 20]);
    }
}
