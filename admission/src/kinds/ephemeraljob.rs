//! EphemeralJobs: containers that could be added to a pod that runs. What a container does not say of its image's
//! pull and its message at the end, the server fills in when it is added, as for any pod; OpenKruise asks for it.
//!
//! | Field of `ephemeralContainers[]` | Rule |
//! |---|---|
//! | `name` | a DNS label, once |
//! | `image` | there, without blanks around it |
//! | `terminationMessagePolicy`, `imagePullPolicy` | known, if there |
//! | `env` | well formed |
//! | `volumeMounts` | without a path inside of the volume |
//! | what only containers of a new pod can have | absent |
//!
//! Paths start at the list, as OpenKruise's do.

use std::collections::BTreeSet;

use kube_schema::validate::{self, Errors, Kind};
use serde_json::Value;

use super::{KindWebhooks, Scope, parts};
use crate::json::{items, present, text};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    validating: Some("vephemeraljobs.kb.io"),
    codes: (400, 400),
    path_has_version: true,
    parts: &[parts::part(
        "spec.template.ephemeralContainers[]",
        "core/v1.EphemeralContainer",
    )],
    rules,
    advice,
    ..KindWebhooks::of(&kruise_api::ephemeraljob::KIND)
};

/// What a server refuses in a container of a pod that runs.
const NOT_LATER: [&str; 9] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
];

fn rules(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
    let mut seen = BTreeSet::new();
    for (index, one) in items(template, "ephemeralContainers").iter().enumerate() {
        let path = format!("ephemeralContainers[{index}]");
        let name = text(one, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if let Some(reason) = validate::not_a_dns_label(name) {
            errors.invalid(format!("{path}.name"), name, reason);
        } else if !seen.insert(name) {
            errors.add(format!("{path}.name"), Kind::Duplicate, name, "");
        }
        container(errors, one, &path);
    }
}

/// What OpenKruise accepts, and hardly anybody wants.
fn advice(object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let mut texts = Vec::new();
    let selector = spec.get("selector").unwrap_or(&Value::Null);
    let has_any = |name: &str| present(selector, name).is_some_and(|value| !is_empty(value));
    if !has_any("matchLabels") && !has_any("matchExpressions") {
        texts.push("spec.selector: it is empty and selects every pod of the namespace".to_owned());
    }
    for (name, why) in [
        ("replicas", "no pod gets the containers"),
        ("parallelism", "no pod gets the containers"),
        ("activeDeadlineSeconds", "the job fails at once"),
        ("ttlSecondsAfterFinished", "the job is deleted as soon as it ends"),
    ] {
        let given = present(spec, name).and_then(Value::as_i64);
        if let Some(given) = given.filter(|given| *given < 0) {
            texts.push(format!("spec.{name}: {given} is below 0, so {why}"));
        }
    }
    if scope.old.is_some_and(|old| names(old) != names(object)) {
        let text = "spec.template: a pod that has a container of one of these names gets no other one; every other pod gets \
                    them, beside those of before, which stay";
        texts.push(text.to_owned());
    }
    texts
}

fn names(object: &Value) -> BTreeSet<&str> {
    let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
    let containers = items(template, "ephemeralContainers").iter();
    containers.map(|one| text(one, "name")).collect()
}

fn container(errors: &mut Errors, one: &Value, path: &str) {
    let image = text(one, "image");
    if image.is_empty() {
        errors.required(format!("{path}.image"), "");
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(format!("{path}.image"), image, detail);
    }
    let policies: [(&str, &'static [&'static str]); 2] = [
        ("terminationMessagePolicy", &["File", "FallbackToLogsOnError"]),
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ];
    for (name, known) in policies {
        let given = text(one, name);
        if !given.is_empty() {
            errors.one_of(format!("{path}.{name}"), given, known);
        }
    }
    errors.0.extend(validate::environment(one, path));
    for name in NOT_LATER {
        let given = present(one, name).filter(|value| !is_empty(value));
        if given.is_some() {
            errors.forbidden(
                format!("{path}.{name}"),
                "cannot be set for an Ephemeral Container",
            );
        }
    }
    for (index, mount) in items(one, "volumeMounts").iter().enumerate() {
        for name in ["subPath", "subPathExpr"] {
            if !text(mount, name).is_empty() {
                errors.forbidden(
                    format!("{path}.volumeMounts[{index}].{name}"),
                    "cannot be set for an Ephemeral Container",
                );
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case};
    use super::*;

    const JOB: Case = case("EphemeralJob", good);

    fn good() -> Value {
        json!({"selector": {"matchLabels": {"app": "cart"}}, "template": {"ephemeralContainers": [
            {"name": "dumper", "image": "dump:1", "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File",
             "targetContainerName": "cart", "env": [{"name": "A", "value": "b"}], "resources": {}, "ports": [],
             "volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            {"name": "other", "image": "dump:1", "imagePullPolicy": "Never",
             "terminationMessagePolicy": "FallbackToLogsOnError"},
        ]}})
    }

    #[test]
    #[rustfmt::skip]
    fn each_broken_rule_is_refused_with_its_field() {
        let at = "template.ephemeralContainers";
        let cases = [
            ("0.name", Value::Null, "ephemeralContainers[0].name: Required"),
            ("0.name", json!("Not one"), "ephemeralContainers[0].name: Invalid"),
            ("1.name", json!("dumper"), "ephemeralContainers[1].name: Duplicate"),
            ("0.image", Value::Null, "ephemeralContainers[0].image: Required"),
            ("0.image", json!(" dump:1"), "ephemeralContainers[0].image: Invalid"),
            ("0.imagePullPolicy", json!("Later"), "ephemeralContainers[0].imagePullPolicy: Unsupported"),
            ("1.terminationMessagePolicy", json!("Log"), "ephemeralContainers[1].terminationMessagePolicy: Unsupported"),
            ("0.env.0.name", json!("a=b"), "ephemeralContainers[0].env[0].name: Invalid"),
            ("0.ports", json!([{"containerPort": 1}]), "ephemeralContainers[0].ports: Forbidden"),
            ("0.resources", json!({"limits": {"cpu": 1}}), "ephemeralContainers[0].resources: Forbidden"),
            ("0.lifecycle", json!({"preStop": {}}), "ephemeralContainers[0].lifecycle: Forbidden"),
            ("0.livenessProbe", json!({"exec": {}}), "ephemeralContainers[0].livenessProbe: Forbidden"),
            ("0.restartPolicy", json!("Always"), "ephemeralContainers[0].restartPolicy: Forbidden"),
            ("0.volumeMounts.0.subPath", json!("x"), "ephemeralContainers[0].volumeMounts[0].subPath: Forbidden"),
            ("0.volumeMounts.0.subPathExpr", json!("x"), "ephemeralContainers[0].volumeMounts[0].subPathExpr: Forbidden"),
        ];
        let paths: Vec<String> = cases.iter().map(|(path, _, _)| format!("{at}.{path}")).collect();
        let cases: Vec<(&str, Value, &str)> = paths.iter().zip(cases)
            .map(|(path, (_, value, expected))| (path.as_str(), value, expected)).collect();
        JOB.each_is_refused(&cases);
    }

    #[test]
    fn what_hardly_anybody_wants_is_warned_of_and_accepted() {
        let object = |spec: &Value| JOB.object("v1alpha1", spec);
        let about = |spec: &Value| JOB.warnings("CREATE", &object(spec), &Value::Null);
        assert_eq!(about(&good()), [""; 0]);
        let mut odd = good();
        odd["selector"] = json!({"matchLabels": {}});
        odd["replicas"] = json!(-1);
        odd["parallelism"] = json!(0);
        odd["activeDeadlineSeconds"] = json!(-5);
        assert_eq!(JOB.refused("v1alpha1", &odd), None);
        let starts = [
            "spec.selector: ",
            "spec.replicas: -1 ",
            "spec.activeDeadlineSeconds: -5 ",
        ];
        let texts = about(&odd);
        assert_eq!(texts.len(), starts.len(), "{texts:?}");
        assert!(
            texts
                .iter()
                .zip(starts)
                .all(|(text, start)| text.starts_with(start)),
            "{texts:?}"
        );
        let mut renamed = good();
        renamed["template"]["ephemeralContainers"][0]["name"] = json!("again");
        let texts = JOB.warnings("UPDATE", &object(&renamed), &object(&good()));
        assert!(
            texts.len() == 1 && texts[0].starts_with("spec.template: "),
            "{texts:?}"
        );
    }

    #[test]
    fn what_the_server_fills_in_need_not_be_said() {
        let short = json!({"selector": {"matchLabels": {"app": "cart"}},
            "template": {"ephemeralContainers": [{"name": "dumper", "image": "dump:1"}]}});
        assert_eq!(JOB.refused("v1alpha1", &short), None);
    }

    #[test]
    fn a_job_without_containers_passes() {
        let none = json!({"selector": {}, "template": {"ephemeralContainers": []}});
        assert_eq!(JOB.refused("v1alpha1", &none), None);
    }
}
