use serde_json::json;

use super::*;
use crate::Options;
use crate::kinds::testing::{Case, case};

const CASE: Case = case("StatefulSet", good);
const RESIZED: Options = Options {
    claims_resized: true,
    ..Options::DEFAULT
};

/// A change of claim templates.
type Edit = fn(&mut Value);

fn good() -> Value {
    json!({
        "replicas": 3,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                "containers": [{"name": "main", "image": "db:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            },
        },
        "volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }],
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2,
        }},
    })
}

fn bare() -> Value {
    let mut spec = good();
    for name in ["replicas", "podManagementPolicy", "updateStrategy"] {
        spec.as_object_mut().unwrap().remove(name);
    }
    spec["newerThanUs"] = json!({"a": 1});
    spec
}

#[test]
fn what_is_left_out_is_filled_in() {
    for version in ["v1alpha1", "v1beta1"] {
        let found = CASE.mutated(version, &bare());
        let newer = version == "v1beta1";
        assert_eq!(found["replicas"], 1);
        assert_eq!(found["revisionHistoryLimit"], 10);
        assert_eq!(found["podManagementPolicy"], "OrderedReady");
        assert_eq!(found["newerThanUs"], json!({"a": 1}));
        assert_eq!(
            found["updateStrategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {
                "partition": 0, "maxUnavailable": 1, "podUpdatePolicy": "ReCreate", "minReadySeconds": 0,
            }})
        );
        assert_eq!(found["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        assert_eq!(
            found["template"]["spec"]["containers"][0]["imagePullPolicy"],
            "Always"
        );
        assert_eq!(found["volumeClaimTemplates"][0]["status"]["phase"], "Pending");
        assert_eq!(found["volumeClaimTemplates"][0]["spec"].get("volumeMode"), None);
        let retention = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
        let found = found.get("persistentVolumeClaimRetentionPolicy");
        assert_eq!(found, newer.then_some(&retention));
    }
}

#[test]
fn gates_decide_about_claims_and_templates() {
    let with = |options| CASE.with(options).mutated("v1beta1", &bare());
    let found = with(Options {
        claims_deleted: false,
        template_defaults: false,
        ..Options::DEFAULT
    });
    assert_eq!(found.get("persistentVolumeClaimRetentionPolicy"), None);
    assert_eq!(found["template"], good()["template"]);
    assert_eq!(found["volumeClaimTemplates"], good()["volumeClaimTemplates"]);
    let found = with(RESIZED);
    assert_eq!(found["volumeClaimUpdateStrategy"], json!({"type": "OnDelete"}));
}

#[test]
fn on_delete_gets_no_parameters_and_may_have_none() {
    let mut spec = good();
    spec["updateStrategy"] = json!({"type": "OnDelete"});
    let found = CASE.mutated("v1beta1", &spec);
    assert_eq!(found["updateStrategy"], json!({"type": "OnDelete"}));
    assert_eq!(CASE.refused("v1beta1", &found), None);
}

#[test]
fn a_stored_template_is_completed_only_when_it_changes() {
    let old = CASE.object("v1beta1", &good());
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(5);
    let found = CASE.mutated_object("UPDATE", &new, &old);
    for name in ["template", "volumeClaimTemplates"] {
        assert_eq!(found["spec"][name], old["spec"][name]);
    }
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    let found = CASE.mutated_object("UPDATE", &new, &old);
    assert_eq!(found["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
}

#[test]
#[rustfmt::skip]
fn every_broken_rule_names_its_field() {
    const ROLLING: &str = "updateStrategy.rollingUpdate";
    let at = |name: &str| format!("{ROLLING}.{name}");
    let (partition, ready, unavailable) = (at("partition"), at("minReadySeconds"), at("maxUnavailable"));
    let (policy, unordered) = (at("podUpdatePolicy"), at("unorderedUpdate"));
    CASE.each_is_refused(&[
        ("replicas", json!(-1), "spec.replicas: Invalid value: -1"),
        ("revisionHistoryLimit", json!(-1), "spec.revisionHistoryLimit: Invalid value: -1"),
        ("ordinals", json!({"start": -1}), "spec.ordinals.start: Invalid value: -1"),
        ("updateStrategy.rollingUpdate.inPlaceUpdateStrategy", json!({"gracePeriodSeconds": -1}), "rollingUpdate.inPlaceUpdateStrategy.gracePeriodSeconds: Invalid value: -1"),
        ("volumeClaimTemplates", json!([{"metadata": {"name": "data"}, "spec": {}}]), "spec.volumeClaimTemplates[0].spec.resources.requests.storage: Required"),
        ("podManagementPolicy", Value::Null, "spec.podManagementPolicy: Required"),
        ("podManagementPolicy", json!("Random"), "spec.podManagementPolicy: Unsupported"),
        ("podManagementPolicy", json!("OrderedReady"), "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 2: can only work with Parallel"),
        ("reserveOrdinals", json!([0, "1-3", "0003-005", -1]), "spec.reserveOrdinals[3]: Invalid value: -1"),
        ("reserveOrdinals", json!(["5-2"]), "spec.reserveOrdinals[0]: Invalid value: \"5-2\""),
        ("reserveOrdinals", json!(["a-b"]), "spec.reserveOrdinals[0]: Invalid"),
        ("reserveOrdinals", json!(["5"]), "spec.reserveOrdinals[0]: Invalid"),
        ("scaleStrategy", json!({"maxUnavailable": 0}), "spec.scaleStrategy.maxUnavailable: Invalid value: 0"),
        ("scaleStrategy", json!({"maxUnavailable": "x"}), "spec.scaleStrategy.maxUnavailable: Invalid value: \"x\""),
        ("persistentVolumeClaimRetentionPolicy", json!({"whenDeleted": "Keep", "whenScaled": "Retain"}), "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported"),
        ("persistentVolumeClaimRetentionPolicy", json!({"whenDeleted": "Retain"}), "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Required"),
        ("selector", Value::Null, "spec.selector: Required"),
        ("selector", json!({}), "spec.selector: Invalid"),
        ("selector.matchLabels", json!({"app": "web"}), "spec.template.metadata.labels: Invalid"),
        ("template.spec.containers.0.name", json!("A"), "spec.template.spec.containers[0].name: Invalid"),
        ("template.spec.restartPolicy", json!("Never"), "spec.template.spec.restartPolicy: Unsupported"),
        ("template.spec.activeDeadlineSeconds", json!(1), "spec.template.spec.activeDeadlineSeconds: Forbidden"),
        ("template.spec.readinessGates", json!([]), "spec.template.spec.readinessGates: Invalid"),
        ("volumeClaimTemplates.0.metadata.name", json!("a b"), "spec.volumeClaimTemplates[0].metadata.name: Invalid"),
        ("updateStrategy", json!({}), "spec.updateStrategy.type: Required"),
        ("updateStrategy.type", json!("Sometimes"), "spec.updateStrategy.type: Unsupported"),
        ("updateStrategy.type", json!("OnDelete"), "spec.updateStrategy.rollingUpdate: Invalid"),
        (&partition, json!(-1), "rollingUpdate.partition: Invalid value: -1"),
        (&ready, json!(-1), "rollingUpdate.minReadySeconds: Invalid value: -1"),
        (&ready, json!(301), "rollingUpdate.minReadySeconds: Invalid value: 301"),
        (&unavailable, Value::Null, "rollingUpdate.maxUnavailable: Required"),
        (&unavailable, json!(0), "rollingUpdate.maxUnavailable: Invalid value: 0: should not be less than 1"),
        (&unavailable, json!("0%"), "rollingUpdate.maxUnavailable: Invalid value: \"0%\""),
        (&unavailable, json!(-1), "rollingUpdate.maxUnavailable: Invalid value: -1"),
        (&unavailable, json!("half"), "rollingUpdate.maxUnavailable: Invalid value: \"half\""),
        (&policy, Value::Null, "rollingUpdate.podUpdatePolicy: Required"),
        (&policy, json!("Magic"), "rollingUpdate.podUpdatePolicy: Unsupported"),
        (&unordered, json!({"priorityStrategy": {"orderPriority": [{"orderedKey": ""}]}}), "rollingUpdate.unorderedUpdate.priorityStrategy.orderPriority[0].orderedKey: Required"),
    ]);
}

#[test]
fn one_pod_after_the_other_knows_neither_an_order_nor_a_share() {
    let mut spec = good();
    spec["podManagementPolicy"] = json!("OrderedReady");
    spec["scaleStrategy"] = json!({"maxUnavailable": "10%"});
    spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!(1);
    spec["updateStrategy"]["rollingUpdate"]["unorderedUpdate"] = json!({});
    let message = CASE.refused("v1beta1", &spec).unwrap();
    for path in [
        "spec.scaleStrategy.maxUnavailable: Invalid",
        "spec.updateStrategy.rollingUpdate.unorderedUpdate: Forbidden",
    ] {
        assert!(message.contains(path), "{message}");
    }
    assert!(!message.contains("rollingUpdate.maxUnavailable"), "{message}");
}

#[test]
fn shares_may_exceed_all() {
    let mut spec = good();
    spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!("150%");
    assert_eq!(CASE.refused("v1beta1", &spec), None);
}

#[test]
fn a_name_is_a_label() {
    let mut set = CASE.object("v1beta1", &good());
    set["metadata"]["name"] = json!("a.b");
    let (code, message) = CASE.refusal("CREATE", &set, &Value::Null).unwrap();
    assert!(
        code == 422 && message.contains("metadata.name: Invalid"),
        "{message}"
    );
}

#[test]
fn identity_stays() {
    for (path, value) in [
        ("serviceName", json!("other")),
        ("podManagementPolicy", json!("OrderedReady")),
        ("selector", json!({"matchLabels": {"app": "db", "tier": "one"}})),
    ] {
        let mut new = good();
        new["template"]["metadata"]["labels"]["tier"] = json!("one");
        new["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!(1);
        new[path] = value;
        let message = CASE.update_refused(&good(), &new).unwrap();
        assert!(message.contains(&format!("spec.{path}: Invalid")), "{message}");
    }
    let mut old = good();
    old.as_object_mut().unwrap().remove("podManagementPolicy");
    let mut new = CASE.mutated("v1beta1", &old);
    new["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!(1);
    new["serviceName"] = json!("");
    assert_eq!(CASE.update_refused(&old, &new), None);
}

#[test]
fn everything_else_may_change() {
    let mut new = good();
    new["replicas"] = json!(0);
    new["template"]["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "b"}]);
    new["updateStrategy"] = json!({"type": "OnDelete"});
    new["reserveOrdinals"] = json!([1]);
    new["ordinals"] = json!({"start": 4});
    new["lifecycle"] = json!({"preDelete": {"markPodNotReady": true}});
    new["volumeClaimTemplates"][0]["spec"]["storageClassName"] = json!("fast");
    new["volumeClaimUpdateStrategy"] = json!({"type": "OnPodRollingUpdate"});
    new["persistentVolumeClaimRetentionPolicy"] = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    new["scaleStrategy"] = json!({"maxUnavailable": "20%"});
    new["revisionHistoryLimit"] = json!(0);
    assert_eq!(CASE.update_refused(&good(), &new), None);
}

#[test]
fn in_place_only_refuses_what_recreates() {
    let mut old = good();
    old["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = json!("InPlaceOnly");
    let mut image = old.clone();
    image["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    assert_eq!(CASE.update_refused(&old, &image), None);
    let mut policy = old.clone();
    policy["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
    let message = CASE.update_refused(&old, &policy).unwrap();
    assert!(message.contains("spec.template: Forbidden"), "{message}");
    let mut setup = old.clone();
    setup["template"]["spec"]["initContainers"] = json!([{"name": "setup", "image": "setup:1"}]);
    let mut other = setup.clone();
    other["template"]["spec"]["initContainers"][0]["image"] = json!("setup:2");
    let message = CASE.update_refused(&setup, &other).unwrap();
    assert!(message.contains("spec.template: Forbidden"), "{message}");
    let mut labelled = old.clone();
    labelled["template"]["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(CASE.update_refused(&old, &labelled), None);
}

#[test]
fn in_place_only_changes_cpu_and_memory_with_the_gate() {
    let mut old = good();
    old["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = json!("InPlaceOnly");
    let amounts = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": "2"}});
    old["template"]["spec"]["containers"][0]["resources"] = amounts("500m");
    let mut new = old.clone();
    new["template"]["spec"]["containers"][0]["resources"] = amounts("1");
    let mut moved = new.clone();
    moved["template"]["spec"]["hostNetwork"] = json!(true);
    for vertical_scaling in [true, false] {
        let case = CASE.with(Options {
            vertical_scaling,
            ..Options::DEFAULT
        });
        assert_eq!(case.update_refused(&old, &new).is_none(), vertical_scaling);
        assert!(case.update_refused(&old, &moved).is_some());
    }
}

#[test]
fn in_place_only_compares_what_was_stored_without_defaults_by_its_meaning() {
    let mut bare = good();
    bare["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = json!("InPlaceOnly");
    let mut complete = CASE.mutated("v1beta1", &bare);
    complete["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    let case = CASE.with(Options {
        template_defaults: false,
        ..Options::DEFAULT
    });
    for case in [CASE, case] {
        assert_eq!(case.update_refused(&bare, &complete), None);
        assert_eq!(case.update_refused(&complete, &bare), None);
    }
}

#[test]
fn a_range_of_two_billion_ordinals_is_accepted_and_nothing_counts_them() {
    let mut spec = good();
    spec["reserveOrdinals"] = json!(["0-2147483647", "1-9223372036854775807"]);
    assert_eq!(CASE.refused("v1beta1", &spec), None);
    spec["reserveOrdinals"] = json!(["0-9223372036854775808"]);
    let message = CASE.refused("v1beta1", &spec).unwrap();
    assert!(message.contains("spec.reserveOrdinals[0]: Invalid"), "{message}");
}

#[test]
fn what_has_no_effect_is_accepted_with_a_warning() {
    let warned = |spec: Value, options: Options| {
        let set = CASE.object("v1beta1", &spec);
        CASE.with(options).warnings("CREATE", &set, &Value::Null)
    };
    let mut unknown = good();
    unknown["volumeClaimUpdateStrategy"] = json!({"type": "Always"});
    let text = "spec.volumeClaimUpdateStrategy.type: Always is read as OnDelete";
    assert_eq!(warned(unknown, Options::DEFAULT), [text]);
    let off = Options {
        claims_deleted: false,
        ..Options::DEFAULT
    };
    let on = Options {
        start_ordinal: true,
        ..RESIZED
    };
    let retention = |when: &str| {
        let mut policy = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
        policy[when] = json!("Delete");
        policy
    };
    for (field, value, gate) in [
        (
            "volumeClaimUpdateStrategy",
            json!({"type": "OnPodRollingUpdate"}),
            "StatefulSetAutoResizePVCGate",
        ),
        (
            "persistentVolumeClaimRetentionPolicy",
            retention("whenDeleted"),
            "StatefulSetAutoDeletePVC",
        ),
        (
            "persistentVolumeClaimRetentionPolicy",
            retention("whenScaled"),
            "StatefulSetAutoDeletePVC",
        ),
        ("ordinals", json!({"start": 5}), "StatefulSetStartOrdinal"),
    ] {
        let mut spec = good();
        spec[field] = value;
        let texts = warned(spec.clone(), off);
        assert!(
            texts.len() == 1 && texts[0].starts_with(&format!("spec.{field}")) && texts[0].contains(gate),
            "{texts:?}"
        );
        assert_eq!(warned(spec, on), [""; 0], "{field}");
    }
    let mut without = good();
    without["ordinals"] = json!({"start": 0});
    without["volumeClaimUpdateStrategy"] = json!({"type": "OnDelete"});
    assert_eq!(warned(without, off), [""; 0]);
}

#[test]
fn claims_that_follow_their_templates_can_only_be_resized() {
    let case = CASE.with(RESIZED);
    let mut old = good();
    old["volumeClaimUpdateStrategy"] = json!({"type": "OnPodRollingUpdate"});
    old["volumeClaimTemplates"][0]["spec"]["storageClassName"] = json!("slow");
    let with = |edit: Edit| {
        let mut new = old.clone();
        edit(&mut new["volumeClaimTemplates"]);
        case.update_refused(&old, &new)
    };
    assert_eq!(
        with(|claims| claims[0]["spec"]["resources"]["requests"]["storage"] = json!("2Gi")),
        None
    );
    let broken: [(Edit, &str); 4] = [
        (
            |claims| claims[0]["metadata"]["name"] = json!("other"),
            "spec.volumeClaimTemplates[0]: Forbidden",
        ),
        (
            |claims| claims[0]["spec"]["accessModes"] = json!([]),
            "[0].spec.accessModes: Invalid",
        ),
        (
            |claims| claims[0]["spec"]["storageClassName"] = json!("fast"),
            "[0].spec.storageClassName: Invalid",
        ),
        (
            |claims| *claims = json!([claims[0], {"metadata": {"name": "more"}}]),
            "spec.volumeClaimTemplates: Invalid value: 2",
        ),
    ];
    for (edit, expected) in broken {
        let message = with(edit).unwrap();
        assert!(message.contains(expected), "{message}\nexpected {expected}");
    }
    let mut left = old.clone();
    left["volumeClaimUpdateStrategy"]["type"] = json!("OnDelete");
    left["volumeClaimTemplates"][0]["spec"]["accessModes"] = json!(["ReadWriteMany"]);
    assert_eq!(case.update_refused(&old, &left), None);
    // The new strategy decides, not the stored one.
    let mut taken_up = left.clone();
    taken_up["volumeClaimUpdateStrategy"]["type"] = json!("OnPodRollingUpdate");
    taken_up["volumeClaimTemplates"] = old["volumeClaimTemplates"].clone();
    let message = case.update_refused(&left, &taken_up).unwrap();
    assert!(message.contains("[0].spec.accessModes: Invalid"), "{message}");
}

#[test]
fn a_write_through_the_older_version_keeps_what_only_the_newer_one_has() {
    let mut spec = good();
    let newer_only = json!({
        "reserveOrdinals": [1, "4-6"],
        "lifecycle": {"preDelete": {"labelsHandler": {"hold": "true"}}},
        "scaleStrategy": {"maxUnavailable": 2},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        "ordinals": {"start": 3},
        "volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"},
    });
    for (name, value) in newer_only.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let spec = CASE.mutated("v1beta1", &spec);
    let stored = CASE.object("v1beta1", &spec);
    let mut older = stored.clone();
    kruise_api::kinds::convert(&kruise_api::kinds::ALL, &mut older, "apps.kruise.io/v1alpha1").unwrap();
    for name in newer_only.as_object().unwrap().keys() {
        assert_eq!(older["spec"].get(name), None);
    }
    let mut edited = older.clone();
    edited["spec"]["replicas"] = json!(5);
    edited["spec"]["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    assert_eq!(CASE.refusal("UPDATE", &edited, &older), None);
    let mut written = CASE.mutated_object("UPDATE", &edited, &older);
    kruise_api::kinds::convert(&kruise_api::kinds::ALL, &mut written, "apps.kruise.io/v1beta1").unwrap();
    let mut expected = spec;
    expected["replicas"] = json!(5);
    expected["template"]["spec"]["containers"][0]["image"] = json!("db:2");
    assert_eq!(written["spec"], expected);
    assert_eq!(written["metadata"].get("annotations"), None);
}

#[test]
fn what_the_older_version_cannot_say_is_judged_as_it_is_kept() {
    let mut newer = CASE.object("v1beta1", &good());
    newer["spec"]["reserveOrdinals"] = json!(["5-2"]);
    let mut older = newer.clone();
    kruise_api::kinds::convert(&kruise_api::kinds::ALL, &mut older, "apps.kruise.io/v1alpha1").unwrap();
    assert_eq!(older["spec"].get("reserveOrdinals"), None);
    let (_, message) = CASE.refusal("CREATE", &older, &Value::Null).unwrap();
    assert!(message.contains("spec.reserveOrdinals[0]"), "{message}");
}

#[test]
fn protected_sets_stay_when_the_gate_is_on() {
    let mut set = CASE.object("v1beta1", &good());
    set["metadata"]["labels"] = json!({"policy.kruise.io/delete-protection": "Cascading"});
    let delete = |set: &Value, deletion_protection| {
        let options = Options {
            deletion_protection,
            ..Options::DEFAULT
        };
        CASE.with(options).refusal("DELETE", &Value::Null, set)
    };
    let (code, message) = delete(&set, true).unwrap();
    assert!(
        code == 403 && message.contains("forbidden by ResourcesProtectionDeletion"),
        "{message}"
    );
    assert_eq!(delete(&set, false), None);
    set["spec"]["replicas"] = json!(0);
    assert_eq!(delete(&set, true), None);
}
