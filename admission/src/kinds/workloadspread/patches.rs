//! Patches of subsets. Their shape, and that they leave alone by what a workload knows its pods, need no workload;
//! what comes out of the template of the workload must still be a pod that the workload selects.
//!
//! A workload that does not exist yet, and one of a kind that only administrators know, are not looked at: then the
//! pods are refused, and the refusal names the subset.

use kruise_api::meta::LabelSelector;
use kruise_api::path::segment;
use kube_schema::validate::{self, Errors, FieldError};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::SUBSETS;
use crate::Options;
use crate::json::{items, member, present, text};
use crate::kinds::{Scope, target};
use crate::lookup::{Lookup, Reader};
use crate::patched::patched;
use crate::workload;

/// By what workloads know their pods, besides labels.
const FIXED: [&str; 3] = ["name", "namespace", "ownerReferences"];

/// Refuses patches that do not fit. On UPDATE only those are tried that no subset had before.
pub(super) fn check(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    let subsets = |object: &Value| object.pointer("/spec/subsets").cloned().unwrap_or_default();
    let stored = scope.old.map(subsets).unwrap_or_default();
    let is_new = |patch: &Value| {
        let stored = stored.as_array().into_iter().flatten();
        !stored.filter_map(|one| one.get("patch")).any(|one| one == patch)
    };
    let all = object.pointer("/spec").map(|spec| items(spec, "subsets"));
    let patches = all
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter_map(|(index, one)| {
            let patch = member(one, "patch").filter(|patch| is_new(patch))?;
            Some((format!("{SUBSETS}[{index}].patch"), patch))
        });
    let patches: Vec<(String, &Value)> = patches
        .filter(|(path, patch)| is_sound(errors, patch, path))
        .collect();
    if patches.is_empty() {
        return;
    }
    let Some(path) = path_of(object, scope) else {
        return;
    };
    let Some(found) = reader.object(Lookup::Path(path)).found() else {
        return;
    };
    for (path, patch) in patches {
        if let Err(why) = fits(found, patch, scope.options) {
            errors.invalid(path, patch.clone(), &why);
        }
    }
}

/// Does the patch fit pods, whatever is in them?
fn is_sound(errors: &mut Errors, patch: &Value, path: &str) -> bool {
    let metadata = patch.get("metadata").unwrap_or(&Value::Null);
    let mut fixed = FIXED
        .iter()
        .filter(|name| present(metadata, name).is_some())
        .peekable();
    if fixed.peek().is_some() {
        for name in fixed {
            errors.forbidden(
                format!("{path}.metadata.{name}"),
                "its workload knows a pod by it",
            );
        }
        return false;
    }
    let pod = json!({"metadata": {}, "spec": {"containers": []}});
    let Err(why) = patched(pod, patch) else {
        return true;
    };
    errors.invalid(path, patch.clone(), &why);
    false
}

/// Where the workload is.
fn path_of(object: &Value, scope: &Scope<'_>) -> Option<String> {
    let found = object.pointer("/spec/targetRef")?;
    let api = match target::group_kind(found)? {
        ("apps.kruise.io", "CloneSet") => format!("apps.kruise.io/{}", segment(scope.version)),
        // every chart serves it in this version
        ("apps.kruise.io", "StatefulSet") => "apps.kruise.io/v1beta1".to_owned(),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => "apps/v1".to_owned(),
        ("batch", "Job") => "batch/v1".to_owned(),
        _ => return None,
    };
    let name = text(found, "name");
    let plural = format!("{}s", text(found, "kind").to_lowercase());
    let namespace = segment(scope.namespace);
    validate::is_dns_subdomain(name).then(|| format!("/apis/{api}/namespaces/{namespace}/{plural}/{name}"))
}

/// What is wrong with the patched template, and was not before.
fn fits(found: &Value, patch: &Value, options: Options) -> Result<(), String> {
    let spec = found.get("spec").unwrap_or(&Value::Null);
    let template = spec.get("template").unwrap_or(&Value::Null);
    let template = json!({"metadata": template.get("metadata"), "spec": template.get("spec")});
    let patched = patched(template.clone(), patch)?;
    selected(spec.get("selector"), &template, &patched)?;
    let claims = items(spec, "volumeClaimTemplates");
    let before = errors_of(template, claims, options);
    let errors = validate::new_errors(errors_of(patched, claims, options), before);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(validate::aggregate(&errors))
    }
}

/// Does the selector of the workload still match?
fn selected(selector: Option<&Value>, before: &Value, after: &Value) -> Result<(), String> {
    let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
    let matches = |template: &Value, selector: &LabelSelector| {
        let labels = template.pointer("/metadata/labels");
        selector.matches_by(|key| labels?.get(key)?.as_str())
    };
    match selector {
        Some(selector) if matches(before, &selector) && !matches(after, &selector) => Err(
            "metadata.labels: the selector of the workload no longer matches its pods, which it would let go at once"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn errors_of(mut template: Value, claims: &[Value], options: Options) -> Vec<FieldError> {
    workload::complete(&mut template, options);
    validate::pod_template(&template, claims, "template")
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Case, case};
    use super::*;

    const SPREAD: Case = case("WorkloadSpread", || Value::Null);
    const OTHERS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/workloadspreads";
    const WEB: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/web";

    fn spread(api: &str, kind: &str, patch: &Value) -> Value {
        let spec = json!({
            "targetRef": {"apiVersion": api, "kind": kind, "name": "web"},
            "subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b", "patch": patch}],
        });
        SPREAD.object("v1beta1", &spec)
    }

    fn workload() -> Value {
        json!({"spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "main", "image": "web:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            ]}},
        }})
    }

    fn refused(api: &str, kind: &str, path: &str, patch: &Value) -> Option<String> {
        let seen = [(OTHERS, json!({"items": []})), (path, workload())];
        SPREAD.seeing(&seen, "CREATE", &spread(api, kind, patch), &Value::Null)
    }

    #[test]
    fn a_patch_that_makes_no_pod_of_the_template_is_refused() {
        let container =
            |member: &str, value: Value| json!({"spec": {"containers": [{"name": "main", member: value}]}});
        for (patch, expected) in [
            (json!({"metadata": {"labels": {"zone": "a"}}}), None),
            (container("image", json!("web:2")), None),
            (
                json!({"metadata": {"labels": {"zone": "not ok"}}}),
                Some("template.labels"),
            ),
            (
                container("imagePullPolicy", json!("Later")),
                Some("imagePullPolicy"),
            ),
            (
                json!({"spec": {"containers": [{"name": "other"}]}}),
                Some("containers[0].image: Required"),
            ),
            (json!({"spec": {"containers": "none"}}), Some("")),
            (
                json!({"spec": {"restartPolicy": "Sometimes"}}),
                Some("restartPolicy"),
            ),
        ] {
            let message = refused("apps.kruise.io/v1beta1", "CloneSet", WEB, &patch);
            assert_eq!(message.is_some(), expected.is_some(), "{patch}: {message:?}");
            let message = message.unwrap_or_default();
            assert!(
                message.contains(expected.unwrap_or_default()),
                "{patch}: {message}"
            );
            assert!(
                message.is_empty() || message.contains("spec.subsets[1].patch: Invalid"),
                "{message}"
            );
        }
    }

    #[test]
    fn the_workload_is_looked_up_where_its_kind_is() {
        let bad = json!({"spec": {"restartPolicy": "Sometimes"}});
        for (api, kind, path) in [
            (
                "apps/v1",
                "Deployment",
                "/apis/apps/v1/namespaces/default/deployments/web",
            ),
            (
                "apps/v1",
                "ReplicaSet",
                "/apis/apps/v1/namespaces/default/replicasets/web",
            ),
            (
                "apps/v1",
                "StatefulSet",
                "/apis/apps/v1/namespaces/default/statefulsets/web",
            ),
            ("batch/v1", "Job", "/apis/batch/v1/namespaces/default/jobs/web"),
            (
                "apps.kruise.io/v1beta1",
                "StatefulSet",
                "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets/web",
            ),
        ] {
            assert!(refused(api, kind, path, &bad).is_some(), "{kind}");
        }
    }

    /// Seen with a workload that does not exist yet.
    fn refused_alone(patch: &Value) -> Option<String> {
        let object = spread("apps.kruise.io/v1beta1", "CloneSet", patch);
        let absent = [(OTHERS, json!({"items": []})), (WEB, Value::Null)];
        SPREAD.seeing(&absent, "CREATE", &object, &Value::Null)
    }

    #[test]
    fn a_patch_of_another_shape_than_a_pod_is_refused_before_its_workload_exists() {
        for (patch, expected) in [
            (json!({"metadata": [{"labels": {"a": "b"}}]}), "metadata"),
            (
                json!({"metadata": {"labels": ["a"]}}),
                "metadata.labels: must be an object, not an array",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "metadata.labels[a]: must be a string, not an integer",
            ),
            (
                json!({"metadata": {"annotations": {"a": true}}}),
                "metadata.annotations[a]",
            ),
            (
                json!({"metadata": {"finalizers": "a.b/c"}}),
                "metadata.finalizers",
            ),
            (json!({"spec": []}), "spec"),
            (json!({"spec": {"containers": {"name": "main"}}}), ""),
            (json!({"spec": {"containers": [{"image": "web:2"}]}}), "name"),
            (
                json!({"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": 1}]}]}}),
                "value",
            ),
            (
                json!({"spec": {"nodeSelector": {"zone": 1}}}),
                "spec.nodeSelector[zone]: must be a string",
            ),
            (
                json!({"spec": {"tolerations": {"key": "a"}}}),
                "spec.tolerations: must be an array",
            ),
            (
                json!({"spec": {"terminationGracePeriodSeconds": "5"}}),
                "spec.terminationGracePeriodSeconds",
            ),
            (
                json!({"spec": {"priorityClassName": 5}}),
                "spec.priorityClassName: must be a string",
            ),
            (
                json!({"spec": {"affinity": "zone"}}),
                "spec.affinity: must be an object",
            ),
        ] {
            let message = refused_alone(&patch).unwrap_or_else(|| panic!("{patch} passed"));
            assert!(
                message.contains("spec.subsets[1].patch: Invalid"),
                "{patch}: {message}"
            );
            assert!(message.contains(expected), "{patch}: {message}");
        }
        for patch in [
            json!({"metadata": {"labels": {"a": "b", "c": null}, "annotations": null}}),
            json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": 1}}}]}}),
            json!({"spec": {"newerThanUs": {"a": 1}, "tolerations": [{"operator": "Exists"}]}}),
            json!({"spec": {"$retainKeys": ["containers"], "containers": [{"$patch": "delete", "name": "main"}]}}),
        ] {
            assert_eq!(refused_alone(&patch), None, "{patch}");
        }
    }

    #[test]
    fn by_what_a_workload_knows_its_pods_stays() {
        for name in FIXED {
            let message = refused_alone(&json!({"metadata": {name: "x"}})).unwrap();
            let expected = format!("spec.subsets[1].patch.metadata.{name}: Forbidden");
            assert!(message.contains(&expected), "{message}");
        }
        let relabelled = json!({"metadata": {"labels": {"app": "spot"}}});
        let removed = json!({"metadata": {"labels": {"app": null}}});
        for patch in [relabelled, removed] {
            assert_eq!(refused_alone(&patch), None, "nobody knows the selector: {patch}");
            let message = refused("apps.kruise.io/v1beta1", "CloneSet", WEB, &patch).unwrap();
            assert!(
                message.contains("the selector of the workload no longer matches"),
                "{message}"
            );
        }
    }

    #[test]
    fn without_the_workload_or_with_the_patch_that_is_stored_nothing_is_refused() {
        let bad = json!({"spec": {"restartPolicy": "Sometimes"}});
        let object = spread("apps.kruise.io/v1beta1", "CloneSet", &bad);
        let absent = [(OTHERS, json!({"items": []})), (WEB, Value::Null)];
        assert_eq!(SPREAD.seeing(&absent, "CREATE", &object, &Value::Null), None);
        // not even looked up
        assert_eq!(SPREAD.seeing(&[], "UPDATE", &object, &object), None);
        let other = json!({"spec": {"restartPolicy": "Never again"}});
        let changed = spread("apps.kruise.io/v1beta1", "CloneSet", &other);
        let there = [(WEB, workload())];
        assert!(SPREAD.seeing(&there, "UPDATE", &changed, &object).is_some());
    }
}
