//! Subjects: what is simulated.

use std::sync::Arc;

use anyhow::Context;
use futures::future::BoxFuture;
use kruise::manager::MatchConditions;
use kruise_runtime::Client;
use serde_json::Value;

use super::{
    cluster::Cluster,
    oracles::Oracles,
    process::ProcessId,
    resource::{CONFIGMAPS, MUTATING_WEBHOOKS, Resource},
    scenario::{Action, Edit, Scenario, Step},
    verdict::Violation,
};

/// A kind whose controller is simulated: how its scenarios are drawn, what users do, and what judges the controller.
///
/// To add one, make a folder beside `subjects/cloneset` and name it in `subjects::ALL`. It needs:
/// - **A start and edits.** Two types of its own with `Serialize` and `Deserialize`: what users create, and how they change
///   it. Case files hold them as text, so a variant keeps its name. [`Subject::scenario`] draws both, and
///   [`super::generate`] adds faults: name the resources whose watches matter. A seed belongs to the last subject of the
///   list that draws a scenario of it. Leave most seeds to the others, draw from [`super::random::Purpose`]s of its own,
///   and no seed of another subject changes its meaning.
/// - **Users** ([`User`]): create and edit the objects, and play outside systems that the kind waits for, such as hooks.
/// - **Oracles** ([`Oracles`]): [`Oracles::judge`] sees each accepted write, with what its sender knew. For a workload,
///   `subjects::knowledge` gives the specifications and pods that the sender may have believed, and `subjects::pod_writes`
///   judges what every workload promises of its pods.
/// - **End conditions** ([`Oracles::unfinished`]): what objects and status must be when all is calm, as `Err` with the
///   first difference. A write after that is a violation by itself.
/// - **Does it count?** ([`Oracles::counts`]): a scenario in which too little happened is played on, or not counted.
///
/// Then inject a bug (`kruise_plan_kit::injected`) for each oracle, and see it found.
pub trait Subject: Sync {
    /// Its name in case files and on the command line.
    fn name(&self) -> &'static str;

    /// The last part of its controller's user agent. None if the manager does not control the kind.
    fn component(&self) -> Option<&'static str>;

    /// Definitions that the cluster has for its sake.
    fn definitions(&self) -> Vec<Value>;

    /// What its controller watches, and what its oracles read. Watches are woken in this order, and opening each takes a
    /// request, from which uids follow: another resource changes the fingerprints of all seeds that have the subject.
    fn resources(&self) -> &'static [Resource];

    /// Are its resources watched in scenarios without it, too? That was so for the first subjects, and their seeds keep it.
    fn is_always_watched(&self) -> bool {
        false
    }

    /// Do webhooks of all managers answer in turns? Otherwise those of the oldest one answer, as they did for the first
    /// subjects.
    fn uses_all_webhooks(&self) -> bool {
        false
    }

    /// Do managers wait for users whose requests fail, too? Then the time in which managers write nothing says nothing about them.
    fn is_paced_by_users(&self) -> bool {
        false
    }

    /// Labels by which its controller selects objects in lists and watches.
    fn selectors(&self) -> &'static [&'static str] {
        &[]
    }

    /// The scenario of a seed, if it is one of this subject.
    fn scenario(&self, seed: u64) -> Option<Scenario>;

    /// Scenarios without faults that are played with a crash after each single write, and their names.
    fn clean_scenarios(&self) -> Vec<(&'static str, Scenario)> {
        Vec::new()
    }

    /// Does an edit end what would keep its objects from their end? Shortening keeps such edits.
    fn is_release(&self, change: &Value) -> bool;

    /// Users and oracles of one play.
    fn begin(&self, scenario: &Scenario) -> anyhow::Result<(Box<dyn User>, Box<dyn Oracles>)>;
}

/// What users do to a subject in one play.
pub trait User: Send + Sync {
    /// Feature gates that managers have on.
    fn gates(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Starts tasks that last as long as the play.
    fn attend(&self, _cluster: &Arc<Cluster>) {}

    /// Creates what must be there before any workload.
    fn prepare<'a>(&'a self, _cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Creates its objects.
    fn create<'a>(&'a self, _cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Edits its objects. False if that is refused, or means nothing now.
    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>>;

    /// A trial once all is calm, if there is one.
    fn probe<'a>(&'a self, _cluster: &'a Arc<Cluster>) -> Option<BoxFuture<'a, Option<Violation>>> {
        None
    }

    /// What is done beside each manager as long as its listeners are open, if anything.
    fn beside_manager(
        &self,
        _cluster: &Arc<Cluster>,
        _process: ProcessId,
        _client: Client,
        _desired: MatchConditions,
    ) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The users of one play, by name of their subject.
pub type Users = Arc<std::collections::BTreeMap<&'static str, Box<dyn User>>>;

/// All subjects.
#[derive(Clone, Copy)]
pub struct Subjects(pub &'static [&'static dyn Subject]);

impl Subjects {
    /// The subject of a name.
    pub fn named(self, name: &str) -> anyhow::Result<&'static dyn Subject> {
        let found = self.0.iter().find(|one| one.name() == name);
        found
            .copied()
            .with_context(|| format!("there is no subject {name}"))
    }

    /// The scenario of a seed, and the subject that drew it.
    pub fn generate(self, seed: u64) -> anyhow::Result<(&'static dyn Subject, Scenario)> {
        let mut last_first = self.0.iter().rev();
        let drawn = last_first.find_map(|one| Some((*one, one.scenario(seed)?)));
        drawn.with_context(|| format!("seed {seed} is of no subject"))
    }

    /// Does a step end what would keep the scenario from its end?
    pub fn is_release(self, step: &Step) -> bool {
        match &step.what {
            Action::Edit(Edit { subject, change }) => {
                self.named(subject).is_ok_and(|one| one.is_release(change))
            }
            _ => false,
        }
    }

    /// Resources that managers watch in a scenario, in the order in which watches are woken.
    pub fn resources(self, scenario: &Scenario) -> Vec<Resource> {
        let watched = self
            .0
            .iter()
            .filter(|one| one.is_always_watched() || scenario.subjects.contains_key(one.name()));
        let named = watched.flat_map(|one| one.resources());
        let mut resources: Vec<Resource> = Vec::new();
        for one in named.chain(&[CONFIGMAPS, MUTATING_WEBHOOKS]) {
            if !resources.contains(one) {
                resources.push(*one);
            }
        }
        resources
    }

    /// Do webhooks of all managers answer in turns in a scenario?
    pub fn use_all_webhooks(self, scenario: &Scenario) -> bool {
        let mut played = self
            .0
            .iter()
            .filter(|one| scenario.subjects.contains_key(one.name()));
        played.any(|one| one.uses_all_webhooks())
    }

    /// Labels by which managers select objects.
    pub fn selectors(self) -> Vec<&'static str> {
        let named = self.0.iter().flat_map(|one| one.selectors());
        named
            .copied()
            .chain(["apps.kruise.io/container-launch-barrier"])
            .collect()
    }

    /// Components that write only while their process leads.
    pub fn controllers(self) -> Vec<&'static str> {
        let named = self.0.iter().filter_map(|one| one.component());
        named.chain(["pod-readiness-controller"]).collect()
    }
}
