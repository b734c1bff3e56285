//! The check before the release is uninstalled: `/helm_hook`, as a job with a service account of its own.

use kruise_api::definition::Kind;
use serde_json::{Value, json};

use super::objects::{NAMESPACE, PLACEMENT, Templated, value};
use super::yaml::{optional, put};
use crate::manifests::rbac::{self, Place, Role, named, rule};
use crate::manifests::workload::{restricted, without_rights};
use crate::uninstall::FINALIZERS;

const ACCOUNT: &str = "kruise-helm-hook";
const IMAGE: &str = "{{ include `kruise.hookImage` . }}";

/// Role, binding, service account and job, in the order in which they are created.
pub(super) fn objects() -> Vec<Templated> {
    let role = Role {
        name: "kruise-helm-hook-role",
        binding: "kruise-helm-hook-rolebinding",
        place: Place::Cluster,
        rules: Vec::new(),
    };
    let [role, binding] = rbac::role_objects(&role, ACCOUNT, NAMESPACE, Value::Array(rules()));
    let account = rbac::account(ACCOUNT, NAMESPACE);
    let ordered = [(role, "1"), (binding, "2"), (account, "3"), (job(), "4")];
    let hooks = ordered.into_iter().map(|(mut object, weight)| {
        let annotations = json!({
            "helm.sh/hook": "pre-delete",
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
            "helm.sh/hook-weight": weight,
        });
        put(&mut object, "/metadata", "annotations", annotations);
        Templated::always(object)
    });
    hooks.collect()
}

/// What `kruise uninstall` reads and writes.
fn rules() -> Vec<Value> {
    let mut rules = Vec::new();
    for kind in kruise_kinds::kinds().iter().copied() {
        rules.push(rule(kind.group, &[kind.plural], &["list"]));
    }
    for (plural, _) in FINALIZERS {
        let kinds = kruise_kinds::kinds()
            .iter()
            .copied()
            .filter(|kind| kind.plural == plural);
        rules.extend(kinds.map(|kind| rule(kind.group, &[plural], &["get", "patch"])));
    }
    rules.push(rule("", &["pods"], &["get"]));
    let names: Vec<String> = kruise_kinds::kinds().iter().copied().map(Kind::name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let definitions = rule(
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
        &["get", "patch"],
    );
    rules.push(named(definitions, &names));
    rules
}

fn job() -> Value {
    let name = "{{ .Release.Name }}-finalizer";
    let labels = json!({
        "app.kubernetes.io/managed-by": "{{ .Release.Service }}",
        "app.kubernetes.io/instance": "{{ .Release.Name }}",
        "helm.sh/chart": "{{ .Chart.Name }}-{{ .Chart.Version }}",
        "kruise": "helm-finalizer",
    });
    let mut of_job = labels.clone();
    put(
        &mut of_job,
        "",
        "app.kubernetes.io/version",
        json!("{{ .Chart.AppVersion }}"),
    );
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": of_job},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": ACCOUNT,
                "securityContext": without_rights(),
                "containers": [{
                    "name": "pre-delete-job", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                    "command": ["/helm_hook"], "securityContext": restricted(),
                }],
            },
        }},
    });
    for (path, field) in PLACEMENT {
        let key = optional(&format!(".Values.{path}"), field);
        put(&mut job, "/spec/template/spec", &key, value(path));
    }
    job
}
