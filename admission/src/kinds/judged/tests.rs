use std::cell::RefCell;

use serde_json::{Value, json};

use crate::kinds::testing::{decided, put, quiet, sample, webhooks_of};
use crate::lookup::{Cause, Lookup, LookupResult};
use crate::table::Phase;
use crate::{Options, Request, Response};

/// What a server says of a template in these tests.
type Says = fn(&Value) -> Vec<Cause>;

fn cause(field: &str, message: &str) -> Cause {
    Cause {
        field: field.to_owned(),
        message: message.to_owned(),
    }
}

/// Refuses a template for its policy of names and for its first container's name; a real one has more rules.
fn strict(template: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if template.pointer("/spec/schedulerName") == Some(&json!("bad")) {
        causes.push(cause("spec.schedulerName", "Invalid value: \"bad\": is bad"));
    }
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    for (index, container) in containers.into_iter().flatten().enumerate() {
        if container["workingDir"] == "bad" {
            let field = format!("spec.containers[{index}].workingDir");
            causes.push(cause(&field, "Invalid value: \"bad\": is bad"));
        }
    }
    causes
}

/// A review of a kind, and the templates that the server was asked about, with their namespaces.
fn reviewed(kind: &str, object: &Value, old: &Value, says: Says) -> (Option<String>, Vec<(String, Value)>) {
    let webhooks = webhooks_of(kind);
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    let request = Request::from_review(json!({
        "kind": {"group": webhooks.kind.group, "version": version, "kind": kind},
        "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
        "operation": if old.is_null() { "CREATE" } else { "UPDATE" }, "object": object, "oldObject": old,
    }))
    .unwrap();
    let asked = RefCell::default();
    let answer = |lookup: &Lookup| match lookup {
        Lookup::PodTemplate { namespace, template } => {
            let template: Value = serde_json::from_str(template).unwrap();
            let causes = says(&template);
            Vec::push(&mut asked.borrow_mut(), (namespace.clone(), template));
            LookupResult::Causes(causes)
        }
        other => quiet(other),
    };
    let response = decided(webhooks, Phase::Validating, &request, Options::DEFAULT, &answer);
    let message = match response {
        Response::Deny { code, message, .. } => Some(format!("{code} {message}")),
        Response::Allow { .. } => None,
    };
    (message, asked.into_inner())
}

/// The sample of a kind in a namespace, with this member of the pod specification at a JSON pointer.
fn with(kind: &str, pod: &str, name: &str, value: &Value) -> Value {
    let (_, mut object) = sample(kind);
    object["metadata"]["namespace"] = json!("shop");
    put(&mut object, &format!("{pod}.{name}"), value);
    object
}

const KINDS: [(&str, &str); 4] = [
    ("CloneSet", "spec.template.spec"),
    ("StatefulSet", "spec.template.spec"),
    ("DaemonSet", "spec.template.spec"),
    ("BroadcastJob", "spec.template.spec"),
];

#[test]
fn what_the_server_finds_wrong_is_refused_where_the_object_has_it() {
    for (kind, pod) in KINDS {
        let bad = with(kind, pod, "schedulerName", &json!("bad"));
        let (message, asked) = reviewed(kind, &bad, &Value::Null, strict);
        let message = message.unwrap_or_else(|| panic!("{kind} passed"));
        let expected = format!("is invalid: {pod}.schedulerName: Invalid value: \"bad\": is bad");
        assert!(
            message.starts_with("422 ") && message.ends_with(&expected),
            "{message}"
        );
        assert_eq!(asked.len(), 1, "{kind}: one request");
        assert_eq!(asked[0].0, "shop");
        let good = with(kind, pod, "schedulerName", &json!("good"));
        let (message, asked) = reviewed(kind, &good, &Value::Null, strict);
        assert_eq!((message, asked.len()), (None, 1), "{kind}");
    }
}

#[test]
fn an_update_asks_about_templates_that_changed_and_excuses_what_is_stored() {
    for (kind, pod) in KINDS {
        let good = with(kind, pod, "schedulerName", &json!("good"));
        let mut scaled = good.clone();
        scaled["spec"]["minReadySeconds"] = json!(7);
        let (_, asked) = reviewed(kind, &scaled, &good, strict);
        assert_eq!(asked.len(), 0, "{kind}: the same template");
        let other = with(kind, pod, "schedulerName", &json!("other"));
        let (message, asked) = reviewed(kind, &other, &good, strict);
        assert_eq!((message, asked.len()), (None, 1), "{kind}: a good one");
        let bad = with(kind, pod, "schedulerName", &json!("bad"));
        let (message, asked) = reviewed(kind, &bad, &good, strict);
        assert!(
            message.is_some() && asked.len() == 2,
            "{kind}: the stored one is asked about, too"
        );
        let mut relabelled = bad.clone();
        put(&mut relabelled, &format!("{pod}.dnsPolicy"), &json!("Default"));
        let (message, asked) = reviewed(kind, &relabelled, &bad, strict);
        assert_eq!((message, asked.len()), (None, 2), "{kind}: it is stored");
        put(
            &mut relabelled,
            &format!("{pod}.containers.0.workingDir"),
            &json!("bad"),
        );
        let (message, _) = reviewed(kind, &relabelled, &bad, strict);
        let message = message.unwrap_or_else(|| panic!("{kind} passed"));
        assert!(
            message.contains(&format!("{pod}.containers[0].workingDir")),
            "{message}"
        );
        assert!(!message.contains("schedulerName"), "{message}");
    }
}

#[test]
fn what_other_rules_refuse_is_not_asked_about() {
    let bad = with(
        "CloneSet",
        "spec.template.spec",
        "restartPolicy",
        &json!("Sometimes"),
    );
    let (message, asked) = reviewed("CloneSet", &bad, &Value::Null, strict);
    assert!(message.is_some() && asked.is_empty());
}

#[test]
fn claims_are_volumes_of_the_template() {
    let (_, mut set) = sample("StatefulSet");
    let claim =
        json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]);
    set["spec"]["volumeClaimTemplates"] = claim;
    let volumes = json!([{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
    put(&mut set, "spec.template.spec.volumes", &volumes);
    let (message, asked) = reviewed("StatefulSet", &set, &Value::Null, strict);
    assert_eq!(message, None);
    let claimed = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    assert_eq!(asked[0].1["spec"]["volumes"], json!([volumes[0], claimed]));
}

#[test]
fn templates_inside_of_templates_are_found_with_their_own_paths() {
    let pods = json!({"spec": {"schedulerName": "bad", "restartPolicy": "Never",
                               "containers": [{"name": "main", "image": "job:1"}]}});
    for name in ["jobTemplate", "broadcastJobTemplate"] {
        let (_, mut schedule) = sample("AdvancedCronJob");
        schedule["spec"]["template"] = json!({name: {"spec": {"template": pods}}});
        let (message, asked) = reviewed("AdvancedCronJob", &schedule, &Value::Null, strict);
        let path = format!("spec.template.{name}.spec.template.spec.schedulerName: ");
        assert!(message.is_some_and(|message| message.contains(&path)), "{name}");
        assert_eq!(asked.len(), 1);
    }
}

#[test]
fn each_subset_is_asked_about_whose_patch_makes_another_template() {
    let (_, mut united) = sample("UnitedDeployment");
    let subsets = |patch: Value| json!({"subsets": [{"name": "zone-a"}, {"name": "zone-b", "patch": patch}]});
    united["spec"]["topology"] = subsets(json!({"spec": {"schedulerName": "bad"}}));
    let (message, asked) = reviewed("UnitedDeployment", &united, &Value::Null, strict);
    let path = "spec.topology.subsets[1].patch.spec.schedulerName: ";
    assert!(
        message.as_ref().is_some_and(|message| message.contains(path)),
        "{message:?}"
    );
    assert_eq!(asked.len(), 2, "the template, and what the patch makes of it");
    let mut changed = united.clone();
    changed["spec"]["topology"] = subsets(json!({"spec": {"schedulerName": "good"}}));
    let (message, asked) = reviewed("UnitedDeployment", &changed, &united, strict);
    assert_eq!((message, asked.len()), (None, 1), "the template is the same");
    // Its place in the list is not what makes it another one.
    let mut moved = united.clone();
    moved["spec"]["topology"]["subsets"]
        .as_array_mut()
        .unwrap()
        .reverse();
    let (message, asked) = reviewed("UnitedDeployment", &moved, &united, strict);
    assert_eq!((message, asked.len()), (None, 0));
}

#[test]
fn a_sidecarset_is_asked_about_as_a_pod_of_its_containers() {
    let (_, mut set) = sample("SidecarSet");
    put(&mut set, "spec.containers.0.workingDir", &json!("bad"));
    let (message, asked) = reviewed("SidecarSet", &set, &Value::Null, strict);
    let path = "is invalid: spec.containers[0].workingDir: Invalid value";
    assert!(
        message.as_ref().is_some_and(|message| message.contains(path)),
        "{message:?}"
    );
    assert_eq!(
        (asked.len(), asked[0].0.as_str()),
        (1, ""),
        "it is in no namespace"
    );
}
