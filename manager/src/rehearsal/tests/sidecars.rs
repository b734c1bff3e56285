//! Upgrades of sidecars, and pods that no object of ours owns.

use super::{super::acts::Verdict, *};

fn of_logs() -> Owner {
    Owner {
        controller: "sidecarset-controller",
        key: ObjectKey::new("", "logs"),
    }
}

/// A pod in a namespace with the sidecars of these sets, and the records of `logs`.
fn injected(namespace: &str, sets: &str, image: &str, hash: &str) -> Value {
    let hash = json!({"logs": {"hash": hash}, "mesh": {"hash": "0"}}).to_string();
    let annotations = json!({"kruise.io/sidecarset-injected-list": sets, "kruise.io/sidecarset-hash": hash});
    let pod = with(pod("web-a", "1", image), "/metadata/annotations", annotations);
    with(pod, "/metadata/namespace", namespace.into())
}

#[test]
fn an_upgrade_of_sidecars_tells_who_made_it() {
    let old = injected("shop", "logs,mesh", "log:1", "1");
    let of = |new: &Value| act(Some(&old), new).unwrap();
    let upgraded = of(&injected("shop", "logs,mesh", "log:2", "2"));
    assert_eq!(
        (upgraded.injector.as_deref(), upgraded.is_of_sidecars),
        (Some("logs"), true)
    );
    let by_hand = of(&injected("shop", "logs,mesh", "log:2", "1"));
    assert_eq!((by_hand.injector, by_hand.is_of_sidecars), (None, true));
    let labelled = with(
        injected("shop", "logs,mesh", "log:2", "2"),
        "/metadata/labels",
        json!({REVISION_HASH: "2"}),
    );
    assert_eq!(of(&labelled).injector, None, "a revision is not of sidecars");
    let mesh = json!({"logs": {"hash": "2"}, "mesh": {"hash": "2"}}).to_string();
    let both = with(
        injected("shop", "logs,mesh", "log:2", "2"),
        "/metadata/annotations/kruise.io~1sidecarset-hash",
        mesh.into(),
    );
    assert_eq!(of(&both).injector, None);
}

#[test]
fn what_plans_want_for_this_very_pod_of_others_agrees_once_and_is_of_their_kind() {
    let [old, new] =
        [("log:1", "1"), ("log:2", "2")].map(|(image, hash)| injected("shop", "logs", image, hash));
    let upgrade = wanted(&[&old], vec![updates("web-a", "1", "log:2")]);
    let mut scene = Scene::new();
    scene
        .matcher
        .planned(&of_logs(), "SidecarSet", &upgrade, Duration::ZERO);
    let mut verdict = |new: &Value| {
        let seen = act(Some(&old), new).unwrap();
        scene.matcher.seen_elsewhere("Pod", &seen, Duration::ZERO)
    };
    let elsewhere = injected("other", "logs", "log:2", "2");
    assert_eq!(
        verdict(&elsewhere),
        Some(Verdict::NotCompared),
        "a pod of the same name"
    );
    assert_eq!(verdict(&new), Some(Verdict::Agrees));
    assert_eq!(verdict(&new), Some(Verdict::NotCompared), "it is used up");
    assert_eq!(verdict(&deleting(old.clone())), None, "others delete their pods");
    let report = scene.report();
    let (sets, pods) = (&report.kinds["SidecarSet"], &report.kinds["Pod"]);
    assert_eq!((sets.updated, sets.not_compared, pods.not_compared), (1, 0, 2));
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn equal_names_in_two_namespaces_are_two_pods() {
    let old = ["shop", "other"].map(|namespace| injected(namespace, "logs", "log:1", "1"));
    let upgrade = wanted(&[&old[0]], vec![updates("web-a", "1", "log:2")]);
    let mut scene = Scene::new();
    scene
        .matcher
        .planned(&of_logs(), "SidecarSet", &upgrade, Duration::ZERO);
    let unready = with(
        injected("other", "logs", "log:1", "1"),
        "/status/conditions",
        json!([]),
    );
    let seen = act(Some(&unready), &injected("other", "logs", "log:2", "2")).unwrap();
    assert!(!scene.matcher.is_wanted(&of_logs(), &seen, Duration::ZERO));
    let seen = act(Some(&old[0]), &injected("shop", "logs", "log:2", "2")).unwrap();
    assert!(scene.matcher.is_wanted(&of_logs(), &seen, Duration::ZERO));
}

#[test]
fn a_slow_upgrade_of_sidecars_does_not_stand_while_pods_of_others_are_upgraded() {
    let [old, new] =
        [("log:1", "1"), ("log:2", "2")].map(|(image, hash)| injected("shop", "logs", image, hash));
    let waits = wanted(
        &[&old],
        vec![updates("web-a", "1", "log:2"), updates("web-z", "1", "log:2")],
    );
    let mut scene = Scene::new();
    for second in [0, 20] {
        scene.second = second;
        scene
            .matcher
            .planned(&of_logs(), "SidecarSet", &waits, scene.now());
    }
    let seen = act(Some(&old), &new).unwrap();
    let verdict = scene.matcher.seen_elsewhere("Pod", &seen, scene.now());
    assert_eq!(verdict, Some(Verdict::Agrees));
    scene.second = 40;
    scene
        .matcher
        .planned(&of_logs(), "SidecarSet", &waits, scene.now());
    assert_eq!(scene.differences(), [""; 0]);
    scene.second = 60;
    scene
        .matcher
        .planned(&of_logs(), "SidecarSet", &waits, scene.now());
    assert_eq!(scene.differences().len(), 2, "nothing is done for long");
}
