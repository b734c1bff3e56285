//! Subsets that cannot take pods keep those that are Ready, and others get the rest.

use super::{
    Seen,
    bounds::{Bounds, fill},
};

pub(super) fn allocate(total: i32, seen: &[Seen<'_>]) -> Result<Vec<i32>, String> {
    let mut bounds = Vec::with_capacity(seen.len());
    for seen in seen {
        let given = Bounds::of(seen, total)?;
        bounds.push(match seen.workload {
            Some((_, ready)) if seen.unschedulable => {
                let kept = ready.max(given.min);
                Bounds { min: kept, max: kept }
            }
            // Running pods stay when pods become fewer.
            Some((_, ready)) if ready > given.min => Bounds {
                min: ready.min(given.max),
                ..given
            },
            _ => given,
        });
    }
    Ok(fill(total, &bounds))
}
