//! Pods that were made without their sidecars: who counts, who is made again, when, and how often.

use jiff::SignedDuration;
use kruise_api::names::SPECIFIED_DELETE;
use kruise_api::names::sidecarset::RECREATE_UNINJECTED;
use kruise_plan_kit::sidecars::names;
use kruise_plan_sidecars::{Explain, uninjected};
use kruise_plan_test_kit::text;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::World;

impl World {
    /// A running pod of the owner `rs`, made now and without sidecars.
    fn bare(&mut self, name: &str) {
        self.made(name, false);
    }

    fn made(&mut self, name: &str, injected: bool) {
        self.add(name);
        let now = text(self.now);
        let pod = self.pods.get_mut(name).unwrap();
        if !injected {
            pod["metadata"]["annotations"] = json!({});
            pod["spec"]["containers"] = json!([{"name": "main", "image": "web:1"}]);
        }
        pod["metadata"]["creationTimestamp"] = json!(now);
        pod["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true}]);
        pod["status"] = json!({});
        self.run(name);
    }

    fn recreates(&mut self) {
        self.set["metadata"]["annotations"][RECREATE_UNINJECTED] = json!("true");
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn uninjected(&self) -> usize {
        self.look(&self.set, Explain::No, uninjected)
    }

    /// So many pods without sidecars, made long ago.
    fn neglected(pods: usize) -> Self {
        let mut world = Self::new();
        world.reconcile();
        for index in 0..pods {
            world.bare(&format!("p{index}"));
        }
        world.pass(600);
        world.recreates();
        world
    }
}

#[test]
fn pods_made_without_their_sidecars_are_counted_and_told_and_stay() {
    let mut world = World::settled(2);
    for name in ["q0", "q1"] {
        world.bare(name);
    }
    world.pass(600);
    assert_eq!(world.uninjected(), 2);
    let plan = world.plan();
    assert!(plan.writes.is_empty(), "{:?}", plan.writes);
    let events: Vec<_> = plan
        .events
        .iter()
        .map(|event| (event.reason.name, &*event.message))
        .collect();
    let told = "2 pod(s) that this SidecarSet is for were made without its sidecars";
    assert_eq!(events, [("UninjectedPods", told)]);
    let why = world.why("shop/q0");
    assert!(why.contains(RECREATE_UNINJECTED), "{why}");
    assert_eq!(plan.requeue, None);
}

#[test]
fn a_set_that_has_all_its_pods_says_nothing_of_others() {
    let world = World::settled(2);
    assert_eq!(world.uninjected(), 0);
    assert!(world.plan().events.is_empty());
}

fn pod(world: &mut World) -> &mut Value {
    world.pods.get_mut("p0").unwrap()
}

#[test]
fn a_pod_made_in_the_same_second_as_its_set_and_without_its_sidecars_counts() {
    let mut world = World::neglected(1);
    let second = world.set["metadata"]["creationTimestamp"].clone();
    pod(&mut world)["metadata"]["creationTimestamp"] = second;
    assert_eq!(world.uninjected(), 1);
}

#[test]
fn pods_that_should_not_have_the_sidecars_do_not_count() {
    let count = |change: &dyn Fn(&mut World)| {
        let mut world = World::neglected(1);
        change(&mut world);
        world.uninjected()
    };
    assert_eq!(count(&|_| {}), 1);
    let older =
        |world: &mut World| pod(world)["metadata"]["creationTimestamp"] = json!("2025-11-30T23:59:59Z");
    assert_eq!(count(&older), 0, "older than the set");
    assert_eq!(
        count(&|world| pod(world)["metadata"]["labels"] = json!({"app": "db"})),
        0
    );
    assert_eq!(
        count(&|world| pod(world)["metadata"]["labels"]["canary"] = json!("yes")),
        0
    );
    assert_eq!(
        count(&|world| pod(world)["status"]["phase"] = json!("Succeeded")),
        0
    );
    let leaves =
        |world: &mut World| pod(world)["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    assert_eq!(count(&leaves), 0);
    let listed =
        |world: &mut World| pod(world)["metadata"]["annotations"] = json!({names::INJECTED_LIST: "logs"});
    assert_eq!(count(&listed), 0);
    let by_hand = |world: &mut World| pod(world)["spec"]["containers"][0]["name"] = json!("log");
    assert_eq!(count(&by_hand), 0, "it has the container already");
    let paused = |world: &mut World| world.edit(|spec| spec["injectionStrategy"] = json!({"paused": true}));
    assert_eq!(count(&paused), 0);
    let elsewhere = |world: &mut World| {
        world.edit(|spec| spec["namespaceSelector"] = json!({"matchLabels": {"env": "prod"}}));
    };
    assert_eq!(count(&elsewhere), 0);
    let empty = |world: &mut World| world.edit(|spec| spec["containers"] = json!([]));
    assert_eq!(count(&empty), 0, "it injects nothing");
    let canary = |world: &mut World| {
        world.set["metadata"]["annotations"][names::CANARY] = json!("true");
        world.set["metadata"]["annotations"][names::CANARY_BASE] = json!("base");
        pod(world)["metadata"]["annotations"] = json!({names::INJECTED_LIST: "base"});
    };
    assert_eq!(count(&canary), 0, "it has the base of the canary");
}

#[test]
fn one_pod_is_tried_and_the_others_follow_within_the_limit_once_it_came_back_with_sidecars() {
    let mut world = World::neglected(5);
    world.strategy("maxUnavailable", json!(2));
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
    assert!(world.reconcile().is_empty(), "its successor is waited for");
    world.made("n0", true);
    assert_eq!(world.reconcile(), ["delete-pod p1", "delete-pod p2"]);
    assert!(world.reconcile().is_empty());
    world.made("n1", true);
    assert_eq!(world.reconcile(), ["delete-pod p3"]);
    world.made("n2", true);
    world.serve("n2", false);
    assert!(world.reconcile().is_empty(), "one is gone, one is not ready");
    world.made("n3", true);
    assert_eq!(world.reconcile(), ["delete-pod p4"]);
    world.made("n4", true);
    world.serve("n2", true);
    assert!(world.reconcile().is_empty());
    assert_eq!(world.uninjected(), 0);
}

#[test]
fn a_pod_whose_successor_has_no_sidecars_either_is_not_made_again_in_a_loop() {
    let mut world = World::neglected(3);
    let (start, mut removed, mut serial) = (world.now, Vec::new(), 0);
    while world.now < start + SignedDuration::from_hours(12) {
        for done in world.reconcile() {
            assert!(done.starts_with("delete-pod"), "{done}");
            removed.push(world.now.duration_since(start).as_secs());
            serial += 1;
            world.bare(&format!("again-{serial}"));
        }
        world.pass(30);
    }
    let waits: Vec<i64> = removed.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [60, 120, 240, 480], "five tries are enough");
    let why = world.why(&format!("shop/again-{serial}"));
    assert!(why.contains("until the set is edited"), "{why}");
    let told = &world.plan().events[0].message;
    assert!(told.contains("1 owner(s)"), "{told}");
    world.strategy("maxUnavailable", json!(2));
    assert_eq!(world.reconcile().len(), 1, "an edit may have mended it");
}

#[test]
fn a_cloneset_whose_pods_have_claims_is_not_asked_to_replace_them() {
    let with_claim = |kind: &str, group: &str| {
        let mut world = World::neglected(1);
        let pod = world.pods.get_mut("p0").unwrap();
        pod["metadata"]["ownerReferences"][0]["kind"] = json!(kind);
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!(format!("{group}/v1"));
        pod["spec"]["volumes"] = json!([{"name": "tmp", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-x"}}]);
        let done = world.reconcile();
        (done.len(), world.why("shop/p0"))
    };
    let (done, why) = with_claim("CloneSet", "apps.kruise.io");
    assert!(done == 0 && why.contains("persistent volume claims"), "{why}");
    for group in ["apps", "apps.kruise.io"] {
        assert_eq!(with_claim("StatefulSet", group).0, 1, "its claims stay: {group}");
    }
}

#[test]
fn pods_of_kinds_that_nothing_acts_on_stay() {
    let mut world = World::neglected(1);
    let owner = &mut world.pods.get_mut("p0").unwrap()["metadata"]["ownerReferences"][0];
    owner["kind"] = json!("DaemonSet");
    owner["apiVersion"] = json!("apps.kruise.io/v1beta1");
    assert!(world.reconcile().is_empty());
    let why = world.why("shop/p0");
    assert!(why.contains("nothing would make it again"), "{why}");
}

#[test]
fn an_owner_that_makes_no_pods_loses_no_more_than_the_limit_however_long_it_takes() {
    // Whether or not its pods have come back with sidecars.
    for injected in [true, false] {
        let mut world = World::neglected(6);
        world.strategy("maxUnavailable", json!(2));
        if injected {
            world.made("n0", true);
            world.pass(60);
        }
        let mut removed = 0;
        for _ in 0..60 {
            removed += world.reconcile().len();
            world.pass(60);
        }
        assert_eq!(removed, if injected { 2 } else { 1 });
        world.serve("p5", false);
        assert!(
            world.reconcile().is_empty(),
            "not even one that is out of service"
        );
        let why = world.why("shop/p5");
        assert!(why.contains("has not made a pod again"), "{why}");
        // It can make pods again.
        for index in 0..removed {
            world.made(&format!("back-{index}"), true);
        }
        world.pass(60);
        assert_eq!(world.reconcile().len(), 2, "and loses two again");
    }
}

#[test]
fn a_pod_that_is_missed_holds_up_upgrades_for_ten_minutes() {
    let mut world = World::neglected(1);
    world.made("n0", true);
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
    world.image("log:2");
    world.pass(60);
    let plan = world.plan_and_learn();
    let again = plan.requeue.unwrap();
    assert_eq!(
        again.as_secs(),
        540,
        "it comes back when the pod is missed no more"
    );
    world.carry_out(&plan);
    world.pass(539);
    assert!(world.reconcile().is_empty());
    world.pass(1);
    assert_eq!(world.reconcile(), ["tell-upgradable n0", "update-in-place n0"]);
}

#[test]
fn a_long_repair_keeps_to_the_limit_though_pods_come_slowly_and_the_owner_is_scaled_up() {
    let (limit, mut wanted) = (3, 100);
    let mut world = World::neglected(wanted);
    world.strategy("maxUnavailable", json!(limit));
    world.made("first", true);
    world.pods.remove("p99");
    let (mut serial, mut late) = (0, Vec::new());
    let mut begun = None;
    for round in 0..180 {
        if round == 45 {
            // Ten at once.
            wanted += 10;
            for _ in 0..10 {
                serial += 1;
                world.made(&format!("n{serial}"), true);
            }
        }
        // Each pod takes a minute to come.
        while world.pods.len() + late.len() < wanted {
            late.push(round + 6);
        }
        late.retain(|due| {
            if *due <= round {
                serial += 1;
                world.made(&format!("n{serial}"), true);
            }
            *due > round
        });
        let done = world.reconcile();
        begun = begun.or_else(|| (!done.is_empty()).then_some(round));
        // What came with the scale-up may take the places of those that were on their way just then.
        let out = wanted - world.pods.len();
        assert!(
            out <= if round < 45 { limit } else { 2 * limit },
            "round {round}: {out} of {wanted} are missing"
        );
        world.pass(10);
    }
    assert!(begun.is_some());
    assert!(world.uninjected() < 30, "{}", world.uninjected());
}

#[test]
fn pods_injected_by_an_older_set_show_that_pods_are_injected() {
    let mut world = World::neglected(3);
    world.strategy("maxUnavailable", json!(2));
    world.made("n0", true);
    world.edit(|spec| {
        let containers = spec["containers"].as_array_mut().unwrap();
        containers.push(crate::world::container("more", "more:1"));
    });
    world.pass(60);
    let done = world.reconcile();
    let removed = done.iter().filter(|done| done.starts_with("delete-pod")).count();
    assert_eq!(removed, 2, "{done:?}");
}

#[test]
fn a_manager_that_forgets_everything_counts_pods_on_their_way_out_and_tries_one_pod_first() {
    let mut world = World::neglected(6);
    world.strategy("maxUnavailable", json!(2));
    world.made("n0", true);
    world.pass(60);
    for pod in ["p0", "p1"] {
        world.pods.get_mut(pod).unwrap()["metadata"]["deletionTimestamp"] = json!("2026-01-01T02:00:00Z");
    }
    world.repairs = kruise_plan_sidecars::Repairs::default();
    for _ in 0..3 {
        assert!(world.reconcile().is_empty(), "two are on their way out");
        world.pass(60);
    }
    world.pods.remove("p0");
    world.pods.remove("p1");
    world.repairs = kruise_plan_sidecars::Repairs::default();
    assert_eq!(world.reconcile(), ["delete-pod p2"], "nothing is known of others");
    let plan = world.plan_and_learn();
    assert!(plan.writes.is_empty());
    assert!(
        plan.requeue.is_some_and(|wait| wait.as_secs() <= 30),
        "{:?}",
        plan.requeue
    );
    world.pass(30);
    assert_eq!(world.reconcile(), ["delete-pod p3"]);
}

#[test]
fn no_more_pods_out_of_service_are_removed_at_once_than_may_be_missing() {
    let mut world = World::neglected(6);
    world.strategy("maxUnavailable", json!(2));
    world.made("n0", true);
    for index in 0..6 {
        world.serve(&format!("p{index}"), false);
    }
    assert_eq!(world.reconcile(), ["delete-pod p0", "delete-pod p1"]);
    assert!(world.reconcile().is_empty());
    world.made("n1", true);
    assert_eq!(world.reconcile(), ["delete-pod p2"]);
}

#[test]
fn a_manager_that_forgets_everything_leaves_young_pods_alone() {
    let mut world = World::neglected(2);
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
    world.bare("again");
    for _ in 0..5 {
        world.pass(5);
        world.repairs = kruise_plan_sidecars::Repairs::default();
        let plan = world.plan();
        assert!(plan.writes.is_empty());
        assert!(plan.requeue.is_some_and(|wait| wait.as_secs() <= 30));
    }
    world.pass(10);
    world.repairs = kruise_plan_sidecars::Repairs::default();
    assert_eq!(world.reconcile().len(), 1);
}

#[test]
fn pods_that_nobody_makes_again_stay() {
    let stays = |change: &dyn Fn(&mut Value)| {
        let mut world = World::neglected(1);
        change(world.pods.get_mut("p0").unwrap());
        let done = world.reconcile();
        assert!(done.is_empty(), "{done:?}");
        world.why("shop/p0")
    };
    let alone = stays(&|pod| pod["metadata"]["ownerReferences"] = json!([]));
    assert!(alone.contains("nothing would make it again"), "{alone}");
    let owned = stays(&|pod| pod["metadata"]["ownerReferences"][0]["controller"] = json!(false));
    assert!(owned.contains("nothing would make it again"), "{owned}");
    let of_node = stays(&|pod| pod["metadata"]["ownerReferences"][0]["kind"] = json!("Node"));
    assert!(of_node.contains("nothing would make it again"), "{of_node}");
    let of_job = stays(&|pod| pod["spec"]["restartPolicy"] = json!("OnFailure"));
    assert!(of_job.contains("runs to an end"), "{of_job}");
}

#[test]
fn nothing_is_made_again_while_upgrades_are_paused_and_all_the_same_where_there_are_none() {
    let mut world = World::neglected(1);
    world.strategy("paused", json!(true));
    assert!(world.reconcile().is_empty());
    world.strategy("paused", json!(false));
    world.strategy("type", json!("NotUpdate"));
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
}

#[test]
fn a_cloneset_or_statefulset_is_asked_to_replace_its_pod() {
    for kind in ["CloneSet", "StatefulSet"] {
        let mut world = World::neglected(3);
        for pod in world.pods.values_mut() {
            pod["metadata"]["ownerReferences"][0]["kind"] = json!(kind);
            pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps.kruise.io/v1alpha1");
        }
        assert_eq!(world.reconcile(), ["request-delete p0"], "{kind}");
        assert_eq!(world.pods["p0"]["metadata"]["labels"][SPECIFIED_DELETE], "true");
        assert!(
            world.reconcile().is_empty(),
            "it is asked once, and counts as out of service"
        );
        let why = world.why("shop/p0");
        assert!(why.contains(&format!("its {kind} has been asked")), "{why}");
        world.pods.remove("p0");
        assert!(world.reconcile().is_empty());
        world.made("n0", true);
        assert_eq!(world.reconcile(), ["request-delete p1"]);
    }
}

#[test]
fn pods_out_of_service_cost_nothing_themselves_and_hold_back_the_others() {
    let mut world = World::neglected(3);
    world.made("n0", true);
    world.serve("p1", false);
    // The broken one is no loss, whatever the limit; those in service wait for it.
    assert_eq!(world.reconcile(), ["delete-pod p1"]);
    assert!(world.reconcile().is_empty());
    world.made("n1", true);
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
}

#[test]
fn an_upgrade_counts_pods_that_are_being_made_again() {
    let mut world = World::neglected(1);
    world.made("n0", true);
    world.pass(60);
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
    world.image("log:2");
    let done = world.reconcile();
    let of_pods: Vec<&String> = done.iter().filter(|done| !done.contains("revision")).collect();
    assert!(
        of_pods.is_empty(),
        "one pod is gone, and one may be out of service: {of_pods:?}"
    );
    world.made("n1", true);
    world.pass(60);
    assert_eq!(world.reconcile(), ["tell-upgradable n0", "update-in-place n0"]);
}

#[test]
fn a_removal_that_is_refused_holds_up_nothing() {
    let mut world = World::neglected(2);
    let plan = world.plan_and_learn();
    // A kubelet's status comes first.
    world.run("p0");
    assert!(world.carry_out(&plan).is_empty());
    world.pass(60);
    assert_eq!(world.reconcile(), ["delete-pod p0"]);
}

#[derive(Clone, Debug)]
enum Act {
    Break(u8),
    Mend(u8),
    /// The owner makes a pod that it lacks.
    Make,
    Webhook(bool),
    Limit(u8),
    Image(u8),
    Forget,
    Pass(u8),
    Plan,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => (0..8u8).prop_map(Act::Break),
        3 => (0..8u8).prop_map(Act::Mend),
        6 => Just(Act::Make),
        1 => any::<bool>().prop_map(Act::Webhook),
        1 => (0..4u8).prop_map(Act::Limit),
        1 => (1..4u8).prop_map(Act::Image),
        1 => Just(Act::Forget),
        4 => (1..60u8).prop_map(Act::Pass),
        12 => Just(Act::Plan),
    ]
}

/// Pods that the owner wants.
const WANTED: usize = 6;

fn serves(world: &World, pod: &str) -> bool {
    let pod = &world.pods[pod];
    let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
    statuses.iter().all(|status| status["ready"] == true)
}

struct Owner {
    serial: usize,
    injects: bool,
}

impl Owner {
    fn make(&mut self, world: &mut World) {
        if world.pods.len() < WANTED {
            self.serial += 1;
            world.made(&format!("n{}", self.serial), self.injects);
        }
    }
}

/// Plans, and judges each removal by what the owner wants and what serves.
fn judged(world: &mut World, forgotten: bool) -> Result<(), TestCaseError> {
    let limit = world.set["spec"]["updateStrategy"]["maxUnavailable"]
        .as_u64()
        .unwrap() as usize;
    let plan = world.plan_and_learn();
    for object in &plan.writes {
        let name = object.steps[0].write.target().name.clone();
        if object.steps[0].write.intent().as_str() == "delete-pod" {
            let serving = world.pods.keys().filter(|pod| serves(world, pod)).count();
            prop_assert!(world.pods[&name]["metadata"]["annotations"][names::INJECTED_LIST].is_null());
            // What was removed before all was forgotten is not known to be missing.
            if serves(world, &name) && !forgotten {
                prop_assert!(
                    WANTED - serving < limit,
                    "{name} goes, {serving} of {WANTED} serve, {limit} may be out"
                );
            }
        }
        let mut previous = None;
        for step in &object.steps {
            world.write(&step.write, &mut previous);
        }
        if world.pods.contains_key(&name) {
            world.run(&name);
        }
    }
    Ok(())
}

fn play(acts: &[Act]) -> Result<(), TestCaseError> {
    let mut world = World::neglected(WANTED);
    let mut owner = Owner {
        serial: 0,
        injects: false,
    };
    let mut forgotten = false;
    for act in acts {
        world.pass(1);
        let pick = |of: &u8| {
            world
                .pods
                .keys()
                .nth(usize::from(*of) % world.pods.len().max(1))
                .cloned()
        };
        match act {
            Act::Break(of) | Act::Mend(of) => {
                if let Some(pod) = pick(of) {
                    world.serve(&pod, matches!(act, Act::Mend(_)));
                }
            }
            Act::Make => owner.make(&mut world),
            Act::Webhook(injects) => owner.injects = *injects,
            Act::Limit(limit) => world.strategy("maxUnavailable", json!(limit)),
            Act::Image(tag) => world.image(&format!("log:{tag}")),
            Act::Forget => {
                world.repairs = kruise_plan_sidecars::Repairs::default();
                forgotten |= world.pods.len() < WANTED;
            }
            Act::Pass(seconds) => world.pass(i64::from(*seconds)),
            Act::Plan => judged(&mut world, forgotten)?,
        }
        forgotten &= world.pods.len() < WANTED;
    }
    // Left alone, with webhooks that answer, all pods get their sidecars, and then nothing is written.
    owner.injects = true;
    world.strategy("maxUnavailable", json!(1));
    for _ in 0..60 {
        world.pass(240);
        let names: Vec<String> = world.pods.keys().cloned().collect();
        for pod in names {
            world.serve(&pod, true);
        }
        owner.make(&mut world);
        judged(&mut world, true)?;
    }
    prop_assert_eq!(world.pods.len(), WANTED);
    prop_assert_eq!(world.uninjected(), 0);
    prop_assert!(world.plan().writes.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn repairs_keep_max_unavailable_and_come_to_an_end(acts in prop::collection::vec(act(), 10..80)) {
        play(&acts)?;
    }
}
