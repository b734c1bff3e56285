//! *"A copy of a secret stays as long as a job names its original, whether that has ended or not."*

use kruise_sim::Method;

use super::known::surely_stays;
use crate::engine::oracles::{Mirror, Object, Violation, Write};
use crate::subjects::imagepulljob::start::{AGENTS, JOBS, SECRETS};

/// Annotation of a copy: the jobs that need it.
const REFERENCES: &str = "imagepulljobs.kruise.io/references";

/// Judges the deletion of a copy.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != SECRETS.plural || write.method != Method::Delete {
        return None;
    }
    let versions = mirror.of(SECRETS).changed_at(write.marks.of(SECRETS))?;
    let copy = versions.last()?;
    let violation = |oracle, what: String| {
        let what = format!("{} deleted {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    if copy.value()["metadata"]["namespace"] != AGENTS {
        return violation("originals stay", "it is no copy".into());
    }
    let needing = needed_by(copy, mirror);
    let surely = needing
        .into_iter()
        .find(|job| surely_stays(write, mirror, &job.uid));
    surely.and_then(|job| {
        violation(
            "copies stay while jobs need them",
            format!("{} needs it", job.name),
        )
    })
}

/// The jobs that a copy lists.
pub fn needed_by<'m>(copy: &Object, mirror: &'m Mirror) -> Vec<&'m Object> {
    let listed = copy.value()["metadata"]["annotations"][REFERENCES]
        .as_str()
        .unwrap_or_default();
    let names = listed.split(',').filter_map(|job| job.split_once('/'));
    let jobs = names.filter_map(|(_, name)| mirror.of(JOBS).named(name));
    jobs.map(|job| &**job).filter(|job| !job.is_going()).collect()
}
