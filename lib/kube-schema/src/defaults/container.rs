//! Defaults of containers.

use serde_json::Value;

use super::fill::{each, fill, fill_missing, member, round_quantities};

/// Which pull policy an unset one becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// `Always`.
    Regular,
    /// As in Kubernetes: by tag.
    Other,
}

pub(super) fn container(container: &mut Value, role: Role) {
    common(container, role);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = member(container, name) {
            probe(found);
            if let Some(call) = member(found, "grpc") {
                fill_missing(call, "service", "");
            }
        }
    }
}

/// As clients do without startup probes and gRPC.
pub(super) fn older(container: &mut Value) {
    common(container, Role::Other);
    for name in ["livenessProbe", "readinessProbe"] {
        if let Some(found) = member(container, name) {
            probe(found);
        }
    }
}

fn common(container: &mut Value, role: Role) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let always = role == Role::Regular || follows_latest(image);
    fill(
        container,
        "imagePullPolicy",
        if always { "Always" } else { "IfNotPresent" },
    );
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| fill(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        if let Some(source) = member(variable, "valueFrom").and_then(|source| member(source, "fieldRef")) {
            fill(source, "apiVersion", "v1");
        }
    });
    if let Some(resources) = member(container, "resources") {
        round_quantities(resources, "limits");
        round_quantities(resources, "requests");
    }
    if let Some(lifecycle) = member(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(get) = member(lifecycle, name).and_then(|hook| member(hook, "httpGet")) {
                http_get(get);
            }
        }
    }
}

fn probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    if let Some(get) = member(probe, "httpGet") {
        http_get(get);
    }
}

fn http_get(get: &mut Value) {
    fill(get, "path", "/");
    fill(get, "scheme", "HTTP");
}

/// Copies every container port that has no host port.
pub(super) fn host_ports(container: &mut Value) {
    each(container, "ports", |port| {
        if let Some(number) = port
            .get("containerPort")
            .filter(|number| number.as_i64() != Some(0))
            .cloned()
        {
            fill(port, "hostPort", number);
        }
    });
}

/// Does the name mean `latest`: by that tag, or with neither tag nor digest?
fn follows_latest(image: &str) -> bool {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none() && !last.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::follows_latest;

    #[test]
    fn latest_is_the_tag_of_names_without_one() {
        for latest in [
            "nginx",
            "nginx:latest",
            "host:5000/a/nginx",
            "nginx:latest@sha256:00",
        ] {
            assert!(follows_latest(latest), "{latest}");
        }
        for fixed in ["nginx:1", "host:5000/nginx:1", "nginx@sha256:00", ""] {
            assert!(!follows_latest(fixed), "{fixed}");
        }
    }
}
