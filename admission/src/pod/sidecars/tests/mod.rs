//! Injection seen from outside: a review goes in, and what counts is the pod that comes out.

mod accepted;
mod steps;
mod stored;

use crate::pod::sidecars::Set;
use kruise_api::persistentpodstate::PersistentPodState;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_api::workloadspread::WorkloadSpread;
use serde_json::{Value, json};

use super::{Revision, Sets, decisions};
use crate::lookup::{Lookup, LookupResult, Lookups};
use crate::pod::review;
use crate::{Options, Outcome, Request, Response};

const HASH: &str = "kruise.io/sidecarset-hash";
const WITHOUT_IMAGE: &str = "kruise.io/sidecarset-hash-without-image";

fn request(pod: &Value, uid: &str) -> Request {
    let review = json!({"uid": uid, "kind": {"version": "v1", "kind": "Pod"}, "operation": "CREATE",
        "namespace": "ns", "object": pod});
    let mut request = Request::from_review(review).unwrap();
    request.now = "2026-11-21T03:56:37.9Z".parse().unwrap();
    request
}

fn known(sets: &[Value]) -> Lookups {
    let sets = LookupResult::all::<Set>(Sets::of(sets.to_vec()).into());
    let budgets = LookupResult::all::<PodUnavailableBudget>(Vec::new());
    Lookups::from_iter([
        (Lookup::all::<Set>(""), sets),
        (Lookup::all::<PodUnavailableBudget>("ns"), budgets),
        (
            Lookup::all::<WorkloadSpread>("ns"),
            LookupResult::all::<WorkloadSpread>(Vec::new()),
        ),
        (
            Lookup::all::<PersistentPodState>("ns"),
            LookupResult::all::<PersistentPodState>(Vec::new()),
        ),
    ])
}

fn applied(pod: &Value, outcome: Outcome) -> Value {
    match outcome {
        Outcome::Response(response) => response.applied_to(pod),
        other => panic!("{other:?}"),
    }
}

fn inject(pod: &Value, sets: &[Value]) -> Value {
    applied(pod, review(&request(pod, "u"), Options::default(), &known(sets)))
}

fn refusal(pod: &Value, sets: &[Value]) -> String {
    match review(&request(pod, "u"), Options::default(), &known(sets)) {
        Outcome::Response(Response::Deny {
            code: 500, message, ..
        }) => message,
        other => panic!("{other:?}"),
    }
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "main:1", "newer": {"than": "us"}}]},
    })
}

/// A set of these members that matches [`pod`].
fn set(name: &str, own: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    spec.as_object_mut()
        .unwrap()
        .extend(own.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec, "status": {"latestRevision": format!("{name}-1")}})
}

fn sidecar(name: &str, position: &str, own: Value) -> Value {
    let mut one = json!({"name": name, "image": format!("{name}:1"), "podInjectPolicy": position});
    one.as_object_mut()
        .unwrap()
        .extend(own.as_object().unwrap().clone());
    one
}

fn before(name: &str) -> Value {
    sidecar(name, "BeforeAppContainer", json!({}))
}

fn after(name: &str) -> Value {
    sidecar(name, "AfterAppContainer", json!({}))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect()
}

fn annotation<'a>(pod: &'a Value, key: &str) -> &'a str {
    pod["metadata"]["annotations"][key].as_str().unwrap()
}

#[test]
fn containers_go_before_and_behind_those_of_the_pod() {
    let found = inject(
        &pod(),
        &[set("s", json!({"containers": [before("b"), after("a")]}))],
    );
    assert_eq!(names(&found["spec"]["containers"]), ["b", "main", "a"]);
    assert_eq!(found["spec"]["containers"][1], pod()["spec"]["containers"][0]);
    for index in [0, 2] {
        let container = &found["spec"]["containers"][index];
        assert_eq!(
            container["env"],
            json!([{"name": "IS_INJECTED", "value": "true"}])
        );
        assert_eq!(container.get("podInjectPolicy"), None);
    }
    let record: Value = serde_json::from_str(annotation(&found, HASH)).unwrap();
    assert_eq!(record["s"]["controllerRevision"], "s-1");
    assert_eq!(record["s"]["updateTimestamp"], "2026-11-21T03:56:37Z");
    assert_eq!(record["s"]["sidecarList"], json!(["a", "b"]));
    assert!(!annotation(&found, WITHOUT_IMAGE).contains("controllerRevision"));
    assert_eq!(annotation(&found, "kruise.io/sidecarset-injected-list"), "s");
}

#[test]
fn init_containers_are_sorted_by_name_around_those_of_the_pod() {
    let mut pod = pod();
    pod["spec"]["initContainers"] = json!([{"name": "own-init"}]);
    let found = inject(
        &pod,
        &[
            set("x", json!({"initContainers": [after("zz"), after("mm")]})),
            set("y", json!({"initContainers": [before("aa")]})),
        ],
    );
    assert_eq!(
        names(&found["spec"]["initContainers"]),
        ["aa", "own-init", "mm", "zz"]
    );
    assert_eq!(names(&found["spec"]["containers"]), ["main"]);
}

#[test]
fn containers_are_sorted_by_name_only_when_asked() {
    let sets = [set("s", json!({"containers": [before("b2"), before("b1")]}))];
    let order = |sort_sidecars| {
        let options = Options {
            sort_sidecars,
            ..Options::default()
        };
        let found = applied(&pod(), review(&request(&pod(), "u"), options, &known(&sets)));
        names(&found["spec"]["containers"]).join(" ")
    };
    assert_eq!(order(false), "b2 b1 main");
    assert_eq!(order(true), "b1 b2 main");
}

#[test]
fn sets_are_injected_in_the_order_of_their_names() {
    let one = |name: &str| set(name, json!({"containers": [after(&format!("of-{name}"))]}));
    let found = inject(&pod(), &[one("c"), one("a"), one("b")]);
    assert_eq!(
        names(&found["spec"]["containers"]),
        ["main", "of-a", "of-b", "of-c"]
    );
    assert_eq!(annotation(&found, "kruise.io/sidecarset-injected-list"), "a,b,c");
}

#[test]
fn mounts_and_the_variables_in_their_paths_are_shared_when_asked() {
    let mut pod = pod();
    pod["spec"]["containers"][0]["volumeMounts"] = json!([
        {"name": "app-log", "mountPath": "/log"},
        {"name": "data", "mountPath": "/data", "subPathExpr": "x/$(SUB)/$(GONE)"},
    ]);
    pod["spec"]["containers"][0]["env"] = json!([{"name": "SUB", "value": "s"}]);
    pod["spec"]["containers"][0]["volumeDevices"] = json!([{"name": "disk", "devicePath": "/dev/x"}]);
    let share = |own: Value| {
        let mut container = sidecar("c", "AfterAppContainer", own);
        container["volumeMounts"] = json!([{"name": "own", "mountPath": "/log"}]);
        inject(&pod, &[set("s", json!({"containers": [container]}))])["spec"]["containers"][1].clone()
    };
    let found = share(json!({"shareVolumePolicy": {"type": "enabled"}}));
    assert_eq!(
        found["volumeMounts"],
        json!([{"name": "own", "mountPath": "/log"}, pod["spec"]["containers"][0]["volumeMounts"][1]])
    );
    assert_eq!(
        found["env"],
        json!([{"name": "IS_INJECTED", "value": "true"}, {"name": "SUB", "value": "s"}])
    );
    assert_eq!(found.get("volumeDevices"), None);
    let found = share(json!({"shareVolumeDevicePolicy": {"type": "enabled"}}));
    assert_eq!(
        found["volumeDevices"],
        json!([{"name": "disk", "devicePath": "/dev/x"}])
    );
    assert_eq!(found["volumeMounts"].as_array().unwrap().len(), 1);
}

#[test]
fn variables_are_copied_but_never_over_own_ones() {
    let mut pod = pod();
    pod["metadata"]["annotations"] = json!({"from": "main"});
    // The container sees the last of the variables of one name.
    pod["spec"]["containers"][0]["env"] = json!([
        {"name": "A", "value": "earlier"}, {"name": "A", "value": "a"}, {"name": "B", "value": "b"}]);
    let by_name = json!([{"sourceContainerName": "main", "envNames": ["B", "ZZZ"], "envName": "A"}]);
    let by_annotation = |path: &str| {
        json!([{"sourceContainerName": "main",
        "sourceContainerNameFrom": {"fieldRef": {"fieldPath": path}}, "envNames": ["A"]}])
    };
    let env = |transfer: Value| {
        let own = json!({"env": [{"name": "B", "value": "mine"}], "transferEnv": transfer});
        let found = inject(
            &pod,
            &[set(
                "s",
                json!({"containers": [sidecar("c", "AfterAppContainer", own)]}),
            )],
        );
        found["spec"]["containers"][1]["env"].clone()
    };
    let own = json!({"name": "B", "value": "mine"});
    let marker = json!({"name": "IS_INJECTED", "value": "true"});
    let copied = json!([own, marker, {"name": "A", "value": "a"}]);
    assert_eq!(env(by_name), copied);
    assert_eq!(env(by_annotation("metadata.annotations['from']")), copied);
    for nowhere in ["metadata.annotations['other']", "metadata.name", "x"] {
        assert_eq!(env(by_annotation(nowhere)), json!([own, marker]), "{nowhere}");
    }
    let empty = json!([{"sourceContainerName": "main", "sourceContainerNameFrom": {}, "envNames": ["A"]}]);
    assert_eq!(env(empty), copied);
}

#[test]
fn only_mounted_volumes_are_added_and_those_of_the_pod_win() {
    let mut container = after("c");
    container["volumeMounts"] = json!([{"name": "l2", "mountPath": "/l2"}]);
    let sets = [set(
        "s",
        json!({
            "containers": [container],
            "volumes": [{"name": "l2", "emptyDir": {}, "newer": 1}, {"name": "unused", "emptyDir": {}}],
        }),
    )];
    assert_eq!(
        inject(&pod(), &sets)["spec"]["volumes"],
        json!([{"name": "l2", "emptyDir": {}, "newer": 1}])
    );
    let mut own = pod();
    own["spec"]["volumes"] = json!([{"name": "l2", "hostPath": {"path": "/x"}}]);
    assert_eq!(inject(&own, &sets)["spec"]["volumes"], own["spec"]["volumes"]);
}

#[test]
fn pull_secrets_are_there_once() {
    let mut pod = pod();
    pod["spec"]["imagePullSecrets"] = json!([{"name": "s"}]);
    let found = inject(
        &pod,
        &[set(
            "s",
            json!({"containers": [after("c")], "imagePullSecrets": [{"name": "s"}, {"name": "t"}]}),
        )],
    );
    assert_eq!(
        found["spec"]["imagePullSecrets"],
        json!([{"name": "s"}, {"name": "t"}])
    );
}

#[test]
fn pods_that_no_set_is_for_are_not_touched() {
    let mut elsewhere = set("namespace", json!({"containers": [after("c")]}));
    elsewhere["spec"]["namespaceSelector"] = json!({"matchLabels": {"env": "prod"}});
    let sets = [
        set(
            "labels",
            json!({"containers": [after("c")], "selector": {"matchLabels": {"app": "other"}}}),
        ),
        elsewhere,
        set(
            "paused",
            json!({"containers": [after("c")], "injectionStrategy": {"paused": true}}),
        ),
        set("everything", json!({"containers": [after("c")], "selector": {}})),
    ];
    let mut known = known(&sets);
    let namespace = Lookup::NamespaceLabels("ns".to_owned());
    known.insert(namespace, LookupResult::Labels([].into()));
    let answer = review(&request(&pod(), "u"), Options::default(), &known);
    assert_eq!(answer, Outcome::Response(Response::ALLOW));
    let found = decisions(&request(&pod(), "u"), &known).unwrap();
    let why: Vec<String> = found
        .iter()
        .map(|one| format!("{}: {}", one.set, one.why))
        .collect();
    assert_eq!(
        why,
        [
            "everything: not injected: its selector is empty or not valid",
            "labels: not injected: its selector does not match the labels of the pod",
            "namespace: not injected: its namespaceSelector does not match the pod's namespace",
            "paused: not injected: injectionStrategy.paused is true",
        ]
    );
    let mut ended = pod();
    ended["status"] = json!({"phase": "Succeeded"});
    assert_eq!(
        inject(&ended, &[set("s", json!({"containers": [after("c")]}))]),
        ended
    );
}

#[test]
fn a_namespace_is_asked_for_only_when_its_labels_decide() {
    let scoped = |selector: Value| {
        let own = json!({"containers": [after("c")], "namespaceSelector": selector});
        review(
            &request(&pod(), "u"),
            Options::default(),
            &known(&[set("s", own)]),
        )
    };
    let missing = scoped(json!({"matchLabels": {"env": "prod"}}));
    let namespace = Lookup::NamespaceLabels("ns".to_owned());
    assert_eq!(missing, Outcome::Missing(vec![namespace]));
    let by_name = scoped(json!({"matchLabels": {"kubernetes.io/metadata.name": "ns"}}));
    assert_eq!(
        names(&applied(&pod(), by_name)["spec"]["containers"]),
        ["main", "c"]
    );
    let other = scoped(
        json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["ns"]}]}),
    );
    assert_eq!(other, Outcome::Response(Response::ALLOW));
    let budgets = LookupResult::all::<PodUnavailableBudget>(Vec::new());
    let lookups = Lookups::from_iter([(Lookup::all::<PodUnavailableBudget>("ns"), budgets)]);
    let unknown = review(&request(&pod(), "u"), Options::default(), &lookups);
    assert_eq!(unknown, Outcome::Missing(vec![Lookup::all::<Set>("")]));
}

#[test]
fn a_canary_is_injected_instead_of_its_base() {
    let mut canary = set("canary", json!({"containers": [after("new")]}));
    canary["metadata"]["annotations"] = json!({
        "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "base",
    });
    let base = set("base", json!({"containers": [after("old")]}));
    let found = inject(&pod(), &[canary.clone(), base.clone()]);
    assert_eq!(names(&found["spec"]["containers"]), ["main", "new"]);
    assert_eq!(annotation(&found, "kruise.io/sidecarset-injected-list"), "canary");
    let found = decisions(&request(&pod(), "u"), &known(&[canary.clone(), base.clone()])).unwrap();
    assert_eq!(found[0].why, "not injected: its canary canary is");
    canary["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    assert_eq!(
        names(&inject(&pod(), &[canary, base])["spec"]["containers"]),
        ["main", "old"]
    );
}

fn versioned(policy: &str, update: Value) -> (Value, Revision, Value) {
    let own = json!({
        "containers": [sidecar("c", "AfterAppContainer", json!({"image": "c:2"}))],
        "injectionStrategy": {"revision": {"customVersion": "v1", "policy": policy}},
        "updateStrategy": update,
    });
    let revision = json!({
        "metadata": {"name": "s-old", "annotations": {HASH: "full", WITHOUT_IMAGE: "without"}},
        "data": {"spec": {"$patch": "replace", "containers": [after("c")], "initContainers": null}},
    });
    let wanted = Revision::Versioned {
        set: "s".to_owned(),
        version: "v1".to_owned(),
    };
    (set("s", own), wanted, revision)
}

/// The image injected, given the stored revision.
fn image(policy: &str, update: Value, uid: &str, labels: Value) -> String {
    let (set, wanted, revision) = versioned(policy, update);
    let mut known = known(&[set]);
    known.insert(wanted.lookup(), LookupResult::Object(revision));
    let mut pod = pod();
    pod["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .extend(labels.as_object().unwrap().clone());
    let found = applied(&pod, review(&request(&pod, uid), Options::default(), &known));
    let image = found["spec"]["containers"][1]["image"]
        .as_str()
        .unwrap()
        .to_owned();
    let record: Value = serde_json::from_str(annotation(&found, HASH)).unwrap();
    let revision = if image == "c:1" { "s-old" } else { "s-1" };
    assert_eq!(record["s"]["controllerRevision"], revision);
    assert_eq!(record["s"]["hash"] == "full", image == "c:1");
    image
}

#[test]
fn a_revision_that_is_named_is_injected() {
    assert_eq!(
        image(
            "Always",
            json!({"selector": {"matchLabels": {"x": "y"}}}),
            "u",
            json!({})
        ),
        "c:1"
    );
    assert_eq!(image("Partial", json!({"paused": true}), "u", json!({})), "c:1");
    let (set, wanted, _) = versioned("Always", json!({}));
    let wanted = wanted.lookup();
    let mut known = known(&[set]);
    let asked = review(&request(&pod(), "u"), Options::default(), &known);
    assert_eq!(asked, Outcome::Missing(vec![wanted.clone()]));
    let no_set = LookupResult::Object(json!({"data": {"spec": 1}}));
    for bad in [LookupResult::NotFound, no_set] {
        known.insert(wanted.clone(), bad);
        let refused = review(&request(&pod(), "u"), Options::default(), &known);
        assert!(
            matches!(refused, Outcome::Response(Response::Deny { code: 500, .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn part_of_the_pods_get_a_revision_by_selector_or_by_chance() {
    let update = json!({"selector": {"matchLabels": {"version": "canary"}}, "partition": 3});
    assert_eq!(
        image("Partial", update.clone(), "u", json!({"version": "stable"})),
        "c:1"
    );
    assert_eq!(image("Partial", update, "u", json!({"version": "canary"})), "c:2");
    for (partition, expected) in [("70%", 640..760), ("12.5%", 85..165)] {
        let update = json!({"partition": partition});
        let old = (0..1000)
            .filter(|n| image("Partial", update.clone(), &format!("uid-{n}"), json!({})) == "c:1")
            .count();
        assert!(expected.contains(&old), "{partition}: {old}");
    }
    assert_eq!(
        image("Partial", json!({"partition": "0%"}), "u", json!({})),
        "c:2"
    );
    assert_eq!(
        image("Partial", json!({"partition": "100%"}), "u", json!({})),
        "c:1"
    );
}

#[test]
fn chance_decides_once_for_a_pod_that_passes_two_webhooks() {
    let (set, wanted, revision) = versioned("Partial", json!({"partition": "50%"}));
    let mut known = known(&[set]);
    known.insert(wanted.lookup(), LookupResult::Object(revision));
    let passed =
        |pod: &Value, uid: &str| applied(pod, review(&request(pod, uid), Options::default(), &known));
    let mut images = std::collections::BTreeSet::new();
    for n in 0..50 {
        let first = passed(&pod(), &format!("first-{n}"));
        assert_eq!(passed(&first, &format!("second-{n}")), first);
        images.insert(first["spec"]["containers"][1]["image"].to_string());
    }
    assert_eq!(images.len(), 2, "both were drawn");
}

#[test]
fn a_sidecar_that_is_upgraded_hot_becomes_two_containers() {
    let own = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}});
    let found = inject(
        &pod(),
        &[set(
            "s",
            json!({"containers": [sidecar("mesh", "AfterAppContainer", own)]}),
        )],
    );
    let containers = &found["spec"]["containers"];
    assert_eq!(names(containers), ["main", "mesh-1", "mesh-2"]);
    assert_eq!(
        (&containers[1]["image"], &containers[2]["image"]),
        (&json!("mesh:1"), &json!("empty:1"))
    );
    assert_eq!(
        names(&containers[2]["env"]),
        ["IS_INJECTED", "SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"]
    );
    assert_eq!(
        containers[2]["env"][2]["valueFrom"]["fieldRef"]["fieldPath"],
        "metadata.annotations['versionalt.sidecarset.kruise.io/mesh-2']"
    );
    for (key, value) in [
        ("version.sidecarset.kruise.io/mesh-1", "1"),
        ("versionalt.sidecarset.kruise.io/mesh-1", "0"),
        ("version.sidecarset.kruise.io/mesh-2", "0"),
        ("versionalt.sidecarset.kruise.io/mesh-2", "1"),
        (
            "kruise.io/sidecarset-working-hotupgrade-container",
            r#"{"mesh":"mesh-1"}"#,
        ),
    ] {
        assert_eq!(annotation(&found, key), value);
    }
    let record: Value = serde_json::from_str(annotation(&found, HASH)).unwrap();
    assert_eq!(record["s"]["sidecarList"], json!(["mesh"]));
}

fn with_policy(regex: &str, expressions: Value) -> Value {
    let policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": regex, "resourcesExpr": expressions});
    set(
        "s",
        json!({"containers": [sidecar("c", "AfterAppContainer", json!({"resourcesPolicy": policy}))]}),
    )
}

#[test]
fn resources_are_computed_from_those_of_the_pod() {
    let mut pod = pod();
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "200m"}});
    pod["spec"]["initContainers"] = json!([
        {"name": "native", "restartPolicy": "Always", "resources": {"limits": {"cpu": "400m"}}},
        {"name": "plain", "resources": {"limits": {"cpu": "9"}}},
    ]);
    let expressions =
        json!({"limits": {"cpu": "cpu*50%", "memory": "200Mi"}, "requests": {"cpu": "cpu*10%"}});
    let found = inject(&pod, &[with_policy(".*", expressions.clone())]);
    assert_eq!(
        found["spec"]["containers"][1]["resources"],
        json!({"limits": {"cpu": "300m"}, "requests": {"cpu": "0"}})
    );
    pod["spec"]["containers"][0]["resources"] = json!({});
    let found = inject(&pod, &[with_policy(".*", expressions)]);
    assert_eq!(
        found["spec"]["containers"][1]["resources"],
        json!({"requests": {"cpu": "0"}})
    );
}

#[test]
fn resources_that_cannot_be_computed_refuse_the_pod() {
    let message = refusal(
        &pod(),
        &[with_policy("^nobody$", json!({"limits": {"cpu": "cpu"}}))],
    );
    assert!(
        message.contains("no containers match the regex pattern"),
        "{message}"
    );
    let message = refusal(
        &pod(),
        &[with_policy(".*", json!({"requests": {"cpu": "cpu-1"}}))],
    );
    assert!(message.contains("negative"), "{message}");
}

#[test]
fn annotations_are_patched_by_policy() {
    let patch = |policy: &str, value: &str| json!([{"annotations": {"k": value}, "patchPolicy": policy}]);
    let patched = |present: Option<&str>, policy: &str, value: &str| {
        let mut pod = pod();
        if let Some(present) = present {
            pod["metadata"]["annotations"] = json!({"k": present});
        }
        let sets = [set(
            "s",
            json!({"containers": [after("c")], "patchPodMetadata": patch(policy, value)}),
        )];
        annotation(&inject(&pod, &sets), "k").to_owned()
    };
    assert_eq!(patched(Some("old"), "Retain", "new"), "old");
    assert_eq!(patched(None, "Retain", "new"), "new");
    assert_eq!(patched(Some("old"), "Overwrite", "new"), "new");
    assert_eq!(
        patched(Some(r#"{"a":1}"#), "MergePatchJson", r#"{"b":2}"#),
        r#"{"a":1,"b":2}"#
    );
    assert_eq!(patched(Some(""), "MergePatchJson", "verbatim"), "verbatim");
    let mut pod = pod();
    pod["metadata"]["annotations"] = json!({"k": "no json"});
    let sets = [set(
        "s",
        json!({"containers": [after("c")], "patchPodMetadata": patch("MergePatchJson", "{}")}),
    )];
    assert!(refusal(&pod, &sets).contains("is not JSON"));
    let sets = [set("s", json!({"patchPodMetadata": patch("Overwrite", "new")}))];
    let found = inject(&pod, &sets);
    assert_eq!(found["metadata"]["annotations"], json!({"k": "new"}));
}

#[test]
fn a_container_of_the_same_name_is_replaced_where_it_is() {
    let mut pod = pod();
    pod["spec"]["containers"] = json!([{"name": "x"}, {"name": "c"}, {"name": "y"}]);
    let found = inject(&pod, &[set("s", json!({"containers": [before("c")]}))]);
    assert_eq!(names(&found["spec"]["containers"]), ["x", "c", "y"]);
    assert_eq!(found["spec"]["containers"][1]["image"], "c:1");
}

#[test]
fn records_of_other_sets_stay_and_unreadable_ones_refuse_the_pod() {
    let mut pod = pod();
    pod["metadata"]["annotations"] = json!({
        HASH: r#"{"gone":"h"}"#, "kruise.io/sidecarset-injected-list": "gone",
    });
    let sets = [set("s", json!({"containers": [after("c")]}))];
    let found = inject(&pod, &sets);
    let record: Value = serde_json::from_str(annotation(&found, HASH)).unwrap();
    assert_eq!(record["gone"]["hash"], "h");
    assert_eq!(annotation(&found, "kruise.io/sidecarset-injected-list"), "gone,s");
    pod["metadata"]["annotations"][HASH] = "no record".into();
    assert!(refusal(&pod, &sets).contains(HASH));
}
