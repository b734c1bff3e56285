//! The grace period: the pod is out of service before the agent may stop anything, and comes back after the end.

use kruise_plan_test_kit::merge;
use serde_json::{Value, json};

use super::bench::{Bench, FINALIZER, POD};

const KEY: &str = "shop/restart";

/// A request with a grace period of five seconds, whose agent has begun.
fn begun() -> Bench {
    let mut bench = Bench::with(
        "restart",
        &json!({"strategy": {"unreadyGracePeriodSeconds": 5}, "ttlSecondsAfterFinished": 60}),
    );
    bench.settle();
    assert!(bench.written.is_empty(), "not before the agent begins");
    bench.begin("restart");
    bench
}

fn finalizers(bench: &Bench) -> Vec<&str> {
    let list = bench.get("restart")["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn the_pod_is_out_of_service_before_the_grace_period_begins_and_comes_back_after_the_end() {
    let mut bench = begun();
    let plan = bench.plan("restart");
    assert!(plan.status.is_none(), "the condition waits for the pod");
    bench.execute(&plan);
    assert_eq!(
        bench.written,
        ["hold-request restart", &format!("mark-unready {POD}")]
    );
    assert_eq!(
        (bench.pod_is("KruisePodReady"), bench.pod_is("Ready")),
        (Some("False"), Some("False"))
    );
    assert_eq!(
        (bench.keys(), finalizers(&bench)),
        (vec![KEY.to_owned()], vec![FINALIZER])
    );
    assert_eq!(bench.grace("restart"), None);
    bench.pass_millis(300);
    bench.settle();
    assert_eq!(
        bench.grace("restart"),
        Some("2026-01-01T00:00:01Z"),
        "never too short"
    );
    let condition = &bench.get("restart")["status"]["conditions"][0];
    assert_eq!(
        *condition,
        json!({"type": "PreRecreateGrace", "status": "True", "reason": "PreRecreateGrace",
            "message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
            "lastTransitionTime": "2026-01-01T00:00:01Z"})
    );
    assert_eq!(bench.written.len(), 3);
    bench.pass(5);
    bench.restart("app");
    bench.ready("app");
    bench.settle();
    bench.complete("restart");
    bench.settle();
    let back = format!("mark-ready {POD}");
    assert_eq!(bench.written[4..], [&*back, "release-request restart"]);
    assert_eq!(
        (bench.pod_is("KruisePodReady"), bench.keys(), finalizers(&bench)),
        (Some("True"), vec![], vec![])
    );
}

#[test]
fn the_time_of_the_grace_period_never_changes_and_other_conditions_stay() {
    let mut bench = begun();
    let other = json!({"type": "Progress", "status": "False", "newField": 1});
    bench.report("restart", &json!({"conditions": [other]}));
    bench.settle();
    let began = bench.grace("restart").unwrap().to_owned();
    for seconds in [1, 60, 4000] {
        bench.pass(seconds);
        bench.restart("app");
        // Somebody puts the pod back into service: the period is over or not, it has begun.
        bench.touch(|pod| {
            kruise_plan_test_kit::set_condition(pod, "KruisePodReady", "True", "2026-01-01T00:00:00Z");
        });
        bench.settle();
        assert_eq!(bench.grace("restart"), Some(&*began));
    }
    let conditions = bench.get("restart")["status"]["conditions"].as_array().unwrap();
    assert_eq!((&conditions[0], conditions.len()), (&other, 2));
}

#[test]
fn without_the_gate_the_period_is_waited_for_and_the_pod_stays_in_service() {
    let mut bench = begun();
    bench.touch(|pod| pod["spec"]["readinessGates"] = Value::Null);
    bench.settle();
    assert_eq!(bench.written, ["status restart"]);
    assert!(bench.grace("restart").is_some() && bench.pod_is("Ready") == Some("True"));
    let lines = bench.explained("restart");
    assert!(
        lines.iter().any(|line| line.contains("no readiness gate")),
        "{lines:#?}"
    );
}

#[test]
fn a_grace_period_of_zero_seconds_takes_the_pod_out_of_service_too() {
    let mut bench = Bench::with("restart", &json!({"strategy": {"unreadyGracePeriodSeconds": 0}}));
    bench.begin("restart");
    bench.settle();
    assert!(bench.grace("restart").is_some() && bench.keys() == [KEY]);
}

#[test]
fn a_condition_that_is_missing_or_has_no_status_is_written_false() {
    let changes: [fn(&mut Value); 2] = [
        |pod| {
            let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
            conditions.retain(|one| one["type"] != "KruisePodReady");
        },
        |pod| {
            let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
            conditions.retain(|one| one["type"] != "KruisePodReady");
            let message = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/restart"}]"#;
            conditions.push(json!({"type": "KruisePodReady", "message": message}));
        },
    ];
    for change in changes {
        let mut bench = begun();
        bench.touch(change);
        bench.settle();
        assert_eq!(bench.pod_is("KruisePodReady"), Some("False"));
        assert!(bench.grace("restart").is_some());
    }
}

#[test]
fn keys_of_others_stay_and_keep_the_pod_out_of_service() {
    let mut bench = begun();
    let hook = r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
    bench.touch(|pod| {
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        let own = conditions.iter_mut().find(|one| one["type"] == "KruisePodReady");
        merge(own.unwrap(), &json!({"status": "False", "message": hook}));
    });
    bench.settle();
    assert_eq!(bench.keys(), [KEY, "preDeleteHook"]);
    bench.request("second", &json!({"strategy": {"unreadyGracePeriodSeconds": 5}}));
    bench.begin("second");
    bench.settle();
    assert_eq!(bench.keys(), [KEY, "shop/second", "preDeleteHook"]);
    bench.complete("restart");
    bench.settle();
    assert_eq!(bench.keys(), ["shop/second", "preDeleteHook"]);
    bench.complete("second");
    bench.settle();
    assert_eq!(
        (bench.keys(), bench.pod_is("KruisePodReady")),
        (vec!["preDeleteHook".to_owned()], Some("False"))
    );
}

#[test]
fn a_request_that_is_deleted_takes_its_key_along_and_keeps_finalizers_of_others() {
    let mut bench = begun();
    let mut with_other = bench.get("restart").clone();
    with_other["metadata"]["finalizers"] = json!(["example.com/audit"]);
    bench.store(with_other);
    bench.settle();
    assert_eq!(finalizers(&bench), ["example.com/audit", FINALIZER]);
    bench.delete("restart");
    bench.settle();
    assert_eq!(finalizers(&bench), ["example.com/audit"]);
    assert!(bench.keys().is_empty() && bench.pod_is("KruisePodReady") == Some("True"));
    let writes = bench.written.len();
    bench.settle();
    assert_eq!(
        bench.written.len(),
        writes,
        "a foreign finalizer is not ours to wait for"
    );
}

#[test]
fn a_request_whose_pod_is_gone_or_replaced_loses_its_finalizer_and_touches_no_pod() {
    for is_replaced in [false, true] {
        let mut bench = begun();
        bench.settle();
        if is_replaced {
            bench.touch(|pod| pod["metadata"]["uid"] = json!("uid-another"));
        } else {
            bench.pod = None;
        }
        let before = bench.pod.clone();
        bench.settle();
        assert!(finalizers(&bench).is_empty());
        assert_eq!((&bench.pod, bench.written.len()), (&before, 5));
        assert_eq!(bench.written[3..], ["status restart", "release-request restart"]);
    }
}

#[test]
fn a_request_whose_time_is_over_while_it_holds_its_pod_is_released_and_deleted_in_one_round() {
    let mut bench = begun();
    bench.settle();
    bench.complete("restart");
    bench.pass(60);
    let plan = bench.plan("restart");
    bench.execute(&plan);
    assert_eq!(
        bench.written[3..],
        [
            &*format!("mark-ready {POD}"),
            "release-request restart",
            "delete-job restart"
        ]
    );
    assert!(bench.names().is_empty() && bench.keys().is_empty());
}

#[test]
fn a_pod_that_is_off_for_an_unreadable_reason_is_left_alone() {
    let mut bench = begun();
    bench.touch(|pod| {
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        let own = conditions.iter_mut().find(|one| one["type"] == "KruisePodReady");
        merge(own.unwrap(), &json!({"status": "False", "message": "by hand"}));
    });
    let before = bench.pod.clone();
    let plan = bench.plan("restart");
    bench.execute(&plan);
    let plan = bench.plan("restart");
    bench.execute(&plan);
    assert_eq!(bench.pod, before);
    assert!(bench.grace("restart").is_some());
}
