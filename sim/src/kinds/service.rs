//! Services and endpoints. Addresses are given by the API, which counts them.

use kube_schema::validate::{Errors, FieldError};
use serde_json::{Value, json};

use super::{each, fill, keep, object, set};

pub(crate) fn default(service: &mut Value) {
    let Some(spec) = object(service, "spec") else {
        return;
    };
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    for port in each(spec, "ports") {
        fill(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or_default();
        if matches!(port.get("targetPort"), None | Some(Value::Null))
            || port.get("targetPort") == Some(&json!(0))
        {
            set(port, "targetPort", number);
        }
    }
    if spec.get("type") != Some(&"ExternalName".into()) {
        fill(spec, "internalTrafficPolicy", "Cluster");
        fill(spec, "ipFamilies", json!(["IPv4"]));
        fill(spec, "ipFamilyPolicy", "SingleStack");
    }
    if let Some(address) = spec.get("clusterIP").cloned() {
        fill(spec, "clusterIPs", json!([address]));
    }
}

pub(crate) fn default_endpoints(endpoints: &mut Value) {
    for port in each(endpoints, "subsets").flat_map(|subset| each(subset, "ports")) {
        fill(port, "protocol", "TCP");
    }
}

pub(crate) fn prepare_create(service: &mut Value) {
    set(service, "status", json!({"loadBalancer": {}}));
}

pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    keep(new, old, "status");
    let (Some(spec), Some(before)) = (new.get_mut("spec"), old.get("spec")) else {
        return;
    };
    for name in ["clusterIP", "clusterIPs"] {
        if let Some(value) = before.get(name) {
            fill(spec, name, value.clone());
        }
    }
}

pub(crate) fn validate(service: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let headless = spec.get("clusterIP") == Some(&"None".into());
    let ports = spec
        .get("ports")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if ports.is_empty() && !headless && spec.get("type") != Some(&"ExternalName".into()) {
        errors.required("spec.ports", "");
    }
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        if ports.len() > 1 && port.get("name").is_none() {
            errors.required(format!("{path}.name"), "");
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
        if !(1..=65535).contains(&number) {
            errors.invalid(
                format!("{path}.port"),
                number,
                "must be between 1 and 65535, inclusive",
            );
        }
        let target = port.get("targetPort").and_then(Value::as_i64);
        if let Some(target) = target.filter(|target| !(1..=65535).contains(target)) {
            let why = "must be between 1 and 65535, inclusive";
            errors.invalid(format!("{path}.targetPort"), target, why);
        }
    }
    let affinity = spec.get("sessionAffinity").and_then(Value::as_str);
    errors.one_of(
        "spec.sessionAffinity",
        affinity.unwrap_or_default(),
        &["ClientIP", "None"],
    );
    errors.0
}

pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors(validate(new));
    let (before, after) = (old.pointer("/spec/clusterIP"), new.pointer("/spec/clusterIP"));
    if before.is_some() && before != after {
        let value = json!([after.cloned().unwrap_or_default()]);
        errors.invalid("spec.clusterIPs[0]", value, "may not change once set");
    }
    errors.0
}
