//! Defaults of a CloneSet, as a minimal patch.
//!
//! The defaulted template is what revisions hash, so a template is completed only when it is new: on CREATE, and on
//! UPDATE when it differs from the stored one. A stored template that some other version left incomplete stays as it
//! is, or every defaulting rule added later would roll its pods.

use kube_schema::defaults;
use serde_json::Value;

use crate::kinds::Scope;
use crate::workload;

/// Fills in what the client left out.
pub(super) fn apply(object: &mut Value, scope: &Scope<'_>) {
    kruise_api::cloneset::defaults::apply(object);
    if scope.complete_template(object, workload::TEMPLATE) {
        let claims = object.pointer_mut("/spec/volumeClaimTemplates");
        let claims = claims.and_then(Value::as_array_mut);
        claims.into_iter().flatten().for_each(defaults::claim);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use go_compat::pod_template::canonical_pod_template;
    use serde_json::json;

    use super::super::WEBHOOKS;
    use super::*;
    use crate::kinds::testing::{decided, quiet};
    use crate::table::Phase;
    use crate::{Options, Request, Response};

    fn request(operation: &str, object: &Value, old: &Value) -> Request {
        let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        Request::from_review(json!({
            "kind": {"group": "apps.kruise.io", "version": version, "kind": "CloneSet"},
            "operation": operation,
            "object": object,
            "oldObject": old,
        }))
        .unwrap()
    }

    fn mutate(request: &Request, options: Options) -> Response {
        decided(&WEBHOOKS, Phase::Mutating, request, options, &quiet)
    }

    /// The object after the patch, and whether there was one.
    fn mutated(operation: &str, object: &Value, old: &Value, options: Options) -> (Value, bool) {
        let response = mutate(&request(operation, object, old), options);
        (response.applied_to(object), response != Response::ALLOW)
    }

    fn set(version: &str) -> Value {
        json!({
            "apiVersion": format!("apps.kruise.io/{version}"),
            "kind": "CloneSet",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [
                        {"name": "a", "image": "a:1", "newerThanUs": {"x": 1}},
                        {"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]},
                    ]},
                },
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"newerThanUs": true}}],
            },
        })
    }

    /// What upstream stored, in the versions it stored.
    fn stored() -> Vec<Value> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
        let mut sets = Vec::new();
        for file in [
            "1.8.4/rest-clonesets.v1alpha1.apps.kruise.io.json",
            "1.9.0/rest-clonesets.json",
            "main/rest-clonesets.json",
        ] {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            sets.extend(serde_json::from_str::<Vec<Value>>(&text).unwrap());
        }
        assert!(sets.len() >= 3, "each file has one");
        sets
    }

    #[test]
    fn unknown_fields_stay_on_their_items() {
        for version in ["v1alpha1", "v1beta1"] {
            let (after, _) = mutated("CREATE", &set(version), &Value::Null, Options::default());
            let containers = &after["spec"]["template"]["spec"]["containers"];
            assert_eq!(containers[0]["newerThanUs"], json!({"x": 1}));
            assert_eq!(containers[1].get("newerThanUs"), None);
            assert_eq!(containers[1]["ports"][0]["protocol"], "TCP");
            assert_eq!(
                after["spec"]["volumeClaimTemplates"][0]["spec"]["newerThanUs"],
                true
            );
            assert_eq!(
                after["spec"]["volumeClaimTemplates"][0]["status"]["phase"],
                "Pending"
            );
            assert_eq!(after["spec"]["replicas"], 1);
        }
    }

    #[test]
    fn a_complete_set_is_not_patched() {
        for version in ["v1alpha1", "v1beta1"] {
            let (after, patched) = mutated("CREATE", &set(version), &Value::Null, Options::default());
            assert!(patched);
            assert_eq!(
                mutated("CREATE", &after, &Value::Null, Options::default()),
                (after.clone(), false)
            );
            assert_eq!(
                mutated("UPDATE", &after, &after, Options::default()),
                (after.clone(), false)
            );
        }
        for set in stored() {
            let (_, patched) = mutated("UPDATE", &set, &set, Options::default());
            assert!(!patched, "{}", set["metadata"]["name"]);
        }
    }

    #[test]
    fn manifests_become_what_upstream_stored() {
        let mut compared = 0;
        for set in stored() {
            let applied = &set["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
            let applied: Value = serde_json::from_str(applied.as_str().unwrap()).unwrap();
            if applied["apiVersion"] != set["apiVersion"] {
                continue;
            }
            compared += 1;
            let (after, _) = mutated("CREATE", &applied, &Value::Null, Options::default());
            for (field, value) in set["spec"].as_object().unwrap() {
                match field.as_str() {
                    "template" => assert_eq!(
                        canonical_pod_template(&after["spec"]["template"]),
                        canonical_pod_template(value)
                    ),
                    // the API server prunes and fills these by the schema
                    "scaleStrategy" | "volumeClaimTemplates" => {}
                    _ => assert_eq!(
                        &after["spec"][field], value,
                        "{field} of {}",
                        set["metadata"]["name"]
                    ),
                }
            }
        }
        assert!(compared >= 8, "{compared}");
    }

    #[test]
    fn a_stored_template_is_completed_only_when_it_changes() {
        let old = set("v1beta1");
        let mut scaled = old.clone();
        scaled["spec"]["replicas"] = json!(7);
        let (after, _) = mutated("UPDATE", &scaled, &old, Options::default());
        assert_eq!(after["spec"]["template"], old["spec"]["template"]);
        assert_eq!(
            after["spec"]["volumeClaimTemplates"],
            old["spec"]["volumeClaimTemplates"]
        );
        let mut changed = old.clone();
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("a:2");
        let (after, _) = mutated("UPDATE", &changed, &old, Options::default());
        assert_eq!(after["spec"]["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        assert_eq!(
            after["spec"]["volumeClaimTemplates"][0]["status"]["phase"],
            "Pending"
        );
    }

    #[test]
    fn gates_decide_about_template_defaults() {
        let mut object = set("v1beta1");
        object["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
        let bare = Options {
            template_defaults: false,
            ..Options::default()
        };
        let (after, _) = mutated("CREATE", &object, &Value::Null, bare);
        assert_eq!(after["spec"]["template"], object["spec"]["template"]);
        assert_eq!(after["spec"]["replicas"], 1);
        let port = |options| {
            let (after, _) = mutated("CREATE", &object, &Value::Null, options);
            after["spec"]["template"]["spec"]["containers"][1]["ports"][0]["hostPort"].clone()
        };
        let with_ports = Options {
            host_ports: true,
            ..Options::default()
        };
        assert_eq!(
            (port(Options::default()), port(with_ports)),
            (Value::Null, json!(80))
        );
    }

    #[test]
    fn subresources_and_nonsense_are_told_apart() {
        let mut scale = request("UPDATE", &set("v1beta1"), &Value::Null);
        scale.sub_resource = "scale".into();
        assert_eq!(mutate(&scale, Options::default()), Response::ALLOW);
        let mut strange = set("v1beta1");
        strange["spec"]["replicas"] = json!("three");
        let answer = mutate(&request("CREATE", &strange, &Value::Null), Options::default());
        assert!(matches!(answer, Response::Deny { code: 400, .. }), "{answer:?}");
    }
}
