//! Subjects: what is simulated.

use std::{fmt, sync::Arc};

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
///   [`super::generate`] adds faults: name the resources whose watches matter. Each subject draws a scenario of each seed,
///   from [`super::random::Purpose`]s of its own.
/// - **Users** ([`User`]): create and edit the objects, and play outside systems that the kind waits for, such as hooks.
/// - **Oracles** ([`Oracles`]): [`Oracles::judge`] sees each accepted write, with what its sender knew. For a workload,
///   `subjects::knowledge` gives the specifications and pods that the sender may have believed, and `subjects::pod_writes`
///   judges what every workload promises of its pods.
/// - **End conditions** ([`Oracles::unfinished`]): what objects and status must be when all is calm, as `Err` with the
///   first difference. A write after that is a violation by itself.
/// - **Does it count?** ([`Oracles::counts`]): a scenario in which too little happened is played on, or not counted.
///
/// Then inject a bug (`kruise_plan_kit::injected`) for each oracle, see it found, and give the subject a quota in
/// `tests/it/scenarios.rs`.
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

    /// The scenario of a seed. None if the subject is only played below others.
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

/// A seed of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    /// Name of the subject.
    pub of: &'static str,
    /// Its number.
    pub number: u64,
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.of, self.number)
    }
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

    /// Names of the subjects with scenarios of their own.
    pub fn played(self) -> Vec<&'static str> {
        let all = self.0.iter().filter(|one| one.scenario(1).is_some());
        all.map(|one| one.name()).collect()
    }

    /// The scenario of a seed.
    pub fn scenario(self, seed: Seed) -> anyhow::Result<Scenario> {
        let drawn = self.named(seed.of)?.scenario(seed.number);
        drawn.with_context(|| format!("{} has no scenarios of its own", seed.of))
    }

    /// Seeds from a number on: of one subject, or of all in turn.
    pub fn seeds(self, of: Option<&str>, first: u64) -> anyhow::Result<impl Iterator<Item = Seed> + Send> {
        let names = match of {
            Some(of) => vec![self.named(of)?.name()],
            None => self.played(),
        };
        Ok((first..).flat_map(move |number| names.clone().into_iter().map(move |of| Seed { of, number })))
    }

    /// The seed of a text: `cloneset/17`.
    pub fn seed(self, text: &str) -> anyhow::Result<Seed> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(of, number)| Some((of, number.parse().ok()?)));
        let (of, number) = parts.with_context(|| format!("{text} is no seed: one looks like cloneset/17"))?;
        let of = self.named(of)?.name();
        Ok(Seed { of, number })
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
