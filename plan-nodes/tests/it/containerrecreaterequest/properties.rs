//! Random histories: the agent, the kubelet and users do what they like, in any order with the controller.

use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::bench::{Bench, FINALIZER};

#[derive(Clone, Debug)]
enum Event {
    /// Phase of a request: 0 nothing, 1 Pending, 2 Recreating, 3 Completed.
    Report(bool, u8),
    Restart(bool),
    End,
    Ready,
    Delete(bool),
    PodGone(bool),
    /// Somebody puts the pod back into service.
    Back,
    Pass(i64),
    /// The controller runs for one request.
    Plan(bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (any::<bool>(), 1_u8..4).prop_map(|(which, phase)| Event::Report(which, phase)),
        3 => any::<bool>().prop_map(Event::Restart),
        1 => Just(Event::End),
        2 => Just(Event::Ready),
        1 => any::<bool>().prop_map(Event::Delete),
        1 => any::<bool>().prop_map(Event::PodGone),
        1 => Just(Event::Back),
        2 => (0_i64..40).prop_map(Event::Pass),
        8 => any::<bool>().prop_map(Event::Plan),
    ];
    vec(event, 1..50)
}

fn name(second: bool) -> &'static str {
    if second { "second" } else { "first" }
}

fn happen(bench: &mut Bench, event: &Event) {
    let exists = |bench: &Bench, second: bool| !bench.get(name(second)).is_null();
    match *event {
        Event::Report(second, phase) if exists(bench, second) => {
            let is_over = bench.get(name(second))["status"]["phase"] == "Completed";
            match phase {
                // An agent does not begin what has ended.
                _ if is_over => {}
                1 => bench.report(name(second), &json!({"phase": "Pending"})),
                2 => bench.begin(name(second)),
                _ => bench.complete(name(second)),
            }
        }
        Event::Delete(second) if exists(bench, second) => bench.delete(name(second)),
        Event::PodGone(true) => bench.pod = None,
        Event::PodGone(false) if bench.pod.is_some() => {
            bench.touch(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z"));
        }
        Event::Restart(app) if bench.pod.is_some() => bench.restart(if app { "app" } else { "proxy" }),
        Event::End if bench.pod.is_some() => bench.end("app"),
        Event::Ready if bench.pod.is_some() => bench.ready("app"),
        Event::Back if bench.pod.is_some() => bench.touch(|pod| {
            kruise_plan_test_kit::set_condition(pod, "KruisePodReady", "True", "2026-01-01T00:00:00Z");
        }),
        Event::Pass(seconds) => bench.pass(seconds),
        Event::Plan(second) if exists(bench, second) => {
            let plan = bench.plan(name(second));
            bench.execute(&plan);
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_grace_period_begins_once_out_of_service_and_ended_requests_leave_nothing(events in events()) {
        let mut bench = Bench::new();
        for second in [false, true] {
            let strategy = json!({"unreadyGracePeriodSeconds": 5});
            bench.request(name(second), &json!({"strategy": strategy, "activeDeadlineSeconds": 100, "ttlSecondsAfterFinished": 30}));
        }
        let mut began: [Option<String>; 2] = [None, None];
        for event in events {
            let before = bench.clone();
            happen(&mut bench, &event);
            for (second, began) in [false, true].into_iter().zip(&mut began) {
                if let Some(grace) = bench.grace(name(second)) {
                    if let Some(began) = began {
                        prop_assert_eq!(&**began, grace, "its time changed");
                        continue;
                    }
                    prop_assert_eq!(before.pod_is("KruisePodReady"), Some("False"));
                    let key = format!("shop/{}", name(second));
                    prop_assert!(before.keys().contains(&key), "it has no key");
                    *began = Some(grace.to_owned());
                }
            }
        }
        bench.settle();
        for name in bench.names() {
            let request = bench.get(&name);
            if request["status"]["phase"] == "Completed" {
                let key = format!("shop/{name}");
                prop_assert!(!bench.keys().contains(&key), "its key is left");
                let finalizers = request["metadata"]["finalizers"].as_array();
                prop_assert!(!finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER)));
            }
        }
        bench.pass(100);
        bench.settle();
        bench.pass(30);
        bench.settle();
        prop_assert!(bench.names().is_empty(), "{:?} are left", bench.names());
        prop_assert!(bench.keys().is_empty());
    }
}
