//! *"Of a pod is written how it ended, once, as its main containers did; and on a virtual node the images of its sidecars."*

use super::known::{
    containers, earned_phase, have_mains_ended, have_others_ended, is_ignored, is_on_virtual, is_sidecar,
    last_image, phase,
};
use crate::rules::prelude::*;

/// Judges writes of pods.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    let [before, after] = write.pod(mirror)?;
    never!(write, "pods are patched only", write.method != Method::Patch => "{:?}", write.method);
    never!(write, "nothing is stopped before the main containers have ended",
        !have_mains_ended(before) => "{}", before.value()["status"]["containerStatuses"]);
    if write.subresource == "status" {
        let (had, has) = (phase(before), phase(after));
        never!(write, "an end is final", had.is_some() && had != has => "{had:?} is {has:?}");
        never!(write, "the phase is that of the main containers",
            has != earned_phase(before) => "{has:?}, and not {:?}", earned_phase(before));
        let is_for_ignored = containers(before).any(is_ignored) && !is_on_virtual(before);
        if !is_for_ignored || !have_others_ended(before) {
            let what = before.value()["status"]["containerStatuses"].to_string();
            return write.breaks("sidecars whose exit codes count end first", what);
        }
        return None;
    }
    let wrong = unexpected_image(before, after)?;
    write.breaks("only images of sidecars on virtual nodes change", wrong)
}

/// A container with an image that it should not have got.
fn unexpected_image(before: &Object, after: &Object) -> Option<String> {
    let image = |pod: &Object, name: &Value| {
        let found = containers(pod).find(|one| one["name"] == *name)?;
        Some(found["image"].clone())
    };
    let mut changed =
        containers(after).filter(|one| image(before, &one["name"]).as_ref() != Some(&one["image"]));
    let is_right = |one: &Value| is_on_virtual(before) && is_sidecar(one) && one["image"] == last_image(one);
    changed.find(|one| !is_right(one)).map(Value::to_string)
}
