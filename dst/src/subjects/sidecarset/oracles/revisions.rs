//! *"The content of a revision never changes, there is one for each content, and those in use stay."*

use kruise_sim::Method;

use super::{known::Known, memory::Memory, view, view::Spec};
use crate::{
    engine::{mirror::Mirror, object::Object, resource::REVISIONS, verdict::Violation, write::Write},
    subjects::template::same_template,
};

/// Label that names the set.
pub const SET: &str = "kruise.io/sidecarset-name";

/// Judges writes of revisions.
pub fn judge(memory: &Memory, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let revisions = mirror.of(REVISIONS);
    let version = revisions.changes.get(write.marks.of(REVISIONS))?.version;
    let versions = revisions
        .objects
        .values()
        .find(|versions| versions.iter().any(|one| one.version == version))?;
    let after = versions.last()?;
    let violation = |what: String| {
        Some(Violation {
            oracle: "revisions of a set are stable",
            what: format!("{} {what}", write.process),
        })
    };
    if let [.., before, after] = versions.as_slice()
        && before.value()["data"] != after.value()["data"]
    {
        return violation(format!("changed the content of {}", after.name));
    }
    if write.method == Method::Delete {
        let used = use_of(after, &Known::of(memory, write, mirror, after.label(SET)))?;
        return violation(format!("deleted {}, {used}", after.name));
    }
    let twin = revisions.now().find(|other| {
        other.uid != after.uid
            && other.owner() == after.owner()
            && other.value()["data"] == after.value()["data"]
            && !after.gone
    })?;
    violation(format!(
        "created {} beside {}, which is the same",
        after.name, twin.name
    ))
}

/// What a revision is used for, whichever of the specifications that may have been believed is taken.
fn use_of(revision: &Object, known: &Known<'_>) -> Option<String> {
    let name = &*revision.name;
    let of = |spec: Spec<'_>| {
        let wanted = &spec.0.value()["spec"];
        let pods = known.least(spec, "", |pod| view::revision(pod, known.set) == name);
        if pods > 0 {
            Some(format!("which {pods} pods name, at least"))
        } else if wanted["injectionStrategy"]["revision"]["revisionName"] == name {
            Some("which new pods get".to_owned())
        } else {
            let stored = &revision.value()["data"]["spec"]["containers"];
            same_template(stored, &wanted["containers"]).then(|| "which is what the set says".to_owned())
        }
    };
    let mut found = None;
    for spec in &known.specs {
        found = Some(of(*spec)?);
    }
    found
}
