//! SidecarSets: what they may do to pods of others, and what must be at the end.
//!
//! Every write of a pod is for a version of it, so of that pod its sender knew what is true. Of the others, and of its
//! SidecarSet, it knew something between what its watches had shown and the truth; what the same SidecarSet wrote
//! it knew.

mod born;
mod end;
mod form;
mod hot;
mod known;
mod limits;
mod memory;
mod report;
mod revisions;
pub mod view;

use crate::rules::Broken;
use crate::rules::moments::Births;
use crate::rules::prelude::*;
use known::Known;
use memory::Memory;
use view::Spec;

/// What judges the SidecarSets of a scenario.
#[derive(Debug, Default)]
pub struct SidecarSetOracles {
    memory: Memory,
    born: Births,
}

impl Oracles for SidecarSetOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        match write.resource {
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
        counters.pods_of("sidecarset-controller") >= 6
    }

    fn judge_newborn(&mut self, mirror: &Mirror) -> Option<Violation> {
        self.born.judge(mirror, |pod| born::judge(pod, mirror))
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
        let pods @ [before, after] = write.both(mirror, PODS)?;
        let verdict = form::judge(write, pods);
        if verdict.is_some() || !write.subresource.is_empty() {
            return verdict;
        }
        let sets = view::concerned(before, after);
        never!(write, "sets take turns", sets.len() != 1 => "for sets {sets:?}");
        let set = sets.first()?;
        let known = Known::of(&self.memory, write, mirror, set);
        let verdict = judge(write, pods, &known);
        self.memory.newest = self.memory.newest.max(after.version);
        if !write.sent.is_given_up() {
            let key = (write.process, set.clone(), after.uid.clone());
            self.memory.wrote.insert(key, after.version);
        }
        verdict
    }
}

/// A write is right if it is right under one of the specifications that may have been believed.
fn judge(write: &Write<'_>, pods: [&Object; 2], known: &Known<'_>) -> Option<Violation> {
    never!(write, "pods of no set are left alone", known.specs.is_empty() => "there is no set {}", known.set);
    let mut broken = None;
    for spec in &known.specs {
        broken = Some((wrong(pods, *spec, known)?, spec.0));
    }
    let ((oracle, text), set) = broken?;
    let why = format!("for {}: {text}; {}", known.set, set.spec()["updateStrategy"]);
    write.breaks(oracle, why)
}

/// What is wrong with a change under a specification: which oracle found it, and why.
fn wrong(pods: [&Object; 2], spec: Spec<'_>, known: &Known<'_>) -> Broken {
    let [before, after] = pods;
    breaks!("pods of no set are left alone", !spec.counts(before) || !known.may_look(spec) => "it is none of its pods");
    breaks!("upgrades are held", !spec.upgrades() => "nothing is to be upgraded");
    let is_upgrade = view::hash(before, known.set) != view::hash(after, known.set);
    form::images(pods, spec, is_upgrade)
        .or_else(|| hot::wrong(pods, spec))
        .or_else(|| limits::wrong(pods, spec, known).filter(|_| is_upgrade))
}
