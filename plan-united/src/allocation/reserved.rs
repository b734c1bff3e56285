//! Pods that cannot be scheduled stay and count for nothing: others run in addition.

use super::{Seen, bounds::Bounds};

/// A subset that is being filled.
struct Filled {
    pods: i64,
    /// Pods that it can run; the further ones of it count for nothing.
    capacity: i64,
}

impl Filled {
    /// Raises its pods to `target`, as far as pods are left.
    fn place(&mut self, target: i64, left: &mut i64) {
        let added = (target - self.pods).clamp(0, *left);
        self.pods += added;
        self.capacity -= added;
        let placed = if self.capacity >= 0 {
            added
        } else {
            (added + self.capacity).max(0)
        };
        *left -= placed;
    }
}

pub(super) fn allocate(total: i32, seen: &[Seen<'_>]) -> Result<Vec<i32>, String> {
    let mut filled: Vec<(Filled, Bounds)> = Vec::with_capacity(seen.len());
    for seen in seen {
        let is_suspect = seen.workload.is_some() && (seen.unschedulable || seen.marked);
        let capacity = if is_suspect {
            i64::from(seen.current()) - i64::from(seen.reserved)
        } else {
            i64::from(i32::MAX)
        };
        let empty = Filled { pods: 0, capacity };
        filled.push((empty, Bounds::of(seen, total)?));
    }
    let mut left = i64::from(total);
    for (filled, bounds) in &mut filled {
        if left > 0 {
            filled.place(i64::from(bounds.min), &mut left);
        }
    }
    for ((filled, bounds), seen) in filled.iter_mut().zip(seen) {
        let stays = seen.workload.is_some() && seen.unschedulable;
        let target = if stays { seen.current() } else { bounds.max };
        if left > 0 {
            filled.place(i64::from(target), &mut left);
        }
    }
    let pods = filled.into_iter().map(|(filled, _)| i32::try_from(filled.pods));
    Ok(pods.map(|pods| pods.unwrap_or(i32::MAX)).collect())
}
