//! One container.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::{Errors, Kind};
use super::json::{integer, items, known, member, text};
use super::{names, resources, security};

const MESSAGE_POLICIES: &[&str] = &["FallbackToLogsOnError", "File"];
const LIFECYCLE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const ENV_SOURCES: [&str; 4] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"];

/// `volumes` are the names a mount may refer to.
pub(super) fn container(errors: &mut Errors, container: &Value, volumes: &BTreeSet<&str>, path: &str) {
    if text(container, "image").is_empty() {
        errors.required(format!("{path}.image"), "");
    }
    errors.one_of(
        format!("{path}.imagePullPolicy"),
        text(container, "imagePullPolicy"),
        PULL_POLICIES,
    );
    errors.one_of(
        format!("{path}.terminationMessagePolicy"),
        text(container, "terminationMessagePolicy"),
        MESSAGE_POLICIES,
    );
    ports(errors, container, path);
    environment(errors, container, path);
    mounts(errors, container, volumes, path);
    if let Some(found) = member(container, "securityContext") {
        security::of_container(errors, found, &format!("{path}.securityContext"));
    }
    for name in ["postStart", "preStop"] {
        let found = member(container, "lifecycle").and_then(|lifecycle| member(lifecycle, name));
        if let Some(found) = found {
            hook(errors, found, &format!("{path}.lifecycle.{name}"));
        }
    }
    if let Some(found) = member(container, "resources") {
        let path = format!("{path}.resources");
        resources::requirements(errors, found, &path);
        resources::of_container(errors, found, &path);
    }
    for (name, always_once) in [
        ("livenessProbe", true),
        ("readinessProbe", false),
        ("startupProbe", true),
    ] {
        if let Some(found) = member(container, name) {
            probe(errors, found, always_once, &format!("{path}.{name}"));
        }
    }
}

fn ports(errors: &mut Errors, container: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (port, path) in items(container, "ports", path) {
        let name = text(port, "name");
        if let Some(reason) = names::port_name(name).filter(|_| !name.is_empty()) {
            errors.invalid(format!("{path}.name"), name, reason);
        } else if !name.is_empty() && !seen.insert(name) {
            errors.add(format!("{path}.name"), Kind::Duplicate, name, "");
        }
        match integer(port, "containerPort").unwrap_or_default() {
            0 => errors.required(format!("{path}.containerPort"), ""),
            number => port_number(errors, number, format!("{path}.containerPort")),
        }
        if let Some(number) = integer(port, "hostPort").filter(|number| *number != 0) {
            port_number(errors, number, format!("{path}.hostPort"));
        }
        errors.one_of(format!("{path}.protocol"), text(port, "protocol"), PROTOCOLS);
    }
}

fn port_number(errors: &mut Errors, number: i64, path: String) {
    if !(1..=65535).contains(&number) {
        errors.invalid(path, number, "must be between 1 and 65535, inclusive");
    }
}

/// Under `hostNetwork` a port of the node is that of the container.
pub(super) fn ports_of_host(errors: &mut Errors, container: &Value, path: &str) {
    for (port, path) in items(container, "ports", path) {
        let numbers = [integer(port, "hostPort"), integer(port, "containerPort")];
        if let [Some(host), Some(number)] = numbers
            && host != 0
            && host != number
        {
            let detail = "must match `hostPort` when `hostNetwork` is true";
            errors.invalid(format!("{path}.containerPort"), number, detail);
        }
    }
}

/// What only containers have that keep running.
pub(super) fn only_while_running(errors: &mut Errors, container: &Value, path: &str) {
    // Other policies than this are new; what they allow is the server's business.
    if !text(container, "restartPolicy").is_empty() {
        return;
    }
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if member(container, name).is_some() {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden(format!("{path}.{name}"), detail);
        }
    }
}

/// A path that does not lead upwards.
pub(super) fn no_backsteps(errors: &mut Errors, place: &str, path: String) {
    if place.split('/').any(|part| part == "..") {
        errors.invalid(path, place, "must not contain '..'");
    }
}

/// A handler of the beginning or the end of a container: one. What is not known here may be the one.
fn hook(errors: &mut Errors, hook: &Value, path: &str) {
    let unknown = hook.as_object().is_some_and(|members| {
        let others = members
            .iter()
            .filter(|(name, _)| !LIFECYCLE_HANDLERS.contains(&name.as_str()));
        others.into_iter().any(|(_, value)| value.is_object())
    });
    one_handler(errors, (hook, &LIFECYCLE_HANDLERS), unknown, path);
    let seconds = member(hook, "sleep").and_then(|sleep| integer(sleep, "seconds"));
    if let Some(seconds) = seconds.filter(|seconds| *seconds < 0) {
        let detail = "must be non-negative and less than terminationGracePeriodSeconds";
        errors.invalid(format!("{path}.sleep"), seconds, detail);
    }
}

fn one_handler(errors: &mut Errors, (of, known_handlers): (&Value, &[&str]), unknown: bool, path: &str) {
    match known(of, known_handlers) {
        0 if !unknown => errors.required(path, "must specify a handler type"),
        0 | 1 => {}
        _ => {
            let mut given = known_handlers.iter().filter(|name| member(of, name).is_some());
            let path = format!("{path}.{}", given.nth(1).copied().unwrap_or_default());
            errors.forbidden(path, "may not specify more than 1 handler type");
        }
    }
}

pub(super) fn environment(errors: &mut Errors, container: &Value, path: &str) {
    for (variable, path) in items(container, "env", path) {
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if let Some(reason) = names::environment_name(name) {
            errors.invalid(format!("{path}.name"), name, reason);
        }
        let Some(source) = member(variable, "valueFrom") else {
            continue;
        };
        let path = format!("{path}.valueFrom");
        let count = known(source, &ENV_SOURCES);
        if !text(variable, "value").is_empty() && count > 0 {
            errors.invalid(&path, "", "may not be specified when `value` is not empty");
        } else if count > 1 {
            errors.invalid(&path, "", "may not have more than one field specified at a time");
        } else if source
            .as_object()
            .is_some_and(|members| members.values().all(Value::is_null))
        {
            let detail =
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
            errors.invalid(&path, "", detail);
        }
        let needed = [
            ("fieldRef", "fieldPath"),
            ("resourceFieldRef", "resource"),
            ("configMapKeyRef", "key"),
            ("secretKeyRef", "key"),
        ];
        for (reference, field) in needed {
            if member(source, reference).is_some_and(|found| text(found, field).is_empty()) {
                errors.required(format!("{path}.{reference}.{field}"), "");
            }
        }
    }
}

fn mounts(errors: &mut Errors, container: &Value, volumes: &BTreeSet<&str>, path: &str) {
    let mut places = BTreeSet::new();
    for (mount, path) in items(container, "volumeMounts", path) {
        let name = text(mount, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if !volumes.contains(name) {
            errors.add(format!("{path}.name"), Kind::NotFound, name, "");
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            errors.required(format!("{path}.mountPath"), "");
        } else if !places.insert(place) {
            errors.invalid(format!("{path}.mountPath"), place, "must be unique");
        }
        let inside = text(mount, "subPath");
        if inside.starts_with('/') {
            errors.invalid(format!("{path}.subPath"), inside, "must be a relative path");
        }
        no_backsteps(errors, inside, format!("{path}.subPath"));
        let privileged = container.pointer("/securityContext/privileged") == Some(&Value::Bool(true));
        if text(mount, "mountPropagation") == "Bidirectional" && !privileged {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(format!("{path}.mountPropagation"), detail);
        }
    }
}

fn probe(errors: &mut Errors, probe: &Value, always_once: bool, path: &str) {
    // a handler that is not known here may be the one
    let unknown = probe.as_object().is_some_and(|members| {
        members
            .iter()
            .any(|(name, value)| value.is_object() && !PROBE_HANDLERS.contains(&name.as_str()))
    });
    one_handler(errors, (probe, &PROBE_HANDLERS), unknown, path);
    for name in ["httpGet", "tcpSocket", "grpc"] {
        if let Some(port) = member(probe, name).and_then(|handler| integer(handler, "port")) {
            port_number(errors, port, format!("{path}.{name}.port"));
        }
    }
    let counts = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    for name in counts {
        if let Some(count) = integer(probe, name).filter(|count| *count < 0) {
            errors.invalid(
                format!("{path}.{name}"),
                count,
                "must be greater than or equal to 0",
            );
        }
    }
    let grace = integer(probe, "terminationGracePeriodSeconds");
    let path_of_grace = format!("{path}.terminationGracePeriodSeconds");
    match grace {
        Some(seconds) if !always_once => {
            errors.invalid(path_of_grace, seconds, "must not be set for readinessProbes");
        }
        Some(seconds) if seconds <= 0 => errors.invalid(path_of_grace, seconds, "must be greater than 0"),
        _ => {}
    }
    if always_once && let Some(count) = integer(probe, "successThreshold").filter(|count| *count > 1) {
        errors.invalid(format!("{path}.successThreshold"), count, "must be 1");
    }
}
