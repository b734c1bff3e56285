//! ContainerRecreateRequests: their end, what the agent learns, and the pod that is out of service for a while.

mod bench;
mod grace;
mod properties;
mod takeover;

use serde_json::{Value, json};

use bench::{ACTIVE, Bench, POD};

/// A request named `restart`.
fn bench(spec: &Value) -> Bench {
    Bench::with("restart", spec)
}

fn message(bench: &Bench) -> (&Value, &Value) {
    let status = &bench.get("restart")["status"];
    (&status["phase"], &status["message"])
}

const DONE: &str = "Completed";

#[test]
fn a_request_without_a_report_ends_after_a_minute_and_any_report_is_one() {
    let mut silent = bench(&json!({}));
    assert_eq!(silent.again("restart"), Some(60));
    silent.pass(59);
    silent.settle();
    assert!(silent.written.is_empty() && silent.again("restart") == Some(1));
    silent.pass(1);
    silent.settle();
    assert_eq!(
        message(&silent),
        (&json!(DONE), &json!("daemon has not responded for a long time"))
    );
    assert_eq!(
        silent.get("restart")["status"]["completionTime"],
        "2026-01-01T00:01:00Z"
    );
    for phase in ["Pending", "Recreating"] {
        let mut reported = bench(&json!({}));
        reported.report("restart", &json!({ "phase": phase }));
        assert_eq!(reported.again("restart"), None, "{phase}: nothing is due");
        reported.pass(100_000);
        reported.settle();
        assert!(reported.written.is_empty(), "{phase}");
    }
}

#[test]
fn a_request_ends_at_its_deadline_which_counts_from_its_creation() {
    for phase in ["", "Pending", "Recreating"] {
        let mut bench = bench(&json!({"activeDeadlineSeconds": 30}));
        bench.report("restart", &json!({ "phase": phase }));
        bench.pass(29);
        assert_eq!(bench.again("restart"), Some(1));
        bench.settle();
        assert!(bench.written.is_empty(), "{phase}");
        bench.pass(1);
        bench.settle();
        assert_eq!(
            message(&bench),
            (
                &json!(DONE),
                &json!("recreating has exceeded the activeDeadlineSeconds")
            ),
            "{phase}"
        );
    }
}

#[test]
fn a_request_ends_when_its_pod_is_gone_is_being_deleted_or_is_another_one() {
    let ways: [fn(&mut Bench); 3] = [
        |bench| bench.pod = None,
        |bench| bench.touch(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z")),
        |bench| bench.touch(|pod| pod["metadata"]["uid"] = json!("uid-another")),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        for phase in ["", "Pending", "Recreating"] {
            let mut bench = bench(&json!({}));
            bench.report("restart", &json!({ "phase": phase }));
            way(&mut bench);
            bench.settle();
            assert_eq!(
                message(&bench),
                (&json!(DONE), &json!("pod has gone")),
                "{number} {phase}"
            );
        }
    }
}

#[test]
fn a_pod_that_the_cache_lacks_is_asked_for_before_its_request_ends() {
    let mut bench = bench(&json!({}));
    bench.is_cached = false;
    assert_eq!(bench.again("restart"), Some(2), "the cache is about to have it");
    bench.settle();
    assert!(bench.written.is_empty());
    bench.is_cached = true;
    assert_eq!(bench.again("restart"), Some(60));
    bench.is_cached = false;
    bench.touch(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z"));
    bench.settle();
    assert_eq!(message(&bench).1, "pod has gone");
}

#[test]
fn a_request_without_the_uid_of_a_pod_ends_without_a_question() {
    let mut bench = Bench::new();
    bench.store(
        json!({"apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "restart", "namespace": "shop"},
        "spec": {"podName": POD, "containers": []}}),
    );
    bench.settle();
    assert_eq!(message(&bench).1, "pod has gone");
}

#[test]
fn an_ended_request_loses_its_label_at_once_and_goes_when_its_time_to_live_is_over() {
    let mut bench = bench(&json!({"ttlSecondsAfterFinished": 1800}));
    bench.begin("restart");
    bench.pass(10);
    bench.complete("restart");
    bench.settle();
    assert_eq!(bench.written, ["release-request restart"]);
    let labels = &bench.get("restart")["metadata"]["labels"];
    assert!(labels.get(ACTIVE).is_none() && labels["crr.apps.kruise.io/pod-uid"] == "uid-cart-0");
    assert_eq!(bench.again("restart"), Some(1800));
    bench.pass(1799);
    bench.settle();
    assert_eq!((bench.written.len(), bench.again("restart")), (1, Some(1)));
    bench.pass(1);
    bench.settle();
    assert_eq!(bench.written[1..], ["delete-job restart"]);
    assert!(bench.names().is_empty());
}

#[test]
fn a_request_whose_time_to_live_is_over_goes_in_one_write_and_one_without_it_stays() {
    let mut over = bench(&json!({"ttlSecondsAfterFinished": 0}));
    over.complete("restart");
    over.settle();
    assert_eq!(over.written, ["delete-job restart"]);
    let mut kept = bench(&json!({}));
    kept.complete("restart");
    kept.settle();
    kept.pass(1_000_000);
    kept.settle();
    assert_eq!(
        (kept.written.len(), kept.names().len(), kept.again("restart")),
        (1, 1, None)
    );
    // Nobody says when it ended.
    let mut timeless = bench(&json!({"ttlSecondsAfterFinished": 5}));
    timeless.report("restart", &json!({"phase": "Completed"}));
    timeless.settle();
    assert_eq!(timeless.written, ["release-request restart"]);
}

#[test]
fn the_status_lists_the_requested_containers_that_run_since_the_request() {
    let mut bench = bench(&json!({"containers": [{"name": "proxy"}, {"name": "app"}, {"name": "gone"}]}));
    let entries = |bench: &Bench| bench.get("restart")["status"]["containerStatusSnapshot"].clone();
    bench.begin("restart");
    bench.settle();
    assert_eq!(entries(&bench), Value::Null, "all of them run since before");
    bench.restart("log");
    bench.settle();
    assert_eq!(entries(&bench), Value::Null, "it is not requested");
    bench.end("app");
    bench.settle();
    assert!(bench.written.is_empty());
    bench.restart("app");
    bench.settle();
    let app = json!({"name": "app", "ready": false, "restartCount": 1, "containerID": "containerd://app-1"});
    assert_eq!(entries(&bench), json!([app]), "in the second of the request");
    bench.pass(3);
    bench.restart("proxy");
    bench.ready("app");
    bench.settle();
    let proxy =
        json!({"name": "proxy", "ready": false, "restartCount": 1, "containerID": "containerd://proxy-1"});
    let mut ready = app.clone();
    ready["ready"] = json!(true);
    assert_eq!(
        entries(&bench),
        json!([proxy, ready]),
        "in the order of the request"
    );
    assert_eq!(bench.written, ["status restart", "status restart"]);
    // What has ended again leaves the entries, except that there are never none.
    bench.end("app");
    bench.settle();
    assert_eq!(entries(&bench), json!([proxy]));
    bench.end("proxy");
    bench.settle();
    assert_eq!((entries(&bench), bench.written.len()), (json!([proxy]), 3));
    assert_eq!(bench.again("restart"), None, "changes of the pod are watched");
}

#[test]
fn nothing_is_listed_before_the_agent_has_begun_and_after_the_end() {
    for status in [
        json!({}),
        json!({"phase": "Pending"}),
        json!({"phase": "Completed", "completionTime": "2026-01-01T00:00:00Z"}),
    ] {
        let mut bench = bench(&json!({}));
        bench.report("restart", &status);
        bench.restart("app");
        let plan = bench.plan("restart");
        assert_eq!(plan.status, None, "{status}");
    }
}

#[test]
fn a_plain_request_costs_its_reports_one_release_and_one_deletion() {
    let mut bench = bench(&json!({"ttlSecondsAfterFinished": 10, "activeDeadlineSeconds": 300}));
    bench.settle();
    bench.begin("restart");
    bench.settle();
    bench.end("app");
    bench.settle();
    bench.pass(1);
    bench.restart("app");
    bench.settle();
    bench.pass(1);
    bench.ready("app");
    bench.settle();
    bench.complete("restart");
    bench.settle();
    bench.pass(10);
    bench.settle();
    assert_eq!(
        bench.written,
        [
            "status restart",
            "status restart",
            "release-request restart",
            "delete-job restart"
        ]
    );
}

#[test]
fn a_request_says_what_it_waits_for() {
    let mut bench = bench(&json!({"strategy": {"orderedRecreate": true}}));
    let has = |bench: &Bench, words: &str| {
        let lines = bench.explained("restart");
        assert!(
            lines.iter().any(|line| line.contains(words)),
            "{words}\n{lines:#?}"
        );
    };
    bench.pass(15);
    has(
        &bench,
        "waits for the agent of node n1 to report; it ends without a report in 45 s",
    );
    has(&bench, "it has no activeDeadlineSeconds");
    bench.report("restart", &json!({"phase": "Pending"}));
    has(&bench, "waits for the agent of node n1 to begin");
    bench.request("other", &json!({}));
    has(
        &bench,
        "one request for pod cart-0 at a time, and other come before",
    );
    let states = json!([{"name": "app", "phase": "Recreating", "isKilled": true, "message": "back-off"}]);
    bench.report(
        "restart",
        &json!({"phase": "Recreating", "containerRecreateStates": states}),
    );
    has(&bench, "one container after the other");
    has(
        &bench,
        "container app: Recreating, it was stopped, no new run of it has been seen: back-off",
    );
    bench.restart("app");
    bench.settle();
    has(&bench, "it runs anew and is not ready");
    let mut ended = bench.clone();
    ended.complete("restart");
    has(
        &ended,
        "has ended: its agent dealt with every container; it is kept until somebody deletes it",
    );
    bench.pod = None;
    has(&bench, "ends now: pod has gone");
}

#[test]
fn a_request_for_sidecars_of_a_pod_whose_main_containers_have_ended_says_so() {
    let words = "stops sidecars of pod cart-0, because the main containers of the pod have ended";
    let says = |name: &str| {
        let bench = Bench::with(name, &json!({}));
        bench.explained(name).iter().any(|line| line.contains(words))
    };
    assert!(says("sidecar-termination-uid-cart-0-2") && !says("restart"));
}
