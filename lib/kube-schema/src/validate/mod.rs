//! What is surely wrong with a pod template.
//!
//! A finite list of rules, each of which every supported API server applies as well: a template that is refused here
//! could never have become a pod. The server has many more; those surface when it refuses the pod. When in doubt, a
//! template passes. Validate after defaulting or before, it makes no difference.
//!
//! | Fields | Rule |
//! |---|---|
//! | `labels`, `annotations` | keys and label values are well formed, annotations within 256 KiB |
//! | `containers` | at least one |
//! | container names | DNS labels, unique among containers and init containers |
//! | `image`, `imagePullPolicy` | not empty; a known policy |
//! | `terminationMessagePolicy` | known |
//! | `ports` | names well formed and unique, numbers 1 to 65535, known protocols; those of the node are the same under
//! `hostNetwork` |
//! | `env` | named, one source at most, references complete |
//! | `volumeMounts` | name a volume or claim, at distinct paths; `subPath` stays inside; only privileged ones propagate |
//! | `resources` | quantities, not negative, requests within limits; of what cannot be shared whole ones, as many as the limit |
//! | probes | one handler, counts not negative, one success and a positive grace period for liveness and startup, no grace
//! period for readiness; ports 1 to 65535; none for init containers that end |
//! | `lifecycle` | one handler; none for init containers that end |
//! | `securityContext` | ids not negative; privileges do not contradict each other; a local seccomp profile is named |
//! | `restartPolicy`, `dnsPolicy`, `preemptionPolicy`, `os` | known |
//! | `dnsConfig`, `hostAliases` | addresses; there are some with the policy `None` |
//! | `serviceAccountName`, `priorityClassName`, `runtimeClassName`, `hostname`, `subdomain` | names |
//! | `nodeSelector`, `tolerations`, `affinity`, `topologySpreadConstraints` | keys, operators and values fit together |
//! | `readinessGates`, `schedulingGates` | qualified names; the latter unique |
//! | `hostPID` | not beside `shareProcessNamespace` |
//! | `volumes` | DNS labels, unique; of one type; paths of nodes stay where they are |
//! | `ephemeralContainers` | none |

mod container;
mod error;
mod json;
mod names;
mod object;
mod pod;
mod resources;
mod scheduling;
mod security;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use self::error::{Errors, FieldError, Kind, aggregate, new_errors};
use self::json::{items, member, text};
pub use self::names::{dns_label, port_name, qualified_name};
pub use self::object::{labels_and_annotations, metadata, selector};
pub use self::scheduling::{node_selector_term, preferred_term, toleration};
use crate::table::Table;

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Checks a pod template. `claims` are the workload's claim templates, whose names are volumes too; `path` is where
/// the template is, such as `spec.template`.
pub fn pod_template(template: &Value, claims: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if let Some(metadata) = member(template, "metadata") {
        labels(&mut errors, metadata, path);
        annotations(&mut errors, metadata, path);
    }
    let path = format!("{path}.spec");
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let mut volumes = volumes(&mut errors, spec, &path);
    volumes.extend(claims.iter().map(claim_name));
    if items(spec, "containers", &path).next().is_none() {
        errors.required(format!("{path}.containers"), "");
    }
    let mut seen = BTreeSet::new();
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for (one, path) in items(spec, "containers", &path).chain(items(spec, "initContainers", &path)) {
        unique_label(&mut errors, text(one, "name"), &mut seen, format!("{path}.name"));
        container::container(&mut errors, one, &volumes, &path);
        if host_network {
            container::ports_of_host(&mut errors, one, &path);
        }
    }
    for (one, path) in items(spec, "initContainers", &path) {
        container::only_while_running(&mut errors, one, &path);
    }
    pod::rules(&mut errors, spec, &path);
    if items(spec, "ephemeralContainers", &path).next().is_some() {
        errors.forbidden(
            format!("{path}.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
    errors.one_of(
        format!("{path}.restartPolicy"),
        text(spec, "restartPolicy"),
        RESTART_POLICIES,
    );
    errors.0
}

/// Checks claim templates: names, which become volumes, and quantities, of which storage must be one.
pub fn claims(claims: &[Value], path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = format!("{path}[{index}]");
        unique_label(
            &mut errors,
            claim_name(claim),
            &mut seen,
            format!("{path}.metadata.name"),
        );
        let spec = member(claim, "spec").unwrap_or(&Value::Null);
        if let Some(found) = member(spec, "resources") {
            resources::requirements(&mut errors, found, &format!("{path}.spec.resources"));
        }
        let storage = spec.pointer("/resources/requests/storage");
        if storage.is_none_or(Value::is_null) {
            errors.required(format!("{path}.spec.resources.requests.storage"), "");
        }
    }
    errors.0
}

/// Checks the variables of a container.
pub fn environment(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    container::environment(&mut errors, container, path);
    errors.0
}

/// Could a text be the name of an object: DNS labels with dots between them?
pub fn is_dns_subdomain(text: &str) -> bool {
    names::dns_subdomain(text)
}

/// Why a text is no value of a label.
pub fn not_a_label_value(text: &str) -> Option<&'static str> {
    names::label_value(text)
}

/// Why a text is no DNS label, such as the name of a namespace.
pub fn not_a_dns_label(text: &str) -> Option<&'static str> {
    names::dns_label(text)
}

fn claim_name(claim: &Value) -> &str {
    member(claim, "metadata")
        .map(|metadata| text(metadata, "name"))
        .unwrap_or_default()
}

/// A DNS label that was not seen before.
fn unique_label<'a>(errors: &mut Errors, name: &'a str, seen: &mut BTreeSet<&'a str>, path: String) {
    if name.is_empty() {
        errors.required(path, "");
    } else if let Some(reason) = names::dns_label(name) {
        errors.invalid(path, name, reason);
    } else if !seen.insert(name) {
        errors.add(path, Kind::Duplicate, name, "");
    }
}

/// The names that can be mounted: those of volumes that are in order.
fn volumes<'a>(errors: &mut Errors, spec: &'a Value, path: &str) -> BTreeSet<&'a str> {
    let (mut seen, mut good) = (BTreeSet::new(), BTreeSet::new());
    for (volume, path) in items(spec, "volumes", path) {
        let before = errors.0.len();
        let name = text(volume, "name");
        unique_label(errors, name, &mut seen, format!("{path}.name"));
        one_source(errors, volume, &path);
        if let Some(host) = member(volume, "hostPath") {
            container::no_backsteps(errors, text(host, "path"), format!("{path}.hostPath.path"));
        }
        if errors.0.len() == before {
            good.insert(name);
        }
    }
    good
}

/// A volume is of one type. Members that no known type has are not checked.
fn one_source(errors: &mut Errors, volume: &Value, path: &str) {
    let table = Table::builtin();
    let Some(of) = table.find("core/v1.Volume") else {
        return;
    };
    let is_given = |name: &str| volume.get(name).is_some_and(Value::is_object);
    let types = table.get(of).fields.iter().map(|field| field.name);
    let mut given: Vec<&str> = types.filter(|name| is_given(name)).collect();
    // a server checks this one first, and the others in the order of its type
    given.sort_by_key(|name| *name != "emptyDir");
    for name in given.iter().skip(1) {
        errors.forbidden(
            format!("{path}.{name}"),
            "may not specify more than 1 volume type",
        );
    }
}

fn entries<'a>(metadata: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map: Option<&Map<String, Value>> = metadata.get(name).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn labels(errors: &mut Errors, metadata: &Value, path: &str) {
    let path = format!("{path}.labels");
    for (key, value) in entries(metadata, "labels") {
        if let Some(reason) = names::qualified_name(key) {
            errors.invalid(&path, key.as_str(), reason);
        }
        if let Some(reason) = names::label_value(value) {
            errors.invalid(&path, value, reason);
        }
    }
}

fn annotations(errors: &mut Errors, metadata: &Value, path: &str) {
    let path = format!("{path}.annotations");
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        // the rule is for lower-case keys only, and so lenient about case
        if let Some(reason) = names::qualified_name(&key.to_lowercase()) {
            errors.invalid(&path, key.as_str(), reason);
        }
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_BYTES {
        errors.invalid(path, "", "annotations size must be at most 262144 bytes");
    }
}

#[cfg(test)]
mod tests;
