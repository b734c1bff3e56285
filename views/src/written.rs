//! Who wrote what: of the server's own record of that, the amounts that this program asked for by a pod's `resize` endpoint.

use std::collections::BTreeMap;

use kruise_api::names;
use serde::{Deserialize, de::IgnoredAny};

/// Which amounts of a container this program, or one of its name, wrote by the `resize` endpoint, and nobody since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenView {
    /// `requests` and `limits`, each of `cpu` and `memory`.
    lists: [[bool; 2]; 2],
}

impl WrittenView {
    /// Is it so of the amount under `requests` or `limits` and a resource's name?
    pub fn get(self, list: &str, resource: &str) -> bool {
        let [requests, limits] = self.lists;
        let [cpu, memory] = match list {
            "requests" => requests,
            "limits" => limits,
            _ => return false,
        };
        match resource {
            "cpu" => cpu,
            "memory" => memory,
            _ => false,
        }
    }

    /// Of any?
    pub fn any(self) -> bool {
        self.lists.iter().flatten().any(|written| *written)
    }
}

/// An entry of `metadata.managedFields`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Entry {
    manager: Box<str>,
    subresource: Box<str>,
    #[serde(rename = "fieldsV1")]
    fields: Option<Fields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:spec")]
    spec: Option<Specification>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Specification {
    /// By `k:{"name":"…"}`.
    #[serde(rename = "f:containers")]
    containers: Option<BTreeMap<Box<str>, Container>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    #[serde(rename = "f:resources")]
    resources: Option<Lists>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Lists {
    #[serde(rename = "f:requests")]
    requests: Option<List>,
    #[serde(rename = "f:limits")]
    limits: Option<List>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct List {
    #[serde(rename = "f:cpu")]
    cpu: Option<IgnoredAny>,
    #[serde(rename = "f:memory")]
    memory: Option<IgnoredAny>,
}

/// The name of a container in a key of a list.
#[derive(Deserialize)]
struct Key {
    name: Box<str>,
}

/// What was written, by container.
pub(crate) fn by_container(entries: Vec<Entry>) -> Vec<(Box<str>, WrittenView)> {
    let ours = entries
        .into_iter()
        .filter(|entry| &*entry.manager == names::MANAGER && &*entry.subresource == "resize");
    let containers = ours.filter_map(|entry| entry.fields?.spec?.containers).flatten();
    let of = |(key, container): (Box<str>, Container)| {
        let key: Key = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
        let lists = container.resources.unwrap_or_default();
        let list = |list: Option<List>| {
            let list = list.unwrap_or_default();
            [list.cpu.is_some(), list.memory.is_some()]
        };
        let lists = [list(lists.requests), list(lists.limits)];
        Some((key.name, WrittenView { lists }))
    };
    containers.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(manager: &str, subresource: &str, fields: &Value) -> Entry {
        let entry = json!({"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields});
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn what_this_program_wrote_by_resize_is_found_by_container() {
        let fields = json!({"f:spec": {"f:containers": {
            "k:{\"name\":\"main\"}": {".": {}, "f:resources": {"f:limits": {"f:cpu": {}}, "f:requests": {".": {}, "f:memory": {}}}},
            "no key": {"f:resources": {"f:limits": {"f:cpu": {}}}},
        }}});
        let status = json!({"f:status": {"f:phase": {}}});
        let found = by_container(vec![
            entry("kruise-manager", "", &fields),
            entry("autoscaler", "resize", &fields),
            entry("kubelet", "status", &status),
            entry("kruise-manager", "resize", &fields),
        ]);
        let [(name, written)] = &found[..] else {
            panic!("one container: {found:?}")
        };
        assert_eq!(&**name, "main");
        let of = |list, resource| written.get(list, resource);
        assert!(of("limits", "cpu") && of("requests", "memory") && written.any());
        assert!(!of("limits", "memory") && !of("requests", "cpu"));
        assert!(!of("limits", "nvidia.com/gpu") && !of("claims", "cpu"));
    }

    #[test]
    fn entries_that_say_null_say_nothing() {
        let empty = json!([{"manager": "kruise-manager", "subresource": "resize", "fieldsV1": null},
                           {"manager": "kruise-manager", "subresource": "resize", "fieldsV1": {"f:spec": {"f:containers": null}}}]);
        assert_eq!(by_container(serde_json::from_value(empty).unwrap()), []);
    }
}
