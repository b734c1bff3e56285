//! Subjects: what is simulated.

use std::{fmt, sync::Arc};

use anyhow::Context;
use futures::future::BoxFuture;
use kruise_api::definition::Kind;
use kruise_manager::MatchConditions;
use kruise_runtime::Client;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    bug::Bug,
    cluster::Cluster,
    mirror::Mirror,
    object::Object,
    oracles::Oracles,
    process::ProcessId,
    registration::register,
    resource::{CONFIGMAPS, MUTATING_WEBHOOKS, Resource},
    scenario::{Action, Scenario, Step},
    verdict::Violation,
};

/// A kind whose controller is simulated: how its scenarios are drawn, what users do, and what judges the controller.
///
/// To add one, make a folder beside `subjects/cloneset` and name it in `subjects::ALL`. It needs:
/// - **A start and edits.** Two types of its own with `Serialize` and `Deserialize`: what users create, and how
///   they change it. Case files hold them as text, so a variant keeps its name. Its `scenario` draws both, and
///   [`super::generate`] adds faults: name the resources whose watches matter. Each subject draws a scenario of
///   each seed, from [`super::random::Purpose`]s of its own.
/// - **Users** ([`Users`]): create and edit the objects, and play outside systems that the kind waits for, such as
///   hooks.
/// - **Oracles** ([`Oracles`]): [`Oracles::judge`] sees each accepted write, with what its sender knew. For a workload,
///   `rules::belief` gives the specifications and pods that the sender may have believed, and `rules::pod_writes`
///   judges what every workload promises of its pods.
/// - **End conditions** ([`Oracles::unfinished`]): what objects and status must be when all is calm, as `Err` with the
///   first difference. A write after that is a violation by itself.
/// - **Does it count?** ([`Subject::least`]): a scenario in which too little happened is played on, or not counted.
///
/// Then inject a bug (`kruise_plan_kit::injected`) for each oracle, name it in [`Subject::bugs`], see it found, and
/// give the subject a quota in `tests/it/scenarios.rs`.
pub struct Subject {
    /// Its name in case files and on the command line.
    pub name: &'static str,
    /// The last part of its controller's user agent. None if the manager does not control the kind.
    pub component: Option<&'static str>,
    /// Kinds whose definitions the cluster has for its sake.
    pub definitions: &'static [&'static Kind],
    /// What its controller watches, and what its oracles read. Watches are woken in this order, and opening each
    /// takes a request, from which uids follow: another resource changes the fingerprints of all seeds that have
    /// the subject.
    pub resources: &'static [Resource],
    /// Are its resources watched in scenarios without it, too? That was so for the first subjects, and their seeds
    /// keep it.
    pub is_always_watched: bool,
    /// Do webhooks of all managers answer in turns? Otherwise those of the oldest one answer, as they did for the first
    /// subjects.
    pub uses_all_webhooks: bool,
    /// Do managers wait for users whose requests fail, too? Then the time in which managers write nothing says
    /// nothing about them.
    pub is_paced_by_users: bool,
    /// Labels by which its controller selects objects in lists and watches.
    pub selectors: &'static [&'static str],
    /// The scenario of a seed. None if the subject is only played below others.
    pub scenario: Option<fn(u64) -> Scenario>,
    /// Scenarios without faults that are played with a crash after each single write, and their names.
    pub clean: fn() -> Vec<(&'static str, Scenario)>,
    /// Does an edit end what would keep its objects from their end? Shortening keeps such edits.
    pub is_release: fn(&Value) -> bool,
    /// Injected bugs that its scenarios show.
    pub bugs: &'static [Bug],
    /// Is it a pod of its workload? Actions on pods choose among these.
    pub owns: fn(&Object, &Mirror) -> bool,
    /// Must its controller take its own writes of pods into account in all that it decides later?
    pub remembers_pods: bool,
    /// The path of an object that its end conditions need and that no manager watches.
    pub reads: Option<&'static str>,
    /// So many writes of resources, their status included, are needed for a scenario to count.
    pub least: &'static [(Resource, u32)],
    /// So large must a member of its start be for that.
    pub least_at_first: Option<(&'static str, u64)>,
    /// Users and oracles of one play.
    pub begin: fn(&Scenario) -> anyhow::Result<Begun>,
}

/// Users and oracles of one play.
pub type Begun = (Box<dyn User>, Box<dyn Oracles>);

impl Subject {
    /// What most subjects have in common. Each has a name and a way to begin of its own.
    pub const PLAIN: Self = Self {
        name: "",
        component: None,
        definitions: &[],
        resources: &[],
        is_always_watched: false,
        uses_all_webhooks: false,
        is_paced_by_users: false,
        selectors: &[],
        scenario: None,
        clean: Vec::new,
        is_release: |_| false,
        bugs: &[],
        owns: |_, _| false,
        remembers_pods: true,
        reads: None,
        least: &[],
        least_at_first: None,
        begin: |_| Err(anyhow::anyhow!("a subject that cannot be played")),
    };

    /// Is it an edit of the subject that ends what would keep its objects from their end?
    pub fn releases(&self, what: &Action) -> bool {
        matches!(what, Action::Edit(edit) if edit.subject == self.name && (self.is_release)(&edit.change))
    }

    /// Is what a scenario starts with large enough for it to count?
    pub fn is_large(&self, scenario: &Scenario) -> bool {
        self.least_at_first.is_none_or(|(member, least)| {
            let start = scenario.subjects.get(self.name);
            start.is_some_and(|start| start[member].as_u64() >= Some(least))
        })
    }
}

/// Users and oracles of one play.
pub fn begun(users: impl Users + 'static, oracles: impl Oracles + 'static) -> anyhow::Result<Begun> {
    Ok((Box::new(users), Box::new(oracles)))
}

/// Is this said of an edit, if it can be read?
pub fn says<E: DeserializeOwned>(change: &Value, said: impl Fn(&E) -> bool) -> bool {
    E::deserialize(change).is_ok_and(|edit| said(&edit))
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
    fn gates(&self) -> Vec<&'static str>;

    /// Starts tasks that last as long as the play.
    fn attend(&self, cluster: &Arc<Cluster>);

    /// Creates what must be there before any workload.
    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()>;

    /// Creates its objects.
    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()>;

    /// Edits its objects. False if that is refused, or means nothing now.
    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>>;

    /// A trial once all is calm, if there is one.
    fn probe<'a>(&'a self, cluster: &'a Arc<Cluster>) -> Option<BoxFuture<'a, Option<Violation>>>;

    /// What is done beside each manager as long as its listeners are open, if anything.
    fn beside_manager(
        &self,
        cluster: &Arc<Cluster>,
        process: ProcessId,
        client: Client,
        desired: MatchConditions,
    ) -> Option<BoxFuture<'static, ()>>;
}

/// What users do to a subject in one play, with edits that are read already.
pub trait Users: Send + Sync {
    /// What they do to its objects.
    type Edit: DeserializeOwned + Send + Sync;
    /// Do leaders register the webhooks whose match conditions change?
    const REGISTERS: bool = false;
    /// Is there a trial once all is calm?
    const HAS_TRIAL: bool = false;

    /// As [`User::gates`].
    fn gates(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// As [`User::attend`].
    fn attend(&self, _cluster: &Arc<Cluster>) {}

    /// As [`User::prepare`].
    fn prepare(&self, _cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// As [`User::create`].
    fn create(&self, _cluster: &Arc<Cluster>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// As [`User::edit`].
    fn edit(&self, cluster: &Arc<Cluster>, edit: &Self::Edit) -> impl Future<Output = bool> + Send;

    /// The trial once all is calm, if there is one.
    fn probe(&self, _cluster: &Arc<Cluster>) -> impl Future<Output = Option<Violation>> + Send {
        std::future::ready(None)
    }
}

impl<U: Users> User for U {
    fn gates(&self) -> Vec<&'static str> {
        Users::gates(self)
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        Users::attend(self, cluster);
    }

    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        Box::pin(Users::prepare(self, cluster))
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        Box::pin(Users::create(self, cluster))
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        Box::pin(async move { Ok(Users::edit(self, cluster, &U::Edit::deserialize(change)?).await) })
    }

    fn probe<'a>(&'a self, cluster: &'a Arc<Cluster>) -> Option<BoxFuture<'a, Option<Violation>>> {
        U::HAS_TRIAL.then(|| Box::pin(Users::probe(self, cluster)) as BoxFuture<'a, Option<Violation>>)
    }

    fn beside_manager(
        &self,
        cluster: &Arc<Cluster>,
        process: ProcessId,
        client: Client,
        desired: MatchConditions,
    ) -> Option<BoxFuture<'static, ()>> {
        let register = || register(cluster.clone(), process, client, desired);
        U::REGISTERS.then(|| Box::pin(register()) as BoxFuture<'static, ()>)
    }
}

/// The users of one play, by name of their subject.
pub type UsersOfPlay = Arc<std::collections::BTreeMap<&'static str, Box<dyn User>>>;

/// All subjects.
#[derive(Clone, Copy)]
pub struct Subjects(pub &'static [&'static Subject]);

impl Subjects {
    /// The subject of a name.
    pub fn named(self, name: &str) -> anyhow::Result<&'static Subject> {
        let found = self.0.iter().find(|one| one.name == name);
        found
            .copied()
            .with_context(|| format!("there is no subject {name}"))
    }

    /// Names of the subjects with scenarios of their own.
    pub fn played(self) -> Vec<&'static str> {
        let all = self.0.iter().filter(|one| one.scenario.is_some());
        all.map(|one| one.name).collect()
    }

    /// The injected bugs, each with the name of the subject whose scenarios show it.
    pub fn bugs(self) -> impl Iterator<Item = (&'static str, &'static Bug)> {
        let all = self.0.iter();
        all.flat_map(|one| one.bugs.iter().map(|bug| (one.name, bug)))
    }

    /// The name of an injected bug, if there is one of this name.
    pub fn bug(self, name: &str) -> Option<&'static str> {
        let mut all = self.bugs().map(|(_, bug)| bug.name);
        all.find(|bug| *bug == name)
    }

    /// The scenario of a seed.
    pub fn scenario(self, seed: Seed) -> anyhow::Result<Scenario> {
        let draw = self.named(seed.of)?.scenario;
        let draw = draw.with_context(|| format!("{} has no scenarios of its own", seed.of))?;
        Ok(draw(seed.number))
    }

    /// Seeds from a number on: of one subject, or of all in turn.
    pub fn seeds(self, of: Option<&str>, first: u64) -> anyhow::Result<impl Iterator<Item = Seed> + Send> {
        let names = match of {
            Some(of) => vec![self.named(of)?.name],
            None => self.played(),
        };
        Ok((first..).flat_map(move |number| names.clone().into_iter().map(move |of| Seed { of, number })))
    }

    /// The seed of a text: `cloneset/17`.
    pub fn seed(self, text: &str) -> anyhow::Result<Seed> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(of, number)| Some((of, number.parse().ok()?)));
        let (of, number) = parts.with_context(|| format!("{text} is no seed: one looks like cloneset/17"))?;
        let of = self.named(of)?.name;
        Ok(Seed { of, number })
    }

    /// Does a step end what would keep the scenario from its end?
    pub fn is_release(self, step: &Step) -> bool {
        self.0.iter().any(|one| one.releases(&step.what))
    }

    /// Resources that managers watch in a scenario, in the order in which watches are woken.
    pub fn resources(self, scenario: &Scenario) -> Vec<Resource> {
        let watched = self
            .0
            .iter()
            .filter(|one| one.is_always_watched || scenario.subjects.contains_key(one.name));
        let named = watched.flat_map(|one| one.resources);
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
            .filter(|one| scenario.subjects.contains_key(one.name));
        played.any(|one| one.uses_all_webhooks)
    }

    /// Labels by which managers select objects.
    pub fn selectors(self) -> Vec<&'static str> {
        let named = self.0.iter().flat_map(|one| one.selectors);
        named
            .copied()
            .chain(["apps.kruise.io/container-launch-barrier"])
            .collect()
    }

    /// Components that write only while their process leads.
    pub fn controllers(self) -> Vec<&'static str> {
        let named = self.0.iter().filter_map(|one| one.component);
        named.chain(["pod-readiness-controller"]).collect()
    }
}
