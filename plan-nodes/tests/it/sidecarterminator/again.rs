//! Requests after the first one: for sidecars that run anew, for those that were not stopped, and for the second group.

use serde_json::json;

use super::bench::{Bench, FIRST};
use super::{event, ignored, normal, phase};

const SECOND: &str = "sidecar-termination-uid-report-2";
const THIRD: &str = "sidecar-termination-uid-report-3";
const IGNORED: &str = "sidecar-termination-uid-report-ignore-exit-code";

#[test]
fn e8_11_a_sidecar_that_was_killed_and_runs_again_is_terminated_again_and_the_pod_ends() {
    let mut bench = Bench::new("OnFailure", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    bench.pass(5);
    bench.killed(FIRST);
    bench.end("log", 137);
    bench.settle();
    bench.pass(10);
    bench.restart("log");
    bench.complete(FIRST);
    bench.settle();
    assert_eq!(bench.names(), [FIRST, SECOND], "at once");
    assert_eq!(bench.targets(SECOND), ["log"]);
    assert_eq!(
        bench.requests[SECOND]["spec"]["ttlSecondsAfterFinished"], 3600,
        "further requests are deleted after their end"
    );
    bench.killed(SECOND);
    bench.end("log", 0);
    bench.complete(SECOND);
    bench.settle();
    assert!(!bench.concerns() && bench.names().len() == 2);
}

#[test]
fn a_sidecar_that_runs_again_and_again_is_requested_after_pauses_that_double_and_told_once() {
    let mut bench = Bench::new("OnFailure", &[normal("log")]);
    bench.end("main", 0);
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let mut pause = 0;
        loop {
            bench.settle();
            let Some(more) = bench.again() else { break };
            pause += more;
            bench.pass(more.try_into().unwrap());
        }
        pauses.push(pause);
        let [open] = &bench.open()[..] else {
            panic!("{:?}", bench.open());
        };
        let open = open.clone();
        bench.killed(&open);
        bench.restart("log");
        bench.complete(&open);
    }
    assert_eq!(pauses, [0, 0, 20, 40, 80, 160, 300, 300, 300]);
    let warnings = bench
        .events
        .iter()
        .filter(|event| event.starts_with("SidecarNotTerminated"));
    let warnings: Vec<&String> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("sidecar [log] was terminated and runs again"));
    assert!(warnings[0].contains("KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"));
}

#[test]
fn a_request_that_waits_for_a_sidecar_which_is_not_ready_is_ended_before_the_next_one() {
    let mut bench = Bench::new("OnFailure", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    bench.killed(FIRST);
    bench.settle();
    assert_eq!(
        bench.names(),
        [FIRST],
        "the pod does not report yet that it was stopped"
    );
    bench.restart("log");
    bench.settle();
    assert_eq!(
        bench.written[1..],
        [
            format!("end-request {FIRST}"),
            format!("request-termination {SECOND}")
        ]
    );
    let ended = &bench.requests[FIRST]["status"];
    assert_eq!(
        (&ended["phase"], ended["completionTime"].is_string()),
        (&json!("Completed"), true)
    );
    assert_eq!(bench.open(), [SECOND]);
}

#[test]
fn a_sidecar_that_the_kubelet_replaced_before_it_was_stopped_still_belongs_to_its_request() {
    let mut bench = Bench::new("OnFailure", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    bench.restart("log");
    bench.pass(1000);
    bench.settle();
    assert_eq!(bench.names(), [FIRST], "its agent stops the new one");
}

#[test]
fn a_request_that_no_agent_answered_is_followed_by_another_one() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    bench.pass(60);
    bench.complete(FIRST);
    bench.settle();
    assert_eq!((bench.names().len(), bench.again()), (1, Some(10)));
    bench.pass(10);
    bench.settle();
    assert_eq!(bench.names(), [FIRST, SECOND]);
    bench.complete(SECOND);
    assert_eq!(bench.again(), Some(20));
    bench.pass(20);
    bench.settle();
    assert_eq!(bench.open(), [THIRD]);
}

#[test]
fn what_the_pod_reports_after_the_end_of_a_request_comes_in_time() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    bench.killed(FIRST);
    bench.complete(FIRST);
    bench.settle();
    assert_eq!(bench.names(), [FIRST]);
    bench.pass(2);
    bench.end("log", 0);
    bench.settle();
    assert_eq!((bench.names(), bench.again()), (vec![FIRST], None));
}

#[test]
fn sidecars_whose_exit_codes_do_not_count_come_last_under_a_name_of_their_own() {
    let mut bench = Bench::new("Never", &[ignored("proxy"), normal("log")]);
    bench.end("main", 0);
    bench.settle();
    assert_eq!(
        (bench.names(), bench.targets(FIRST)),
        (vec![FIRST], vec!["log".to_owned()])
    );
    assert_eq!(phase(&bench), "Running");
    bench.killed(FIRST);
    bench.pass(1000);
    bench.settle();
    assert_eq!(bench.names(), [FIRST], "log has not ended");
    bench.end("log", 0);
    bench.settle();
    assert_eq!(
        bench.written[1..],
        [
            "end-pod report".to_owned(),
            format!("end-request {FIRST}"),
            format!("request-termination {IGNORED}")
        ],
        "OpenKruise's agent never ends the first one"
    );
    assert_eq!(bench.targets(IGNORED), ["proxy"]);
    assert_eq!(
        (phase(&bench), bench.open()),
        (&json!("Succeeded"), vec![IGNORED.to_owned()])
    );
    assert_eq!(bench.events, [event("log", "crr"), event("proxy", "crr")]);
}

#[test]
fn a_first_request_of_openkruise_for_sidecars_that_do_not_count_is_waited_for() {
    let mut bench = Bench::new("Never", &[ignored("proxy"), normal("log")]);
    bench.end("main", 0);
    bench.end("log", 0);
    bench.settle();
    let request = bench.requests.remove(IGNORED).unwrap();
    bench.requests.insert(FIRST.to_owned(), {
        let mut request = request;
        request["metadata"]["name"] = json!(FIRST);
        request
    });
    let before = bench.written.len();
    bench.settle();
    assert_eq!((bench.written.len(), bench.names()), (before, vec![FIRST]));
}

#[test]
fn requests_of_others_for_the_same_pod_do_not_count() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 0);
    bench.settle();
    let mut other = bench.requests.remove(FIRST).unwrap();
    other["metadata"]["name"] = json!("restart-log");
    bench.requests.insert("restart-log".to_owned(), other);
    bench.settle();
    assert_eq!(bench.names(), ["restart-log", FIRST]);
}

#[test]
fn a_name_that_belongs_to_somebody_else_is_left_to_him() {
    let mut bench = Bench::new("Never", &[normal("log")]);
    bench.end("main", 0);
    bench.memory.taken_names.insert(FIRST.to_owned());
    bench.settle();
    assert_eq!(bench.names(), [SECOND]);
}
