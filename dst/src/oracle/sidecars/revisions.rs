//! *"The content of a revision never changes, there is one for each content, and those in use stay."*

use kruise_sim::Method;

use super::{Violation, Write, view};
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
    let set = after.label(SET);
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
        // What a pod names in every version that its sender may have seen.
        let pods = mirror.of(Watched::Pods);
        let floor = write.sent.floors.of(Watched::Pods);
        let user = pods.now().filter(|pod| pod.is_active()).find(|pod| {
            let seen = pods.window(&pod.uid, floor);
            // One that came to be later need not be known.
            let is_known = seen.first().is_some_and(|first| first.version <= floor);
            is_known
                && seen
                    .iter()
                    .all(|pod| view::is_in_list(pod, set) && view::revision(pod, set) == *after.name)
        });
        let counts = |uid: &str| {
            let sets = mirror.of(Watched::SidecarSets).named(set);
            sets.is_some_and(|set| {
                mirror.of(Watched::Pods).objects[uid]
                    .last()
                    .is_some_and(|pod| view::Spec(set).counts(pod))
            })
        };
        let user = user.filter(|pod| counts(&pod.uid))?;
        return violation(format!("deleted {}, which pod {} names", after.name, user.name));
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
