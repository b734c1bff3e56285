use crate::pod::sidecars::Set;
use serde_json::json;

use self::rules::{broken, weight};
use super::*;
use crate::kinds::cloneset::WEBHOOKS;
use crate::kinds::testing::{accepting, decided, quiet};
use crate::lookup::{Lookup, LookupResult, Lookups, Pod};
use crate::table::Phase;
use crate::{Operation, Options, Outcome, Request, Response};

mod arbitrary;
mod rules;

const OLD: &str = "v1alpha1";
const NEW: &str = "v1beta1";

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "side:1"}]},
    })
}

fn set(version: &str) -> Value {
    let parameters = json!({"partition": 0, "maxUnavailable": "20%", "maxSurge": 0});
    let mut strategy = match version {
        OLD => parameters.clone(),
        _ => json!({"rollingUpdate": parameters}),
    };
    strategy["type"] = json!(if version == OLD {
        "ReCreate"
    } else {
        "RollingUpdate"
    });
    json!({
        "apiVersion": format!("apps.kruise.io/{version}"),
        "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "updateStrategy": strategy,
        },
    })
}

/// Sets a member by a dotted path, or removes it with `null`; `~` stands for where the strategy's parameters are.
fn put(object: &mut Value, path: &str, value: &Value) {
    let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let parameters = if version.ends_with(OLD) {
        "spec.updateStrategy"
    } else {
        "spec.updateStrategy.rollingUpdate"
    };
    let path = path.replace('~', parameters);
    if let (true, Some((parent, name))) = (value.is_null(), path.rsplit_once('.')) {
        let parent = object.pointer_mut(&format!("/{}", parent.replace('.', "/")));
        parent.unwrap().as_object_mut().unwrap().remove(name);
        return;
    }
    let mut at = object;
    for step in path.split('.') {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        };
    }
    *at = value.clone();
}

fn with(version: &str, edits: &[(&str, Value)]) -> Value {
    let mut object = set(version);
    for (path, value) in edits {
        put(&mut object, path, value);
    }
    object
}

fn request(operation: &str, object: Value, old: Value) -> Request {
    let version = object["apiVersion"]
        .as_str()
        .or(old["apiVersion"].as_str())
        .unwrap_or("/v1beta1");
    let version = version.rsplit('/').next().unwrap();
    Request::from_review(json!({
        "kind": {"group": "apps.kruise.io", "version": version, "kind": "CloneSet"},
        "name": "web",
        "namespace": "default",
        "operation": operation,
        "object": object,
        "oldObject": old,
    }))
    .unwrap()
}

fn message(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Response(Response::Deny {
            code: 422, message, ..
        }) => Some(message),
        Outcome::Response(Response::Allow { patch: None, .. }) => None,
        other => panic!("{other:?}"),
    }
}

fn validate(request: &Request, options: Options) -> Outcome {
    accepting(&without_sidecars(), |lookups| {
        WEBHOOKS.validate(request, options, lookups)
    })
}

/// A cluster without SidecarSets.
fn without_sidecars() -> Lookups {
    let sets = LookupResult::all::<Set>(std::sync::Arc::default());
    [(Lookup::all::<Set>(""), sets)].into_iter().collect()
}

fn create(object: Value) -> Outcome {
    validate(&request("CREATE", object, Value::Null), Options::default())
}

fn update(old: &Value, new: &Value) -> Outcome {
    validate(&request("UPDATE", new.clone(), old.clone()), Options::default())
}

#[test]
fn a_good_set_passes_in_both_versions() {
    for version in [OLD, NEW] {
        assert_eq!(message(&create(set(version))), None);
        assert_eq!(message(&update(&set(version), &set(version))), None);
    }
}

#[test]
fn every_broken_rule_names_its_field_in_the_version_of_the_request() {
    for version in [OLD, NEW] {
        let parameters = if version == OLD {
            "spec.updateStrategy"
        } else {
            "spec.updateStrategy.rollingUpdate"
        };
        for (edits, error) in broken() {
            let expected = error.replace('~', parameters);
            let outcome = create(with(version, &edits));
            let message = message(&outcome).unwrap_or_else(|| panic!("{version} {edits:?} passed"));
            let list = message
                .strip_prefix("CloneSet.apps.kruise.io \"web\" is invalid: ")
                .unwrap();
            assert!(list.contains(&expected), "{message}\nexpected {expected}");
        }
    }
}

#[test]
fn what_is_already_stored_may_stay_broken() {
    for version in [OLD, NEW] {
        for (edits, error) in broken() {
            let stored = with(version, &edits);
            let mut new = stored.clone();
            put(&mut new, "metadata.finalizers", &json!([]));
            assert_eq!(message(&update(&stored, &new)), None, "{error}");
            if !error.starts_with("spec.selector") {
                let broken_now = update(&set(version), &stored);
                assert!(message(&broken_now).is_some(), "{error}");
            }
        }
    }
}

#[test]
fn values_at_the_edge_pass() {
    let one = |path, value| vec![(path, value)];
    let good: Vec<Vec<(&str, Value)>> = vec![
        one("spec.replicas", json!(0)),
        one("spec.template.spec.restartPolicy", json!("Always")),
        one("spec.template.metadata.labels.tier", Value::Null),
        vec![
            ("spec.progressDeadlineSeconds", json!(11)),
            ("spec.minReadySeconds", json!(10)),
        ],
        vec![
            ("spec.progressDeadlineSeconds", json!(i32::MAX)),
            ("spec.minReadySeconds", json!(i32::MAX)),
        ],
        one("~.partition", json!("0.5%")),
        vec![("~.maxUnavailable", json!(0)), ("~.maxSurge", json!(1))],
        vec![("~.maxUnavailable", json!(0)), ("~.maxSurge", json!("1%"))],
        vec![("~.maxUnavailable", json!(0)), ("spec.replicas", json!(0))],
        one(
            "~.priorityStrategy",
            weight(0, &json!({"matchLabels": {"a": ""}})),
        ),
        one(
            "~.scatterStrategy",
            json!([{"key": "a", "value": "b"}, {"key": "a", "value": "c"}]),
        ),
    ];
    for version in [OLD, NEW] {
        for edits in &good {
            assert_eq!(
                message(&create(with(version, edits))),
                None,
                "{version} {edits:?}"
            );
        }
    }
}

#[test]
fn the_type_on_delete_passes_in_both_versions() {
    let old = with(OLD, &[("spec.updateStrategy", json!({"type": "OnDelete"}))]);
    assert_eq!(message(&create(old)), None);
    let new = with(NEW, &[("spec.updateStrategy", json!({"type": "OnDelete"}))]);
    assert_eq!(message(&create(new)), None);
    let block = with(
        NEW,
        &[(
            "spec.updateStrategy",
            json!({"type": "OnDelete", "rollingUpdate": {}}),
        )],
    );
    let outcome = create(block);
    let message = message(&outcome).unwrap();
    assert!(
        message.contains("spec.updateStrategy.rollingUpdate.partition: Required"),
        "{message}"
    );
}

#[test]
fn what_conversion_makes_can_be_updated_in_the_other_version() {
    use kruise_api::cloneset::convert::{to_v1alpha1, to_v1beta1};
    let mut on_delete = with(NEW, &[("spec.updateStrategy", json!({"type": "OnDelete"}))]);
    to_v1alpha1(&mut on_delete).unwrap();
    let mut percent = with(
        OLD,
        &[
            (
                "metadata.annotations",
                json!({"apps.kruise.io/image-predownload-parallelism": "20%"}),
            ),
            ("spec.updateStrategy.type", json!("InPlaceIfPossible")),
        ],
    );
    to_v1beta1(&mut percent).unwrap();
    for stored in [on_delete, percent] {
        let mut new = stored.clone();
        put(&mut new, "spec.replicas", &json!(9));
        assert_eq!(message(&update(&stored, &new)), None, "{stored}");
    }
}

#[test]
fn policies_and_surge_are_checked_where_each_version_has_them() {
    let policy = with(NEW, &[("~.podUpdatePolicy", json!("Never"))]);
    let outcome = create(policy);
    assert!(
        message(&outcome)
            .unwrap()
            .contains("rollingUpdate.podUpdatePolicy: Unsupported")
    );
    for (version, field) in [(OLD, "spec.updateStrategy.type"), (NEW, "~.podUpdatePolicy")] {
        let surge = with(
            version,
            &[(field, json!("InPlaceOnly")), ("~.maxSurge", json!("10%"))],
        );
        let outcome = create(surge);
        assert!(
            message(&outcome)
                .unwrap()
                .contains("maxSurge: Invalid value: 1: must be 0")
        );
        let none = with(version, &[(field, json!("InPlaceOnly"))]);
        assert_eq!(message(&create(none)), None);
    }
}

#[test]
fn pre_download_counts_are_whole_and_not_negative() {
    let cases = [
        ("imagePreDownloadParallelism", json!("20%"), false),
        ("imagePreDownloadParallelism", json!(-1), false),
        ("imagePreDownloadParallelism", json!("2"), true),
        ("imagePreDownloadParallelism", json!(0), true),
        ("imagePreDownloadTimeoutSeconds", json!(-1), false),
        ("imagePreDownloadMinUpdatedReadyPods", json!(-1), false),
    ];
    for (field, value, good) in cases {
        let object = with(NEW, &[("~.inPlaceUpdateStrategy", json!({field: value}))]);
        let outcome = create(object);
        let path = format!("spec.updateStrategy.rollingUpdate.inPlaceUpdateStrategy.{field}: Invalid");
        assert_eq!(
            message(&outcome).is_some_and(|text| text.contains(&path)),
            !good,
            "{field} {value}"
        );
    }
}

#[test]
fn several_errors_are_listed_together() {
    let outcome = create(with(
        NEW,
        &[("spec.replicas", json!(-1)), ("~.partition", json!(-2))],
    ));
    assert_eq!(
        message(&outcome).unwrap(),
        "CloneSet.apps.kruise.io \"web\" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal \
         to 0, spec.updateStrategy.rollingUpdate.partition: Invalid value: -2: must be greater than or equal to 0]"
    );
}

#[test]
fn the_selector_cannot_change() {
    for version in [OLD, NEW] {
        let new = with(
            version,
            &[
                ("spec.selector", json!({"matchLabels": {"app": "db"}})),
                ("spec.template.metadata.labels", json!({"app": "db"})),
            ],
        );
        let outcome = update(&set(version), &new);
        let message = message(&outcome).unwrap();
        assert!(
            message.contains("invalid: spec.selector: Invalid value: "),
            "{message}"
        );
        assert!(message.ends_with("field is immutable"), "{message}");
        let same = with(version, &[("spec.selector.matchExpressions", json!([]))]);
        assert_eq!(super::tests::message(&update(&set(version), &same)), None);
    }
}

#[test]
fn in_place_only_changes_metadata_and_images() {
    let edits = [
        ("spec.template.spec.containers.0.image", json!("web:2"), true),
        ("spec.template.metadata.annotations", json!({"a": "b"}), true),
        ("spec.template.spec.restartPolicy", json!("Always"), true),
        ("spec.replicas", json!(9), true),
        (
            "spec.template.spec.containers.0.env",
            json!([{"name": "A", "value": "b"}]),
            false,
        ),
        ("spec.template.spec.containers.0.name", json!("other"), false),
        (
            "spec.template.spec.containers",
            json!([{"name": "main", "image": "web:1"}]),
            false,
        ),
        (
            "spec.template.spec.initContainers",
            json!([{"name": "i", "image": "i"}]),
            false,
        ),
        ("spec.template.spec.hostNetwork", json!(true), false),
        ("spec.template.spec.newerThanUs", json!(1), false),
    ];
    for (version, field) in [(OLD, "spec.updateStrategy.type"), (NEW, "~.podUpdatePolicy")] {
        for (path, value, good) in &edits {
            let new = with(version, &[(field, json!("InPlaceOnly")), (path, value.clone())]);
            let outcome = update(&set(version), &new);
            let refused =
                message(&outcome).is_some_and(|text| text.contains("invalid: spec.template: Forbidden"));
            assert_eq!(refused, !good, "{version} {path} {outcome:?}");
            let any = with(
                version,
                &[(field, json!("InPlaceIfPossible")), (path, value.clone())],
            );
            assert_eq!(message(&update(&set(version), &any)), None, "{version} {path}");
        }
    }
}

#[test]
fn in_place_only_changes_cpu_and_memory_with_the_gate_in_the_newer_version() {
    let asks = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "2", "memory": "2Gi"}});
    let resources = "spec.template.spec.containers.0.resources";
    let edits = [
        (vec![(resources, asks("500m", "1Gi"))], true),
        (
            vec![
                (resources, asks("1", "512Mi")),
                ("spec.template.spec.containers.0.image", json!("web:2")),
            ],
            true,
        ),
        // Another class of service, a limit that goes, and what needs new pods beside the amounts.
        (vec![(resources, asks("2", "2Gi"))], false),
        (
            vec![(
                resources,
                json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}),
            )],
            false,
        ),
        (
            vec![
                (resources, asks("500m", "1Gi")),
                ("spec.template.spec.hostNetwork", json!(true)),
            ],
            false,
        ),
    ];
    let side = ("spec.template.spec.containers.1.resources", asks("2", "2Gi"));
    for (version, field) in [(OLD, "spec.updateStrategy.type"), (NEW, "~.podUpdatePolicy")] {
        let old = with(
            version,
            &[
                (field, json!("InPlaceOnly")),
                (resources, asks("1", "1Gi")),
                side.clone(),
            ],
        );
        for gate in [false, true] {
            let options = Options {
                vertical_scaling: gate,
                ..Options::default()
            };
            for (edit, good) in &edits {
                let mut new = old.clone();
                for (path, value) in edit {
                    put(&mut new, path, value);
                }
                let outcome = validate(&request("UPDATE", new, old.clone()), options);
                let accepted = message(&outcome).is_none();
                assert_eq!(
                    accepted,
                    *good && gate && version == NEW,
                    "{version} {gate} {edit:?} {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn privileged_containers_pass_only_where_they_are_allowed() {
    let object = with(
        NEW,
        &[(
            "spec.template.spec.containers.1.securityContext",
            json!({"privileged": true}),
        )],
    );
    assert_eq!(message(&create(object.clone())), None);
    let refused = validate(
        &request("CREATE", object, Value::Null),
        Options {
            allow_privileged: false,
            ..Options::default()
        },
    );
    let expected = "spec.template.spec.containers[1].securityContext.privileged: Forbidden";
    assert!(message(&refused).unwrap().contains(expected));
}

fn owner_of(pod: &str) -> Lookup {
    Lookup::PodOwner {
        namespace: "default".into(),
        name: pod.into(),
    }
}

/// A pod of this set, one of another, and one that is being deleted; no pod is called `none`.
fn owners() -> Lookups {
    let mut lookups = without_sidecars();
    for (name, controller, deleting) in [
        ("mine", "u1", false),
        ("other", "u2", false),
        ("going", "u1", true),
    ] {
        let pod = Pod {
            controller: Some(controller.into()),
            deleting,
        };
        lookups.insert(owner_of(name), LookupResult::Pod(pod));
    }
    lookups.insert(owner_of("none"), LookupResult::NotFound);
    lookups
}

#[test]
fn only_own_living_pods_can_be_listed_for_deletion() {
    let pods = "spec.scaleStrategy.podsToDelete";
    for version in [OLD, NEW] {
        let old = with(version, &[(pods, json!(["gone"]))]);
        let new = with(
            version,
            &[(pods, json!(["gone", "mine", "other", "going", "none"]))],
        );
        let asked = update(&old, &new);
        let missing = ["mine", "other", "going", "none"].map(owner_of);
        assert_eq!(asked, Outcome::Missing(missing.to_vec()));
        let request = request("UPDATE", new, old);
        let outcome = WEBHOOKS.validate(&request, Options::default(), &owners());
        let text = message(&outcome).unwrap();
        for (index, kind) in [(2, "Invalid"), (3, "Invalid"), (4, "Not found")] {
            assert!(text.contains(&format!("{pods}[{index}]: {kind}")), "{text}");
        }
        assert!(
            !text.contains("podsToDelete[0]") && !text.contains("podsToDelete[1]"),
            "{text}"
        );
    }
    let own = with(NEW, &[(pods, json!(["mine"]))]);
    let request = request("UPDATE", own, set(NEW));
    assert_eq!(
        WEBHOOKS.validate(&request, Options::default(), &owners()),
        Outcome::Response(Response::ALLOW)
    );
}

#[test]
fn what_cannot_be_read_is_a_bad_request() {
    let strange = [
        Value::Null,
        json!({"apiVersion": "apps.kruise.io/v1beta1"}),
        with(NEW, &[("spec.replicas", json!("three"))]),
        with(OLD, &[("spec.scaleStrategy", json!({"podsToDelete": [1]}))]),
        with("v9", &[]),
    ];
    for object in strange {
        let outcome = create(object.clone());
        assert!(
            matches!(outcome, Outcome::Response(Response::Deny { code: 400, .. })),
            "{object} {outcome:?}"
        );
    }
}

#[test]
fn status_and_scale_are_none_of_our_business() {
    let mut request = request("UPDATE", with(NEW, &[("spec.replicas", json!(-1))]), set(NEW));
    request.sub_resource = "scale".into();
    assert_eq!(
        validate(&request, Options::default()),
        Outcome::Response(Response::ALLOW)
    );
}

#[test]
fn deletion_looks_at_the_stored_object() {
    let stored = with(
        NEW,
        &[(
            "metadata.labels",
            json!({"policy.kruise.io/delete-protection": "Cascading"}),
        )],
    );
    let request = request("DELETE", Value::Null, stored);
    assert_eq!(
        validate(&request, Options::default()),
        Outcome::Response(Response::ALLOW)
    );
    let protected = Options {
        deletion_protection: true,
        ..Options::default()
    };
    assert!(matches!(
        validate(&request, protected),
        Outcome::Refused(_, Response::Deny { code: 403, .. })
    ));
}

#[test]
fn what_upstream_stored_passes_as_new_and_as_update() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    for file in [
        "1.8.4/rest-clonesets.v1alpha1.apps.kruise.io.json",
        "1.9.0/rest-clonesets.json",
        "main/rest-clonesets.json",
        "main/rest-clonesets.v1alpha1.apps.kruise.io.json",
        "main/mid-clonesets.json",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let sets: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(!sets.is_empty());
        for stored in sets {
            assert_eq!(message(&create(stored.clone())), None, "{file}");
            let mut new = stored.clone();
            put(
                &mut new,
                "spec.template.spec.containers.0.image",
                &json!("other:1"),
            );
            assert_eq!(message(&update(&stored, &new)), None, "{file}");
        }
    }
}

#[test]
fn what_is_stored_without_a_specification_is_left_alone_and_none_is_taken_away() {
    for version in [OLD, NEW] {
        let whole = set(version);
        let mut bare = whole.clone();
        bare.as_object_mut().unwrap().remove("spec");
        let mut labelled = bare.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        for (old, taken) in [(bare, true), (whole, false)] {
            let request = request("UPDATE", labelled.clone(), old);
            let Outcome::Response(validated) = validate(&request, Options::DEFAULT) else {
                panic!("pods are not asked for")
            };
            let mutated = decided(&WEBHOOKS, Phase::Mutating, &request, Options::DEFAULT, &quiet);
            for answer in [mutated, validated] {
                let refused = matches!(answer, Response::Deny { code: 400, .. });
                assert!(
                    if taken { answer == Response::ALLOW } else { refused },
                    "{answer:?}"
                );
            }
        }
    }
}
