//! *"Pods that no node can take are deleted when their time is over."* Otherwise a controller of WorkloadSpreads changes nothing
//! of a pod but its metadata.

use crate::rules::moments;
use crate::rules::prelude::*;

/// Judges a write of the controller. `seconds` is how long a pod may wait for a node; zero if none is moved.
pub fn judge(write: &Write<'_>, mirror: &Mirror, seconds: u32) -> Option<Violation> {
    let [before, after] = write.pod(mirror)?;
    if write.method != Method::Delete {
        never!(write, "pods of a spread get metadata only",
            before.value()["spec"] != after.value()["spec"] => "");
        return None;
    }
    let window = mirror.of(PODS).window(&before.uid, write.sent.floors.of(PODS));
    let mut believed = window.iter().filter(|pod| pod.version <= before.version);
    let has_no_node = believed.any(|pod| pod.value()["spec"]["nodeName"] == Value::Null);
    // Times of the API have whole seconds.
    let waited = write.now.duration_since(moments::created(before));
    let is_over = seconds > 0 && waited >= SignedDuration::from_secs(i64::from(seconds));
    never!(write, "pods move when no node takes them in time",
        !has_no_node || !is_over => "after {waited:?}");
    None
}
