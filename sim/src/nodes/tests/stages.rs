//! Stages that files add: crashes, probes, patches.

use std::time::Duration;

use serde_json::json;

use crate::world::tests::{PODS, Play, condition, is_ready, pod};

const CRASHES: &str = "
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: crash}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchAnnotations: {fault: crash}
    matchExpressions:
    - {key: '.status.containerStatuses[]? | select(.state.running) | .name', operator: In, values: [main]}
  delay: {durationMilliseconds: 2000}
  next:
    event: {type: Warning, reason: Crashed, message: on purpose}
    step: {kind: Crash, container: main, exitCode: 3}
";

#[test]
fn a_container_that_keeps_crashing_backs_off() {
    let mut play = Play::with_stages(CRASHES);
    play.node("n1");
    let mut crashing = pod("p");
    crashing["metadata"]["annotations"] = json!({"fault": "crash"});
    play.post(PODS, &crashing);
    play.pass(Duration::from_secs(6 + 2 + 2 + 1));
    let status = play.pod("p")["status"]["containerStatuses"][0].clone();
    assert_eq!(status["restartCount"], 1, "the first crash is free: {status}");
    assert_eq!(
        status["state"]["waiting"]["reason"], "CrashLoopBackOff",
        "{status}"
    );
    let message = status["state"]["waiting"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("back-off 10s restarting failed container=main pod=p_default("),
        "{message}"
    );
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(play.pod("p")["status"]["phase"], "Running");
    assert!(!is_ready(&play.pod("p")));
    play.merge(&format!("{PODS}/p"), &json!({"metadata": {"annotations": null}}));
    play.rest();
    assert!(is_ready(&play.pod("p")));
    assert_eq!(play.pod("p")["status"]["containerStatuses"][0]["restartCount"], 2);
    let events = play.get("/api/v1/namespaces/default/events").unwrap();
    let crashed = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["reason"] == "Crashed");
    assert_eq!(crashed.count(), 2);
}

const PROBES: &str = "
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: fail}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector: {matchLabels: {probe: fails}}
  next: {step: {kind: Readiness, container: main, passes: false}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pass}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector: {matchLabels: {probe: passes}}
  next: {step: {kind: Readiness, container: main, passes: true}}
";

#[test]
fn a_probe_that_fails_makes_the_pod_unready_until_it_passes() {
    let mut play = Play::with_stages(PROBES);
    play.node("n1");
    play.post(PODS, &pod("p"));
    play.rest();
    for (answer, ready) in [("fails", false), ("passes", true)] {
        play.merge(
            &format!("{PODS}/p"),
            &json!({"metadata": {"labels": {"probe": answer}}}),
        );
        play.rest();
        let pod = play.pod("p");
        assert_eq!(is_ready(&pod), ready, "{answer}");
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
    }
}

#[test]
fn stages_without_steps_patch_and_finalize_as_in_kwok() {
    let stages = "
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: mark}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.metadata.annotations.marked', operator: DoesNotExist}
  delay: {durationMilliseconds: 5000}
  next:
    finalizers: {add: [{value: x/hold}]}
    statusTemplate: |
      conditions: [{type: Marked, status: \"True\", message: {{ .metadata.name | Quote }}}]
    patches:
    - {root: metadata, type: merge, template: 'annotations: {marked: {{ Now | Quote }}}'}
";
    let mut play = Play::with_stages(stages);
    play.node("n1");
    play.post(PODS, &pod("p"));
    play.rest();
    let pod = play.pod("p");
    assert_eq!(pod["metadata"]["finalizers"], json!(["x/hold"]));
    assert_eq!(pod["metadata"]["annotations"]["marked"], "2026-01-01T00:00:11Z");
    assert_eq!(condition(&pod, "Marked").2, "p");
    assert!(is_ready(&pod), "conditions of others stay apart");
}

#[test]
fn one_of_several_stages_is_drawn_by_weight() {
    let stage = |name: &str, weight: u64| {
        format!(
            "
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {{name: {name}}}
spec:
  resourceRef: {{apiGroup: v1, kind: Pod}}
  weight: {weight}
  selector:
    matchExpressions: [{{key: .metadata.annotations.drawn, operator: DoesNotExist}}]
  next:
    patches: [{{root: metadata, template: 'annotations: {{drawn: {name}}}'}}]
"
        )
    };
    let mut play = Play::with_stages(&format!("{}---{}", stage("rare", 1), stage("often", 4)));
    play.node("n1");
    let mut rare = 0;
    for number in 0..100 {
        play.post(PODS, &pod(&format!("p{number}")));
    }
    play.rest();
    for number in 0..100 {
        let pod = play.pod(&format!("p{number}"));
        rare += usize::from(pod["metadata"]["annotations"]["drawn"] == "rare");
    }
    assert!((8..=35).contains(&rare), "{rare} of a hundred");
}
