//! Random histories: edits, faults, nodes and half-executed plans, under the oracle's eyes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_plan_kit::{ObjectWrites, Phase, Plan, Target, inplace::VerticalScaling};
use kruise_plan_test_kit::{Refused, condition};
use kruise_plan_workloads::cloneset::Explain;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    oracle, resources,
    world::{NODE_NAMES, World},
};

/// Longest way to rest: twelve pods one by one, each through hooks, restarts and `minReadySeconds`.
const ROUNDS: usize = 250;

/// Something that happens. Small numbers pick a pod by its place in the list.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Image(u8),
    /// Image of the container that starts last.
    Log(u8),
    Grace(u8),
    /// Processor time of the first container.
    Cpu(u8),
    /// Memory of the last one, which restarts for it.
    Memory(u8),
    Environment(u8),
    Annotation(u8),
    Replicas(u8),
    Strategy(&'static str, Value),
    MinReady(u8),
    /// Other claim templates.
    Claims(u8),
    /// Are claims reused?
    Reuse(bool),
    PodsToDelete(u8),
    MarkForDeletion(u8),
    LeaveSelector(u8),
    Cost(u8, i8),
    UserDeletes(u8),
    /// Plans, and executes the part of the plan that these bits choose.
    Plan(u32),
    Bind(u8, u8),
    Nodes,
    Kubelet(u8),
    Crash(u8),
    Recover(u8),
    Evict(u8),
    Terminate(u8),
    Unhook(u8),
    Rehook(u8),
    /// The set forgets its hooks.
    Forget,
    Pass(u8),
}

fn count_or_share() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..4u8).prop_map(|n| json!(n)),
        prop::sample::select(vec!["10%", "20%", "50%", "100%", "12.5%", "99999999999%"])
            .prop_map(|share| json!(share)),
    ]
}

fn partition() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..12u8).prop_map(|n| json!(n)),
        prop::sample::select(vec!["0%", "0.5%", "33%", "50%", "99%", "100%"]).prop_map(|share| json!(share)),
        Just(json!(0)),
    ]
}

fn strategy() -> impl Strategy<Value = Event> {
    prop_oneof![
        partition().prop_map(|value| Event::Strategy("partition", value)),
        count_or_share().prop_map(|value| Event::Strategy("maxUnavailable", value)),
        count_or_share().prop_map(|value| Event::Strategy("maxSurge", value)),
        any::<bool>().prop_map(|value| Event::Strategy("paused", json!(value))),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..4u8).prop_map(Event::Image),
        1 => (1..3u8).prop_map(Event::Log),
        1 => (0..3u8).prop_map(Event::Grace),
        1 => (1..4u8).prop_map(Event::Cpu),
        1 => (1..4u8).prop_map(Event::Memory),
        1 => (0..3u8).prop_map(Event::Environment),
        1 => (0..3u8).prop_map(Event::Annotation),
        2 => (0..12u8).prop_map(Event::Replicas),
        3 => strategy(),
        1 => (0..3u8).prop_map(Event::MinReady),
        1 => (0..4u8).prop_map(Event::Claims),
        1 => any::<bool>().prop_map(Event::Reuse),
        1 => any::<u8>().prop_map(Event::PodsToDelete),
        1 => any::<u8>().prop_map(Event::MarkForDeletion),
        1 => any::<u8>().prop_map(Event::LeaveSelector),
        1 => (any::<u8>(), -2..3i8).prop_map(|(pod, cost)| Event::Cost(pod, cost)),
        2 => any::<u8>().prop_map(Event::UserDeletes),
        6 => any::<u32>().prop_map(Event::Plan),
        6 => Just(Event::Plan(u32::MAX)),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(pod, node)| Event::Bind(pod, node)),
        6 => Just(Event::Nodes),
        2 => any::<u8>().prop_map(Event::Kubelet),
        1 => any::<u8>().prop_map(Event::Crash),
        1 => any::<u8>().prop_map(Event::Recover),
        1 => any::<u8>().prop_map(Event::Evict),
        1 => any::<u8>().prop_map(Event::Terminate),
        1 => any::<u8>().prop_map(Event::Unhook),
        1 => any::<u8>().prop_map(Event::Rehook),
        1 => Just(Event::Forget),
        3 => (1..15u8).prop_map(Event::Pass),
    ]
}

/// Which hooks the set has: preNormal, inPlaceUpdate, preDelete; and do the last two take pods out of service?
pub(crate) type Hooks = (bool, bool, bool, bool);

fn start() -> impl Strategy<Value = Value> {
    let kinds = vec![
        "ReCreate",
        "InPlaceIfPossible",
        "InPlaceIfPossible",
        "InPlaceOnly",
        "OnDelete",
    ];
    let hooks: BoxedStrategy<Hooks> = prop_oneof![
        2 => Just((false, false, false, false)),
        1 => any::<Hooks>(),
    ]
    .boxed();
    let numbers = (0..12u8, partition(), count_or_share(), count_or_share());
    let creation = prop::sample::select(vec![Value::Null, Value::Null, json!(1), json!("50%")]);
    let deadline = prop::sample::select(vec![Value::Null, json!(30), json!(i32::MAX)]);
    let claims = (0..4u8, any::<bool>());
    (prop::sample::select(kinds), hooks, numbers, (deadline, creation, claims), 0..3u8, any::<bool>()).prop_map(
        |(kind, hooks, (replicas, partition, unavailable, surge), (deadline, creation, claims), ready, exclude)| {
            let mut spec = json!({
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "minReadySeconds": u32::from(ready) * 6,
                "scaleStrategy": {"excludePreparingDelete": exclude, "enablePVCReuse": claims.1},
                "volumeClaimTemplates": claim_templates(claims.0),
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                    "podUpdatePolicy": kind, "partition": partition, "maxUnavailable": unavailable, "maxSurge": surge}},
                "template": template(hooks),
            });
            if !creation.is_null() {
                spec["scaleStrategy"]["maxUnavailable"] = creation;
            }
            if !deadline.is_null() {
                spec["progressDeadlineSeconds"] = deadline;
            }
            if kind == "OnDelete" {
                spec["updateStrategy"] = json!({"type": "OnDelete"});
            }
            if let Some(lifecycle) = lifecycle(hooks) {
                spec["lifecycle"] = lifecycle;
            }
            admit(&mut spec);
            spec
        },
    )
}

/// None, one, two, or one of another size.
fn claim_templates(n: u8) -> Value {
    let of = |name: &str, size: &str| {
        json!({"metadata": {"name": name, "labels": {"kind": name}},
               "spec": {"resources": {"requests": {"storage": size}}}})
    };
    match n {
        0 => json!([]),
        1 => json!([of("data", "1Gi")]),
        2 => json!([of("data", "1Gi"), of("log", "1Gi")]),
        _ => json!([of("log", "2Gi")]),
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
    json!({"metadata": {"labels": labels, "annotations": {"note": "0"}},
           "spec": {"containers": [{"name": "main", "image": "web:0", "resources": amounts("cpu", 1),
                                    "env": [{"name": "MODE", "value": "0"}, barrier(2)]},
                                   {"name": "log", "image": "log:1", "env": [barrier(1)], "resources": amounts("memory", 1),
                                    "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]}]}})
}

/// So much of a resource, no more and no less.
fn amounts(name: &str, amount: u8) -> Value {
    let amount = json!({name: amount.to_string()});
    json!({"requests": amount, "limits": amount})
}

/// What holds a container back until those of a higher priority run.
fn barrier(priority: u8) -> Value {
    let key = json!({"name": "barrier", "key": format!("p_{priority}")});
    json!({"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": key}})
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

/// What validation does not let through is corrected: surge with `InPlaceOnly`, and no room at all.
fn admit(spec: &mut Value) {
    let rolling = &spec["updateStrategy"]["rollingUpdate"];
    if rolling.is_null() {
        return;
    }
    if rolling["podUpdatePolicy"] == "InPlaceOnly" {
        spec["updateStrategy"]["rollingUpdate"]["maxSurge"] = json!(0);
    }
    // Also without surge (paused, or a share of few pods) there must be room, or nothing ever moves.
    let allowed = oracle::Allowed::by(spec);
    if allowed.surge < 1 && allowed.unavailable < 1 {
        spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!(1);
    }
}

pub(crate) struct History {
    pub(crate) world: World,
}

impl History {
    pub(crate) fn new(spec: Value) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut world = World::new(spec, start);
        world.options.vertical_scaling = VerticalScaling::Endpoint;
        Self { world }
    }

    /// Changes the resources of a container.
    fn resize(&mut self, container: usize, resources: Value) {
        self.edit(
            &format!("/template/spec/containers/{container}/resources"),
            resources,
        );
    }

    fn pick(&self, index: u8) -> Option<String> {
        let names: Vec<&String> = self.world.pods.keys().collect();
        let place = usize::from(index).checked_rem(names.len())?;
        Some(names[place].clone())
    }

    fn pod(&mut self, index: u8, change: impl FnOnce(&mut World, &str)) {
        if let Some(name) = self.pick(index) {
            change(&mut self.world, &name);
        }
    }

    fn edit(&mut self, pointer: &str, value: Value) {
        self.world.edit(|spec| {
            if let Some(slot) = spec.pointer_mut(pointer) {
                *slot = value;
            }
            admit(spec);
        });
    }

    pub(crate) fn happen(&mut self, event: &Event) {
        match event {
            Event::Image(n) => self.edit("/template/spec/containers/0/image", json!(format!("web:{n}"))),
            Event::Log(n) => self.edit("/template/spec/containers/1/image", json!(format!("log:{n}"))),
            Event::Grace(n) => self.world.edit(|spec| {
                if spec["updateStrategy"]["type"] == "RollingUpdate" {
                    let grace = json!({"gracePeriodSeconds": u32::from(*n) * 4});
                    spec["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"] = grace;
                }
            }),
            Event::Cpu(n) => self.resize(0, amounts("cpu", *n)),
            Event::Memory(n) => self.resize(1, amounts("memory", *n)),
            Event::Environment(n) => {
                self.edit("/template/spec/containers/0/env/0/value", json!(n.to_string()));
            }
            Event::Annotation(n) => self.world.edit(|spec| {
                let annotations = if *n == 0 {
                    json!({})
                } else {
                    json!({"note": n.to_string()})
                };
                spec["template"]["metadata"]["annotations"] = annotations;
            }),
            Event::Replicas(n) => self.edit("/replicas", json!(n)),
            Event::Strategy(key, value) => self.world.edit(|spec| {
                if spec["updateStrategy"]["type"] == "RollingUpdate" {
                    spec["updateStrategy"]["rollingUpdate"][*key] = value.clone();
                    admit(spec);
                }
            }),
            Event::MinReady(n) => self.edit("/minReadySeconds", json!(u32::from(*n) * 6)),
            Event::Claims(n) => self
                .world
                .edit(|spec| spec["volumeClaimTemplates"] = claim_templates(*n)),
            Event::Reuse(reuse) => self.world.edit(|spec| {
                spec["scaleStrategy"]["enablePVCReuse"] = json!(reuse);
            }),
            Event::PodsToDelete(pod) => self.pod(*pod, |world, name| {
                world.edit(|spec| spec["scaleStrategy"]["podsToDelete"] = json!([name, "web-nobody"]));
            }),
            Event::MarkForDeletion(pod) => self.label(*pod, "apps.kruise.io/specified-delete", "true"),
            Event::LeaveSelector(pod) => self.label(*pod, "app", "other"),
            Event::Cost(pod, cost) => self.pod(*pod, |world, name| {
                let key = "controller.kubernetes.io/pod-deletion-cost";
                world.touch(name, |pod, _, _| {
                    pod["metadata"]["annotations"][key] = json!(cost.to_string());
                });
            }),
            Event::UserDeletes(pod) => self.pod(*pod, |world, name| {
                world.touch(name, |pod, now, _| {
                    pod["metadata"]["deletionTimestamp"] = json!(kruise_plan_test_kit::text(now));
                });
            }),
            Event::Plan(bits) => {
                self.plan(*bits);
            }
            Event::Bind(pod, node) => self.pod(*pod, |world, name| {
                world.bind(name, NODE_NAMES[usize::from(*node) % NODE_NAMES.len()]);
            }),
            Event::Nodes => self.nodes(),
            Event::Kubelet(pod) => self.pod(*pod, |world, name| world.kubelet(name)),
            Event::Crash(pod) => self.pod(*pod, |world, name| world.crash(name)),
            Event::Recover(pod) => self.pod(*pod, |world, name| world.recover(name)),
            Event::Evict(pod) => self.pod(*pod, |world, name| world.evict(name)),
            Event::Terminate(pod) => self.pod(*pod, |world, name| world.terminate(name)),
            Event::Unhook(pod) => self.unhook(*pod),
            Event::Rehook(pod) => self.pod(*pod, rehook),
            Event::Forget => self.world.edit(|spec| {
                spec.as_object_mut().unwrap().remove("lifecycle");
            }),
            Event::Pass(seconds) => self.world.pass(i64::from(*seconds)),
        }
    }

    fn label(&mut self, pod: u8, key: &str, value: &str) {
        self.pod(pod, |world, name| {
            world.touch(name, |pod, _, _| pod["metadata"]["labels"][key] = json!(value));
        });
    }

    fn unhook(&mut self, pod: u8) {
        self.pod(pod, unhook);
    }

    /// Plans twice, the second time from the pods in another order, and executes what the bits choose.
    fn plan(&mut self, bits: u32) -> bool {
        let world = &self.world;
        let plan = world.plan();
        let mut shuffled = world.pod_views();
        shuffled.reverse();
        let middle = shuffled.len() / 2;
        shuffled.rotate_left(middle);
        assert_eq!(
            plan,
            world.plan_of(&shuffled, Explain::No),
            "the order of the input shows"
        );
        let explained = world.plan_of(&shuffled, Explain::Yes);
        assert_eq!(plan.writes, explained.writes, "explaining changes decisions");
        let about = explained
            .why
            .iter()
            .map(|why| &why.about)
            .filter(|pod| !pod.is_empty());
        let mut seen = BTreeSet::new();
        for pod in about {
            assert!(seen.insert(pod), "two lines about one pod: {:?}", explained.why);
        }
        oracle::assert_removal_order(world, &plan);
        let first = |object: &ObjectWrites| object.steps[0].write.target().clone();
        let targets: Vec<Target> = plan.writes.iter().map(first).collect();
        let distinct: BTreeSet<&Target> = targets.iter().collect();
        assert_eq!(
            distinct.len(),
            targets.len(),
            "two writes for one object: {targets:?}"
        );
        self.execute(&plan, bits);
        !plan.writes.is_empty() || plan.status.is_some()
    }

    fn execute(&mut self, plan: &Plan, bits: u32) {
        let mut writes: Vec<_> = plan.writes.iter().collect();
        writes.sort_by_key(|object| object.phase);
        let mut cancelled = false;
        for (index, object) in writes.iter().enumerate() {
            let everything = bits == u32::MAX;
            let fate = (bits >> (2 * (index % 16))) & 3;
            let steps = match fate {
                _ if everything => object.steps.len(),
                0 => 0,
                1 => 1,
                _ => object.steps.len(),
            };
            if object.phase == Phase::Revisions && steps == 0 {
                cancelled = true;
            }
            if cancelled {
                continue;
            }
            let mut previous = None;
            for step in object.steps.iter().take(steps) {
                match oracle::apply(&mut self.world, step, &mut previous) {
                    Ok(()) => {}
                    Err(Refused::AlreadyExists) => self.learn(&step.write.target().name),
                    Err(refused) => panic!("{} is refused: {refused:?}", step.write),
                }
            }
        }
        if bits & 1 == 1 {
            self.world.report(plan);
        }
    }

    /// A name that the snapshot did not show belongs to somebody else's pod.
    fn learn(&mut self, name: &str) {
        let views = self.world.pod_views();
        assert!(
            views.iter().all(|pod| *pod.name != *name),
            "{name} is ours and was seen"
        );
        self.world.memory.taken_names.insert(name.to_owned());
    }

    /// Every node does its work.
    fn nodes(&mut self) {
        let names: Vec<String> = self.world.pods.keys().cloned().collect();
        for (index, name) in names.iter().enumerate() {
            self.world.terminate(name);
            self.world.bind(name, NODE_NAMES[index % NODE_NAMES.len()]);
            self.world.kubelet(name);
        }
    }

    /// Faults end: nodes work, users let hooks go, plans are executed in full. Does the world come to rest?
    pub(crate) fn settle(&mut self) {
        self.world.edit(|spec| {
            if spec["updateStrategy"]["rollingUpdate"].is_object() {
                spec["updateStrategy"]["rollingUpdate"]["paused"] = json!(false);
                admit(spec);
            }
        });
        let mut quiet = 0;
        for _ in 0..ROUNDS {
            let acted = self.plan(u32::MAX);
            let before = (self.world.pods.clone(), self.world.set.clone());
            for name in before.0.keys() {
                self.world.recover(name);
                unhook(&mut self.world, name);
                rehook(&mut self.world, name);
            }
            self.nodes();
            self.world.pass(7);
            let moved = acted || before != (self.world.pods.clone(), self.world.set.clone());
            quiet = if moved { 0 } else { quiet + 1 };
            // Two looks, so that what waits for `minReadySeconds` is not taken for rest.
            if quiet > 2 {
                return self.assert_rest();
            }
        }
        let plan = self.world.plan();
        panic!("no rest after {ROUNDS} rounds: {plan:#?}\n{:#?}", self.world.set);
    }

    fn assert_rest(&self) {
        let world = &self.world;
        let spec = &world.set["spec"];
        let allowed = oracle::Allowed::by(spec);
        let update = oracle::update_revision(world).expect("the update revision exists");
        let old = oracle::count(world, |pod| !oracle::is_on(pod, &update));
        let all = oracle::count(world, |_| true);
        assert_eq!(
            all,
            allowed.replicas,
            "pods: {:#?}",
            world.pods.values().collect::<Vec<_>>()
        );
        assert_eq!(
            oracle::available(world),
            all,
            "{:#?}",
            world.pods.values().collect::<Vec<_>>()
        );
        let policy = &spec["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"];
        if spec["updateStrategy"]["type"] == "RollingUpdate" && policy != "InPlaceOnly" {
            assert!(
                old <= allowed.partition,
                "{old} old pods, partition {}",
                allowed.partition
            );
        }
        assert_eq!(
            oracle::count(world, |pod| {
                pod["metadata"]["labels"]["apps.kruise.io/specified-delete"].is_string()
            }),
            0
        );
        assert!(
            spec["scaleStrategy"]["podsToDelete"]
                .as_array()
                .is_none_or(Vec::is_empty)
        );
        oracle::assert_claims_at_rest(world);
        resources::assert_at_rest(world);
        let status = &world.set["status"];
        let reported = |key: &str| status[key].as_i64().unwrap_or(-1);
        assert_eq!(reported("replicas"), all);
        assert_eq!(reported("availableReplicas"), all);
        assert_eq!(reported("readyReplicas"), all);
        assert_eq!(reported("updatedReplicas"), all - old);
        // Absent for none.
        assert_eq!(reported("updatedAvailableReplicas").max(0), all - old);
        assert_eq!(
            reported("observedGeneration"),
            world.set["metadata"]["generation"].as_i64().unwrap()
        );
        assert_eq!(status["updateRevision"], *update);
        if old == 0 {
            assert_eq!(status["currentRevision"], *update);
        }
        for gate in ["InPlaceUpdateReady", "KruisePodReady"] {
            let off = |pod: &Value| condition(pod, gate) != Some("True");
            assert_eq!(oracle::count(world, off), 0, "{gate}");
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

pub(crate) fn run(spec: Value, events: &[Event]) {
    let mut history = History::new(spec);
    for event in events {
        history.happen(event);
    }
    history.settle();
}

/// A set of three at rest, all on the first revision.
pub(crate) fn at_rest(policy: &str, hooks: Hooks) -> (Value, Vec<Event>) {
    let mut spec = json!({
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template(hooks),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": policy, "partition": 0, "maxUnavailable": 1, "maxSurge": 0}},
    });
    if let Some(lifecycle) = lifecycle(hooks) {
        spec["lifecycle"] = lifecycle;
    }
    let all = Event::Plan(u32::MAX);
    (
        spec,
        vec![all.clone(), Event::Nodes, all.clone(), Event::Nodes, all],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_write_keeps_the_limits_and_every_history_comes_to_rest(
        spec in start(),
        events in prop::collection::vec(event(), 0..45),
    ) {
        run(spec, &events);
    }
}
