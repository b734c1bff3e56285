//! Sidecars that end with their job: when, in which way, and what is done about those that do not end.

mod again;
mod bench;
mod properties;
mod warnings;

use kruise_plan_kit::{Precondition, Write, ledger};
use kruise_plan_test_kit::{ReadBudgets, budget};
use serde_json::{Value, json};

use bench::{Bench, FIRST, IGNORE, IMAGE, WHEN, sidecar};

/// `log` counts.
fn normal(name: &str) -> Value {
    sidecar(name, &[WHEN])
}

fn ignored(name: &str) -> Value {
    sidecar(name, &[WHEN, IGNORE])
}

fn event(list: &str, way: &str) -> String {
    format!("SidecarTerminator Kruise SidecarTerminator is trying to terminate sidecar [{list}] using {way}")
}

fn phase(bench: &Bench) -> &Value {
    &bench.pod["status"]["phase"]
}

#[test]
fn e8_1_a_pod_whose_main_container_succeeded_gets_one_request_for_its_sidecar() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.settle();
    assert!(bench.written.is_empty() && !bench.concerns(), "main still runs");
    bench.end("main", 0);
    bench.settle();
    assert_eq!(bench.written, [format!("request-termination {FIRST}")]);
    assert_eq!(bench.events, [event("log", "crr")]);
    let request = &bench.requests[FIRST];
    assert_eq!(request["apiVersion"], "apps.kruise.io/v1beta1");
    assert_eq!(
        request["metadata"]["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "report", "uid": "uid-report", "controller": true}])
    );
    let mut spec = request["spec"].clone();
    spec["containers"][0]
        .as_object_mut()
        .unwrap()
        .remove("statusContext");
    assert_eq!(
        spec,
        json!({"podName": "report", "containers": [{"name": "log"}],
            "strategy": {"forceRecreate": true, "failurePolicy": "Ignore"}}),
        "no deadline, and no time to live"
    );
    bench.killed(FIRST);
    bench.end("log", 0);
    bench.complete(FIRST);
    bench.settle();
    assert!(!bench.concerns() && bench.written.len() == 1);
    assert_eq!(phase(&bench), "Running", "the kubelet says how it has ended");
}

#[test]
fn e8_2_a_pod_that_never_restarts_and_whose_main_container_failed_gets_a_request_too() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 1);
    bench.settle();
    assert_eq!(bench.written, [format!("request-termination {FIRST}")]);
}

#[test]
fn e8_3_a_main_container_that_is_started_again_is_waited_for_until_it_succeeds() {
    let mut bench = Bench::new("OnFailure", &[normal("log")]);
    bench.end("main", 1);
    assert!(!bench.concerns());
    bench.settle();
    bench.restart("main");
    bench.settle();
    assert!(bench.written.is_empty());
    bench.end("main", 0);
    bench.settle();
    assert_eq!(bench.written, [format!("request-termination {FIRST}")]);
}

#[test]
fn e8_4_only_sidecars_that_have_not_ended_are_requested_in_the_order_of_their_names() {
    let mut bench = Bench::new("Never", &[normal("web"), normal("done"), normal("log")]);
    bench.end("done", 0);
    bench.end("main", 0);
    bench.settle();
    assert_eq!(bench.targets(FIRST), ["log", "web"]);
    assert_eq!(bench.events, [event("log web", "crr")]);
}

#[test]
fn e8_5_while_a_request_is_there_no_second_one_is_created_and_no_event_written() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    for report in [
        json!({}),
        json!({"phase": "Pending"}),
        json!({"phase": "Recreating", "containerRecreateStates": [{"name": "log", "isKilled": true}]}),
    ] {
        bench.report(FIRST, &report);
        bench.pass(10_000);
        bench.settle();
        assert_eq!((bench.written.len(), bench.events.len()), (1, 1), "{report}");
    }
}

#[test]
fn e8_6_a_pod_whose_sidecars_do_not_count_ends_as_its_main_containers_did() {
    for (code, ends) in [(0, "Succeeded"), (1, "Failed")] {
        let mut bench = Bench::new("Never", &[ignored("log")]);
        bench.end("main", code);
        bench.settle();
        assert_eq!(
            bench.written,
            [
                "end-pod report".to_owned(),
                format!("request-termination {FIRST}")
            ]
        );
        assert_eq!(phase(&bench), ends);
        assert_eq!(
            bench.pod["status"]["conditions"],
            json!([{"type": "SidecarTerminated", "status": "True", "message": "Terminated by Sidecar Terminator",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        );
        bench.killed(FIRST);
        bench.end("log", 137);
        bench.settle();
        assert_eq!((bench.written.len(), phase(&bench)), (2, &json!(ends)));
    }
}

#[test]
fn e8_6_the_phase_is_written_only_to_the_version_of_the_pod_that_was_read() {
    let mut bench = Bench::new("Never", &[ignored("log")]);
    bench.end("main", 0);
    let plan = bench.plan();
    let Write::Patch {
        precondition, patch, ..
    } = &plan.writes[0].steps[0].write
    else {
        panic!("{plan:?}");
    };
    assert!(matches!(precondition, Precondition::UidAndVersion(uid, _) if uid == "uid-report"));
    let body = patch.body();
    let changed: Vec<&String> = body["status"].as_object().unwrap().keys().collect();
    assert_eq!(changed, ["conditions", "phase"], "and nothing else");
    assert_eq!(body.as_object().unwrap().len(), 1);
}

#[test]
fn e8_6_a_manager_that_stopped_after_the_phase_goes_on_with_the_request() {
    let mut bench = Bench::new("Never", &[ignored("log")]);
    bench.end("main", 0);
    let mut plan = bench.plan();
    plan.writes[0].steps.truncate(1);
    bench.execute(plan);
    assert_eq!((phase(&bench), bench.requests.len()), (&json!("Succeeded"), 0));
    bench.settle();
    assert_eq!(bench.written[1..], [format!("request-termination {FIRST}")]);
}

#[test]
fn e8_7_without_the_variable_or_with_another_value_the_phase_is_never_written() {
    let mut off = normal("log");
    let env = off["env"].as_array_mut().unwrap();
    env.push(json!({"name": IGNORE, "value": "false"}));
    for log in [off, normal("log")] {
        let mut bench = Bench::new("Never", &[log]);
        bench.end("main", 0);
        bench.settle();
        assert_eq!(bench.written, [format!("request-termination {FIRST}")]);
        bench.killed(FIRST);
        bench.end("log", 137);
        bench.complete(FIRST);
        bench.settle();
        assert_eq!((bench.written.len(), phase(&bench)), (1, &json!("Running")));
    }
}

/// `log` with an image that ends at once.
fn with_image(more: &[&str]) -> Value {
    let mut log = sidecar("log", more);
    let image = json!({"name": IMAGE, "value": "exit:1"});
    log["env"].as_array_mut().unwrap().push(image);
    log
}

#[test]
fn e8_8_on_a_virtual_node_the_image_is_replaced_and_nothing_is_requested() {
    for more in [&[][..], &[WHEN], &[WHEN, IGNORE]] {
        let mut bench = Bench::new("Never", &[with_image(more)]).on_virtual_node();
        bench.settle();
        assert!(bench.written.is_empty());
        bench.end("main", 0);
        let plan = bench.plan();
        let Write::Patch {
            patch, precondition, ..
        } = &plan.writes[0].steps[0].write
        else {
            panic!("{plan:?}");
        };
        assert_eq!(
            patch.body(),
            json!({"spec": {"containers": [{"name": "log", "image": "exit:1"}]}})
        );
        assert_eq!(precondition, &Precondition::Uid("uid-report".into()));
        bench.settle();
        assert_eq!(bench.written, ["swap-images report"]);
        assert_eq!(bench.events, [event("log", "in-place update")]);
        assert_eq!(bench.pod["spec"]["newField"]["kept"], true);
        bench.touch(|_| ());
        bench.settle();
        assert_eq!((bench.written.len(), bench.events.len()), (1, 1), "once");
        assert_eq!(phase(&bench), "Running");
    }
}

#[test]
fn e8_8_on_a_node_with_an_agent_the_image_stays() {
    let mut bench = Bench::new("Never", &[with_image(&[WHEN])]);
    bench.end("main", 0);
    bench.settle();
    assert_eq!(bench.written, [format!("request-termination {FIRST}")]);
}

#[test]
fn e8_9_pods_that_always_restart_are_pending_are_deleted_or_have_no_marked_sidecar_are_left_alone() {
    let ended = |change: fn(&mut Value)| {
        let mut bench = Bench::new("Never", &[normal("log")]);
        bench.end("main", 0);
        bench.touch(change);
        let concerns = bench.concerns();
        bench.settle();
        assert_eq!(bench.written.len(), usize::from(concerns));
        concerns
    };
    assert!(ended(|_| ()));
    assert!(!ended(|pod| pod["spec"]["restartPolicy"] = json!("Always")));
    assert!(!ended(|pod| pod["spec"]["restartPolicy"] = Value::Null));
    assert!(!ended(|pod| pod["status"]["phase"] = json!("Pending")));
    assert!(!ended(
        |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
    ));
    assert!(!ended(|pod| pod["spec"]["containers"][1]["env"] = json!([])));
    assert!(
        !ended(|pod| pod["status"]["phase"] = json!("Failed")),
        "the kubelet stops what is left of a pod that it has ended"
    );
    assert!(!ended(|pod| {
        pod["status"]["containerStatuses"].as_array_mut().unwrap().pop();
    }));
}

#[test]
fn e8_10_an_injected_sidecar_is_terminated_as_one_that_was_written_by_hand() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.touch(|pod| {
        let env = pod["spec"]["containers"][1]["env"].as_array_mut().unwrap();
        env.insert(0, json!({"name": "IS_INJECTED", "value": "true"}));
        pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "logs"});
    });
    bench.end("main", 0);
    bench.settle();
    assert_eq!(bench.targets(FIRST), ["log"]);
}

#[test]
fn an_update_in_place_asks_the_budget_of_the_pod() {
    let mut bench = Bench::new("Never", &[with_image(&[])]).on_virtual_node();
    bench.end("main", 0);
    bench.touch(|pod| {
        pod["metadata"]["annotations"] = json!({"kruise.io/related-pub": "keep"});
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    });
    let stored = budget("keep min=1 counted=1/1/1", bench.now);
    let found = ReadBudgets::of(&[("keep".to_owned(), stored)].into_iter().collect());
    let gates = ledger::Gates {
        updates: true,
        ..ledger::Gates::DEFAULT
    };
    let plan = |bench: &Bench| bench.plan_with(ledger::Budgets { gates, all: &found });
    let held = plan(&bench);
    assert!(held.writes.is_empty() && held.events.is_empty());
    assert!(
        held.why[0].text.contains("PodUnavailableBudget keep"),
        "{:?}",
        held.why
    );
    bench.touch(|pod| pod["status"]["conditions"][0]["status"] = json!("False"));
    let free = plan(&bench);
    assert_eq!(free.writes.len(), 1, "a pod that is not ready costs nothing");
}

#[test]
fn a_node_that_does_not_exist_is_looked_for_again() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 0);
    let node = bench.node.take();
    bench.settle();
    assert_eq!((bench.written.len(), bench.again()), (0, Some(30)));
    bench.node = node;
    bench.settle();
    assert_eq!(bench.written.len(), 1);
}
