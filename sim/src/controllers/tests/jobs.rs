//! Jobs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{play, pods};
use crate::wire::{Method, Request};
use crate::world::tests::Play;

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn job(name: &str, command: &Value, more: &Value) -> Value {
    let mut spec = json!({"template": {"metadata": {"labels": {"app": "report"}}, "spec": {"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "web:1", "command": command}]}}});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

/// Active, succeeded and failed pods, and the conditions that hold with their reasons.
fn state(play: &mut Play, name: &str) -> ([i64; 3], Vec<String>) {
    let job = play.get(&format!("{JOBS}/{name}")).unwrap();
    let counts = ["active", "succeeded", "failed"].map(|name| job["status"][name].as_i64().unwrap_or(0));
    let conditions = job["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let conditions = conditions.iter().map(|one| {
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        format!("{} {}", text("type"), text("reason"))
    });
    (counts, conditions.collect())
}

fn ended(kind: &str, reason: &str) -> Vec<String> {
    let before = if kind == "Complete" {
        "SuccessCriteriaMet"
    } else {
        "FailureTarget"
    };
    [before, kind].map(|kind| format!("{kind} {reason}")).into()
}

#[test]
fn a_job_has_the_labels_of_its_template_and_selects_its_pods_by_its_uid() {
    let mut play = play();
    let created = play.post(JOBS, &job("report", &json!(["true"]), &json!({})));
    assert_eq!(created["metadata"]["labels"], json!({"app": "report"}));
    let uid = &created["metadata"]["uid"];
    let spec = &created["spec"];
    assert_eq!(
        spec["selector"]["matchLabels"],
        json!({"batch.kubernetes.io/controller-uid": uid})
    );
    let labels = json!({"app": "report", "controller-uid": uid, "job-name": "report",
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "report"});
    assert_eq!(spec["template"]["metadata"]["labels"], labels);
    let defaults = ["parallelism", "completions", "backoffLimit", "suspend"].map(|name| spec[name].clone());
    assert_eq!(json!(defaults), json!([1, 1, 6, false]));
    play.pass(Duration::from_secs(2));
    let pod = &pods(&mut play)[0];
    assert_eq!(pod["metadata"]["labels"], labels);
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], *uid);
}

#[test]
fn pods_run_to_their_end_a_few_side_by_side_until_enough_have_succeeded() {
    let mut play = play();
    let more = json!({"completions": 5, "parallelism": 2});
    play.post(JOBS, &job("report", &json!(["sleep", "10"]), &more));
    let mut most = 0;
    for _ in 0..60 {
        play.pass(Duration::from_secs(1));
        most = most.max(state(&mut play, "report").0[0]);
    }
    assert_eq!(most, 2, "side by side");
    assert_eq!(
        state(&mut play, "report"),
        ([0, 5, 0], ended("Complete", "CompletionsReached"))
    );
    let phases: Vec<Value> = pods(&mut play)
        .iter()
        .map(|pod| pod["status"]["phase"].clone())
        .collect();
    assert_eq!(phases, ["Succeeded"; 5], "they stay");
    play.delete(&format!("{JOBS}/report"));
    play.rest();
    assert_eq!(pods(&mut play).len(), 0, "and go with their job");
}

#[test]
fn failed_pods_are_followed_by_others_at_growing_intervals_up_to_the_limit() {
    let mut play = play();
    play.post(
        JOBS,
        &job(
            "report",
            &json!(["sh", "-c", "exit 3"]),
            &json!({"backoffLimit": 2}),
        ),
    );
    play.pass(Duration::from_secs(9));
    assert_eq!(state(&mut play, "report"), ([0, 0, 1], Vec::new()), "it pauses");
    play.rest();
    assert_eq!(
        state(&mut play, "report"),
        ([0, 0, 3], ended("Failed", "BackoffLimitExceeded"))
    );
    let mut made: Vec<i64> = pods(&mut play)
        .iter()
        .map(|pod| {
            let time = pod["metadata"]["creationTimestamp"].as_str().unwrap();
            time.parse::<jiff::Timestamp>().unwrap().as_second()
        })
        .collect();
    made.sort_unstable();
    let gaps: Vec<i64> = made.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] >= 10 && gaps[1] >= 20 && gaps[1] < 40, "{gaps:?}");
}

#[test]
fn containers_that_begin_again_count_for_the_limit() {
    let mut play = play();
    let mut flaky = job("report", &json!(["false"]), &json!({"backoffLimit": 2}));
    flaky["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    play.post(JOBS, &flaky);
    play.rest();
    assert_eq!(
        state(&mut play, "report").1,
        ended("Failed", "BackoffLimitExceeded")
    );
    assert_eq!(pods(&mut play).len(), 0, "its pod is deleted");
}

#[test]
fn a_deadline_ends_a_job_and_its_pods() {
    let mut play = play();
    let more = json!({"activeDeadlineSeconds": 30});
    play.post(JOBS, &job("report", &json!(["sleep", "infinity"]), &more));
    play.pass(Duration::from_secs(29));
    assert_eq!(state(&mut play, "report"), ([1, 0, 0], Vec::new()));
    play.rest();
    let (counts, conditions) = state(&mut play, "report");
    assert_eq!((counts[0], conditions), (0, ended("Failed", "DeadlineExceeded")));
    assert_eq!(pods(&mut play).len(), 0);
}

#[test]
fn a_suspended_job_has_no_pods_and_goes_on_later() {
    let mut play = play();
    play.post(
        JOBS,
        &job("report", &json!(["sleep", "60"]), &json!({"suspend": true})),
    );
    play.rest();
    assert_eq!((pods(&mut play).len(), state(&mut play, "report").0), (0, [0; 3]));
    let suspend = |on: bool| json!({"spec": {"suspend": on}});
    play.merge(&format!("{JOBS}/report"), &suspend(false));
    play.pass(Duration::from_secs(20));
    assert_eq!(state(&mut play, "report").0, [1, 0, 0]);
    play.merge(&format!("{JOBS}/report"), &suspend(true));
    play.rest();
    assert_eq!(pods(&mut play).len(), 0);
    play.merge(&format!("{JOBS}/report"), &suspend(false));
    play.rest();
    assert_eq!(
        state(&mut play, "report").1,
        ended("Complete", "CompletionsReached")
    );
}

#[test]
fn a_job_is_deleted_with_its_pods_when_its_time_to_live_is_over() {
    let mut play = play();
    let more = json!({"ttlSecondsAfterFinished": 100});
    play.post(JOBS, &job("report", &json!(["true"]), &more));
    play.pass(Duration::from_mins(1));
    assert_eq!(
        state(&mut play, "report").1,
        ended("Complete", "CompletionsReached")
    );
    play.rest();
    assert!(play.get(&format!("{JOBS}/report")).is_none());
    assert_eq!(pods(&mut play).len(), 0);
}

#[test]
fn a_pod_that_has_succeeded_counts_though_it_is_deleted() {
    let mut play = play();
    let more = json!({"completions": 2});
    play.post(JOBS, &job("report", &json!(["sleep", "20"]), &more));
    play.pass(Duration::from_secs(30));
    let first = pods(&mut play)
        .into_iter()
        .find(|pod| pod["status"]["phase"] == "Succeeded")
        .unwrap();
    let name = first["metadata"]["name"].as_str().unwrap();
    play.delete(&format!("{}/{name}", crate::world::tests::PODS));
    play.rest();
    assert_eq!(state(&mut play, "report").0, [0, 2, 0]);
}

#[test]
fn what_cannot_run_to_its_end_is_refused_and_the_template_stays() {
    let mut play = play();
    let mut refused = |object: &Value| {
        let answer = play.0.handle(&Request::new(Method::Post, JOBS, Some(object)));
        format!("{answer:?}")
    };
    let mut always = job("always", &json!(["true"]), &json!({}));
    always["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert!(refused(&always).contains("422"), "restart policy");
    let negative = job("negative", &json!(["true"]), &json!({"parallelism": -1}));
    assert!(refused(&negative).contains("422"), "negative number");
    play.post(JOBS, &job("report", &json!(["true"]), &json!({"suspend": true})));
    let change = json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}});
    let patch = Request::new(Method::Patch, &format!("{JOBS}/report"), Some(&change))
        .content_type("application/merge-patch+json");
    let answer = format!("{:?}", play.0.handle(&patch));
    assert!(answer.contains("422"), "{answer}");
}
