//! *"A copy of a secret stays as long as a job names its original, whether that has ended or not."*

use super::super::start::{AGENTS, JOBS, SECRETS};
use super::known::believed;
use crate::rules::prelude::*;

/// Annotation of a copy: the jobs that need it.
const REFERENCES: &str = "imagepulljobs.kruise.io/references";

/// Judges the deletion of a copy.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != SECRETS.plural || write.method != Method::Delete {
        return None;
    }
    let versions = mirror.of(SECRETS).changed_at(write.marks.of(SECRETS))?;
    let copy = versions.last()?;
    never!(write, "originals stay", copy.value()["metadata"]["namespace"] != AGENTS => "it is no copy");
    let stays = |job: &&Object| believed(write, mirror, &job.uid).must_be(|job| !job.is_going());
    never!(write, "copies stay while jobs need them",
        some job in needed_by(copy, mirror).into_iter().find(stays) => "{} needs it", job.name);
    None
}

/// The jobs that a copy lists.
pub fn needed_by<'m>(copy: &Object, mirror: &'m Mirror) -> Vec<&'m Object> {
    let listed = text(&copy.value()["metadata"]["annotations"][REFERENCES]);
    let names = listed.split(',').filter_map(|job| job.split_once('/'));
    let jobs = names.filter_map(|(_, name)| mirror.of(JOBS).named(name));
    jobs.map(|job| &**job).filter(|job| !job.is_going()).collect()
}
