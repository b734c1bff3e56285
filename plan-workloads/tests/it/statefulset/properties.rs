//! Random scenarios: edits, faults, nodes and half-executed plans, under the oracle's eyes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_plan_kit::{Explain, Intent, ObjectWrites, Phase, Plan, Target};
use kruise_plan_test_kit::{condition, mounts, text, uid_of};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    oracle,
    world::{World, owner},
};

/// Longest way to rest: eight pods one by one, each through hooks, restarts and `minReadySeconds`.
const ROUNDS: usize = 300;

/// Something that happens. Small numbers pick a pod by its place in the list.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Image(u8),
    Environment(u8),
    Replicas(u8),
    Reserve(Value),
    Start(u8),
    Strategy(&'static str, Value),
    Budget(Value),
    Claims(u8),
    /// Claims are to have this size.
    Size(u8),
    Retention(&'static str, &'static str),
    MarkForDeletion(u8),
    LeaveSelector(u8),
    LoseLabel(u8),
    /// Somebody else's pod with the name of this ordinal: another controller's, or nobody's; the latter may match.
    Foreign(u8, u8),
    /// A claim of this ordinal is deleted by a user.
    DeleteClaim(u8),
    UserDeletes(u8),
    /// Plans, and executes the part of the plan that these bits choose.
    Plan(u32),
    Nodes,
    Kubelet(u8),
    Crash(u8),
    Recover(u8),
    Evict(u8),
    Terminate(u8),
    /// The garbage collector comes.
    Collect,
    Unhook(u8),
    Rehook(u8),
    /// The set forgets its hooks.
    Forget,
    Pass(u8),
}

fn reserved() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!([]),
        json!([0]),
        json!([1]),
        json!(["1-2"]),
        json!([1, "3-4", 2]),
        json!(["2-5", "4-6"]),
    ])
}

fn count_or_share() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(1),
        json!(2),
        json!(3),
        json!("10%"),
        json!("50%"),
        json!("150%"),
    ])
}

fn strategy() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..6u8).prop_map(|n| Event::Strategy("partition", json!(n))),
        2 => count_or_share().prop_map(|value| Event::Strategy("maxUnavailable", value)),
        1 => any::<bool>().prop_map(|value| Event::Strategy("paused", json!(value))),
        1 => (0..3u8).prop_map(|n| Event::Strategy("minReadySeconds", json!(n * 6))),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let policies = || prop::sample::select(vec!["Retain", "Delete"]);
    let changes = prop_oneof![
        3 => (0..4u8).prop_map(Event::Image),
        1 => (0..3u8).prop_map(Event::Environment),
        3 => (0..7u8).prop_map(Event::Replicas),
        1 => reserved().prop_map(Event::Reserve),
        1 => (0..3u8).prop_map(Event::Start),
        3 => strategy(),
        1 => count_or_share().prop_map(Event::Budget),
        1 => (0..3u8).prop_map(Event::Claims),
        1 => (1..4u8).prop_map(Event::Size),
        1 => (policies(), policies()).prop_map(|(scaled, deleted)| Event::Retention(scaled, deleted)),
        1 => Just(Event::Forget),
    ];
    let users = prop_oneof![
        2 => any::<u8>().prop_map(Event::MarkForDeletion),
        1 => any::<u8>().prop_map(Event::LeaveSelector),
        1 => any::<u8>().prop_map(Event::LoseLabel),
        1 => (0..6u8, 0..3u8).prop_map(|(ordinal, whose)| Event::Foreign(ordinal, whose)),
        1 => any::<u8>().prop_map(Event::DeleteClaim),
        2 => any::<u8>().prop_map(Event::UserDeletes),
        1 => any::<u8>().prop_map(Event::Unhook),
        1 => any::<u8>().prop_map(Event::Rehook),
    ];
    let cluster = prop_oneof![
        6 => Just(Event::Nodes),
        2 => any::<u8>().prop_map(Event::Kubelet),
        1 => any::<u8>().prop_map(Event::Crash),
        1 => any::<u8>().prop_map(Event::Recover),
        2 => any::<u8>().prop_map(Event::Evict),
        2 => any::<u8>().prop_map(Event::Terminate),
        2 => Just(Event::Collect),
        3 => (1..15u8).prop_map(Event::Pass),
    ];
    prop_oneof![
        3 => changes,
        2 => users,
        5 => cluster,
        2 => any::<u32>().prop_map(Event::Plan),
        4 => Just(Event::Plan(u32::MAX)),
    ]
}

/// Which hooks the set has: preNormal, inPlaceUpdate, preDelete; and do the last two take pods out of service?
type Hooks = (bool, bool, bool, bool);

fn start() -> impl Strategy<Value = Value> {
    let hooks = prop_oneof![
        2 => Just((false, false, false, false)),
        1 => any::<Hooks>(),
    ];
    let updates = prop::sample::select(vec![
        "ReCreate",
        "InPlaceIfPossible",
        "InPlaceIfPossible",
        "InPlaceOnly",
        "OnDelete",
    ]);
    let policies = || prop::sample::select(vec!["Retain", "Delete"]);
    let kinds = (updates, any::<bool>(), any::<bool>());
    let numbers = (
        0..6u8,
        0..4u8,
        count_or_share(),
        prop::option::of(count_or_share()),
    );
    let claims = (0..3u8, any::<bool>());
    let others = (reserved(), 0..3u8, claims, policies(), policies());
    (kinds, hooks, numbers, others).prop_map(|(kinds, hooks, numbers, others)| {
        let (update, ordered, unordered) = kinds;
        let (replicas, partition, unavailable, budget) = numbers;
        let (reserved, ready, (claims, follow), scaled, deleted) = others;
        let mut spec = json!({
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
            "podManagementPolicy": if ordered { "OrderedReady" } else { "Parallel" },
            "reserveOrdinals": reserved,
            "volumeClaimTemplates": claim_templates(claims),
            "volumeClaimUpdateStrategy": {"type": if follow { "OnPodRollingUpdate" } else { "OnDelete" }},
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "podUpdatePolicy": update, "partition": partition, "maxUnavailable": unavailable,
                "minReadySeconds": ready * 6}},
            "template": template(hooks),
        });
        if let Some(budget) = budget {
            spec["scaleStrategy"] = json!({"maxUnavailable": budget});
        }
        if update == "OnDelete" {
            spec["updateStrategy"] = json!({"type": "OnDelete"});
        } else if unordered {
            spec["updateStrategy"]["rollingUpdate"]["unorderedUpdate"] = json!({});
        }
        if let Some(lifecycle) = lifecycle(hooks) {
            spec["lifecycle"] = lifecycle;
        }
        admit(&mut spec);
        spec
    })
}

/// None, one or two.
fn claim_templates(n: u8) -> Value {
    let of = |name: &str| {
        json!({"metadata": {"name": name},
               "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}})
    };
    match n {
        0 => json!([]),
        1 => json!([of("data")]),
        _ => json!([of("data"), of("log")]),
    }
}

fn template((_, update, delete, _): Hooks) -> Value {
    let mut labels = json!({"app": "web"});
    if update {
        labels["hold/update"] = json!("yes");
    }
    if delete {
        labels["hold/delete"] = json!("yes");
    }
    json!({"metadata": {"labels": labels},
           "spec": {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                    "containers": [{"name": "main", "image": "web:0", "env": [{"name": "MODE", "value": "0"}]}]}})
}

fn lifecycle((normal, update, delete, marks): Hooks) -> Option<Value> {
    let mut lifecycle = json!({});
    for (wanted, name, key) in [
        (normal, "preNormal", "hold/normal"),
        (update, "inPlaceUpdate", "hold/update"),
        (delete, "preDelete", "hold/delete"),
    ] {
        if wanted {
            lifecycle[name] = json!({"labelsHandler": {key: "yes"}, "markPodNotReady": marks});
        }
    }
    (lifecycle != json!({})).then_some(lifecycle)
}

/// What validation does not let through is corrected: an ordered set updates one pod at a time, by ordinal.
fn admit(spec: &mut Value) {
    let ordered = spec["podManagementPolicy"] == "OrderedReady";
    if let Some(rolling) = spec["updateStrategy"]["rollingUpdate"].as_object_mut()
        && ordered
    {
        rolling.insert("maxUnavailable".into(), json!(1));
        rolling.remove("unorderedUpdate");
    }
}

struct Scenario {
    world: World,
    /// Claims that were given to pods that go: these may disappear.
    given: BTreeSet<String>,
}

impl Scenario {
    fn new(spec: Value) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut world = World::new(spec, start);
        world.options.start_ordinal = true;
        world.options.resize_claims = true;
        world.classes.insert("fast".into(), true);
        world.lazy = true;
        Self {
            world,
            given: BTreeSet::new(),
        }
    }

    fn pod(&mut self, index: u8, change: impl FnOnce(&mut World, &str)) {
        let names: Vec<String> = self.world.pods.keys().cloned().collect();
        if let Some(place) = usize::from(index).checked_rem(names.len()) {
            change(&mut self.world, &names[place]);
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        self.world.edit(|spec| {
            change(spec);
            admit(spec);
        });
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Image(n) => self.edit(|spec| {
                spec["template"]["spec"]["containers"][0]["image"] = json!(format!("web:{n}"));
            }),
            Event::Environment(n) => self.edit(|spec| {
                spec["template"]["spec"]["containers"][0]["env"][0]["value"] = json!(n.to_string());
            }),
            Event::Replicas(n) => self.edit(|spec| spec["replicas"] = json!(n)),
            Event::Reserve(list) => self.edit(|spec| spec["reserveOrdinals"] = list.clone()),
            Event::Start(n) => self.edit(|spec| spec["ordinals"] = json!({"start": n})),
            Event::Strategy(key, value) => self.edit(|spec| {
                if let Some(rolling) = spec["updateStrategy"]["rollingUpdate"].as_object_mut() {
                    rolling.insert((*key).into(), value.clone());
                }
            }),
            Event::Budget(budget) => {
                self.edit(|spec| spec["scaleStrategy"] = json!({"maxUnavailable": budget}));
            }
            Event::Claims(n) => self.edit(|spec| spec["volumeClaimTemplates"] = claim_templates(*n)),
            Event::Size(n) => self.edit(|spec| {
                for template in spec["volumeClaimTemplates"].as_array_mut().unwrap() {
                    template["spec"]["resources"]["requests"]["storage"] = json!(format!("{n}Gi"));
                }
            }),
            Event::Retention(scaled, deleted) => self.edit(|spec| {
                spec["persistentVolumeClaimRetentionPolicy"] =
                    json!({"whenScaled": scaled, "whenDeleted": deleted});
            }),
            Event::MarkForDeletion(pod) => self.label(*pod, "apps.kruise.io/specified-delete", "true"),
            Event::LeaveSelector(pod) => self.label(*pod, "app", "other"),
            Event::LoseLabel(pod) => self.pod(*pod, |world, name| {
                world.touch(name, |pod, _, _| {
                    let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
                    labels.remove("statefulset.kubernetes.io/pod-name");
                });
            }),
            Event::Foreign(ordinal, whose) => self.foreign(*ordinal, *whose),
            Event::DeleteClaim(claim) => self.delete_claim(*claim),
            Event::UserDeletes(pod) => self.pod(*pod, |world, name| {
                world.touch(name, |pod, now, _| {
                    pod["metadata"]["deletionTimestamp"] = json!(text(now));
                });
            }),
            Event::Plan(bits) => {
                self.plan(*bits);
            }
            Event::Nodes => self.nodes(),
            Event::Kubelet(pod) => self.pod(*pod, |world, name| {
                world.bind(name, "a1");
                world.kubelet(name);
            }),
            Event::Crash(pod) => self.pod(*pod, |world, name| world.crash(name)),
            Event::Recover(pod) => self.pod(*pod, |world, name| world.recover(name)),
            Event::Evict(pod) => self.pod(*pod, |world, name| world.evict(name)),
            Event::Terminate(pod) => self.pod(*pod, |world, name| world.terminate(name)),
            Event::Collect => self.collect(),
            Event::Unhook(pod) => self.pod(*pod, unhook),
            Event::Rehook(pod) => self.pod(*pod, rehook),
            Event::Forget => self.edit(|spec| drop(spec.as_object_mut().unwrap().remove("lifecycle"))),
            Event::Pass(seconds) => self.world.pass(i64::from(*seconds)),
        }
        oracle::assert_claims_kept(&self.world);
    }

    fn label(&mut self, pod: u8, key: &str, value: &str) {
        self.pod(pod, |world, name| {
            world.touch(name, |pod, _, _| pod["metadata"]["labels"][key] = json!(value));
        });
    }

    /// Another controller's pod, nobody's that matches, or nobody's that does not.
    fn foreign(&mut self, ordinal: u8, whose: u8) {
        let name = format!("web-{ordinal}");
        if self.world.pods.contains_key(&name) {
            return;
        }
        let mut other = owner(true);
        other["uid"] = json!("other-uid");
        let owners = if whose == 0 { json!([other]) } else { json!([]) };
        let app = if whose == 1 { "web" } else { "other" };
        let uid = format!("foreign-{name}-{}", self.world.now);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": "9",
                         "creationTimestamp": text(self.world.now), "labels": {"app": app}, "ownerReferences": owners},
            "spec": {"containers": [{"name": "main", "image": "web:0"}]}, "status": {"phase": "Pending"},
        });
        self.world.pods.insert(name, pod);
    }

    fn delete_claim(&mut self, index: u8) {
        let names: Vec<String> = self.world.claims.keys().cloned().collect();
        let Some(place) = usize::from(index).checked_rem(names.len()) else {
            return;
        };
        let now = text(self.world.now);
        let claim = self.world.claims.get_mut(&names[place]).unwrap();
        claim["metadata"]["deletionTimestamp"] = json!(now);
        self.given.insert(names[place].clone());
    }

    /// Claims disappear only if they were given to a pod that goes, or deleted by a user.
    fn collect(&mut self) {
        let before: Vec<String> = self.world.claims.keys().cloned().collect();
        self.world.collect();
        for name in before {
            let stays = self.world.claims.contains_key(&name);
            assert!(stays || self.given.contains(&name), "{name} disappeared");
        }
    }

    /// Plans twice, the second time from the pods in another order, and executes what the bits choose.
    fn plan(&mut self, bits: u32) -> bool {
        let world = &self.world;
        let plan = world.plan(Explain::No);
        let mut shuffled = world.pod_views();
        shuffled.reverse();
        let middle = shuffled.len() / 2;
        shuffled.rotate_left(middle);
        let again = world.plan_of(&shuffled, Explain::No);
        assert_eq!(plan, again, "the order of the input shows");
        let explained = world.plan_of(&shuffled, Explain::Yes);
        assert_eq!(plan.writes, explained.writes, "explaining changes decisions");
        oracle::assert_scale_budget(world, &plan);
        // Each object is written by one list of writes.
        let steps = plan
            .writes
            .iter()
            .map(|object| object.steps.iter().map(|step| step.write.target()));
        let lists: Vec<BTreeSet<&Target>> = steps.map(Iterator::collect).collect();
        let all: BTreeSet<&&Target> = lists.iter().flatten().collect();
        let sum: usize = lists.iter().map(BTreeSet::len).sum();
        assert_eq!(all.len(), sum, "two lists for one object: {lists:?}");
        self.execute(&plan, bits);
        !plan.writes.is_empty() || plan.status.is_some()
    }

    fn execute(&mut self, plan: &Plan, bits: u32) {
        let mut writes: Vec<&ObjectWrites> = plan.writes.iter().collect();
        // Writes of a phase run side by side. A pod that is adopted counts from the next plan on.
        let adopts = |object: &ObjectWrites| object.steps[0].write.intent() == Intent::ADOPT_POD;
        writes.sort_by_key(|object| (object.phase, adopts(object)));
        let mut cancelled = false;
        for (index, object) in writes.iter().enumerate() {
            let everything = bits == u32::MAX;
            let steps = match (bits >> (2 * (index % 16))) & 3 {
                _ if everything => object.steps.len(),
                0 => 0,
                1 => 1,
                _ => object.steps.len(),
            };
            cancelled |= object.phase == Phase::Revisions && steps == 0;
            if cancelled {
                continue;
            }
            let mut previous = None;
            for step in object.steps.iter().take(steps) {
                let done = oracle::apply(&mut self.world, step, &mut previous);
                assert_eq!(done, Ok(()), "{}", step.write);
                if step.write.intent().as_str() == "own-claim" {
                    self.given.insert(step.write.target().name.clone());
                }
            }
        }
        if bits & 1 == 1 {
            self.world.report(plan);
        }
    }

    /// Every node does its work.
    fn nodes(&mut self) {
        let names: Vec<String> = self.world.pods.keys().cloned().collect();
        self.world.grow_claims();
        self.world.nodes(names.iter());
    }

    /// Faults end: nodes work, users let hooks go, plans are executed in full. Does the world come to rest?
    fn settle(&mut self) {
        self.edit(|spec| {
            if let Some(rolling) = spec["updateStrategy"]["rollingUpdate"].as_object_mut() {
                rolling.insert("paused".into(), json!(false));
            }
        });
        // What is somebody else's goes; what matches is adopted.
        let foreign = |pod: &Value| {
            let controlled = super::world::controller(pod).is_some_and(|uid| uid != super::world::SET_UID);
            controlled || oracle::label(pod, "app") != Some("web")
        };
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            let acted = self.plan(u32::MAX);
            let before = (self.world.pods.clone(), self.world.set.clone());
            self.world.pods.retain(|_, pod| {
                !foreign(pod) || super::world::controller(pod) == Some(super::world::SET_UID)
            });
            for name in before.0.keys() {
                self.world.recover(name);
                unhook(&mut self.world, name);
                rehook(&mut self.world, name);
            }
            self.nodes();
            self.collect();
            self.world.pass(7);
            oracle::assert_claims_kept(&self.world);
            let moved = acted || before != (self.world.pods.clone(), self.world.set.clone());
            quiet = if moved { 0 } else { quiet + 1 };
            // Three, so that what waits for `minReadySeconds` is not taken for rest.
            if quiet > 2 {
                return self.assert_rest();
            }
        }
        let plan = self.world.plan(Explain::Yes);
        panic!("no rest after {ROUNDS} rounds: {plan:#?}\n{:#?}", self.world.set);
    }

    fn assert_rest(&self) {
        let world = &self.world;
        let plan = world.plan(Explain::No);
        assert!(plan.writes.is_empty() && plan.status.is_none(), "{plan:#?}");
        let spec = &world.set["spec"];
        let slots: BTreeSet<String> = oracle::slots(world).into_iter().map(oracle::name_of).collect();
        let names: BTreeSet<String> = world.pods.keys().cloned().collect();
        assert_eq!(names, slots, "{:#?}", world.set);
        let mut old = 0;
        let update = oracle::update_revision(world).expect("the update revision exists");
        let rolls = spec["updateStrategy"]["type"] == "RollingUpdate";
        for (place, (_, pod)) in oracle::filled(world).enumerate() {
            assert!(oracle::is_available(world, pod), "{pod:#}");
            assert_eq!(
                oracle::label(pod, "apps.kruise.io/specified-delete").filter(|_| rolls),
                None
            );
            let name = pod["metadata"]["name"].as_str();
            assert_eq!(oracle::label(pod, "statefulset.kubernetes.io/pod-name"), name);
            for gate in pod["spec"]["readinessGates"].as_array().into_iter().flatten() {
                let gate = gate["conditionType"].as_str().unwrap();
                assert_eq!(condition(pod, gate), Some("True"), "{pod:#}");
            }
            old += usize::from(!oracle::is_on(pod, &update));
            let policy = &spec["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"];
            let ordered = spec["updateStrategy"]["rollingUpdate"]["unorderedUpdate"].is_null();
            if rolls && policy != "InPlaceOnly" && ordered && place >= oracle::partition(world) {
                assert!(oracle::is_on(pod, &update), "{pod:#}");
            }
            self.assert_claims(pod);
            if rolls && policy != "InPlaceOnly" && ordered && place >= oracle::partition(world) {
                self.assert_sizes(pod);
            }
        }
        let policy = &spec["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"];
        if rolls && policy != "InPlaceOnly" {
            assert!(old <= oracle::partition(world), "{old} old pods");
        }
        let status = &world.set["status"];
        let reported = |key: &str| status[key].as_u64().unwrap_or(0) as usize;
        let all = slots.len();
        for (key, wanted) in [
            ("replicas", all),
            ("readyReplicas", all),
            ("availableReplicas", all),
            ("updatedReplicas", all - old),
            ("updatedReadyReplicas", all - old),
            ("updatedAvailableReplicas", all - old),
        ] {
            assert_eq!(reported(key), wanted, "{key}");
        }
        assert_eq!(status["updateRevision"], *update);
        assert_eq!(
            status["observedGeneration"], world.set["metadata"]["generation"],
            "{status}"
        );
        if old == 0 && rolls {
            assert_eq!(status["currentRevision"], *update);
        }
    }

    /// The pod's claims are there, and owned as the policy says.
    fn assert_claims(&self, pod: &Value) {
        let policy = &self.world.set["spec"]["persistentVolumeClaimRetentionPolicy"];
        let of_set = policy["whenDeleted"] == "Delete";
        for name in mounts(pod) {
            let claim = &self.world.claims[&name];
            let owners = claim["metadata"]["ownerReferences"].as_array();
            let owners: Vec<String> = owners
                .into_iter()
                .flatten()
                .map(|owner| owner["uid"].as_str().unwrap().to_owned())
                .collect();
            let wanted: Vec<String> = of_set.then(|| uid_of(&self.world.set)).into_iter().collect();
            let mounted = self.world.set["spec"]["volumeClaimTemplates"].as_array().unwrap();
            let ours = mounted
                .iter()
                .any(|template| name.starts_with(template["metadata"]["name"].as_str().unwrap()));
            // One that a user deleted goes with its pod, whoever owns it.
            let goes = oracle::is_terminating(claim);
            assert!(!ours || goes || owners == wanted, "{claim:#}");
        }
    }
}

impl Scenario {
    /// The pod's claims are as large as their templates say.
    fn assert_sizes(&self, pod: &Value) {
        let world = &self.world;
        let templates = world.set["spec"]["volumeClaimTemplates"].as_array().unwrap();
        for template in templates.iter().filter(|_| oracle::follows(world)) {
            let of = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
            let claim = &world.claims[&format!("{}-{}", of(template), of(pod))];
            let large = oracle::size_of(claim) >= oracle::size_of(template);
            assert!(large || oracle::is_terminating(claim), "{claim:#}");
        }
    }
}

/// A user's controller lets a pod go that waits at a hook.
fn unhook(world: &mut World, name: &str) {
    world.touch(name, |pod, _, _| {
        let labels = &mut pod["metadata"]["labels"];
        let key = match labels["lifecycle.apps.kruise.io/state"].as_str() {
            Some("PreparingDelete") => "hold/delete",
            Some("PreparingUpdate") => "hold/update",
            _ => return,
        };
        labels.as_object_mut().unwrap().remove(key);
    });
}

/// A user's controller takes a pod back after an update, or into service after its creation.
fn rehook(world: &mut World, name: &str) {
    world.touch(name, |pod, _, _| {
        let labels = &mut pod["metadata"]["labels"];
        let key = match labels["lifecycle.apps.kruise.io/state"].as_str() {
            Some("PreparingNormal") => "hold/normal",
            Some("Updated") => "hold/update",
            _ => return,
        };
        labels[key] = json!("yes");
    });
}

/// A set comes into being, gets another image when it is at rest, and comes to rest again.
fn run(spec: Value, before: &[Event], after: &[Event]) {
    let mut scenario = Scenario::new(spec);
    for event in before {
        scenario.happen(event);
    }
    scenario.settle();
    scenario.happen(&Event::Image(9));
    for event in after {
        scenario.happen(event);
    }
    scenario.settle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_write_keeps_identity_order_and_limits_and_every_scenario_comes_to_rest(
        spec in start(),
        before in prop::collection::vec(event(), 0..25),
        after in prop::collection::vec(event(), 0..25),
    ) {
        run(spec, &before, &after);
    }
}
