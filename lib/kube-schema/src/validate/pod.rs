//! The pod as a whole: where it runs, how it resolves names, and what it is called.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::error::{Errors, Kind};
use super::json::{integer, items, member, text};
use super::{names, scheduling, security};

const DNS_POLICIES: &[&str] = &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
const PREEMPTION_POLICIES: &[&str] = &["Never", "PreemptLowerPriority"];
const SYSTEMS: &[&str] = &["linux", "windows"];
const UNSATISFIABLE: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                         and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                         validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Everything but containers and volumes.
pub(super) fn rules(errors: &mut Errors, spec: &Value, path: &str) {
    let is_on = |name: &str| spec.get(name) == Some(&Value::Bool(true));
    if is_on("hostPID") && is_on("shareProcessNamespace") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(format!("{path}.shareProcessNamespace"), true, detail);
    }
    if let Some(found) = member(spec, "securityContext") {
        security::of_pod(errors, found, &format!("{path}.securityContext"));
    }
    let known = [
        ("dnsPolicy", DNS_POLICIES),
        ("preemptionPolicy", PREEMPTION_POLICIES),
    ];
    for (name, supported) in known {
        errors.one_of(format!("{path}.{name}"), text(spec, name), supported);
    }
    if let Some(system) = member(spec, "os") {
        errors.one_of(format!("{path}.os.name"), text(system, "name"), SYSTEMS);
    }
    called(errors, spec, path);
    resolves(errors, spec, path);
    scheduled(errors, spec, path);
    spread(errors, spec, path);
    gated(errors, spec, path);
}

/// Names that it has, and names of objects that it refers to.
fn called(errors: &mut Errors, spec: &Value, path: &str) {
    for name in ["serviceAccountName", "priorityClassName", "runtimeClassName"] {
        let value = text(spec, name);
        if !value.is_empty() && !names::dns_subdomain(value) {
            errors.invalid(format!("{path}.{name}"), value, SUBDOMAIN);
        }
    }
    for name in ["hostname", "subdomain"] {
        let value = text(spec, name);
        if let Some(reason) = names::dns_label(value).filter(|_| !value.is_empty()) {
            errors.invalid(format!("{path}.{name}"), value, reason);
        }
    }
}

/// Addresses.
fn resolves(errors: &mut Errors, spec: &Value, path: &str) {
    let servers = member(spec, "dnsConfig").and_then(|config| config.get("nameservers")?.as_array());
    let servers = servers.map(Vec::as_slice).unwrap_or_default();
    if text(spec, "dnsPolicy") == "None" && servers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.required(format!("{path}.dnsConfig.nameservers"), detail);
    }
    for (index, server) in servers.iter().enumerate() {
        address(
            errors,
            server.as_str().unwrap_or_default(),
            format!("{path}.dnsConfig.nameservers[{index}]"),
        );
    }
    for (alias, path) in items(spec, "hostAliases", path) {
        address(errors, text(alias, "ip"), format!("{path}.ip"));
    }
}

/// An IP address. Older servers read some that look odd, which pass.
fn address(errors: &mut Errors, address: &str, path: String) {
    let is_odd = !address.is_empty()
        && address
            .chars()
            .all(|c| c.is_ascii_hexdigit() || ".:%".contains(c));
    if !is_odd && address.parse::<IpAddr>().is_err() {
        errors.invalid(
            path,
            address,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        );
    }
}

/// Nodes that it may run on.
fn scheduled(errors: &mut Errors, spec: &Value, path: &str) {
    for (key, value) in member(spec, "nodeSelector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let path = format!("{path}.nodeSelector");
        if let Some(reason) = names::qualified_name(key) {
            errors.invalid(&path, key.as_str(), reason);
        }
        let value = value.as_str().unwrap_or_default();
        if let Some(reason) = names::label_value(value) {
            errors.invalid(path, value, reason);
        }
    }
    for (toleration, path) in items(spec, "tolerations", path) {
        errors.0.extend(scheduling::toleration(toleration, &path));
    }
    let Some(affinity) = member(spec, "affinity") else {
        return;
    };
    let path = format!("{path}.affinity");
    if let Some(nodes) = member(affinity, "nodeAffinity") {
        near_nodes(errors, nodes, &format!("{path}.nodeAffinity"));
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        if let Some(pods) = member(affinity, name) {
            near_pods(errors, pods, &format!("{path}.{name}"));
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn near_nodes(errors: &mut Errors, nodes: &Value, path: &str) {
    if let Some(required) = member(nodes, REQUIRED) {
        let path = format!("{path}.{REQUIRED}");
        if items(required, "nodeSelectorTerms", &path).next().is_none() {
            let detail = "must have at least one node selector term";
            errors.required(format!("{path}.nodeSelectorTerms"), detail);
        }
        for (term, path) in items(required, "nodeSelectorTerms", &path) {
            errors.0.extend(scheduling::node_selector_term(term, &path));
        }
    }
    for (term, path) in items(nodes, PREFERRED, path) {
        errors.0.extend(scheduling::preferred_term(term, &path));
    }
}

fn near_pods(errors: &mut Errors, pods: &Value, path: &str) {
    for (term, path) in items(pods, REQUIRED, path) {
        topology_key(errors, term, &path);
    }
    for (preferred, path) in items(pods, PREFERRED, path) {
        let weight = integer(preferred, "weight").unwrap_or_default();
        if !(1..=100).contains(&weight) {
            errors.invalid(format!("{path}.weight"), weight, "must be in the range 1-100");
        }
        let term = preferred.get("podAffinityTerm").unwrap_or(&Value::Null);
        topology_key(errors, term, &format!("{path}.podAffinityTerm"));
    }
}

fn topology_key(errors: &mut Errors, of: &Value, path: &str) {
    let (key, path) = (text(of, "topologyKey"), format!("{path}.topologyKey"));
    if key.is_empty() {
        errors.required(path, "can not be empty");
    } else if let Some(reason) = names::qualified_name(key) {
        errors.invalid(path, key, reason);
    }
}

/// How its kind is spread.
fn spread(errors: &mut Errors, spec: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (constraint, path) in items(spec, "topologySpreadConstraints", path) {
        let skew = integer(constraint, "maxSkew").unwrap_or_default();
        if skew <= 0 {
            errors.invalid(format!("{path}.maxSkew"), skew, "must be greater than zero");
        }
        // Its form is not looked at, as that of an affinity is.
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.required(format!("{path}.topologyKey"), "can not be empty");
        }
        let action = text(constraint, "whenUnsatisfiable");
        if !UNSATISFIABLE.contains(&action) {
            let kind = Kind::NotSupported(UNSATISFIABLE);
            errors.add(format!("{path}.whenUnsatisfiable"), kind, action, "");
        }
        if !seen.insert((key, action)) {
            let value = format!("{{{key}, {action}}}");
            errors.add(
                format!("{path}.{{topologyKey, whenUnsatisfiable}}"),
                Kind::Duplicate,
                value,
                "",
            );
        }
    }
}

/// What it waits for.
fn gated(errors: &mut Errors, spec: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    let gates = [("readinessGates", "conditionType"), ("schedulingGates", "name")];
    for (list, name) in gates {
        for (gate, path) in items(spec, list, path) {
            let value = text(gate, name);
            if let Some(reason) = names::qualified_name(value) {
                errors.invalid(format!("{path}.{name}"), value, reason);
            }
            if list == "schedulingGates" && !seen.insert(value) {
                errors.add(path, Kind::Duplicate, value, "");
            }
        }
    }
}
