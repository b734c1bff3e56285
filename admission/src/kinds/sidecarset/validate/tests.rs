//! Each rule with an object that breaks it and nothing else.

use crate::lookup::ObjectName;
use crate::pod::sidecars::Set;
use std::path::Path;

use serde_json::{Value, json};

use super::others::WHITELIST;
use crate::kinds::sidecarset::{WEBHOOKS, complete};
use crate::kinds::testing::accepting;
use crate::lookup::{Lookup, LookupResult, Lookups, Revision};
use crate::pod::sidecars::Sets;
use crate::{Options, Outcome, Request, Response};

fn set() -> Value {
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "s"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "containers": [{"name": "c", "image": "c:1"}]},
    });
    complete(&mut set);
    set
}

/// Other sets, no revision, no whitelist.
fn among(sets: &[&Value]) -> Lookups {
    let sets = Sets::of(sets.iter().map(|set| (*set).clone()));
    let mut lookups = Lookups::default();
    lookups.insert(Lookup::all::<Set>(""), LookupResult::all::<Set>(sets.into()));
    lookups.insert(Lookup::Setting(WHITELIST), LookupResult::NotFound);
    lookups
}

fn whitelist(lookups: &mut Lookups, text: &str) {
    lookups.insert(Lookup::Setting(WHITELIST), LookupResult::Text(text.to_owned()));
}

/// Where any annotation may be patched, and whatever is asked for exists.
fn answer(operation: &str, object: &Value, old: &Value) -> Response {
    let options = Options {
        patch_metadata_by_default: true,
        ..Options::default()
    };
    let mut lookups = among(&[]);
    loop {
        match outcome(operation, object, old, options, &lookups) {
            Outcome::Response(response) | Outcome::Widen(_, response) | Outcome::Refused(_, response) => {
                return response;
            }
            other @ (Outcome::Write(_) | Outcome::Retry(..)) => panic!("{other:?}"),
            Outcome::Missing(missing) => {
                for lookup in missing {
                    assert!(
                        matches!(lookup, Lookup::Revision(_) | Lookup::Live(..)),
                        "{lookup:?}"
                    );
                    let found = json!({"metadata": {"labels": {"kruise.io/sidecarset-name": "s"}}});
                    lookups.insert(lookup, LookupResult::Object(found));
                }
            }
        }
    }
}

fn outcome(operation: &str, object: &Value, old: &Value, options: Options, lookups: &Lookups) -> Outcome {
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    let review = json!({
        "kind": {"group": "apps.kruise.io", "version": version, "kind": "SidecarSet"},
        "operation": operation, "object": object, "oldObject": old,
    });
    let request = Request::from_review(review).unwrap();
    accepting(lookups, |lookups| WEBHOOKS.validate(&request, options, lookups))
}

/// The message that refuses it; empty if nothing does.
fn refusal(operation: &str, object: &Value, old: &Value) -> String {
    match answer(operation, object, old) {
        Response::Allow { .. } => String::new(),
        Response::Deny { code, message, .. } => {
            assert_eq!(code, 422);
            message
        }
    }
}

/// Puts a value at a path whose last member may be new.
fn with(pointer: &str, value: Value) -> Value {
    let mut set = set();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = set.pointer_mut(parent).unwrap();
    if let Some(list) = parent.as_array_mut() {
        list.push(value);
    } else {
        parent.as_object_mut().unwrap().insert(name.to_owned(), value);
    }
    set
}

#[test]
fn a_stored_flaw_stays_writable_when_its_container_moves_up() {
    let broken = json!({"name": "d", "image": "d:1", "podInjectPolicy": "Nowhere"});
    let mut stored = with("/spec/containers/-", broken);
    complete(&mut stored);
    assert!(refusal("CREATE", &stored, &Value::Null).contains("spec.containers[1]"));
    let mut moved = stored.clone();
    moved["spec"]["containers"].as_array_mut().unwrap().remove(0);
    assert_eq!(refusal("UPDATE", &moved, &stored), "");
}

#[test]
fn sets_that_openkruise_stored_are_in_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    for version in ["1.8.4", "1.9.0", "main"] {
        for file in [
            "rest-sidecarsets.json",
            "mid-sidecarsets.v1alpha1.apps.kruise.io.json",
        ] {
            let text = std::fs::read_to_string(root.join(version).join(file)).unwrap();
            for set in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
                assert_eq!(refusal("CREATE", &set, &Value::Null), "", "{version} {file}");
                assert_eq!(refusal("UPDATE", &set, &set), "");
            }
        }
    }
    assert_eq!(refusal("CREATE", &set(), &Value::Null), "");
}

/// Each of these is refused for what it says, and stays writable where it is stored.
fn refused(cases: &[(Value, &str)]) {
    for (broken, says) in cases {
        let found = refusal("CREATE", broken, &Value::Null);
        assert!(found.contains(says), "{says}: {found:?}");
        assert_eq!(
            refusal("UPDATE", broken, broken),
            "",
            "{says}: what is stored stays writable"
        );
    }
}

#[test]
fn selectors_and_strategies_are_checked() {
    refused(&[
        (with("/metadata/name", json!("a.b")), "metadata.name"),
        (with("/metadata/name", json!("a".repeat(64))), "metadata.name"),
        (with("/spec/selector", json!({})), "empty selector is not valid"),
        (with("/spec/selector", Value::Null), "spec.selector: Required"),
        (
            with("/spec/namespaceSelector", json!({})),
            "spec.namespaceSelector",
        ),
        (
            with("/spec/containers", json!([])),
            "no container or initContainer",
        ),
        (
            with("/spec/updateStrategy/partition", json!(-1)),
            "updateStrategy.partition",
        ),
        (
            with("/spec/updateStrategy/maxUnavailable", json!("x")),
            "updateStrategy.maxUnavailable",
        ),
        (
            with("/spec/updateStrategy/selector", json!({})),
            "updateStrategy.selector",
        ),
        (
            with("/spec/updateStrategy/scatterStrategy", json!([{"key": ""}])),
            "scatterStrategy[0].key",
        ),
        (
            with(
                "/spec/updateStrategy/priorityStrategy",
                json!({"orderPriority": [{}]}),
            ),
            "orderedKey",
        ),
        (
            with(
                "/spec/injectionStrategy",
                json!({"revision": {"policy": "Always"}}),
            ),
            "must name a revision",
        ),
        (
            with(
                "/spec/injectionStrategy",
                json!({"revision": {"revisionName": "r", "policy": "Never"}}),
            ),
            "revision.policy",
        ),
        (
            with(
                "/spec/injectionStrategy",
                json!({"revision": {"revisionName": "../../x", "policy": "Always"}}),
            ),
            "revision.revisionName",
        ),
        (
            with(
                "/spec/injectionStrategy",
                json!({"revision": {"customVersion": "a,b!=c", "policy": "Always"}}),
            ),
            "revision.customVersion",
        ),
        (
            with("/spec/patchPodMetadata", json!([{"patchPolicy": "Retain"}])),
            "annotations: Required",
        ),
        (
            with(
                "/spec/patchPodMetadata",
                json!([{"patchPolicy": "Retain", "annotations": {"a b": ""}}]),
            ),
            "patchPodMetadata[0].annotations",
        ),
        (
            with(
                "/spec/patchPodMetadata",
                json!([{"patchPolicy": "Retain", "annotations": {"k": ""}}, {"patchPolicy": "Retain", "annotations": {"k": ""}}]),
            ),
            "Duplicate value: \"k\"",
        ),
    ]);
}

#[test]
fn containers_are_checked() {
    let field = |path: &str| json!([{"sourceContainerNameFrom": {"fieldRef": {"fieldPath": path}}}]);
    refused(&[
        (
            with("/spec/containers/0/podInjectPolicy", json!("Middle")),
            "podInjectPolicy",
        ),
        (
            with("/spec/containers/0/shareVolumePolicy", json!({"type": "maybe"})),
            "shareVolumePolicy.type",
        ),
        (
            with("/spec/containers/0/transferEnv", field("metadata.name")),
            "fieldRef.fieldPath",
        ),
        (
            with("/spec/containers/0/image", json!("")),
            "spec.containers[0].image: Required",
        ),
        (
            with(
                "/spec/containers/0/volumeMounts",
                json!([{"name": "v", "mountPath": "/v"}]),
            ),
            "spec.containers[0].volumeMounts[0].name: Not found",
        ),
        (
            with("/spec/initContainers", json!([{"name": "c", "image": "c"}])),
            "Duplicate value: \"c\"",
        ),
        (
            with(
                "/spec/initContainers",
                json!([{"name": "i", "image": "i", "resourcesPolicy": {}}]),
            ),
            "only for init containers that keep running",
        ),
        (
            with(
                "/spec/initContainers",
                json!([{"name": "i", "image": "i", "restartPolicy": "Always"}]),
            ),
            "use NotUpdate",
        ),
    ]);
}

#[test]
fn computed_resources_are_checked() {
    let policy = |own: Value| {
        let mut policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": ".*",
            "resourcesExpr": {"limits": {"cpu": "cpu"}}});
        policy
            .as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        with("/spec/containers/0/resourcesPolicy", policy)
    };
    refused(&[
        (
            policy(json!({"targetContainersNameRegex": "("})),
            "targetContainersNameRegex",
        ),
        (
            policy(json!({"targetContainersMode": "avg"})),
            "targetContainersMode",
        ),
        (policy(json!({"resourcesExpr": {}})), "limits or requests"),
        (
            policy(json!({"resourcesExpr": {"limits": {"cpu": "cpu*cpu"}}})),
            "have no '*'",
        ),
        (
            policy(json!({"resourcesExpr": {"limits": {"cpu": "50foo"}}})),
            "cannot be read",
        ),
    ]);
}

#[test]
fn expressions_that_some_pods_satisfy_pass() {
    for expression in ["memory-100Mi", "max(memory*33%, 100Mi)", "Memory*50%", "200Mi"] {
        let policy = json!({"targetContainersMode": "max", "targetContainersNameRegex": ".*",
            "resourcesExpr": {"requests": {"memory": expression}}});
        let set = with("/spec/containers/0/resourcesPolicy", policy);
        assert_eq!(refusal("CREATE", &set, &Value::Null), "", "{expression}");
    }
}

#[test]
fn a_partition_excludes_a_selector_only_when_it_is_set() {
    let selected = |partition: Value| {
        let mut set = with(
            "/spec/updateStrategy/selector",
            json!({"matchLabels": {"x": "y"}}),
        );
        set["spec"]["updateStrategy"]["partition"] = partition;
        refusal("CREATE", &set, &Value::Null)
    };
    assert_eq!(selected(json!(0)), "");
    assert!(selected(json!("0%")).contains("exclude each other"));
    assert!(selected(json!(1)).contains("exclude each other"));
}

#[test]
fn native_sidecars_pass_where_nothing_is_upgraded_in_place() {
    let mut set = with(
        "/spec/initContainers",
        json!([{"name": "i", "image": "i", "restartPolicy": "Always"}]),
    );
    assert!(refusal("CREATE", &set, &Value::Null).contains("use NotUpdate"));
    set["spec"]["updateStrategy"] = json!({"type": "NotUpdate", "partition": -1});
    assert_eq!(refusal("CREATE", &set, &Value::Null), "");
}

#[test]
fn containers_may_go_but_not_come_and_keep_their_kind_of_upgrade() {
    let two = with("/spec/containers/-", json!({"name": "d", "image": "d:1"}));
    assert_eq!(refusal("UPDATE", &set(), &two), "");
    assert!(refusal("UPDATE", &two, &set()).contains("is not found in the stored set"));
    let hot = with(
        "/spec/containers/0/upgradeStrategy",
        json!({"upgradeType": "HotUpgrade"}),
    );
    assert!(refusal("UPDATE", &hot, &set()).contains("upgradeType"));
    let bare = with("/spec/containers/0/upgradeStrategy", json!({}));
    assert_eq!(refusal("UPDATE", &hot, &bare), "");
}

#[test]
fn a_canary_has_a_base_that_stays_and_upgrades_nothing() {
    let canary = |base: &str, kind: &str| {
        let mut set = set();
        set["metadata"]["annotations"] = json!({
            "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base,
        });
        set["spec"]["updateStrategy"] = json!({"type": kind});
        set
    };
    let good = canary("base", "NotUpdate");
    assert_eq!(refusal("CREATE", &good, &Value::Null), "");
    assert!(refusal("CREATE", &canary("s", "NotUpdate"), &Value::Null).contains("of itself"));
    assert!(refusal("CREATE", &canary("base", "RollingUpdate"), &Value::Null).contains("use NotUpdate"));
    assert!(refusal("UPDATE", &canary("other", "NotUpdate"), &good).contains("cannot be changed"));
}

/// The message that refuses a new set among others; empty if nothing does.
fn refusal_among(object: &Value, old: Option<&Value>, lookups: &Lookups) -> String {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let old = old.unwrap_or(&Value::Null);
    match outcome(operation, object, old, Options::default(), lookups) {
        Outcome::Response(Response::Allow { .. }) | Outcome::Widen(..) => String::new(),
        Outcome::Response(Response::Deny { code, message, .. }) => {
            assert_eq!(code, 422);
            message
        }
        other => panic!("{other:?}"),
    }
}

fn named(name: &str, selector: Value) -> Value {
    let mut set = set();
    set["metadata"]["name"] = json!(name);
    set["spec"]["selector"] = selector;
    set
}

#[test]
fn sets_for_the_same_pods_cannot_have_containers_of_one_name() {
    let value = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
    let equal = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    let present = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
    let absent = json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    for (one, two, together) in [
        (equal("a", "b"), equal("a", "b"), true),
        (equal("a", "b"), equal("a", "c"), false),
        (equal("a", "b"), equal("x", "y"), true),
        (value("In", &["b", "c"]), value("In", &["c", "d"]), true),
        (value("In", &["b"]), value("In", &["c", "d"]), false),
        (value("In", &["b"]), value("NotIn", &["b", "c"]), false),
        (value("In", &["b", "d"]), value("NotIn", &["b", "c"]), true),
        (equal("a", "b"), present.clone(), true),
        (present.clone(), equal("x", "y"), false),
        (equal("a", "b"), absent.clone(), false),
        (present, absent, false),
    ] {
        for (one, two) in [(&one, &two), (&two, &one)] {
            let stored = named("other", two.clone());
            let message = refusal_among(&named("s", one.clone()), None, &among(&[&stored]));
            assert_eq!(
                message.contains("spec.containers[0].name"),
                together,
                "{one} {two}: {message}"
            );
        }
    }
}

#[test]
fn sets_that_may_meet_in_a_pod_though_they_are_taken_apart_are_stored_with_a_warning() {
    let present = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
    let equal = json!({"matchLabels": {"x": "y"}});
    let warned = |one: &Value, two: Value, name: &str| {
        let mut stored = named("other", two);
        stored["spec"]["containers"][0]["name"] = json!(name);
        let lookups = among(&[&stored]);
        let set = named("s", one.clone());
        match outcome("CREATE", &set, &Value::Null, Options::default(), &lookups) {
            Outcome::Response(Response::Allow { warnings, .. })
            | Outcome::Widen(_, Response::Allow { warnings, .. }) => warnings,
            other => panic!("{other:?}"),
        }
    };
    for (one, two) in [(&present, &equal), (&equal, &present)] {
        let warnings = warned(one, two.clone(), "c");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("spec.containers[0].name: "),
            "{warnings:?}"
        );
        assert!(warnings[0].contains("SidecarSet other"), "{warnings:?}");
        assert!(warned(one, two.clone(), "another").is_empty());
    }
    let apart = json!({"matchLabels": {"x": "z"}});
    assert!(warned(&equal, apart, "c").is_empty(), "no pod matches both");
}

#[test]
fn sets_of_different_namespaces_or_with_other_names_are_not_in_each_others_way() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let in_namespace = |name: &str, namespace: &str| {
        let mut set = named(name, selector.clone());
        set["spec"]["namespaceSelector"] = json!({"matchLabels": {"env": namespace}});
        set
    };
    let lookups = among(&[&in_namespace("other", "prod")]);
    assert_eq!(refusal_among(&in_namespace("s", "test"), None, &lookups), "");
    assert!(refusal_among(&in_namespace("s", "prod"), None, &lookups).contains("SidecarSet other"));
    assert!(refusal_among(&named("s", selector.clone()), None, &lookups).contains("SidecarSet other"));
    assert_eq!(
        refusal_among(&in_namespace("other", "prod"), None, &lookups),
        "",
        "it is itself"
    );
    let mut own = in_namespace("s", "prod");
    own["spec"]["containers"][0]["name"] = json!("d");
    own["spec"]["initContainers"] = json!([{"name": "c", "image": "c:1"}]);
    complete(&mut own);
    assert_eq!(refusal_among(&own, None, &lookups), "");
}

#[test]
fn volumes_of_one_name_must_be_the_same() {
    let with_volume = |name: &str, container: &str, path: &str| {
        let mut set = set();
        set["metadata"]["name"] = json!(name);
        set["spec"]["containers"][0]["name"] = json!(container);
        set["spec"]["volumes"] = json!([{"name": "v", "hostPath": {"path": path, "type": ""}}]);
        complete(&mut set);
        set
    };
    let lookups = among(&[&with_volume("other", "x", "/a")]);
    assert_eq!(refusal_among(&with_volume("s", "c", "/a"), None, &lookups), "");
    let message = refusal_among(&with_volume("s", "c", "/b"), None, &lookups);
    assert!(message.contains("spec.volumes[0].name"), "{message}");
}

fn patching(name: &str, container: &str, policy: &str) -> Value {
    let mut set = set();
    set["metadata"]["name"] = json!(name);
    set["spec"]["containers"][0]["name"] = json!(container);
    set["spec"]["patchPodMetadata"] = json!([{"annotations": {"logs.x": "1"}, "patchPolicy": policy}]);
    complete(&mut set);
    set
}

#[test]
fn an_annotation_that_one_set_overwrites_is_patched_by_no_other() {
    for (one, two, refused) in [
        ("Overwrite", "Overwrite", true),
        ("Overwrite", "MergePatchJson", true),
        ("MergePatchJson", "Overwrite", true),
        ("MergePatchJson", "MergePatchJson", false),
        ("Retain", "Overwrite", false),
        ("Overwrite", "Retain", false),
    ] {
        let mut lookups = among(&[&patching("other", "x", two)]);
        whitelist(
            &mut lookups,
            r#"{"rules":[{"allowedAnnotationKeyExprs":[".*"]}]}"#,
        );
        let message = refusal_among(&patching("s", "c", one), None, &lookups);
        assert_eq!(!message.is_empty(), refused, "{one} {two}: {message}");
    }
}

#[test]
fn annotations_are_patched_only_where_the_whitelist_allows() {
    let set = patching("s", "c", "Retain");
    let asked = |text: Option<&str>, by_default: bool| {
        let mut lookups = among(&[]);
        if let Some(text) = text {
            whitelist(&mut lookups, text);
        }
        let options = Options {
            patch_metadata_by_default: by_default,
            ..Options::default()
        };
        match outcome("CREATE", &set, &Value::Null, options, &lookups) {
            Outcome::Response(answer) | Outcome::Widen(_, answer) => answer == Response::ALLOW,
            other => panic!("{other:?}"),
        }
    };
    let of_others =
        r#"{"rules":[{"selector":{"matchLabels":{"team":"x"}},"allowedAnnotationKeyExprs":["^logs"]}]}"#;
    for (text, by_default, allowed) in [
        (None, false, false),
        (None, true, true),
        (
            Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["^logs\\."]}]}"#),
            false,
            true,
        ),
        (
            Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["^other"]}]}"#),
            true,
            false,
        ),
        (Some(of_others), false, false),
        (Some(of_others), true, true),
        (
            Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["("]}]}"#),
            true,
            false,
        ),
        (Some("no JSON"), true, false),
        (Some("{}"), false, false),
        (Some(r#"{"rules":null}"#), true, true),
        (
            Some(r#"{"rules":[{"allowedAnnotationKeyExprs":null}]}"#),
            true,
            true,
        ),
    ] {
        assert_eq!(asked(text, by_default), allowed, "{text:?} {by_default}");
    }
}

fn canary(name: &str, base: &str) -> Value {
    let mut set = set();
    set["metadata"]["name"] = json!(name);
    set["metadata"]["annotations"]["apps.kruise.io/sidecarset-canary"] = json!("true");
    set["metadata"]["annotations"]["apps.kruise.io/sidecarset-base"] = json!(base);
    set["spec"]["updateStrategy"] = json!({"type": "NotUpdate"});
    set
}

#[test]
fn the_base_of_a_canary_exists_and_neither_is_in_the_others_way() {
    let base = named("base", json!({"matchLabels": {"a": "b"}}));
    let first = canary("s", "base");
    let wanted = Lookup::Live(kruise_api::sidecarset::RESOURCE, ObjectName::new("", "base"));
    let mut lookups = among(&[]);
    let asked = outcome("CREATE", &first, &Value::Null, Options::default(), &lookups);
    assert_eq!(asked, Outcome::Missing(vec![wanted.clone()]));
    lookups.insert(wanted.clone(), LookupResult::NotFound);
    let message = refusal_among(&first, None, &lookups);
    assert!(message.contains("there is no such SidecarSet"), "{message}");
    lookups.insert(wanted, LookupResult::Object(base.clone()));
    assert_eq!(refusal_among(&first, None, &lookups), "");
    assert_eq!(refusal_among(&first, None, &among(&[&base])), "");
    assert_eq!(refusal_among(&base, Some(&base), &among(&[&base, &first])), "");
    let second = canary("t", "s");
    let message = refusal_among(&second, None, &among(&[&base, &first]));
    assert!(message.contains("is a canary itself"), "{message}");
}

#[test]
fn the_revision_to_inject_exists_and_is_one_of_the_set() {
    let set = with(
        "/spec/injectionStrategy",
        json!({"revision": {"revisionName": "s-1", "policy": "Always"}}),
    );
    let wanted = Lookup::Revision(Revision::Named("s-1".to_owned()));
    let options = Options::default();
    let mut lookups = among(&[]);
    let asked = outcome("CREATE", &set, &Value::Null, options, &lookups);
    assert_eq!(asked, Outcome::Missing(vec![wanted.clone()]));
    lookups.insert(wanted.clone(), LookupResult::NotFound);
    let message = refusal_among(&set, None, &lookups);
    assert!(message.contains("spec.injectionStrategy.revision"), "{message}");
    let of = |set: &str| json!({"metadata": {"labels": {"kruise.io/sidecarset-name": set}}});
    for other in [json!({}), of("other")] {
        lookups.insert(wanted.clone(), LookupResult::Object(other));
        let message = refusal_among(&set, None, &lookups);
        assert!(message.contains("is none of this SidecarSet"), "{message}");
        assert_eq!(
            refusal_among(&set, Some(&set), &lookups),
            "",
            "it is stored already"
        );
    }
    lookups.insert(wanted, LookupResult::Object(of("s")));
    assert_eq!(refusal_among(&set, None, &lookups), "");
}

#[test]
fn a_set_that_is_in_the_way_of_another_already_stays_writable() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let (stored, other) = (named("s", selector.clone()), named("other", selector));
    let lookups = among(&[&stored, &other]);
    let mut edited = stored.clone();
    edited["spec"]["containers"][0]["image"] = json!("c:2");
    assert_eq!(refusal_among(&edited, Some(&stored), &lookups), "");
    let elsewhere = named("s", json!({"matchLabels": {"a": "z"}}));
    assert!(!refusal_among(&stored, Some(&elsewhere), &lookups).is_empty());
}
