//! Patches of subsets, tried on the workload's template: what comes out must still be a pod.
//!
//! A workload that does not exist yet, one of a kind that only administrators know, and a StatefulSet of OpenKruise are not
//! looked at, as in OpenKruise.

use kruise_api::path::segment;
use kube_schema::patch::strategic;
use kube_schema::table::Table;
use kube_schema::typed;
use kube_schema::validate::{self, Errors, FieldError};
use serde_json::{Value, json};

use super::SUBSETS;
use crate::Options;
use crate::json::{items, member, text};
use crate::kinds::{Scope, target};
use crate::lookup::{Lookup, Reader};
use crate::workload;

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
            Some((index, patch))
        });
    let mut patches = patches.peekable();
    if patches.peek().is_none() {
        return;
    }
    let Some(path) = path_of(object, scope) else {
        return;
    };
    let Some(found) = reader.object(Lookup::Path(path)).found() else {
        return;
    };
    for (index, patch) in patches {
        if let Err(why) = fits(found, patch, scope.options) {
            errors.invalid(format!("{SUBSETS}[{index}].patch"), patch.clone(), &why);
        }
    }
}

/// Where the workload is.
fn path_of(object: &Value, scope: &Scope<'_>) -> Option<String> {
    let found = object.pointer("/spec/targetRef")?;
    let api = match target::group_kind(found)? {
        ("apps.kruise.io", "CloneSet") => format!("apps.kruise.io/{}", segment(scope.version)),
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
    let table = Table::builtin();
    let Some(of) = table.find("core/v1.Pod") else {
        return Ok(());
    };
    let patched = strategic(table, of, template.clone(), patch.clone()).map_err(|error| error.to_string())?;
    let patched = typed::decode(table, of, patched).map_err(|error| error.conversion)?;
    let claims = items(spec, "volumeClaimTemplates");
    let before = errors_of(template, claims, options);
    let errors = validate::new_errors(errors_of(patched.value, claims, options), before);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(validate::aggregate(&errors))
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
        ] {
            assert!(refused(api, kind, path, &bad).is_some(), "{kind}");
        }
        let none = [(OTHERS, json!({"items": []}))];
        let spread = spread("apps.kruise.io/v1beta1", "StatefulSet", &bad);
        assert_eq!(SPREAD.seeing(&none, "CREATE", &spread, &Value::Null), None);
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
