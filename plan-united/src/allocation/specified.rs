//! Replicas that subsets name, and equal shares of the rest.

use super::seen::{Seen, count_of};

/// Subsets that name their replicas get them. The others share the rest equally, and the largest of them get what
/// is left over.
pub(super) fn allocate(total: i32, seen: &[Seen<'_>]) -> Result<Vec<i32>, String> {
    let mut named = Vec::with_capacity(seen.len());
    for seen in seen {
        let replicas = seen.subset.replicas.as_ref();
        let count = replicas.map(|value| count_of(value, total, &seen.subset.name));
        named.push(count.transpose()?);
    }
    let sum: i64 = named.iter().flatten().map(|count| i64::from(*count)).sum();
    let rest = i64::from(total) - sum;
    let mut sharing: Vec<usize> = (0..seen.len())
        .filter(|index| named.get(*index).is_some_and(Option::is_none))
        .collect();
    if rest < 0 || (rest > 0 && sharing.is_empty()) {
        return Err(format!(
            "subsets are to have {sum} pods together, and the whole {total}"
        ));
    }
    let size = |index: &usize| {
        let seen = seen.get(*index);
        seen.map(|seen| (seen.current(), seen.subset.name.as_str()))
    };
    sharing.sort_by(|one, other| size(one).cmp(&size(other)));
    let shares = i64::try_from(sharing.len()).unwrap_or(i64::MAX).max(1);
    let (each, mut extra) = (rest / shares, rest % shares);
    for index in sharing.into_iter().rev() {
        let more = i64::from(extra > 0);
        extra -= more;
        if let Some(slot) = named.get_mut(index) {
            *slot = Some(i32::try_from(each + more).unwrap_or(i32::MAX));
        }
    }
    Ok(named.into_iter().map(Option::unwrap_or_default).collect())
}
