//! Random histories of a CloneSet and of a StatefulSet under a PodUnavailableBudget. Webhooks charge the same
//! budget, plans are executed in part or too late, pods break, and users edit the workload and the budget.
//!
//! The oracle knows pods, the specification of the budget, and its entries: nothing takes an available pod out of
//! service without an entry that lasts, and no entry is made that leaves fewer pods available than the budget
//! keeps.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::DerefMut,
    sync::Arc,
};

use jiff::Timestamp;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::{
    Intent, ObjectWrites, Phase, Plan, ResourceId, Target, Write,
    ledger::{Account, Covered, Decision, Expected, Live, Operation, count},
};
use kruise_plan_test_kit::{Cluster, budget, condition, merge};
use kruise_plan_workloads::statefulset;
use kruise_views::PodView;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{statefulset::World as StatefulWorld, world::World};

/// Longest way to rest: eight pods, one after the other, each charge waiting for the one before it to expire.
const ROUNDS: usize = 120;

/// A workload in a cluster.
trait Workload: DerefMut<Target = Cluster> {
    fn decide(&self) -> Plan;
}

impl Workload for World {
    fn decide(&self) -> Plan {
        self.plan()
    }
}

impl Workload for StatefulWorld {
    fn decide(&self) -> Plan {
        self.plan(statefulset::Explain::No)
    }
}

/// Something that happens. Small numbers pick a pod by its place in the list.
#[derive(Clone, Debug)]
enum Event {
    Image(u8),
    /// Labels of the template change, and nothing else.
    Tier(u8),
    Replicas(u8),
    Partition(u8),
    MaxUnavailable(u8),
    /// The budget lets so many pods go.
    Budget(u8),
    MarkForDeletion(u8),
    /// Plans, and executes the part of the plan that these bits choose.
    Plan(u32),
    /// Plans; a webhook charges the budget; the plan is executed.
    Overtaken(u8),
    /// A user evicts a pod.
    Evict(u8),
    /// The budget's controller counts.
    Count,
    Nodes,
    Kubelet(u8),
    Crash(u8),
    Recover(u8),
    Pass(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..4u8).prop_map(Event::Image),
        1 => (0..3u8).prop_map(Event::Tier),
        2 => (0..8u8).prop_map(Event::Replicas),
        1 => (0..6u8).prop_map(Event::Partition),
        1 => (1..6u8).prop_map(Event::MaxUnavailable),
        1 => (0..4u8).prop_map(Event::Budget),
        1 => any::<u8>().prop_map(Event::MarkForDeletion),
        4 => any::<u32>().prop_map(Event::Plan),
        6 => Just(Event::Plan(u32::MAX)),
        2 => any::<u8>().prop_map(Event::Overtaken),
        2 => any::<u8>().prop_map(Event::Evict),
        4 => Just(Event::Count),
        5 => Just(Event::Nodes),
        1 => any::<u8>().prop_map(Event::Kubelet),
        1 => any::<u8>().prop_map(Event::Crash),
        1 => any::<u8>().prop_map(Event::Recover),
        3 => (1..12u8).prop_map(Event::Pass),
    ]
}

/// A history, and what its oracle has seen.
struct History<W> {
    world: W,
    kind: &'static str,
    /// Charges by plans, and those that lost a race.
    charges: [usize; 2],
}

impl<W: Workload> History<W> {
    fn new(mut world: W, kind: &'static str) -> Self {
        world.gates.updates = true;
        let line = format!("web target={kind}/web max=1");
        let object = budget(&line, world.now);
        world.budgets.insert("web".into(), object);
        let mut history = Self {
            world,
            kind,
            charges: [0, 0],
        };
        history.come_to_rest();
        history
    }

    fn budget(&self) -> PodUnavailableBudget {
        PodUnavailableBudget::from_value(self.world.budgets["web"].clone()).unwrap()
    }

    fn pods(&self) -> Vec<Arc<PodView>> {
        let pods = self.world.pods.values();
        pods.map(|pod| Arc::new(serde_json::from_str(&pod.to_string()).unwrap()))
            .collect()
    }

    fn name(&self, index: u8) -> Option<String> {
        let count = self.world.pods.len();
        let index = usize::from(index) % count.max(1);
        self.world.pods.keys().nth(index).cloned()
    }

    fn replicas(&self) -> i64 {
        self.world.set["spec"]["replicas"].as_i64().unwrap()
    }

    /// Does an entry of the budget cover the pod now?
    fn has_entry(&self, name: &str) -> bool {
        let pod = &self.world.pods[name];
        let created: Timestamp = pod["metadata"]["creationTimestamp"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        [("disruptedPods", 20), ("unavailablePods", 10)]
            .iter()
            .any(|(entries, seconds)| {
                let since = self.world.budgets["web"]["status"][*entries][name].as_str();
                let since: Option<Timestamp> = since.map(|since| since.parse().unwrap());
                since.is_some_and(|since| {
                    since >= created && self.world.now.as_second() - since.as_second() < *seconds
                })
            })
    }

    /// Available pods that nobody was allowed to touch.
    fn untouched(&self) -> i64 {
        let pods = self.world.pods.iter();
        pods.filter(|(name, pod)| is_available(pod) && !self.has_entry(name))
            .count() as i64
    }

    fn desired(&self) -> i64 {
        let max = self.world.budgets["web"]["spec"]["maxUnavailable"]
            .as_i64()
            .unwrap();
        (self.replicas() - max).max(0)
    }

    /// The budget's controller, which sees everything.
    fn count(&mut self) {
        let (budget, pods) = (self.budget(), self.pods());
        let live: BTreeMap<String, Live> = pods
            .iter()
            .map(|pod| (pod.name.to_string(), Some(Arc::clone(pod))))
            .collect();
        let covered = Covered {
            pods: &pods,
            expected: Expected::Known(self.replicas() as i32),
            as_new_as_budget: true,
            live: &live,
        };
        let status = count(&budget, &covered, self.world.now).unwrap().status;
        let patch = kruise_plan_kit::ledger::status_patch(&budget.status, &status);
        self.write_status(patch);
    }

    fn write_status(&mut self, patch: Option<Value>) {
        let Some(patch) = patch else { return };
        let budget = self.world.budgets.get_mut("web").unwrap();
        merge(budget, &patch);
        let version: u64 = budget["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        budget["metadata"]["resourceVersion"] = json!((version + 1_000_000).to_string());
    }

    /// A user evicts a pod, and the webhook decides.
    fn evict(&mut self, index: u8) {
        let Some(name) = self.name(index) else { return };
        let (budget, now, gates) = (self.budget(), self.world.now, self.world.gates);
        let pods = self.pods();
        let pod = pods.iter().find(|pod| *pod.name == *name).unwrap();
        let mut account = Account::of(&budget);
        match account.ask(pod, Operation::Evict, gates, now) {
            Decision::Refused(_) => return,
            Decision::Charged | Decision::Renewed => {
                let patch = account.patch();
                self.write_status(patch);
            }
            Decision::Free(_) | Decision::Recorded => {}
        }
        let deleted = json!({"metadata": {"deletionTimestamp": kruise_plan_test_kit::text(now)}});
        self.world.touch(&name, |pod, _, _| merge(pod, &deleted));
    }

    fn execute(&mut self, plan: &Plan, mask: u32) {
        let mut objects: Vec<&ObjectWrites> = plan.writes.iter().collect();
        objects.sort_by_key(|object| object.phase);
        assert_charges_are_used(plan);
        let mut failed: Vec<Target> = Vec::new();
        for (index, object) in objects.into_iter().enumerate() {
            let is_held = object
                .after
                .as_ref()
                .is_some_and(|budget| failed.contains(budget));
            if is_held {
                continue;
            }
            if mask >> (index % 32) & 1 == 0 {
                if object.phase == Phase::Revisions {
                    break;
                }
                failed.extend(object.steps.first().map(|step| step.write.target().clone()));
                continue;
            }
            let mut previous = None;
            for step in &object.steps {
                let before = (self.untouched(), step.write.target().clone());
                self.assert_allowed(&step.write);
                let done = self.world.apply(&step.write, &mut previous);
                if step.write.intent() == Intent::CHARGE_BUDGET {
                    self.charges[usize::from(done.is_err())] += 1;
                    let (after, desired) = (self.untouched(), self.desired());
                    assert!(
                        done.is_err() || after >= desired || after == before.0,
                        "{after} pods are left of {}, and {desired} are to be kept",
                        before.0
                    );
                }
                if done.is_err() {
                    failed.push(before.1);
                    break;
                }
            }
        }
        self.world.report(plan);
        self.link();
    }

    /// What takes an available pod out of service was charged.
    fn assert_allowed(&self, write: &Write) {
        let target = write.target();
        let Some(pod) = self.world.pods.get(&target.name) else {
            return;
        };
        if target.resource != ResourceId::PODS || !is_available(pod) || self.desired() == 0 {
            return;
        }
        let disrupts = match write.intent() {
            Intent::DELETE_POD | Intent::MARK_UNREADY => true,
            Intent::UPDATE_IN_PLACE => {
                let Write::Patch { patch, .. } = write else {
                    panic!("{write}");
                };
                !patch.body()["spec"]["containers"].is_null()
            }
            _ => false,
        };
        assert!(
            !disrupts || self.has_entry(&target.name),
            "{write} was not charged: {}",
            self.world.budgets["web"]["status"]
        );
    }

    /// The webhook of creations has each pod name its budget.
    fn link(&mut self) {
        for pod in self.world.pods.values_mut() {
            pod["metadata"]["annotations"]["pub.kruise.io/related-pub"] = json!("web");
        }
    }

    fn nodes(&mut self) {
        let names: Vec<String> = self.world.pods.keys().cloned().collect();
        for name in names {
            self.world.terminate(&name);
            self.world.bind(&name, "a1");
            self.world.kubelet(&name);
        }
    }

    fn happen(&mut self, event: &Event) {
        let rolling = |set: &mut Value, key: &str, value: u8| {
            set["updateStrategy"]["rollingUpdate"][key] = json!(value);
        };
        match *event {
            Event::Image(n) => self.world.edit(|spec| {
                spec["template"]["spec"]["containers"][0]["image"] = json!(format!("web:{n}"));
            }),
            Event::Tier(n) => self.world.edit(|spec| {
                spec["template"]["metadata"]["labels"]["tier"] = json!(n.to_string());
            }),
            Event::Replicas(n) => self.world.edit(|spec| spec["replicas"] = json!(n)),
            Event::Partition(n) => self.world.edit(|spec| rolling(spec, "partition", n)),
            Event::MaxUnavailable(n) => self.world.edit(|spec| rolling(spec, "maxUnavailable", n)),
            Event::Budget(n) => {
                let budget = self.world.budgets.get_mut("web").unwrap();
                let generation = budget["metadata"]["generation"].as_i64().unwrap();
                budget["metadata"]["generation"] = json!(generation + 1);
                budget["spec"]["maxUnavailable"] = json!(n);
                self.write_status(Some(json!({})));
            }
            Event::MarkForDeletion(index) => {
                let name = self.name(index).unwrap_or_default();
                let label = json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}});
                self.world.touch(&name, |pod, _, _| merge(pod, &label));
            }
            Event::Plan(mask) => {
                let plan = self.world.decide();
                self.execute(&plan, mask);
            }
            Event::Overtaken(index) => {
                let plan = self.world.decide();
                self.evict(index);
                self.execute(&plan, u32::MAX);
            }
            Event::Evict(index) => self.evict(index),
            Event::Count => self.count(),
            Event::Nodes => self.nodes(),
            Event::Kubelet(index) => {
                let name = self.name(index).unwrap_or_default();
                self.world.kubelet(&name);
            }
            // Pods that fail by themselves are counted at once: the budget promises nothing about them.
            Event::Crash(index) => {
                let name = self.name(index).unwrap_or_default();
                self.world.crash(&name);
                self.count();
            }
            Event::Recover(index) => {
                let name = self.name(index).unwrap_or_default();
                self.world.recover(&name);
            }
            Event::Pass(seconds) => self.world.pass(i64::from(seconds)),
        }
    }

    /// Everybody does what is to be done, until nothing is left.
    fn come_to_rest(&mut self) {
        for _ in 0..ROUNDS {
            let names: Vec<String> = self.world.pods.keys().cloned().collect();
            for name in names {
                self.world.recover(&name);
            }
            self.nodes();
            self.count();
            let plan = self.world.decide();
            let is_idle = plan.writes.is_empty();
            self.execute(&plan, u32::MAX);
            self.world.pass(4);
            let terminates = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
            if is_idle && !self.world.pods.values().any(terminates) && self.has_arrived() {
                return;
            }
        }
        panic!(
            "the {} never comes to rest: {} {:?}",
            self.kind,
            self.world.budgets["web"],
            self.world.decide()
        );
    }

    /// As many pods as wanted, all available, and as many of them updated as the partition lets.
    fn has_arrived(&self) -> bool {
        let pods = &self.world.pods;
        let partition = self.world.set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
            .as_i64()
            .unwrap_or(0);
        let image = &self.world.set["spec"]["template"]["spec"]["containers"][0]["image"];
        let updated = pods
            .values()
            .filter(|pod| pod["spec"]["containers"][0]["image"] == *image);
        pods.len() as i64 == self.replicas()
            && pods.values().all(is_available)
            && updated.count() as i64 >= self.replicas() - partition.min(self.replicas())
    }
}

/// A plan charges for the pods that it writes, and for no others.
fn assert_charges_are_used(plan: &Plan) {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let pods: BTreeSet<&str> = steps
        .clone()
        .map(|step| step.write.target())
        .filter(|target| target.resource == ResourceId::PODS)
        .map(|target| target.name.as_str())
        .collect();
    for step in steps {
        let Write::Patch {
            intent: Intent::CHARGE_BUDGET,
            patch,
            ..
        } = &step.write
        else {
            continue;
        };
        let body = patch.body();
        for entries in ["disruptedPods", "unavailablePods"] {
            let entries = body["status"][entries].as_object().into_iter().flatten();
            for (name, _) in entries.filter(|(_, since)| !since.is_null()) {
                assert!(pods.contains(name.as_str()), "{name} is charged and not written");
            }
        }
    }
}

/// Ready, staying, and running what it should.
fn is_available(pod: &Value) -> bool {
    let is_true = |kind: &str| condition(pod, kind) == Some("True");
    let (container, status) = (
        &pod["spec"]["containers"][0],
        &pod["status"]["containerStatuses"][0],
    );
    pod["metadata"]["deletionTimestamp"].is_null()
        && pod["status"]["phase"] == "Running"
        && is_true("Ready")
        && is_true("InPlaceUpdateReady")
        && container["image"] == status["image"]
}

fn spec(policy: &str, parallel: bool, partition: u8, unavailable: u8) -> Value {
    json!({
        "replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
        "podManagementPolicy": if parallel { "Parallel" } else { "OrderedReady" },
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "web:0"}],
                              "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": policy, "partition": partition, "maxUnavailable": unavailable}},
    })
}

fn play(mut history: History<impl Workload>, events: &[Event]) -> [usize; 2] {
    for event in events {
        history.happen(event);
    }
    // A budget that lets nothing go would hold what is left for good.
    history.happen(&Event::Budget(1));
    history.come_to_rest();
    history.charges
}

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_plan_takes_more_pods_out_of_service_than_the_budget_grants_and_each_comes_to_rest(
        policy in prop::sample::select(vec!["ReCreate", "InPlaceIfPossible"]),
        (parallel, partition, unavailable) in (any::<bool>(), 0..3u8, 1..6u8),
        events in prop::collection::vec(event(), 0..40),
    ) {
        let spec = spec(policy, parallel, partition, unavailable);
        play(History::new(World::new(spec.clone(), now()), "CloneSet"), &events);
        play(History::new(StatefulWorld::new(spec, now()), "StatefulSet"), &events);
    }
}

#[test]
fn a_rollout_that_is_overtaken_at_every_step_ends_all_the_same() {
    let mut events = vec![Event::Image(1)];
    for index in 0..12 {
        events.extend([
            Event::Overtaken(index),
            Event::Nodes,
            Event::Pass(5),
            Event::Count,
        ]);
    }
    let spec = spec("InPlaceIfPossible", true, 0, 5);
    let [charged, lost] = play(History::new(World::new(spec, now()), "CloneSet"), &events);
    assert!(charged >= 2 && lost >= 3, "{charged} charges, {lost} lost races");
}
