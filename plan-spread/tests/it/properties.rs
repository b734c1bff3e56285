//! Random histories: pods are created and deleted through the webhook, some requests fail, pods end, limits and
//! replicas change, and the controller counts in between, from what it saw a while ago. A naive model says what
//! must be true.

use kruise_api::workloadspread::Matched;
use kruise_plan_kit::{Explain, Plan};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use crate::world::{World, subset};

#[derive(Clone, Debug)]
enum Step {
    /// A pod is created, or its request fails after the webhook.
    Create(u8, bool),
    /// A pod is deleted, or its deletion is refused after the webhook.
    Delete(u8, bool),
    End(u8),
    Run(u8),
    Limit(i32, i32),
    Pass(u8),
    /// The controller looks, and
    See,
    /// writes what it planned then.
    Act,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pod = || 0_u8..10;
    let step = prop_oneof![
        6 => (pod(), prop::bool::weighted(0.8)).prop_map(|(pod, ok)| Step::Create(pod, ok)),
        4 => (pod(), prop::bool::weighted(0.8)).prop_map(|(pod, ok)| Step::Delete(pod, ok)),
        1 => pod().prop_map(Step::End),
        2 => pod().prop_map(Step::Run),
        1 => (0_i32..5, 0_i32..5).prop_map(|(a, b)| Step::Limit(a, b)),
        2 => (1_u8..20).prop_map(Step::Pass),
        4 => Just(Step::See),
        4 => Just(Step::Act),
    ];
    vec(step, 1..80)
}

struct History {
    world: World,
    limits: [i32; 2],
    planned: Option<Plan>,
    /// Did a limit become smaller, or was a deletion refused? Only then may a subset have more pods than its limit.
    exceeds: bool,
}

impl History {
    fn active(&self, subset: &str) -> i32 {
        let pods = self.world.pods.iter();
        let active = pods.filter(|(name, pod)| {
            pod["status"]["phase"] != "Succeeded" && self.world.subset_of(name).as_deref() == Some(subset)
        });
        active.count().try_into().unwrap()
    }

    fn happen(&mut self, step: &Step) {
        let name = |pod: &u8| format!("web-{pod}");
        let world = &mut self.world;
        match step {
            Step::Create(pod, ok) if !world.pods.contains_key(&name(pod)) => {
                let matched: Option<Matched> = world.admit(&name(pod), &json!({}));
                if *ok {
                    world.arrive(&name(pod), matched.as_ref(), &json!({}));
                }
            }
            Step::Delete(pod, ok) if world.pods.contains_key(&name(pod)) => {
                world.delete(&name(pod));
                if *ok {
                    world.pods.remove(&name(pod));
                } else {
                    self.exceeds = true;
                }
            }
            Step::End(pod) if world.pods.contains_key(&name(pod)) => {
                world.edit_pod(&name(pod), &json!({"status": {"phase": "Succeeded"}}));
            }
            // A pod that has ended never runs again.
            Step::Run(pod) => {
                let pod = name(pod);
                if world
                    .pods
                    .get(&pod)
                    .is_some_and(|pod| pod["status"]["phase"] != "Succeeded")
                {
                    world.run(&pod, "a1");
                }
            }
            Step::Limit(a, b) => {
                self.exceeds |= *a < self.limits[0] || *b < self.limits[1];
                self.limits = [*a, *b];
                let subsets = json!([
                    subset("a", json!(a)),
                    subset("b", json!(b)),
                    subset("c", Value::Null)
                ]);
                world.edit(&json!({"spec": {"subsets": subsets}}));
            }
            Step::Pass(seconds) => world.pass(i64::from(*seconds)),
            Step::See => self.planned = Some(world.plan(Explain::No)),
            Step::Act => {
                if let Some(mut plan) = self.planned.take() {
                    // Pods may be gone since; the server would refuse their writes.
                    plan.writes.clear();
                    world.execute(plan);
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_subset_exceeds_its_limit_and_in_the_end_exactly_the_missing_pods_are_missing(steps in steps()) {
        let subsets = json!([subset("a", json!(2)), subset("b", json!(3)), subset("c", Value::Null)]);
        let mut history = History { world: World::of_cloneset(9, subsets), limits: [2, 3], planned: None, exceeds: false };
        history.world.settle();
        for step in &steps {
            history.happen(step);
            if !history.exceeds {
                for (subset, limit) in ["a", "b"].into_iter().zip(history.limits) {
                    let active = history.active(subset);
                    prop_assert!(active <= limit, "{} has {} of {} after {:?}", subset, active, limit, step);
                }
            }
        }
        // All requests have ended, and the controller sees everything.
        history.world.pass(31);
        history.world.settle();
        let expected = ["a", "b"].into_iter().zip(history.limits).map(|(subset, limit)| {
            let active = history.active(subset);
            format!("{subset} {active}/{}", (limit - active).max(0))
        });
        let expected: Vec<String> = expected.chain([format!("c {}/-1", history.active("c"))]).collect();
        prop_assert_eq!(history.world.counts(), expected.join(", "));
        let versioned = history.world.counts_of("versionIgnored");
        if !history.world.pods.is_empty() {
            prop_assert_eq!(versioned, Some(expected.join(", ")));
        }
        let (written, reports) = (history.world.written.len(), history.world.reports.len());
        history.world.pass(600);
        history.world.settle();
        prop_assert_eq!((history.world.written.len(), history.world.reports.len()), (written, reports));
    }
}
