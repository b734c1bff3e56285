//! SidecarSets: what they may do to pods of others, and where that must lead.
//!
//! Every write of a pod is for a version of it, so of that pod its sender knew what is true. Of the others, and of its
//! set, it knew something between what its watches had shown and the truth; what the same set wrote itself it knew.

mod born;
mod end;
mod form;
mod hot;
mod known;
mod limits;
mod report;
mod revisions;
pub mod view;

use std::{collections::BTreeMap, sync::Arc};

use kruise_sim::Method;

use super::{Violation, Write};
use crate::{history::Watched, mirror::Mirror, network::ProcessId, object::Object};

use known::Known;
use view::Spec;

/// What has to be remembered to judge.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Newest version of a pod that a process wrote for a set: by process, set and uid of the pod.
    wrote: BTreeMap<(ProcessId, String, Arc<str>), u64>,
    /// Newest version of a pod that anybody wrote for any set.
    newest: u64,
    /// What was written before a process began to lead.
    led: BTreeMap<ProcessId, u64>,
    born: born::Born,
}

/// A write of a pod: the versions before and after it.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    before: &'a Object,
    after: &'a Object,
}

impl Oracle {
    /// A process begins to lead: it has to look before it acts.
    pub fn begins(&mut self, process: ProcessId) {
        self.led.insert(process, self.newest);
    }

    /// Judges an accepted write of the controller.
    pub fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        match write.resource {
            "pods" => self.pod(write, mirror),
            "sidecarsets" => report::judge(write, mirror),
            "controllerrevisions" => revisions::judge(self, write, mirror),
            _ => None,
        }
    }

    /// Judges pods that came to be, whoever made them.
    pub fn newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.born.judge(mirror)
    }

    fn pod(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.method != Method::Patch {
            let what = format!("{} sent {:?} for pod {}", write.process, write.method, write.name);
            return Some(Violation {
                oracle: "pods of others are only changed",
                what,
            });
        }
        // A write that changes nothing is no version.
        let change = change(write, mirror)?;
        let verdict = form::judge(write, change);
        if verdict.is_some() || !write.subresource.is_empty() {
            return verdict;
        }
        let sets = view::concerned(change.before, change.after);
        let [set] = sets.as_slice() else {
            let what = format!("{} changed {} for sets {sets:?}", write.process, write.name);
            return Some(Violation {
                oracle: "sets take turns",
                what,
            });
        };
        let known = Known::of(self, write, mirror, set);
        let verdict = judge(write, change, &known);
        self.newest = self.newest.max(change.after.version);
        if !write.sent.is_given_up() {
            let key = (write.process, set.clone(), change.after.uid.clone());
            self.wrote.insert(key, change.after.version);
        }
        verdict
    }
}

/// The versions of the pod before and after a write.
fn change<'a>(write: &Write<'_>, mirror: &'a Mirror) -> Option<Change<'a>> {
    let pods = mirror.of(Watched::Pods);
    let version = pods.log.get(write.marks[Watched::Pods.index()])?.version;
    let versions = pods
        .objects
        .values()
        .find(|versions| versions.iter().any(|one| one.version == version))?;
    let at = versions.iter().position(|one| one.version == version)?;
    Some(Change {
        before: versions.get(at.checked_sub(1)?)?,
        after: versions.get(at)?,
    })
}

/// A write is right if it is right under one of the specifications that may have been believed.
fn judge(write: &Write<'_>, change: Change<'_>, known: &Known<'_>) -> Option<Violation> {
    let mut verdict = None;
    for spec in &known.specs {
        let wrong = wrong(change, *spec, known)?;
        verdict = Some((wrong, spec));
    }
    let (oracle, text) = match verdict {
        Some(((oracle, text), spec)) => (
            oracle,
            format!("{text}; {}", spec.0.value()["spec"]["updateStrategy"]),
        ),
        None => ("pods of no set are left alone", "no such set is there".to_owned()),
    };
    let what = format!(
        "{} changed {} for {}: {text}",
        write.process, write.name, known.set
    );
    Some(Violation { oracle, what })
}

/// What is wrong with a change under a specification: which oracle says so, and why.
fn wrong(change: Change<'_>, spec: Spec<'_>, known: &Known<'_>) -> Option<(&'static str, String)> {
    let Change { before, after } = change;
    if !spec.counts(before) || !known.may_look(spec) {
        return Some((
            "pods of no set are left alone",
            "it is none of its pods".to_owned(),
        ));
    }
    if !spec.upgrades() {
        return Some(("upgrades are held", "nothing is to be upgraded".to_owned()));
    }
    let is_upgrade = view::hash(before, known.set) != view::hash(after, known.set);
    form::images(change, spec, is_upgrade)
        .or_else(|| hot::wrong(change, spec))
        .or_else(|| limits::wrong(change, spec, known).filter(|_| is_upgrade))
}
