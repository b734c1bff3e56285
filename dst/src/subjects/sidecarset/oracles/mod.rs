//! SidecarSets: what they may do to pods of others, and what must be at the end.
//!
//! Every write of a pod is for a version of it, so of that pod its sender knew what is true. Of the others, and of its
//! SidecarSet, it knew something between what its watches had shown and the truth; what the same SidecarSet wrote it knew.

mod born;
mod change;
mod end;
mod form;
mod hot;
mod known;
mod limits;
mod memory;
mod report;
mod revisions;
pub mod view;

use super::start::CONTROLLER;
use crate::rules::prelude::*;
use born::Born;
use change::Change;
use known::Known;
use memory::Memory;
use view::Spec;

/// Least of writes of pods for a scenario to count.
const UPGRADES: u32 = 6;

/// What judges the SidecarSets of a scenario.
#[derive(Debug, Default)]
pub struct SidecarSetOracles {
    memory: Memory,
    born: Born,
}

impl Oracles for SidecarSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        match write.resource {
            _ if write.component != CONTROLLER => None,
            "pods" => self.pod(write, mirror),
            "sidecarsets" => report::judge(write, mirror),
            "controllerrevisions" => revisions::judge(&self.memory, write, mirror),
            _ => None,
        }
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        end::unfinished(mirror)
    }

    fn counts(&self, counters: &Counters) -> bool {
        counters.pods_of(CONTROLLER) >= UPGRADES
    }

    /// What one SidecarSet wrote another one need not know; [`Known`] has what each wrote.
    fn remembers_pods(&self) -> bool {
        false
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.born.judge(mirror)
    }

    /// It must list before it acts.
    fn begins_to_lead(&mut self, process: ProcessId) {
        self.memory.led.insert(process, self.memory.newest);
    }
}

impl SidecarSetOracles {
    fn pod(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        never!(write, "pods of others are only changed",
            write.method != Method::Patch => "sent {:?} for pod {}", write.method, write.name);
        // A write that changes nothing is no version.
        let change = Change::of(write, mirror)?;
        let verdict = form::judge(write, change);
        if verdict.is_some() || !write.subresource.is_empty() {
            return verdict;
        }
        let sets = view::concerned(change.before, change.after);
        let [set] = sets.as_slice() else {
            return write.breaks("sets take turns", format!("for sets {sets:?}"));
        };
        let known = Known::of(&self.memory, write, mirror, set);
        let verdict = judge(write, change, &known);
        self.memory.newest = self.memory.newest.max(change.after.version);
        if !write.sent.is_given_up() {
            let key = (write.process, set.clone(), change.after.uid.clone());
            self.memory.wrote.insert(key, change.after.version);
        }
        verdict
    }
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

/// What is wrong with a change under a specification: which oracle found it, and why.
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
