//! Random histories: users edit, kubelets follow late, containers break, other hands write. At every write it is
//! asked who is out of service because of the set, by arithmetic that knows nothing of the planner's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kruise_plan_kit::{Intent, Part, Patch, Plan, Write};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{World, hot};

#[derive(Clone, Debug)]
enum Act {
    Image(u8),
    Limit(u8),
    Partition(u8),
    Pause(bool),
    /// Only half of the pods, or all of them, are to follow from now on.
    Select(bool),
    /// A kubelet catches up with a pod.
    Run(u8),
    Break(u8),
    Mend(u8),
    Delete(u8),
    Add,
    /// A plan is made and carried out.
    Plan,
    /// A plan is made, something happens to a pod, and only then it is carried out.
    LatePlan(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (1..5u8).prop_map(Act::Image),
        1 => (0..4u8).prop_map(Act::Limit),
        1 => (0..4u8).prop_map(Act::Partition),
        1 => any::<bool>().prop_map(Act::Pause),
        1 => any::<bool>().prop_map(Act::Select),
        8 => (0..8u8).prop_map(Act::Run),
        1 => (0..8u8).prop_map(Act::Break),
        2 => (0..8u8).prop_map(Act::Mend),
        1 => (0..8u8).prop_map(Act::Delete),
        1 => Just(Act::Add),
        10 => Just(Act::Plan),
        2 => (0..8u8).prop_map(Act::LatePlan),
    ]
}

/// Pods that were in service when the set took them, and are not back yet.
#[derive(Default)]
struct Oracle {
    taken: BTreeSet<String>,
}

impl Oracle {
    fn serves(world: &World, pod: &str) -> bool {
        Self::runs(world, pod, |_| true)
    }

    /// Do the containers that are asked for run their images, and serve?
    fn runs(world: &World, pod: &str, which: impl Fn(&str) -> bool) -> bool {
        let pod = &world.pods[pod];
        let runs = |container: &serde_json::Value| {
            let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
            statuses.iter().any(|status| {
                status["name"] == container["name"]
                    && status["image"] == container["image"]
                    && status["ready"] == true
            })
        };
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let mut asked = containers
            .iter()
            .filter(|container| which(container["name"].as_str().unwrap()));
        asked.all(runs)
    }

    /// Of a pod that is not to follow, what its own container does is not the set's doing.
    fn is_back(world: &World, pod: &str) -> bool {
        let is_left = !world.set["spec"]["updateStrategy"]["selector"].is_null()
            && world.pods[pod]["metadata"]["labels"]["half"].is_null();
        Self::serves(world, pod) || (is_left && Self::runs(world, pod, |name| name != "main"))
    }

    fn look(&mut self, world: &World) {
        self.taken
            .retain(|pod| world.pods.contains_key(pod) && !Self::is_back(world, pod));
    }
}

fn limit(world: &World) -> usize {
    world.set["spec"]["updateStrategy"]["maxUnavailable"]
        .as_u64()
        .unwrap() as usize
}

/// Carries a plan out write by write.
fn carry_out(world: &mut World, oracle: &mut Oracle, plan: &Plan) -> Result<(), TestCaseError> {
    let limit = limit(world);
    let mut of_pods: BTreeMap<String, usize> = BTreeMap::new();
    for object in &plan.writes {
        let mut previous = None;
        for step in &object.steps {
            oracle.look(world);
            let name = step.write.target().name.clone();
            let served = world.pods.contains_key(&name) && Oracle::serves(world, &name);
            let sent = world.write(&step.write, &mut previous);
            if !sent {
                break;
            }
            if let Write::Patch {
                intent: Intent::UPDATE_IN_PLACE,
                part: Part::Main,
                patch: Patch::Strategic(body),
                ..
            } = &step.write
            {
                *of_pods.entry(name.clone()).or_default() += 1;
                let images = body.render()["spec"]["containers"].as_array().map_or(0, Vec::len);
                if served && images > 0 {
                    prop_assert!(
                        oracle.taken.len() < limit,
                        "{name} is taken, {:?} are out, {limit} may be",
                        oracle.taken
                    );
                    oracle.taken.insert(name);
                }
            } else if served && step.write.intent().as_str() == "empty-twin" {
                // Its upgrade was within the limit; what that breaks now counts again.
                oracle.taken.insert(name);
            }
        }
    }
    prop_assert!(of_pods.values().all(|writes| *writes == 1));
    if let Some(status) = &plan.status {
        kruise_plan_test_kit::merge(&mut world.set, &status.patch);
    }
    Ok(())
}

/// At least so many pods stay on older images as the partition says, unless there were fewer before.
fn old(world: &World) -> usize {
    let wanted = world.set["spec"]["containers"][0]["image"]
        .as_str()
        .unwrap()
        .to_owned();
    world.pods.len() - world.with_image("log", &wanted).len()
}

fn play(acts: &[Act], is_hot: bool) -> Result<(), TestCaseError> {
    let mut world = World::new();
    if is_hot {
        world.edit(|spec| {
            spec["containers"]
                .as_array_mut()
                .unwrap()
                .push(hot("mesh", "mesh:1", "mesh:empty"));
        });
    }
    for index in 0..4 {
        world.add(&format!("p{index}"));
    }
    for pod in ["p0", "p2"] {
        world.pods.get_mut(pod).unwrap()["metadata"]["labels"]["half"] = json!("yes");
    }
    world.settle();
    let mut oracle = Oracle::default();
    let mut added = 4;
    for act in acts {
        world.now += SignedDuration::from_secs(3);
        let pick = |world: &World, of: u8| {
            let names: Vec<&String> = world.pods.keys().collect();
            names
                .get(usize::from(of) % names.len().max(1))
                .map(|name| (*name).clone())
        };
        match act {
            Act::Image(1) => world.image("bad:1"),
            Act::Image(tag) => world.image(&format!("log:{tag}")),
            Act::Limit(limit) => world.strategy("maxUnavailable", json!(limit)),
            Act::Partition(kept) => world.strategy("partition", json!(kept)),
            Act::Pause(paused) => world.strategy("paused", json!(paused)),
            Act::Select(true) => world.strategy("selector", json!({"matchLabels": {"half": "yes"}})),
            Act::Select(false) => world.strategy("selector", json!(null)),
            Act::Run(of) => {
                if let Some(pod) = pick(&world, *of) {
                    world.run(&pod);
                }
            }
            Act::Break(of) | Act::Mend(of) => {
                if let Some(pod) = pick(&world, *of) {
                    world.serve(&pod, matches!(act, Act::Mend(_)));
                }
            }
            Act::Delete(of) => {
                if let Some(pod) = pick(&world, *of) {
                    world.pods.remove(&pod);
                }
            }
            Act::Add => {
                world.add(&format!("p{added}"));
                added += 1;
            }
            Act::Plan | Act::LatePlan(_) => {
                let plan = world.plan();
                if let Act::LatePlan(of) = act
                    && let Some(pod) = pick(&world, *of)
                {
                    world.run(&pod);
                }
                let (kept, before) = (
                    world.set["spec"]["updateStrategy"]["partition"].as_u64().unwrap(),
                    old(&world),
                );
                carry_out(&mut world, &mut oracle, &plan)?;
                prop_assert!(
                    old(&world) >= before.min(kept as usize),
                    "the partition is broken"
                );
            }
        }
        oracle.look(&world);
    }
    converge(&mut world)
}

/// Left alone with a good image, everything gets there, and then nothing is written.
fn converge(world: &mut World) -> Result<(), TestCaseError> {
    world.edit(|spec| {
        spec["containers"][0]["image"] = json!("log:9");
        spec["updateStrategy"] =
            json!({"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1, "paused": false});
    });
    let names: Vec<String> = world.pods.keys().cloned().collect();
    for name in &names {
        world.run(name);
        world.serve(name, true);
    }
    world.settle();
    prop_assert_eq!(world.with_image("log", "log:9").len(), names.len());
    prop_assert_eq!(
        &world.set["status"]["updatedReadyPods"].as_u64().unwrap_or(0),
        &(names.len() as u64)
    );
    prop_assert!(world.reconcile().is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn max_unavailable_is_never_exceeded_and_all_pods_get_there(acts in prop::collection::vec(act(), 10..60)) {
        play(&acts, false)?;
    }

    #[test]
    fn the_same_holds_beside_a_hot_sidecar(acts in prop::collection::vec(act(), 10..60)) {
        play(&acts, true)?;
    }
}
