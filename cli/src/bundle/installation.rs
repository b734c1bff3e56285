//! The installation: what runs in its namespace, its leases, settings, definitions and webhook configurations.

use kruise_admission::manifests as webhooks;
use kruise_api::path::{DEFINITIONS, segment};
use kruise_frame::{
    json::text,
    leader::LEASE,
    settings::{self, CONFIGURATION},
};
use kruise_install::manifests::{DEPLOYMENT, agent};
use kruise_runtime::client::Form;
use serde_json::{Map, Value, json};

use super::{archive::Archive, reader::Reader, redact};

/// What the summary and the logs need of it.
#[derive(Default)]
pub(super) struct Installation {
    /// The pods of its namespace, as the server has them.
    pub(super) pods: Vec<Value>,
    /// The holder of the leader lease.
    pub(super) leader: String,
    /// Lines about definitions.
    pub(super) definitions: Vec<String>,
}

/// Adds its files.
pub(super) async fn collect(
    reader: &mut Reader<'_>,
    archive: &mut Archive,
    namespace: &str,
) -> anyhow::Result<Installation> {
    let place = segment(namespace);
    for (plural, names) in [("deployments", DEPLOYMENT), ("daemonsets", agent::NAME)] {
        let list = format!("/apis/apps/v1/namespaces/{place}/{plural}");
        let objects = reader
            .list(&list, Form::Whole, |object| Some(workload(&object, names)))
            .await;
        archive.json(&format!("installation/{plural}.json"), &objects)?;
    }
    let mut pods = Vec::new();
    let list = format!("/api/v1/namespaces/{place}/pods");
    let redacted = reader.list(&list, Form::Whole, |pod| {
        let redacted = redact::pod(&pod);
        pods.push(pod);
        Some(redacted)
    });
    archive.json("installation/pods.json", &redacted.await)?;
    let list = format!("/apis/coordination.k8s.io/v1/namespaces/{place}/leases");
    let leases = reader
        .list(&list, Form::Whole, |lease| Some(redact::object(&lease)))
        .await;
    let leader = leases.iter().find(|lease| text(lease, "/metadata/name") == LEASE);
    let leader = leader
        .map_or("", |lease| text(lease, "/spec/holderIdentity"))
        .to_owned();
    archive.json("installation/leases.json", &leases)?;
    let path = format!("{}/{CONFIGURATION}", settings::collection(namespace));
    if let Some(map) = reader.object(&path).await {
        archive.json("installation/settings.json", &map.get("data"))?;
    }
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let list = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let ours = reader
            .list(&list, Form::Whole, |one| configuration(&one, namespace))
            .await;
        archive.json(&format!("installation/{plural}.json"), &ours)?;
    }
    let definitions = reader
        .list(DEFINITIONS, Form::Whole, |one| definition(&one))
        .await;
    archive.json("installation/definitions.json", &definitions)?;
    let definitions = lines_about(&definitions);
    Ok(Installation {
        pods,
        leader,
        definitions,
    })
}

/// A workload. The arguments of our own programs are their flags, which have no secrets.
fn workload(object: &Value, of_ours: &str) -> Value {
    const CONTAINERS: &str = "/spec/template/spec/containers";
    let mut kept = redact::object(object);
    if text(object, "/metadata/name") != of_ours {
        return kept;
    }
    let containers = object.pointer(CONTAINERS).and_then(Value::as_array);
    let kept_containers = kept.pointer_mut(CONTAINERS).and_then(Value::as_array_mut);
    for (container, kept) in containers
        .into_iter()
        .flatten()
        .zip(kept_containers.into_iter().flatten())
    {
        if let Some(flags) = container.get("args")
            && matches!(text(container, "/name"), "manager" | "daemon")
        {
            kept["args"] = flags.clone();
        }
    }
    kept
}

/// The webhooks of a configuration that call the manager: all of one with our name, which may call it by a URL, and
/// those of another one that call its service. `None` if there are none.
fn configuration(object: &Value, namespace: &str) -> Option<Value> {
    const FIELDS: [&str; 10] = [
        "name",
        "rules",
        "failurePolicy",
        "matchPolicy",
        "sideEffects",
        "timeoutSeconds",
        "reinvocationPolicy",
        "namespaceSelector",
        "objectSelector",
        "matchConditions",
    ];
    let all = object.get("webhooks").and_then(Value::as_array);
    let is_ours = [webhooks::MUTATING, webhooks::VALIDATING].contains(&text(object, "/metadata/name"));
    let ours = all.into_iter().flatten().filter(|webhook| {
        let service = |field: &str| text(webhook, &format!("/clientConfig/service/{field}")).to_owned();
        is_ours || (service("name") == webhooks::SERVICE && service("namespace") == namespace)
    });
    let ours: Vec<Value> = ours
        .map(|webhook| {
            let mut kept = fields(webhook, &FIELDS);
            let has_bundle = !text(webhook, "/clientConfig/caBundle").is_empty();
            kept.insert(
                "path".to_owned(),
                text(webhook, "/clientConfig/service/path").into(),
            );
            kept.insert("hasCaBundle".to_owned(), has_bundle.into());
            Value::Object(kept)
        })
        .collect();
    (!ours.is_empty()).then(|| json!({"name": text(object, "/metadata/name"), "webhooks": ours}))
}

/// What versions a definition of ours serves and stores, and its conditions.
fn definition(object: &Value) -> Option<Value> {
    if !text(object, "/spec/group").ends_with(".kruise.io") {
        return None;
    }
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let versions = versions.into_iter().flatten();
    let versions: Vec<Map<String, Value>> = versions
        .map(|one| fields(one, &["name", "served", "storage", "deprecated"]))
        .collect();
    Some(json!({
        "name": text(object, "/metadata/name"),
        "generation": object.pointer("/metadata/generation"),
        "creationTimestamp": object.pointer("/metadata/creationTimestamp"),
        "deletionTimestamp": object.pointer("/metadata/deletionTimestamp"),
        "names": object.pointer("/spec/names"),
        "versions": versions,
        "conversion": {
            "strategy": text(object, "/spec/conversion/strategy"),
            "service": object.pointer("/spec/conversion/webhook/clientConfig/service"),
            "hasCaBundle": !text(object, "/spec/conversion/webhook/clientConfig/caBundle").is_empty(),
        },
        "storedVersions": object.pointer("/status/storedVersions"),
        "conditions": object.pointer("/status/conditions"),
    }))
}

/// These fields of an object, as far as it has them.
fn fields(object: &Value, names: &[&str]) -> Map<String, Value> {
    let found = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), object.get(*name)?.clone())));
    found.collect()
}

/// What is unusual about the definitions.
fn lines_about(definitions: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in kruise_kinds::kinds() {
        let name = kind.name();
        let Some(found) = definitions.iter().find(|one| text(one, "/name") == name) else {
            lines.push(format!("{name} is not installed"));
            continue;
        };
        let stored = found["storedVersions"].as_array().map_or(0, Vec::len);
        if stored > 1 {
            lines.push(format!("{name} may be stored in {stored} versions"));
        }
        if !found["deletionTimestamp"].is_null() {
            lines.push(format!("{name} is being deleted"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_our_programs_are_kept_and_those_of_others_are_not() {
        let deployment = |name: &str| {
            let containers =
                json!([{"name": "manager", "args": ["--v=4"], "env": [{"name": "A", "value": "hunter2"}]}]);
            json!({"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": containers}}}})
        };
        let ours = workload(&deployment(DEPLOYMENT), DEPLOYMENT).to_string();
        assert!(ours.contains("--v=4") && !ours.contains("hunter2"), "{ours}");
        let other = workload(&deployment("other"), DEPLOYMENT).to_string();
        assert!(!other.contains("--v=4"), "{other}");
    }

    #[test]
    fn certificates_are_left_out_and_their_presence_is_not() {
        let service = json!({"name": webhooks::SERVICE, "namespace": "kruise-system", "path": "/mutate-pod"});
        let ours = json!({"name": "mpod.kb.io", "failurePolicy": "Fail", "matchConditions": [{"name": "a", "expression": "true"}],
            "clientConfig": {"service": service, "caBundle": "aHVudGVyMg=="}});
        let theirs = json!({"name": "other", "clientConfig": {"url": "https://x/?token=hunter2"}});
        let object = json!({"metadata": {"name": "c"}, "webhooks": [ours, theirs]});
        let kept = configuration(&object, "kruise-system").unwrap();
        assert_eq!(kept["webhooks"].as_array().map(Vec::len), Some(1));
        assert_eq!(kept["webhooks"][0]["hasCaBundle"], true);
        assert_eq!(kept["webhooks"][0]["path"], "/mutate-pod");
        assert!(!kept.to_string().contains("aHVudGVyMg"), "{kept}");
        assert_eq!(configuration(&object, "elsewhere"), None);
        let ours = json!({"metadata": {"name": webhooks::MUTATING}, "webhooks": object["webhooks"]});
        let kept = configuration(&ours, "elsewhere").unwrap();
        assert_eq!(kept["webhooks"].as_array().map(Vec::len), Some(2));
        assert!(!kept.to_string().contains("hunter2"), "{kept}");
    }
}
