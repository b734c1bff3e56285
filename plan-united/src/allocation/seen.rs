//! What is known of subsets, and how they count pods.

use go_compat::IntOrString;
use kruise_api::uniteddeployment::Subset;

/// What is known of a subset before its pods are counted out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// The subset.
    pub(crate) subset: &'a Subset,
    /// Replicas and Ready pods of its workload; `None` if there is none.
    pub(crate) workload: Option<(i32, i32)>,
    /// Can it take no pods?
    pub(crate) unschedulable: bool,
    /// Could it take none when this reconcile began?
    pub(crate) marked: bool,
    /// Pods that are kept although they cannot be scheduled.
    pub(crate) reserved: i32,
}

impl Seen<'_> {
    pub(super) fn current(&self) -> i32 {
        self.workload.map_or(0, |(replicas, _)| replicas)
    }
}

/// A number of pods or a percentage of all of them, rounded half up.
pub(super) fn count_of(value: &IntOrString, total: i32, name: &str) -> Result<i32, String> {
    let invalid = || format!("subset {name}: {value} is no number of pods and no percentage of them");
    match value {
        IntOrString::Int(count) if *count >= 0 => Ok(*count),
        IntOrString::Int(_) => Err(invalid()),
        IntOrString::String(text) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|number| number.parse::<u8>().ok());
            let percent = percent.filter(|percent| *percent <= 100).ok_or_else(invalid)?;
            let share = (i64::from(total) * i64::from(percent) + 50) / 100;
            Ok(i32::try_from(share).unwrap_or(i32::MAX))
        }
    }
}
