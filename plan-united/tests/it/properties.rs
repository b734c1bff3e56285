//! Random histories: workloads of others are never written, replicas add up, and at rest nothing is written.

use kruise_api::uniteddeployment::Child;
use kruise_plan_kit::Memory;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{SUBSET, World, controller, subsets, template};

#[derive(Clone, Debug)]
enum Event {
    Scale(i32),
    Image(u8),
    Partition(&'static str, i32),
    Topology(usize),
    Sizes(usize),
    Kind(Child),
    Strategy(usize),
    Nodes(usize),
    Delete(u8),
    Edit(u8, i32),
    Orphan(&'static str),
    Restart,
    Reconcile,
    Pass(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let subset = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        (0..9).prop_map(Event::Scale),
        (0..4u8).prop_map(Event::Image),
        (subset.clone(), 0..4).prop_map(|(subset, partition)| Event::Partition(subset, partition)),
        (0..4usize).prop_map(Event::Topology),
        (0..5usize).prop_map(Event::Sizes),
        prop::sample::select(Child::ALL.to_vec()).prop_map(Event::Kind),
        (0..3usize).prop_map(Event::Strategy),
        (0..4usize).prop_map(Event::Nodes),
        any::<u8>().prop_map(Event::Delete),
        (any::<u8>(), 0..5).prop_map(|(which, replicas)| Event::Edit(which, replicas)),
        subset.prop_map(Event::Orphan),
        Just(Event::Restart),
        Just(Event::Reconcile),
        (1..40i64).prop_map(Event::Pass),
    ]
}

fn foreign(name: &str, subset: &str, owner: Option<&str>, app: &str) -> Value {
    let owners: Vec<Value> = owner
        .iter()
        .map(|uid| json!({"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": uid, "controller": true}))
        .collect();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop",
            "labels": {"app": app, SUBSET: subset}, "ownerReferences": owners},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": "theirs"}]}}}})
}

fn happen(world: &mut World, event: &Event) {
    let names = [vec!["a"], vec!["a", "b"], vec!["b", "c"], vec!["c", "b", "a"]];
    match event {
        Event::Scale(replicas) => world.scale(*replicas),
        Event::Image(image) => world.image(&format!("api:{image}")),
        Event::Partition(subset, partition) => {
            world
                .edit(|spec| spec["updateStrategy"]["manualUpdate"]["partitions"][subset] = json!(partition));
        }
        Event::Topology(which) => world.edit(|spec| spec["topology"]["subsets"] = subsets(&names[*which])),
        Event::Sizes(which) => world.edit(|spec| {
            let size = [
                json!({}),
                json!({"replicas": 1}),
                json!({"replicas": "50%"}),
                json!({"maxReplicas": 2}),
                json!({"minReplicas": 1}),
            ];
            let first = spec["topology"]["subsets"][0].as_object_mut().unwrap();
            first.retain(|key, _| key == "name");
            first.extend(size[*which].as_object().unwrap().clone());
        }),
        Event::Kind(child) => world.edit(|spec| spec["template"] = template(*child, "api:1")),
        Event::Strategy(which) => world.edit(|spec| {
            let seconds = |reserve: bool| {
                json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5,
                "unschedulableDuration": 5, "reserveUnschedulablePods": reserve}})
            };
            let strategy = [json!({}), seconds(false), seconds(true)];
            spec["topology"]["scheduleStrategy"] = strategy[*which].clone();
        }),
        Event::Nodes(which) => {
            let impossible: [&[&str]; 4] = [&[], &["a"], &["a", "b"], &["b"]];
            world.impossible = impossible[*which].iter().map(|name| (*name).to_owned()).collect();
        }
        Event::Delete(which) => {
            let keys: Vec<_> = world.workloads.keys().cloned().collect();
            let own: Vec<_> = keys
                .into_iter()
                .filter(|key| controller(&world.workloads[key]) == "united")
                .collect();
            if !own.is_empty() {
                world.workloads.remove(&own[usize::from(*which) % own.len()]);
            }
        }
        Event::Edit(which, replicas) => {
            let own: Vec<String> = world
                .own()
                .iter()
                .map(|object| object["metadata"]["labels"][SUBSET].as_str().unwrap().to_owned())
                .collect();
            if !own.is_empty() {
                let replicas = json!(replicas);
                world.touch(&own[usize::from(*which) % own.len()], |object| {
                    object["spec"]["replicas"] = replicas;
                });
            }
        }
        Event::Orphan(subset) => {
            let name = format!("orphan-{}", world.now.as_second());
            let mut object = foreign(&name, subset, None, "api");
            object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
            world.store(Child::Deployment, object);
        }
        Event::Restart => world.memory = Memory::default(),
        Event::Reconcile => {
            world.reconcile();
        }
        Event::Pass(seconds) => world.pass(*seconds),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn children_are_never_of_others_replicas_add_up_and_all_comes_to_rest(
        child in prop::sample::select(Child::ALL.to_vec()),
        events in prop::collection::vec(event(), 5..30),
    ) {
        let mut world = World::new(child, 4, &subsets(&["a", "b"]));
        let theirs = [foreign("theirs", "a", Some("somebody"), "api"), foreign("unselected", "b", None, "web")];
        for object in &theirs {
            world.store(Child::Deployment, object.clone());
        }
        let before = world.workloads.clone();
        for event in &events {
            happen(&mut world, event);
        }
        world.impossible.clear();
        world.pass(30);
        for (key, object) in &before {
            prop_assert_eq!(&world.workloads[key]["spec"], &object["spec"]);
            prop_assert_eq!(&world.workloads[key]["metadata"], &object["metadata"]);
        }
        prop_assert!(!world.reconcile(), "at rest nothing is written");
        prop_assert!(world.own().iter().all(|object| controller(object) == "united"));
        let total = world.united["spec"]["replicas"].as_i64().unwrap();
        let sum: i64 = world.own().iter().map(|object| object["spec"]["replicas"].as_i64().unwrap()).sum();
        let refused = world.condition("SubsetProvisioned").starts_with("False");
        let bounded = world.united["spec"]["topology"]["subsets"].as_array().unwrap().iter()
            .all(|subset| !subset["maxReplicas"].is_null());
        if !refused && !bounded {
            prop_assert_eq!(sum, total, "{}", world.sizes());
            let names = world.united["spec"]["topology"]["subsets"].as_array().unwrap().len();
            prop_assert_eq!(world.own().len(), names);
            prop_assert_eq!(world.status()["replicas"].as_i64(), Some(total));
        }
    }
}
