//! *"The content of a revision never changes, there is one for each content, and those in use stay."*

use super::known::Known;
use super::memory::Memory;
use super::view;
use super::view::Spec;
use crate::rules::pod_writes::guards;
use crate::rules::prelude::*;
use crate::rules::template::same_template;

/// Label that names the set.
pub const SET: &str = "kruise.io/sidecarset-name";

/// Judges writes of revisions.
pub fn judge(memory: &Memory, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    const ORACLE: &str = "revisions of a set are stable";
    let Some(revision) = write.deleted(mirror, REVISIONS) else {
        return guards::rewritten(write, mirror, ORACLE, true);
    };
    let known = Known::of(memory, write, mirror, revision.label(SET));
    never!(write, ORACLE, some used in use_of(revision, &known) => "{used}");
    None
}

/// What a revision is used for, whichever of the specifications that may have been believed is taken.
fn use_of(revision: &Object, known: &Known<'_>) -> Option<String> {
    let name = &*revision.name;
    let of = |spec: Spec<'_>| {
        let wanted = spec.0.spec();
        let pods = known.least(spec, "", |pod| view::revision(pod, known.set) == name);
        if pods > 0 {
            Some(format!("which {pods} pods name, at least"))
        } else if wanted["injectionStrategy"]["revision"]["revisionName"] == name {
            Some("which new pods get".to_owned())
        } else {
            let stored = &revision.value()["data"]["spec"]["containers"];
            same_template(stored, &wanted["containers"]).then(|| "which is the specification".to_owned())
        }
    };
    let mut found = None;
    for spec in &known.specs {
        found = Some(of(*spec)?);
    }
    found
}
