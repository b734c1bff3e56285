//! *"The content of a revision never changes, and there is one for each content."*

use kruise_sim::Method;

use super::{Violation, Write};
use crate::{history::Watched, mirror::Mirror};

/// Label that names the set.
pub const SET: &str = "kruise.io/sidecarset-name";

/// Judges writes of revisions.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let revisions = mirror.of(Watched::Revisions);
    let version = revisions
        .log
        .get(write.marks[Watched::Revisions.index()])?
        .version;
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
        && before.value["data"] != after.value["data"]
    {
        return violation(format!("changed the content of {}", after.name));
    }
    if write.method == Method::Delete {
        return None;
    }
    let twin = revisions.now().find(|other| {
        other.uid != after.uid
            && other.owner() == after.owner()
            && other.value["data"] == after.value["data"]
            && !after.gone
    })?;
    violation(format!(
        "created {} beside {}, which is the same",
        after.name, twin.name
    ))
}
