use kruise_views::{ContainerStatusView, PodView};
use serde_json::json;

use super::{
    INPLACE_STATE, Patches, Resize, RevisionLabels, STALE, STATE, UpdateLabel, UpdateSpec, VerticalScaling,
};
use crate::inplace::{
    Change,
    fixture::{self, now},
};

fn pod() -> PodView {
    PodView {
        statuses: Box::new([ContainerStatusView {
            name: "main".into(),
            image_id: "id1".into(),
            ..ContainerStatusView::default()
        }]),
        annotations: [("inplace-update-state", "{}")].into_iter().collect(),
        ..fixture::pod()
    }
}

const REVISION: RevisionLabels<'static> = RevisionLabels {
    name: "web-abc",
    label: "web-abc",
    hash: Some("abc"),
};

fn start(change: Change) -> Patches {
    UpdateSpec::new(
        change,
        REVISION,
        UpdateLabel::Updating,
        0,
        VerticalScaling::Endpoint,
        now(),
    )
    .patches_of(&pod())
}

#[test]
fn pointers_name_the_annotations() {
    for (key, pointer) in STALE.into_iter().chain([(INPLACE_STATE, STATE)]) {
        assert_eq!(
            pointer,
            format!("/metadata/annotations/{}", key.replace('/', "~1"))
        );
    }
}

#[test]
fn an_image_change_first_takes_the_pod_out_of_service() {
    let change = Change {
        images: [("main".into(), "web:2".into())].into(),
        metadata: json!({}),
        ..Change::default()
    };
    let patches = start(change);
    let conditions = &patches.unready.unwrap().render()["status"]["conditions"];
    assert_eq!(conditions[0]["reason"], "StartInPlaceUpdate");
    assert_eq!(conditions[1]["type"], "Ready");
    assert_eq!(
        conditions[1]["message"],
        "the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False"
    );
    let update = patches.update.render();
    assert_eq!(
        update["spec"],
        json!({"containers": [{"name": "main", "image": "web:2"}]})
    );
    assert_eq!(
        update["metadata"]["labels"]["lifecycle.apps.kruise.io/state"],
        "Updating"
    );
    assert_eq!(
        update["metadata"]["labels"]["controller-revision-hash"],
        "web-abc"
    );
    assert!(update["metadata"]["annotations"]["inplace-update-state"].is_null());
    assert_eq!(
        update["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"],
        r#"{"revision":"web-abc","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":{"main":{"imageID":"id1"}},"updateImages":true,"containerBatchesRecord":[{"timestamp":"2026-01-02T03:04:05Z","containers":["main"]}]}"#
    );
}

#[test]
fn a_pure_metadata_change_never_takes_the_pod_out_of_service() {
    let change = Change {
        metadata: json!({"annotations": {"a": null, "b": "2"}}),
        ..Change::default()
    };
    let patches = start(change);
    assert_eq!(patches.unready, None);
    let update = patches.update.render();
    assert!(update.get("spec").is_none());
    assert_eq!(update["metadata"]["annotations"]["b"], "2");
}

fn image() -> Change {
    Change {
        images: [("main".into(), "web:2".into())].into(),
        metadata: json!({"labels": {"tier": null}}),
        ..Change::default()
    }
}

fn graced(change: Change, pod: &PodView) -> Patches {
    UpdateSpec::new(
        change,
        REVISION,
        UpdateLabel::Updating,
        10,
        VerticalScaling::Endpoint,
        now(),
    )
    .patches_of(pod)
}

#[test]
fn a_grace_period_holds_back_everything_but_readiness_and_the_revision() {
    let patches = graced(image(), &pod());
    assert!(patches.unready.is_some());
    let update = patches.update.render();
    assert!(update.get("spec").is_none() && update["metadata"]["labels"].get("tier").is_none());
    assert_eq!(
        update["metadata"]["labels"]["controller-revision-hash"],
        "web-abc"
    );
    let annotations = &update["metadata"]["annotations"];
    assert_eq!(
        annotations["apps.kruise.io/inplace-update-grace"],
        r#"{"revision":"web-abc","containerImages":{"main":"web:2"},"metaDataPatch":"eyJsYWJlbHMiOnsidGllciI6bnVsbH19","graceSeconds":10}"#
    );
    assert_eq!(
        annotations["apps.kruise.io/inplace-update-state"],
        r#"{"revision":"web-abc","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":null,"updateImages":true}"#
    );
}

#[test]
fn a_change_that_restarts_nothing_needs_no_grace() {
    let change = Change {
        metadata: json!({"annotations": {"a": "1"}}),
        ..Change::default()
    };
    let patches = graced(change, &pod());
    assert_eq!(patches.unready, None);
    assert_eq!(patches.update.render()["metadata"]["annotations"]["a"], "1");
}

/// In its grace period on the way from `web:1` to `web:2`, begun a minute ago.
fn waiting() -> PodView {
    let state = r#"{"revision":"web-old","updateTimestamp":"2026-01-02T03:03:05Z","lastContainerStatuses":null,"updateImages":true}"#;
    let grace = r#"{"revision":"web-old","containerImages":{"main":"web:2"},"metaDataPatch":"eyJsYWJlbHMiOnsidGllciI6bnVsbH19","graceSeconds":600}"#;
    let mut pod = pod();
    pod.annotations = [
        (INPLACE_STATE, state),
        ("apps.kruise.io/inplace-update-grace", grace),
    ]
    .into_iter()
    .collect();
    pod.labels = [
        ("controller-revision-hash", "web-old"),
        ("lifecycle.apps.kruise.io/state", "Updating"),
    ]
    .into_iter()
    .collect();
    pod.containers = Box::new([kruise_views::ContainerView {
        name: "main".into(),
        image: "web:1".into(),
        ..kruise_views::ContainerView::default()
    }]);
    pod
}

#[test]
fn a_rollback_inside_the_grace_period_changes_no_image() {
    let back = Change {
        images: [("main".into(), "web:1".into())].into(),
        metadata: json!({"labels": {"tier": "a"}}),
        ..Change::default()
    };
    let patches = graced(back, &waiting());
    assert_eq!(patches.unready, None);
    let update = patches.update.render();
    assert!(update.get("spec").is_none());
    assert_eq!(update["metadata"]["labels"]["tier"], "a");
    assert!(update["metadata"]["annotations"]["apps.kruise.io/inplace-update-grace"].is_null());
    let state = update["metadata"]["annotations"][INPLACE_STATE].as_str().unwrap();
    assert!(!state.contains("updateImages"), "{state}");
}

#[test]
fn a_third_revision_inside_the_grace_period_takes_over_what_waits_and_not_its_time() {
    let log = Change {
        images: [("log".into(), "log:3".into())].into(),
        metadata: json!({}),
        ..Change::default()
    };
    let update = graced(log, &waiting()).update.render();
    let annotations = &update["metadata"]["annotations"];
    assert_eq!(
        annotations["apps.kruise.io/inplace-update-grace"],
        r#"{"revision":"web-abc","containerImages":{"log":"log:3","main":"web:2"},"metaDataPatch":"eyJsYWJlbHMiOnsidGllciI6bnVsbH19","graceSeconds":10}"#
    );
    let state = annotations[INPLACE_STATE].as_str().unwrap();
    assert!(state.contains("2026-01-02T03:03:05Z"), "{state}");
}

#[test]
fn a_grace_period_for_another_revision_passes_on_neither_its_change_nor_its_time() {
    let mut stale = waiting();
    stale.labels = [("controller-revision-hash", "web-other")].into_iter().collect();
    let log = Change {
        images: [("log".into(), "log:3".into())].into(),
        metadata: json!({}),
        ..Change::default()
    };
    let update = graced(log, &stale).update.render();
    let annotations = &update["metadata"]["annotations"];
    assert_eq!(
        annotations["apps.kruise.io/inplace-update-grace"],
        r#"{"revision":"web-abc","containerImages":{"log":"log:3"},"graceSeconds":10}"#
    );
    let state = annotations[INPLACE_STATE].as_str().unwrap();
    assert!(state.contains("2026-01-02T03:04:05Z"), "{state}");
}

#[test]
fn a_new_update_makes_the_batches_that_an_earlier_one_left() {
    let mut batched = waiting();
    let state = r#"{"revision":"web-old","updateTimestamp":null,"lastContainerStatuses":null,"nextContainerImages":{"log":"log:2"}}"#;
    batched.annotations = [(INPLACE_STATE, state)].into_iter().collect();
    let spec = UpdateSpec::new(
        image(),
        REVISION,
        UpdateLabel::Updating,
        0,
        VerticalScaling::Endpoint,
        now(),
    );
    let update = spec.patches_of(&batched).update.render();
    assert_eq!(
        update["spec"]["containers"],
        json!([{"name": "log", "image": "log:2"}, {"name": "main", "image": "web:2"}])
    );
}
fn more_cpu(restarts: bool) -> Change {
    let amounts = json!({"limits": {"cpu": "2"}});
    Change {
        resources: [("main".into(), Resize { amounts, restarts })].into(),
        metadata: json!({}),
        ..Change::default()
    }
}

#[test]
fn resources_have_a_patch_of_their_own_and_a_pod_that_nothing_restarts_stays_in_service() {
    let patches = start(more_cpu(false));
    assert_eq!(patches.unready, None);
    let asked = json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}});
    assert_eq!(patches.resize.unwrap().render(), asked);
    let update = patches.update.render();
    assert!(update.get("spec").is_none());
    assert_eq!(
        update["metadata"]["annotations"][INPLACE_STATE],
        r#"{"revision":"web-abc","updateTimestamp":"2026-01-02T03:04:05Z","lastContainerStatuses":null,"updateResources":true,"containerBatchesRecord":[{"timestamp":"2026-01-02T03:04:05Z","containers":["main"]}]}"#
    );
    assert!(start(more_cpu(true)).unready.is_some());
}

#[test]
fn resources_that_the_template_did_not_change_are_left_to_who_resized_them() {
    let template = |image: &str, cpu: &str| {
        let of = |cpu: &str| json!({"limits": {"cpu": cpu, "memory": "1Gi"}});
        json!({"spec": {"containers": [{"name": "main", "image": image, "resources": of(cpu)},
                                       {"name": "log", "image": "log:1", "resources": of("1")}]}})
    };
    let container = |name: &str| kruise_views::ContainerView {
        name: name.into(),
        resources: Some(Box::new(kruise_views::AmountsView {
            cpu_limit: Some(3_000),
            memory_limit: Some(5),
            ..kruise_views::AmountsView::default()
        })),
        ..kruise_views::ContainerView::default()
    };
    // An autoscaler gave both containers other amounts.
    let resized = PodView {
        containers: Box::new([container("main"), container("log")]),
        ..pod()
    };
    for (cpu, asked) in [
        ("1", None),
        (
            "2",
            Some(json!([{"name": "main", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}])),
        ),
    ] {
        let scaling = VerticalScaling::Endpoint;
        let change = crate::inplace::diff(&template("web:1", "1"), &template("web:2", cpu), scaling);
        let spec = UpdateSpec::new(
            change.unwrap(),
            REVISION,
            UpdateLabel::Updating,
            0,
            scaling,
            now(),
        );
        let patches = spec.patches_of(&resized);
        let resize = patches
            .resize
            .map(|resize| resize.render()["spec"]["containers"].clone());
        assert_eq!(resize, asked, "{cpu}");
        assert_eq!(
            patches.update.render()["spec"],
            json!({"containers": [{"name": "main", "image": "web:2"}]})
        );
    }
}

#[test]
fn an_older_server_gets_image_and_resources_in_one_patch() {
    let change = Change {
        images: image().images,
        ..more_cpu(false)
    };
    let old = VerticalScaling::Specification;
    let patches = UpdateSpec::new(change, REVISION, UpdateLabel::Updating, 0, old, now()).patches_of(&pod());
    assert_eq!(patches.resize, None);
    assert_eq!(
        patches.update.render()["spec"]["containers"],
        json!([{"name": "main", "image": "web:2", "resources": {"limits": {"cpu": "2"}}}])
    );
}

#[test]
fn a_restarting_resize_waits_for_its_grace_period_and_another_one_does_not() {
    let patches = graced(more_cpu(true), &pod());
    assert_eq!(patches.resize, None);
    assert_eq!(
        patches.update.render()["metadata"]["annotations"]["apps.kruise.io/inplace-update-grace"],
        r#"{"revision":"web-abc","containerResources":{"main":{"limits":{"cpu":"2"}}},"graceSeconds":10}"#
    );
    assert!(graced(more_cpu(false), &pod()).resize.is_some());
}

#[test]
fn an_attempt_that_broke_off_after_the_resize_goes_on_without_it() {
    let mut resized = pod();
    let asked = kruise_views::AmountsView {
        cpu_limit: Some(2000),
        ..kruise_views::AmountsView::default()
    };
    resized.containers = Box::new([kruise_views::ContainerView {
        name: "main".into(),
        resources: Some(Box::new(asked)),
        ..kruise_views::ContainerView::default()
    }]);
    let spec = UpdateSpec::new(
        more_cpu(false),
        REVISION,
        UpdateLabel::Updating,
        0,
        VerticalScaling::Endpoint,
        now(),
    );
    // In the middle of another update, too, as long as the node has not given it.
    let batches = r#"{"revision":"web-old","nextContainerImages":{"log":"log:2"}}"#;
    let between = PodView {
        annotations: [(INPLACE_STATE, batches)].into_iter().collect(),
        ..resized.clone()
    };
    for pod in [resized, between] {
        let patches = spec.patches_of(&pod);
        assert_eq!(patches.resize, None);
        let state = patches.update.render()["metadata"]["annotations"][INPLACE_STATE].to_string();
        assert!(state.contains("updateResources"), "{state}");
    }
}
