//! Random histories: containers end, fail and begin anew, agents act or do not, the manager starts anew, in any
//! order with the controller.

use kruise_plan_kit::Memory;
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::bench::{Bench, IGNORE, IMAGE, WHEN, sidecar};

#[derive(Clone, Debug)]
enum Event {
    /// A container ends by itself, with this code.
    End(usize, i32),
    /// The agent stops what an open request is for; each container ends with this code.
    Kill(i32),
    /// The agent or the manager ends an open request, whether it has stopped anything or not.
    Complete,
    /// The kubelet starts what failed.
    Kubelet,
    /// The manager starts anew.
    Forget,
    Pass(i64),
    /// The controller runs once.
    Plan,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let code = || prop_oneof![Just(0), Just(137)];
    let event = prop_oneof![
        3 => (0_usize..5, code()).prop_map(|(which, code)| Event::End(which, code)),
        3 => code().prop_map(Event::Kill),
        2 => Just(Event::Complete),
        3 => Just(Event::Kubelet),
        1 => Just(Event::Forget),
        2 => (0_i64..100).prop_map(Event::Pass),
        8 => Just(Event::Plan),
    ];
    vec(event, 1..60)
}

const CONTAINERS: [&str; 5] = ["main", "second", "log", "proxy", "web"];

/// Two main containers, and sidecars that count or do not.
fn pods() -> impl Strategy<Value = Bench> {
    let kinds = prop_oneof![
        Just(&[WHEN][..]),
        Just(&[WHEN, IGNORE][..]),
        Just(&[WHEN, IMAGE][..])
    ];
    (
        prop_oneof![Just("Never"), Just("OnFailure")],
        vec(kinds, 3),
        any::<bool>(),
    )
        .prop_map(|(policy, kinds, is_virtual)| {
            let second = json!({"name": "second", "image": "report:1"});
            let marked = CONTAINERS[2..].iter().zip(&kinds);
            let marked = marked.map(|(name, variables)| {
                let variables = if is_virtual { &[WHEN, IMAGE][..] } else { variables };
                sidecar(name, variables)
            });
            let containers: Vec<Value> = std::iter::once(second).chain(marked).collect();
            let bench = Bench::new(policy, &containers);
            if is_virtual {
                bench.on_virtual_node()
            } else {
                bench
            }
        })
}

fn policy(bench: &Bench) -> &str {
    bench.pod["spec"]["restartPolicy"].as_str().unwrap()
}

fn is_over(bench: &Bench) -> bool {
    bench.pod["status"]["phase"] != "Running"
}

/// Has it ended for good?
fn is_finished(bench: &Bench, name: &str) -> bool {
    let code = &bench.status(name)["state"]["terminated"]["exitCode"];
    code.is_number() && (policy(bench) == "Never" || *code == 0)
}

fn kill(bench: &mut Bench, code: i32) {
    let Some(open) = bench.open().pop() else { return };
    let targets = bench.targets(&open);
    bench.killed(&open);
    for name in targets {
        if bench.runs(&name) {
            bench.end(&name, code);
        }
    }
}

/// The kubelet starts what failed, or ends what runs of a pod that is over.
fn kubelet(bench: &mut Bench) {
    for name in CONTAINERS {
        if is_over(bench) {
            if bench.runs(name) {
                bench.end(name, 137);
            }
        } else if !bench.runs(name) && !is_finished(bench, name) {
            bench.restart(name);
        }
        // An image that ends at once.
        let of_image = bench.view().image_of(name) == Some("true");
        if of_image && bench.runs(name) {
            bench.end(name, 0);
        }
    }
}

fn happen(bench: &mut Bench, event: &Event) {
    match *event {
        Event::End(which, code) if bench.runs(CONTAINERS[which]) => bench.end(CONTAINERS[which], code),
        Event::Kill(code) => kill(bench, code),
        Event::Complete => {
            if let Some(open) = bench.open().pop() {
                bench.complete(&open);
            }
        }
        Event::Kubelet => kubelet(bench),
        Event::Forget => bench.memory = Memory::default(),
        Event::Pass(seconds) => bench.pass(seconds),
        Event::Plan => {
            let plan = bench.plan();
            bench.execute(plan);
        }
        Event::End(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn sidecars_end_after_the_main_containers_by_one_request_at_a_time_and_every_pod_ends(
        mut bench in pods(), events in events(),
    ) {
        for event in &events {
            let before = bench.clone();
            happen(&mut bench, event);
            prop_assert!(bench.open().len() <= 1, "{:?}", bench.open());
            if bench.written.len() > before.written.len() {
                for main in ["main", "second"] {
                    prop_assert!(is_finished(&before, main), "{main} runs, and {:?}", bench.written);
                }
                let again = bench.written.iter().filter(|one| one.starts_with("end-pod")).count();
                prop_assert!(again <= 1, "the phase is written once");
            }
        }
        // From now on everything that is stopped ends well.
        for main in ["main", "second"] {
            if !is_finished(&bench, main) {
                bench.end(main, 0);
            }
        }
        for _ in 0..60 {
            bench.settle();
            kill(&mut bench, 0);
            kubelet(&mut bench);
            bench.pass(60);
            if let Some(open) = bench.open().pop() {
                bench.complete(&open);
            }
        }
        for name in CONTAINERS {
            prop_assert!(!bench.runs(name), "{name} runs on: {:?}", bench.written);
        }
        bench.settle();
        prop_assert!(!bench.concerns());
    }
}
