//! Horizontal pod autoscalers: they are stored, and scale nothing.
//!
//! What version 1 has no member for is in its annotations, as JSON.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Map, Value, json};

use super::{fill, object, remove, set};
use crate::validation::text;

/// What version 1 has no member for, and the annotation that holds it.
const MORE: [(&str, &str); 2] = [
    ("metrics", "autoscaling.alpha.kubernetes.io/metrics"),
    ("behavior", "autoscaling.alpha.kubernetes.io/behavior"),
];
const TARGET: &str = "targetCPUUtilizationPercentage";

pub(crate) fn default(scaler: &mut Value) {
    let is_newest = text(scaler, "apiVersion") == "autoscaling/v2";
    if let Some(spec) = object(scaler, "spec") {
        fill(spec, "minReplicas", 1);
        if is_newest {
            fill(spec, "metrics", json!([utilization(80.into())]));
        }
    }
}

fn utilization(percent: Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// The utilization of processors that a metric is about.
fn percent(metric: &Value) -> Option<&Value> {
    let is_cpu = metric.pointer("/resource/name") == Some(&"cpu".into());
    metric
        .pointer("/resource/target/averageUtilization")
        .filter(|_| is_cpu)
}

/// Turns an object of the other version into one of this version.
pub(crate) fn convert(scaler: &mut Value, version: &str) {
    let mut annotations = scaler
        .pointer("/metadata/annotations")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let Some(spec) = object(scaler, "spec") else {
        return;
    };
    if version == "v1" {
        older(spec, &mut annotations);
    } else {
        newer(spec, &mut annotations);
    }
    if let Some(metadata) = object(scaler, "metadata") {
        if annotations == json!({}) {
            remove(metadata, "annotations");
        } else {
            set(metadata, "annotations", annotations);
        }
    }
}

fn older(spec: &mut Value, annotations: &mut Value) {
    let metrics = spec
        .get("metrics")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let first = metrics.iter().position(|metric| percent(metric).is_some());
    let target = first.and_then(|at| percent(metrics.get(at)?).cloned());
    let others = metrics.iter().enumerate().filter(|(at, _)| Some(*at) != first);
    let others: Vec<Value> = others.map(|(_, metric)| metric.clone()).collect();
    set(spec, "metrics", others);
    for (member, annotation) in MORE {
        let value = spec.get(member).cloned().unwrap_or_default();
        remove(spec, member);
        if !value.is_null() && value != json!([]) {
            set(annotations, annotation, value.to_string());
        }
    }
    if let Some(target) = target {
        set(spec, TARGET, target);
    }
}

fn newer(spec: &mut Value, annotations: &mut Value) {
    for (member, annotation) in MORE {
        let value = serde_json::from_str::<Value>(text(annotations, annotation));
        if let Ok(value) = value {
            set(spec, member, value);
        }
        remove(annotations, annotation);
    }
    if let Some(target) = spec.get(TARGET).cloned() {
        let mut metrics = spec
            .get("metrics")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        metrics.insert(0, utilization(target));
        set(spec, "metrics", metrics);
    }
    remove(spec, TARGET);
}

pub(crate) fn validate(scaler: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let count = |name: &str| scaler.pointer(&format!("/spec/{name}")).and_then(Value::as_i64);
    let (least, most) = (
        count("minReplicas").unwrap_or(1),
        count("maxReplicas").unwrap_or_default(),
    );
    if least < 1 {
        errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
    }
    if most < 1 {
        errors.invalid("spec.maxReplicas", most, "must be greater than 0");
    } else if most < least {
        errors.invalid(
            "spec.maxReplicas",
            most,
            "must be greater than or equal to `minReplicas`",
        );
    }
    let target = scaler.pointer("/spec/scaleTargetRef").unwrap_or(&Value::Null);
    for name in ["kind", "name"] {
        if text(target, name).is_empty() {
            errors.required(format!("spec.scaleTargetRef.{name}"), "");
        }
    }
    errors.0
}

pub(crate) fn without_effect(_: &Value) -> Vec<String> {
    vec!["HorizontalPodAutoscalers are stored here and scale nothing".to_owned()]
}

/// The status of a new one: nothing was measured.
pub(crate) fn prepare(scaler: &mut Value) {
    set(scaler, "status", Map::new());
}
