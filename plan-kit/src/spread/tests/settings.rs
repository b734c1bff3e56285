//! Versions, limits, filters, kinds and replicas.

use kruise_views::Labels;
use serde_json::{Value, json};

use super::{of_target, spread};
use crate::spread::{
    IGNORED, fits_all, has_percentages, is_counted, is_known, limits, listed, matched, replicas, selects,
    version,
};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn only_pods_of_deployments_and_replicasets_have_versions() {
    let template = labels(&[
        ("pod-template-hash", "5f"),
        ("controller-revision-hash", "web-6a"),
    ]);
    let revision = labels(&[("controller-revision-hash", "web-6a")]);
    let plain = labels(&[("controller-revision-hash", "6a")]);
    let empty = labels(&[("pod-template-hash", "")]);
    for kind in ["ReplicaSet", "replicaset", "Deployment"] {
        assert_eq!(version(&template, kind), "5f");
        assert_eq!(version(&revision, kind), "6a");
        assert_eq!(version(&plain, kind), "6a");
        assert_eq!(version(&empty, kind), IGNORED);
        assert_eq!(version(&labels(&[]), kind), IGNORED);
    }
    for kind in ["CloneSet", "StatefulSet", "Job", ""] {
        assert_eq!(version(&template, kind), IGNORED);
    }
}

#[test]
fn limits_are_numbers_or_rounded_up_percentages() {
    let of = |limit: Value, replicas| limits(&spread(&[("a", limit), ("b", Value::Null)]).spec, replicas);
    assert_eq!(of(json!(3), None), Ok(vec![Some(3), None]));
    assert_eq!(of(json!("25%"), Some(10)), Ok(vec![Some(3), None]));
    assert_eq!(of(json!("100%"), Some(-1)), Ok(vec![Some(0), None]));
    assert_eq!(of(json!("100%"), None), Ok(vec![Some(0), None]));
    assert_eq!(of(json!(-1), None), Ok(vec![Some(0), None]));
    for bad in ["30", "x%", ""] {
        let why = of(json!(bad), Some(10)).unwrap_err();
        assert!(why.contains("subset a"), "{why}");
    }
    assert!(has_percentages(&spread(&[("a", json!("30%"))]).spec));
    assert!(!has_percentages(
        &spread(&[("a", json!(3)), ("b", Value::Null)]).spec
    ));
}

#[test]
fn limits_fit_all_replicas_if_their_sum_is_not_less_or_one_has_none() {
    let fits = |subsets: &[(&str, Value)], replicas| fits_all(&spread(subsets).spec, replicas);
    let both = [("a", json!(2)), ("b", json!(2))];
    assert!(fits(&both, Some(4)));
    assert!(!fits(&both, Some(5)));
    assert!(fits(&both, None));
    assert!(fits(&[("a", json!(2)), ("b", Value::Null)], Some(5)));
    assert!(!fits(&[("a", json!("2"))], Some(1)));
    let most = json!(i32::MAX);
    assert!(fits(&[("a", most.clone()), ("b", most)], Some(i32::MAX)));
}

#[test]
fn what_cannot_be_wrong_is_not_counted() {
    let counted = |subsets: &[(&str, Value)]| is_counted(&spread(subsets).spec);
    assert!(!counted(&[("a", Value::Null)]));
    assert!(counted(&[("a", json!(1))]));
    assert!(counted(&[("a", Value::Null), ("b", Value::Null)]));
    let subsets = json!({"subsets": [{"name": "a", "maxReplicas": 1}]});
    assert!(!is_counted(&of_target("apps/v1", "StatefulSet", &subsets).spec));
}

#[test]
fn a_filter_without_a_selector_takes_every_pod() {
    let spec = |filter: Value| {
        let mut spec = json!({"subsets": [{"name": "a"}]});
        spec["targetFilter"] = filter;
        of_target("example.com/v1", "TFJob", &spec).spec
    };
    let worker = labels(&[("role", "worker")]);
    let filter = json!({"selector": {"matchLabels": {"role": "worker"}}});
    assert!(selects(&spec(filter.clone()), &worker));
    assert!(!selects(&spec(filter), &labels(&[("role", "chief")])));
    for all in [
        Value::Null,
        json!({}),
        json!({"replicasPathList": ["spec.replicas"]}),
    ] {
        assert!(selects(&spec(all), &worker));
    }
}

#[test]
fn the_annotation_of_a_pod_says_its_subset() {
    let found = matched(&labels(&[(
        "apps.kruise.io/matched-workloadspread",
        r#"{"name":"web","subset":"a","uid":"u"}"#,
    )]));
    assert_eq!(found, Some(super::matched("a", "u")));
    assert_eq!(matched(&labels(&[])), None);
}

#[test]
fn known_are_common_kinds_and_those_that_administrators_list_with_what_they_own() {
    let text = r#"{"workloads":[{"Group":"example.com","version":"v1","Kind":"Game","ReplicasPath":"spec.size",
        "subResources":[{"group":"example.com","Version":"v1","Kind":"Match"}]},{"Kind":"Pool"}]}"#;
    let kinds = listed(text).unwrap();
    for (group, kind) in [
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps.kruise.io", "StatefulSet"),
        ("batch", "Job"),
        ("example.com", "Game"),
        ("example.com", "Match"),
        ("", "Pool"),
    ] {
        assert!(is_known(group, kind, &kinds), "{group} {kind}");
    }
    for (group, kind) in [
        ("batch", "Deployment"),
        ("apps", "DaemonSet"),
        ("example.org", "Game"),
    ] {
        assert!(!is_known(group, kind, &kinds), "{group} {kind}");
    }
    for none in ["", "{}", r#"{"workloads":null}"#] {
        assert!(listed(none).unwrap().is_empty(), "{none}");
    }
    for bad in [
        "[",
        "[]",
        r#"{"workloads":{}}"#,
        r#"{"workloads":[1]}"#,
        r#"{"workloads":[{"kind":1}]}"#,
    ] {
        assert!(listed(bad).is_err(), "{bad}");
    }
}

#[test]
fn replicas_are_where_the_filter_the_administrators_or_the_kind_say() {
    let object = json!({"spec": {"replicas": 5, "parallelism": 3, "size": 8, "name": "x",
        "subsets": [{"replicas": 1}, {"replicas": 2}]}});
    let of = |api: &str, kind: &str, paths: &[&str]| {
        let spec = json!({"subsets": [{"name": "a"}], "targetFilter": {"replicasPathList": paths}});
        let game = listed(
            r#"{"workloads":[{"group":"example.com","version":"v1","kind":"Game","replicasPath":"spec.size"}]}"#,
        );
        replicas(
            &of_target(api, kind, &spec).spec,
            &object,
            &game.unwrap_or_default(),
        )
    };
    assert_eq!(of("apps/v1", "Deployment", &[]), Ok(Some(5)));
    assert_eq!(of("batch/v1", "Job", &[]), Ok(Some(3)));
    assert_eq!(of("example.com/v1", "Game", &[]), Ok(Some(8)));
    assert_eq!(of("example.com/v2", "Game", &[]), Ok(Some(5)));
    assert_eq!(
        of(
            "example.com/v1",
            "Game",
            &["spec.subsets.0.replicas", "spec.subsets.1.replicas"]
        ),
        Ok(Some(3))
    );
    for bad in [
        "spec.none",
        "spec.name",
        "spec.subsets.x",
        "spec.subsets.2.replicas",
        "",
    ] {
        assert!(of("apps/v1", "Deployment", &[bad]).is_err(), "{bad}");
    }
}
