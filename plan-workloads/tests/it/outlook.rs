//! What an explanation says about the time that the rest of a rollout takes, for each kind. Nodes take the seconds
//! that a test lets pass.

use std::time::Duration;

use kruise_plan_kit::{
    Explain, Plan,
    outlook::{Course, Held, Outlook, Pace},
};
use kruise_plan_test_kit::Cluster;
use serde_json::{Value, json};

use crate::{daemonset, statefulset, world};

const START: &str = "2026-01-01T00:00:00Z";

/// A cluster with a workload of some kind.
trait Rollout {
    fn cluster(&mut self) -> &mut Cluster;

    fn explained(&self) -> Plan;

    /// All nodes do their work.
    fn nodes_work(&mut self);

    /// Carries out what is planned now.
    fn act(&mut self) {
        let plan = self.explained();
        for object in &plan.writes {
            let mut previous = None;
            for step in &object.steps {
                self.cluster().apply(&step.write, &mut previous).unwrap();
            }
        }
        self.cluster().report(&plan);
    }

    /// Pods that are created or changed take so many seconds to be ready.
    fn starts_take(&mut self, seconds: i64) {
        self.cluster().pass(seconds);
        self.nodes_work();
        self.act();
        self.nodes_work();
    }

    /// Everything comes to rest.
    fn settle(&mut self) {
        for _ in 0..20 {
            self.act();
            self.starts_take(1);
            self.cluster().pass(60);
        }
        assert_eq!(self.explained().outlook, None, "at rest");
    }

    fn edit(&mut self, pointer: &str, value: Value) {
        self.cluster().edit(|spec| {
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            spec.pointer_mut(parent).unwrap()[member] = value;
        });
    }

    /// The set gets another image.
    fn release(&mut self) {
        self.edit("/template/spec/containers/0/image", json!("web:2"));
    }

    fn outlook(&self) -> Outlook {
        self.explained().outlook.expect("a rollout")
    }

    fn held(&self) -> Held {
        match self.outlook().course {
            Course::Held(held) => held,
            waves @ Course::Waves { .. } => panic!("not held: {waves:?}"),
        }
    }

    /// Pods to be updated, those under way, waves, and their times.
    fn waves(&self) -> (usize, usize, usize, Option<Pace>) {
        let outlook = self.outlook();
        match outlook.course {
            Course::Waves { count, pace } => (outlook.to_update, outlook.under_way, count, pace),
            held @ Course::Held(_) => panic!("{held:?}"),
        }
    }
}

impl Rollout for world::World {
    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn explained(&self) -> Plan {
        self.plan_of(&self.pod_views(), Explain::Yes)
    }

    fn nodes_work(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in &names {
            self.terminate(name);
            self.bind(name, "a1");
            self.kubelet(name);
        }
    }
}

impl Rollout for statefulset::World {
    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn explained(&self) -> Plan {
        self.plan_of(&self.pod_views(), Explain::Yes)
    }

    fn nodes_work(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        self.nodes(names.iter());
    }
}

impl Rollout for daemonset::World {
    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn explained(&self) -> Plan {
        self.plan_of(&self.pod_views(), Explain::Yes)
    }

    fn nodes_work(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        self.work(&names);
    }
}

fn template(gates: &Value) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
           "spec": {"readinessGates": gates, "containers": [{"name": "main", "image": "web:1"}]}})
}

fn cloneset(replicas: u32, rolling: Value) -> world::World {
    let spec = json!({
        "replicas": replicas, "minReadySeconds": 30, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}, "template": template(&json!([])),
    });
    let mut world = world::World::new(spec, START.parse().unwrap());
    world.settle();
    world
}

fn statefulset(replicas: u32, management: &str, rolling: Value) -> statefulset::World {
    let spec = json!({
        "replicas": replicas, "podManagementPolicy": management, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "template": template(&json!([{"conditionType": "InPlaceUpdateReady"}])),
    });
    let mut world = statefulset::World::new(spec, START.parse().unwrap());
    world.settle();
    world
}

fn daemonset(nodes: u32, rolling: Value) -> daemonset::World {
    let spec = json!({
        "minReadySeconds": 5, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}, "template": template(&json!([])),
    });
    let mut world = daemonset::World::new(spec, START.parse().unwrap());
    for node in 1..=nodes {
        world.join(
            &format!("n{node}"),
            json!({"pool": if node == 1 { "a" } else { "b" }}),
            json!([]),
        );
    }
    world.settle();
    world
}

fn pace(took: u64, of: usize, settles: u64, times: (u64, u64)) -> Pace {
    let seconds = Duration::from_secs;
    Pace {
        took: seconds(took),
        of,
        settles: seconds(settles),
        first: seconds(times.0),
        last: seconds(times.1),
        overdue: None,
        end_not_counted: false,
    }
}

#[test]
fn a_cloneset_in_place_learns_from_its_first_wave() {
    let rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2});
    let mut set = cloneset(6, rolling);
    set.release();
    assert_eq!(set.waves(), (6, 0, 3, None));
    set.act();
    set.cluster().pass(4);
    assert_eq!(set.waves(), (4, 2, 3, None));
    set.starts_take(8);
    assert_eq!(set.waves(), (4, 2, 3, None), "ready, and not available");
    set.cluster().pass(30);
    assert_eq!(set.waves(), (4, 0, 2, Some(pace(12, 2, 30, (42, 84)))));
    set.act();
    set.cluster().pass(10);
    assert_eq!(set.waves(), (2, 2, 2, Some(pace(12, 2, 30, (32, 74)))));
    set.starts_take(2);
    set.cluster().pass(30);
    set.act();
    set.cluster().pass(20);
    assert_eq!(set.waves(), (0, 2, 1, Some(pace(12, 4, 30, (22, 22)))));
    set.cluster().pass(65);
    let late = set.waves().3.unwrap();
    assert_eq!(
        (late.first, late.overdue),
        (Duration::ZERO, Some(Duration::from_secs(85)))
    );
    set.settle();
}

#[test]
fn a_surge_is_room_too() {
    let mut set = cloneset(
        6,
        json!({"podUpdatePolicy": "ReCreate", "maxUnavailable": 1, "maxSurge": 2}),
    );
    set.release();
    assert_eq!((set.outlook().at_once, set.waves()), (3, (6, 0, 2, None)));
    let mut none = cloneset(
        6,
        json!({"podUpdatePolicy": "ReCreate", "maxUnavailable": 0, "maxSurge": 0}),
    );
    none.release();
    assert_eq!(none.held(), Held::NoRoom);
}

#[test]
fn new_pods_of_a_cloneset_are_timed_from_their_creation() {
    let mut set = cloneset(4, json!({"podUpdatePolicy": "ReCreate", "maxUnavailable": 1}));
    set.release();
    set.act();
    set.nodes_work();
    set.act();
    set.starts_take(9);
    set.cluster().pass(30);
    assert_eq!(set.waves(), (3, 0, 3, Some(pace(9, 1, 30, (39, 117)))));
}

#[test]
fn what_holds_a_cloneset_is_said_in_place_of_times() {
    let rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "50%", "partition": 3});
    let mut set = cloneset(4, rolling);
    set.edit("/updateStrategy/rollingUpdate/paused", json!(true));
    set.release();
    assert_eq!((set.held(), set.outlook().to_update), (Held::Paused, 1));
    set.edit("/updateStrategy/rollingUpdate/paused", json!(false));
    set.edit("/updateStrategy/type", json!("OnDelete"));
    assert_eq!(set.held(), Held::OnDelete);
    set.edit("/updateStrategy/type", json!("RollingUpdate"));
    assert_eq!((set.outlook().at_once, set.waves()), (2, (1, 0, 1, None)));
    for _ in 0..3 {
        set.act();
        set.starts_take(1);
        set.cluster().pass(30);
    }
    let outlook = set.outlook();
    assert_eq!((outlook.course, outlook.kept), (Course::Held(Held::Kept), 3));
    set.edit("/updateStrategy/rollingUpdate/partition", json!(0));
    let hook = json!({"inPlaceUpdate": {"labelsHandler": {"held": "yes"}}});
    set.edit("/lifecycle", hook);
    let names: Vec<String> = set.pods.keys().cloned().collect();
    for name in &names {
        set.touch(name, |pod, _, _| pod["metadata"]["labels"]["held"] = json!("yes"));
    }
    set.act();
    assert_eq!(set.held(), Held::Hooks(2));
}

#[test]
fn an_update_that_can_do_nothing_waits_for_what_its_pods_say() {
    let mut set = cloneset(3, json!({"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 1}));
    set.edit("/template/spec/containers/0/command", json!(["other"]));
    set.act();
    assert_eq!(set.held(), Held::Waits);
}

#[test]
fn a_statefulset_in_order_has_one_pod_in_a_wave_and_the_end_of_the_old_one_is_not_known() {
    let rolling = json!({"podUpdatePolicy": "ReCreate", "partition": 1, "minReadySeconds": 20});
    let mut set = statefulset(4, "OrderedReady", rolling);
    set.release();
    assert_eq!((set.outlook().kept, set.waves()), (1, (3, 0, 3, None)));
    set.act();
    assert_eq!(set.waves(), (2, 1, 3, None), "its pod is about to go");
    set.nodes_work();
    assert_eq!(set.waves(), (2, 1, 3, None), "and comes back");
    set.act();
    set.starts_take(7);
    set.cluster().pass(20);
    let expected = Pace {
        end_not_counted: true,
        ..pace(7, 1, 20, (27, 54))
    };
    assert_eq!(set.waves(), (2, 0, 2, Some(expected)));
    for _ in 0..9 {
        set.act();
        set.starts_take(1);
        set.cluster().pass(20);
    }
    assert_eq!((set.held(), set.outlook().kept), (Held::Kept, 1));
    set.edit("/updateStrategy/rollingUpdate/partition", json!(0));
    set.settle();
}

#[test]
fn a_parallel_statefulset_in_place_has_as_many_pods_in_a_wave_as_may_be_unavailable() {
    let rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "40%"});
    let mut set = statefulset(5, "Parallel", rolling);
    set.release();
    set.act();
    set.starts_take(3);
    assert_eq!(set.waves(), (3, 0, 2, Some(pace(3, 2, 0, (3, 6)))));
    set.edit("/updateStrategy/rollingUpdate/paused", json!(true));
    assert_eq!(set.held(), Held::Paused);
}

#[test]
fn a_daemonset_waits_for_its_nodes_in_waves() {
    let mut set = daemonset(5, json!({"maxUnavailable": "40%", "partition": 1}));
    set.release();
    assert_eq!((set.outlook().kept, set.waves()), (1, (4, 0, 2, None)));
    set.act();
    assert_eq!(set.waves(), (2, 2, 2, None), "their pods are about to go");
    set.nodes_work();
    set.act();
    set.starts_take(6);
    set.cluster().pass(5);
    let expected = Pace {
        end_not_counted: true,
        ..pace(6, 2, 5, (11, 11))
    };
    assert_eq!(set.waves(), (2, 0, 1, Some(expected)));
    for _ in 0..9 {
        set.act();
        set.starts_take(1);
        set.cluster().pass(5);
    }
    let outlook = set.outlook();
    assert_eq!((outlook.kept, outlook.kept_by), (1, "the partition"));
    assert_eq!(outlook.course, Course::Held(Held::Kept));
}

#[test]
fn a_surge_of_a_daemonset_has_both_pods_of_a_node_under_way() {
    let mut set = daemonset(4, json!({"maxSurge": 1, "maxUnavailable": 0}));
    set.release();
    assert_eq!(set.waves(), (4, 0, 4, None));
    set.act();
    set.cluster().pass(2);
    assert_eq!(set.waves(), (3, 1, 4, None));
    set.starts_take(4);
    set.cluster().pass(5);
    let (left, under_way, count, times) = set.waves();
    assert_eq!((left, under_way, count), (3, 0, 3));
    assert_eq!(times, Some(pace(6, 1, 5, (11, 33))));
}

#[test]
fn nodes_that_are_not_selected_keep_their_pods() {
    let selector = json!({"matchLabels": {"pool": "a"}});
    let mut set = daemonset(
        3,
        json!({"rollingUpdateType": "InPlaceIfPossible", "selector": selector}),
    );
    set.release();
    let outlook = set.outlook();
    assert_eq!((outlook.to_update, outlook.kept), (1, 2));
    assert!(outlook.kept_by.contains("selector"));
}
