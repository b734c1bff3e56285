//! Least and most pods of subsets.

use super::seen::{Seen, count_of};

/// The least and the most pods of a subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: i32,
    pub(super) max: i32,
}

impl Bounds {
    pub(super) fn of(seen: &Seen<'_>, total: i32) -> Result<Self, String> {
        let subset = seen.subset;
        let count = |value| count_of(value, total, &subset.name);
        Ok(Self {
            min: subset.min_replicas.as_ref().map(count).transpose()?.unwrap_or(0),
            max: subset
                .max_replicas
                .as_ref()
                .map(count)
                .transpose()?
                .unwrap_or(i32::MAX),
        })
    }
}

/// Every subset gets its least, in order, and then up to its most. What is over then is dropped.
pub(super) fn allocate(total: i32, seen: &[Seen<'_>]) -> Result<Vec<i32>, String> {
    let mut bounds = Vec::with_capacity(seen.len());
    for seen in seen {
        let of_subset = Bounds::of(seen, total)?;
        if of_subset.min > of_subset.max {
            let name = &seen.subset.name;
            return Err(format!("subset {name}: minReplicas is above maxReplicas"));
        }
        bounds.push(of_subset);
    }
    Ok(fill(total, &bounds))
}

/// First the least of all, then up to the most.
pub(super) fn fill(total: i32, bounds: &[Bounds]) -> Vec<i32> {
    let mut left = total;
    let mut filled: Vec<i32> = Vec::with_capacity(bounds.len());
    for bounds in bounds {
        let least = bounds.min.clamp(0, left);
        filled.push(least);
        left -= least;
    }
    for (slot, bounds) in filled.iter_mut().zip(bounds) {
        let more = bounds.max.saturating_sub(bounds.min).clamp(0, left);
        *slot += more;
        left -= more;
    }
    filled
}
