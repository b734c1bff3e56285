//! The order in which containers start: what is planned for a pod and its barrier.

mod random;

use kruise_plan_kit::{Holder, Memory, Patch, Plan, Precondition, Step, Write};
use kruise_plan_workloads::launch::{Snapshot, barrier_of, concerns, plan, pod_of};
use kruise_views::{BarrierView, ContainerStatusView, ContainerView, Phase, PodView};
use serde_json::{Value, json};

const COMPLETED: &str = "apps.kruise.io/container-launch-priority-completed";

/// What a container is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Now {
    /// Nobody has said anything of it.
    Unknown,
    /// Its configuration is not there.
    Held,
    Running,
    Ready,
    /// Ended well.
    Ended,
}

fn status(name: &str, now: Now) -> ContainerStatusView {
    let has_run = matches!(now, Now::Running | Now::Ready | Now::Ended);
    ContainerStatusView {
        name: name.into(),
        container_id: if has_run { "cri://1".into() } else { "".into() },
        ready: now == Now::Ready,
        between_runs: matches!(now, Now::Held | Now::Ended),
        succeeded: now == Now::Ended,
        unconfigured: now == Now::Held,
        ..ContainerStatusView::default()
    }
}

/// Pod `web` with a container for each number.
fn pod(containers: &[(i64, Now)]) -> PodView {
    let name = |at: usize| format!("c{at}");
    let all = || containers.iter().enumerate();
    PodView {
        namespace: "shop".into(),
        name: "web".into(),
        uid: "pod-uid".into(),
        resource_version: "100".into(),
        restarts_always: true,
        containers: all()
            .map(|(at, (number, _))| ContainerView {
                name: name(at).into(),
                priority: Some(*number),
                ..ContainerView::default()
            })
            .collect(),
        statuses: all()
            .filter(|(_, (_, now))| *now != Now::Unknown)
            .map(|(at, (_, now))| status(&name(at), *now))
            .collect(),
        ..PodView::default()
    }
}

fn completed(pod: PodView) -> PodView {
    let text = format!(r#"{{"metadata":{{"annotations":{{"{COMPLETED}":"true"}}}}}}"#);
    let annotated: PodView = serde_json::from_str(&text).unwrap();
    PodView {
        annotations: annotated.annotations,
        ..pod
    }
}

fn barrier(owner: &str, keys: &[&str]) -> BarrierView {
    BarrierView {
        namespace: "shop".into(),
        name: "web-barrier".into(),
        uid: "barrier-uid".into(),
        resource_version: "90".into(),
        pods: Box::new([("web".into(), owner.into())]),
        keys: keys.iter().map(|key| (*key).into()).collect(),
    }
}

fn planned(pod: &PodView, barrier: Option<&BarrierView>, memory: &Memory) -> Plan {
    plan(Snapshot {
        pod,
        barrier,
        seen: None,
        memory,
    })
}

fn steps(plan: &Plan) -> Vec<&Step> {
    plan.writes.iter().flat_map(|object| &object.steps).collect()
}

/// Each write with the keys that it opens.
fn written(plan: &Plan) -> Vec<String> {
    let line = |step: &&Step| {
        let body = match &step.write {
            Write::Create { body, .. } => body.render(),
            Write::Patch { patch, .. } => patch.body(),
            Write::Delete { .. } => Value::Null,
        };
        let keys = body["data"].as_object().into_iter().flatten();
        let keys: Vec<&str> = keys.map(|(key, _)| key.as_str()).collect();
        format!("{} {}", step.write, keys.join(" ")).trim_end().to_owned()
    };
    steps(plan).iter().map(line).collect()
}

fn writes(pod: &PodView, barrier: Option<&BarrierView>) -> Vec<String> {
    written(&planned(pod, barrier, &Memory::default()))
}

#[test]
fn the_first_write_is_a_barrier_with_the_highest_key_owned_by_its_pod() {
    let pod = pod(&[(0, Now::Unknown), (10, Now::Unknown)]);
    let plan = planned(&pod, None, &Memory::default());
    assert_eq!(written(&plan), ["create-barrier configmaps/web-barrier p_10"]);
    let Write::Create { body, .. } = &steps(&plan)[0].write else {
        panic!("{plan:?}");
    };
    assert_eq!(
        body.render(),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "web-barrier",
                "namespace": "shop",
                "labels": {"apps.kruise.io/container-launch-barrier": "true"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "pod-uid"}],
            },
            "data": {"p_10": "true"},
        })
    );
}

#[test]
fn the_next_key_waits_until_all_above_are_ready_and_the_last_completes_the_pod() {
    let own = |keys: &[&str]| barrier("pod-uid", keys);
    let top = own(&["p_0"]);
    for above in [Now::Unknown, Now::Held, Now::Running, Now::Ended] {
        let pod = pod(&[(0, above), (-1, Now::Held), (-2, Now::Held)]);
        assert_eq!(writes(&pod, Some(&top)), [""; 0], "{above:?}");
    }
    let second = pod(&[(0, Now::Ready), (-1, Now::Held), (-2, Now::Held)]);
    assert_eq!(
        writes(&second, Some(&top)),
        ["open-barrier configmaps/web-barrier p_-1"]
    );
    let last = pod(&[(0, Now::Ready), (-1, Now::Ready), (-2, Now::Held)]);
    let two = own(&["p_0", "p_-1"]);
    let plan = planned(&last, Some(&two), &Memory::default());
    assert_eq!(
        written(&plan),
        [
            "open-barrier configmaps/web-barrier p_-2",
            "complete-launch pods/web"
        ]
    );
    assert_eq!(
        plan.writes.len(),
        1,
        "no pod is complete before its last key is there"
    );
    let Write::Patch {
        patch, precondition, ..
    } = &steps(&plan)[1].write
    else {
        panic!("{plan:?}");
    };
    assert_eq!(
        patch,
        &Patch::Merge(json!({"metadata": {"annotations": {COMPLETED: "true"}}}))
    );
    assert_eq!(precondition, &Precondition::Uid("pod-uid".into()));
    let all = own(&["p_0", "p_-1", "p_-2"]);
    assert_eq!(writes(&last, Some(&all)), ["complete-launch pods/web"]);
    assert_eq!(writes(&completed(last), Some(&all)), [""; 0]);
}

#[test]
fn containers_of_one_number_share_a_key_and_those_without_any_take_no_part() {
    let mut pod = pod(&[(5, Now::Held), (5, Now::Held)]);
    let both = [
        "create-barrier configmaps/web-barrier p_5",
        "complete-launch pods/web",
    ];
    assert_eq!(writes(&pod, None), both);
    pod.containers[1].priority = None;
    assert_eq!(writes(&pod, None), both);
    pod.containers[0].priority = None;
    assert!(!concerns(&pod));
    assert_eq!(writes(&pod, None), [""; 0]);
}

#[test]
fn a_container_that_ended_well_lets_the_next_start_unless_it_starts_again() {
    let top = barrier("pod-uid", &["p_1"]);
    let mut pod = pod(&[(1, Now::Ended), (0, Now::Held)]);
    assert_eq!(writes(&pod, Some(&top)), [""; 0]);
    pod.restarts_always = false;
    assert_eq!(
        writes(&pod, Some(&top)),
        [
            "open-barrier configmaps/web-barrier p_0",
            "complete-launch pods/web"
        ]
    );
}

#[test]
fn keys_stay_open_though_a_container_above_is_not_ready_any_more() {
    let pod = pod(&[(2, Now::Running), (1, Now::Ready), (0, Now::Held)]);
    assert_eq!(writes(&pod, Some(&barrier("pod-uid", &["p_2", "p_1"]))), [""; 0]);
    // Nor does a barrier that was deleted meanwhile hold a container that ran.
    assert_eq!(
        writes(&pod, None),
        ["create-barrier configmaps/web-barrier p_1 p_2"]
    );
}

#[test]
fn a_barrier_that_was_deleted_after_all_started_comes_back_when_a_container_waits_for_it() {
    let running = completed(pod(&[(1, Now::Ready), (0, Now::Running)]));
    assert!(!concerns(&running));
    assert_eq!(writes(&running, None), [""; 0]);
    let held = completed(pod(&[(1, Now::Ready), (0, Now::Held)]));
    assert_eq!(
        writes(&held, None),
        ["create-barrier configmaps/web-barrier p_0 p_1"]
    );
    // It waits for something else.
    assert_eq!(writes(&held, Some(&barrier("pod-uid", &["p_0", "p_1"]))), [""; 0]);
}

#[test]
fn a_barrier_of_an_earlier_pod_is_replaced_and_one_of_a_later_pod_is_waited_for() {
    let pod = pod(&[(1, Now::Unknown), (0, Now::Unknown)]);
    let mut other = barrier("another-uid", &["p_1", "p_0"]);
    let plan = planned(&pod, Some(&other), &Memory::default());
    assert_eq!(
        written(&plan),
        [
            "delete-barrier configmaps/web-barrier",
            "create-barrier configmaps/web-barrier p_1"
        ]
    );
    let Write::Delete { precondition, .. } = &steps(&plan)[0].write else {
        panic!("{plan:?}");
    };
    assert_eq!(precondition, &Precondition::Uid("barrier-uid".into()));
    other.resource_version = "101".into();
    assert_eq!(writes(&pod, Some(&other)), [""; 0]);
}

#[test]
fn a_barrier_of_another_pod_that_was_written_last_is_replaced_once_no_later_pod_can_be_missing() {
    let pod = pod(&[(1, Now::Unknown), (0, Now::Unknown)]);
    let mut other = barrier("another-uid", &["p_1", "p_0"]);
    other.resource_version = "101".into();
    let memory = Memory::default();
    let planned = |seen| {
        plan(Snapshot {
            pod: &pod,
            barrier: Some(&other),
            seen,
            memory: &memory,
        })
    };
    for before in [None, Some(100)] {
        let plan = planned(before);
        assert_eq!(written(&plan), [""; 0], "{before:?}");
        assert!(plan.requeue.is_some(), "nothing else would bring it back");
    }
    assert_eq!(
        written(&planned(Some(101))),
        [
            "delete-barrier configmaps/web-barrier",
            "create-barrier configmaps/web-barrier p_1"
        ]
    );
}

#[test]
fn what_openkruise_made_for_the_pod_is_taken_over_and_what_is_not_the_pods_is_left_alone() {
    let pod = pod(&[(1, Now::Ready), (0, Now::Held)]);
    let found = |owner: &str| Memory {
        holders: [(
            "web-barrier".to_owned(),
            Holder {
                uid: "found".into(),
                owners: vec![owner.into()],
            },
        )]
        .into(),
        ..Memory::default()
    };
    let taken = planned(&pod, None, &found("pod-uid"));
    assert_eq!(
        written(&taken),
        [
            "open-barrier configmaps/web-barrier p_0 p_1",
            "complete-launch pods/web"
        ]
    );
    assert!(taken.events.is_empty() && taken.requeue.is_some());
    let Write::Patch {
        patch, precondition, ..
    } = &steps(&taken)[0].write
    else {
        panic!("{taken:?}");
    };
    assert_eq!(precondition, &Precondition::Uid("found".into()));
    assert_eq!(
        patch.body()["metadata"],
        json!({"labels": {"apps.kruise.io/container-launch-barrier": "true"}})
    );
    let left = planned(&pod, None, &found("another-uid"));
    assert_eq!(written(&left)[0], "create-barrier configmaps/web-barrier p_0 p_1");
    assert_eq!(left.events[0].reason, "FailedLaunch");
}

#[test]
fn a_barrier_that_cannot_be_created_is_told_of() {
    let memory = Memory {
        scale_error: Some("exceeded quota".into()),
        ..Memory::default()
    };
    let plan = planned(&pod(&[(1, Now::Unknown)]), None, &memory);
    assert!(plan.events[0].message.ends_with("exceeded quota"), "{plan:?}");
}

#[test]
fn pods_on_their_way_out_and_pods_that_ended_are_left_alone() {
    let pod = pod(&[(1, Now::Held), (0, Now::Held)]);
    for phase in [Phase::Succeeded, Phase::Failed] {
        assert_eq!(writes(&PodView { phase, ..pod.clone() }, None), [""; 0]);
    }
    assert_eq!(
        writes(
            &PodView {
                deleting: true,
                ..pod
            },
            None
        ),
        [""; 0]
    );
}

#[test]
fn a_barrier_has_the_name_of_its_pod() {
    assert_eq!(pod_of(&barrier_of("web-barrier-1")), Some("web-barrier-1"));
    assert_eq!(pod_of("settings"), None);
}
