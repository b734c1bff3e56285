//! Deployments, replica sets and their kin.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Map, Value, json};

use super::{fill, keep, object, pod_template, remove, set};

fn template(of: &mut Value) {
    if let Some(template) = of.pointer_mut("/spec/template") {
        pod_template::default(template);
    }
}

pub(crate) fn default_pod_template(object: &mut Value) {
    if let Some(template) = object.get_mut("template") {
        pod_template::default(template);
    }
}

pub(crate) fn validate_pod_template(object: &Value) -> Vec<FieldError> {
    let template = object.get("template").unwrap_or(&Value::Null);
    kube_schema::validate::pod_template(template, &[], "template")
}

pub(crate) fn default_deployment(deployment: &mut Value) {
    if let Some(spec) = object(deployment, "spec") {
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
        if let Some(strategy) = object(spec, "strategy") {
            fill(strategy, "type", "RollingUpdate");
            if strategy.get("type") == Some(&"RollingUpdate".into())
                && let Some(rolling) = object(strategy, "rollingUpdate")
            {
                fill(rolling, "maxUnavailable", "25%");
                fill(rolling, "maxSurge", "25%");
            }
        }
    }
    template(deployment);
}

pub(crate) fn default_replica_set(set: &mut Value) {
    if let Some(spec) = object(set, "spec") {
        fill(spec, "replicas", 1);
    }
    template(set);
}

pub(crate) fn default_stateful_set(set: &mut Value) {
    if let Some(spec) = object(set, "spec") {
        fill(spec, "podManagementPolicy", "OrderedReady");
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        fill(
            spec,
            "persistentVolumeClaimRetentionPolicy",
            json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
        );
        if let Some(strategy) = object(spec, "updateStrategy") {
            fill(strategy, "type", "RollingUpdate");
            if strategy.get("type") == Some(&"RollingUpdate".into())
                && let Some(rolling) = object(strategy, "rollingUpdate")
            {
                fill(rolling, "partition", 0);
            }
        }
    }
    template(set);
}

pub(crate) fn default_daemon_set(set: &mut Value) {
    if let Some(spec) = object(set, "spec") {
        fill(spec, "revisionHistoryLimit", 10);
        if let Some(strategy) = object(spec, "updateStrategy") {
            fill(strategy, "type", "RollingUpdate");
            if strategy.get("type") == Some(&"RollingUpdate".into())
                && let Some(rolling) = object(strategy, "rollingUpdate")
            {
                fill(rolling, "maxUnavailable", 1);
                fill(rolling, "maxSurge", 0);
            }
        }
    }
    template(set);
}

/// The status of a new workload is empty.
pub(crate) fn reset_status(workload: &mut Value) {
    set(workload, "status", Map::new());
}

/// The status of a new replica set counts none.
pub(crate) fn reset_replicas(workload: &mut Value) {
    set(workload, "status", json!({"replicas": 0}));
}

/// A daemon set's status counts what it has no field to leave out.
fn reset_daemon_set(workload: &mut Value) {
    let status = json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0});
    set(workload, "status", status);
}

/// Where daemon sets still count the changes of their template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(set: &Value) -> Option<i64> {
    let annotations = set.pointer("/metadata/annotations")?;
    annotations.get(TEMPLATE_GENERATION)?.as_str()?.parse().ok()
}

fn set_template_generation(set: &mut Value, count: i64) {
    if let Some(annotations) = object(set, "metadata").and_then(|metadata| object(metadata, "annotations")) {
        self::set(annotations, TEMPLATE_GENERATION, count.to_string());
    }
}

pub(crate) fn prepare_daemon_set(set: &mut Value) {
    reset_daemon_set(set);
    set_template_generation(set, 1);
}

pub(crate) fn prepare_daemon_set_update(new: &mut Value, old: &Value) {
    keep_status(new, old);
    let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
    let before = template_generation(old).unwrap_or(1);
    set_template_generation(new, before.saturating_add(i64::from(changed)));
}

pub(crate) fn keep_status(new: &mut Value, old: &Value) {
    keep(new, old, "status");
}

pub(crate) fn validate(workload: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = workload.get("spec").unwrap_or(&Value::Null);
    if let Some(replicas) = spec
        .get("replicas")
        .and_then(Value::as_i64)
        .filter(|count| *count < 0)
    {
        errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    }
    if let Some(seconds) = spec
        .get("minReadySeconds")
        .and_then(Value::as_i64)
        .filter(|count| *count < 0)
    {
        errors.invalid(
            "spec.minReadySeconds",
            seconds,
            "must be greater than or equal to 0",
        );
    }
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    let template = spec.get("template").unwrap_or(&Value::Null);
    match selector {
        None => {
            // daemon sets take it for one that selects nothing
            if workload.get("kind") != Some(&"DaemonSet".into()) {
                errors.required("spec.selector", "");
            }
            mismatch(&mut errors, template);
        }
        Some(selector) if selector == &json!({}) => {
            errors.invalid(
                "spec.selector",
                selector.clone(),
                "empty selector is invalid for deployment",
            );
        }
        Some(selector) => {
            errors
                .0
                .extend(kube_schema::validate::selector(selector, "spec.selector"));
            let labels = template.pointer("/metadata/labels").unwrap_or(&Value::Null);
            if !selects(selector, labels) {
                mismatch(&mut errors, template);
            }
        }
    }
    let claims = spec.get("volumeClaimTemplates").and_then(Value::as_array);
    let claims = claims.map_or(&[][..], Vec::as_slice);
    errors.0.extend(kube_schema::validate::pod_template(
        template,
        claims,
        "spec.template",
    ));
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    if strategy.get("type") == Some(&"Recreate".into()) && strategy.get("rollingUpdate").is_some() {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        errors.forbidden("spec.strategy.rollingUpdate", why);
    }
    let policy = template.pointer("/spec/restartPolicy").and_then(Value::as_str);
    errors.one_of(
        "spec.template.spec.restartPolicy",
        policy.unwrap_or_default(),
        &["Always"],
    );
    errors.0
}

fn mismatch(errors: &mut Errors, template: &Value) {
    let labels = template.pointer("/metadata/labels").cloned();
    let why = "`selector` does not match template `labels`";
    errors.invalid("spec.template.metadata.labels", labels.unwrap_or_default(), why);
}

/// Whether the equalities of a selector hold; expressions are taken to hold.
fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
}

pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate(new));
    let (before, after) = (old.pointer("/spec/selector"), new.pointer("/spec/selector"));
    if before != after {
        let value = after.cloned().unwrap_or_default();
        errors.invalid("spec.selector", value, "field is immutable");
    }
    errors.0
}

pub(crate) fn validate_stateful_set_update(new: &Value, old: &Value) -> Vec<FieldError> {
    const MUTABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let mut errors = Errors(validate(new));
    let fixed = |set: &Value| {
        let mut spec = set.get("spec").cloned().unwrap_or_default();
        for name in MUTABLE {
            remove(&mut spec, name);
        }
        spec
    };
    if fixed(new) != fixed(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        errors.forbidden("spec", why);
    }
    errors.0
}

pub(crate) fn validate_revision(revision: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if let Some(number) = revision
        .get("revision")
        .and_then(Value::as_i64)
        .filter(|number| *number < 0)
    {
        errors.invalid("revision", number, "must be greater than or equal to 0");
    }
    if revision.get("data").is_none_or(Value::is_null) {
        errors.required("data", "data is mandatory");
    }
    errors.0
}

pub(crate) fn validate_revision_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate_revision(new));
    if new.get("data") != old.get("data") {
        errors.invalid(
            "data",
            new.get("data").cloned().unwrap_or_default(),
            "field is immutable",
        );
    }
    errors.0
}

/// Drops the status of kinds that start without one.
pub(crate) fn drop_status(object: &mut Value) {
    remove(object, "status");
}
