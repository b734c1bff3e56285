//! Which container resources this program wrote last through a pod's `resize` endpoint, read from `managedFields`.

use std::collections::BTreeMap;

use kruise_api::names;
use serde::{Deserialize, de::IgnoredAny};

/// Which amounts of a container this program wrote last through the `resize` endpoint. Programs are told apart by
/// the name of their field manager only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenView {
    /// `requests` and `limits`, each of `cpu` and `memory`.
    lists: [[bool; 2]; 2],
    /// Was an amount of the container written last by another program through that endpoint?
    pub by_others: bool,
}

impl WrittenView {
    /// Did this program write this amount last? `list` is `requests` or `limits`, `resource` is `cpu` or `memory`.
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

    /// Did it write any amount last?
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

/// Last writers of amounts, by container name.
pub(crate) fn by_container(entries: Vec<Entry>) -> BTreeMap<Box<str>, WrittenView> {
    let mut all: BTreeMap<Box<str>, WrittenView> = BTreeMap::new();
    for entry in entries
        .into_iter()
        .filter(|entry| &*entry.subresource == "resize")
    {
        let is_ours = &*entry.manager == names::MANAGER;
        let containers = entry.fields.and_then(|fields| fields.spec?.containers);
        for (key, container) in containers.into_iter().flatten() {
            let key = key.strip_prefix("k:").map(serde_json::from_str::<Key>);
            let Some(Ok(Key { name })) = key else { continue };
            let lists = written(&container.resources.unwrap_or_default());
            let view = all.entry(name).or_default();
            if !is_ours {
                view.by_others |= lists.iter().flatten().any(|written| *written);
                continue;
            }
            for (have, more) in view.lists.iter_mut().flatten().zip(lists.iter().flatten()) {
                *have |= *more;
            }
        }
    }
    all
}

fn written(lists: &Lists) -> [[bool; 2]; 2] {
    [&lists.requests, &lists.limits].map(|list| {
        let list = list.as_ref();
        let is = |name: fn(&List) -> bool| list.is_some_and(name);
        [is(|list| list.cpu.is_some()), is(|list| list.memory.is_some())]
    })
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
        let written = found["main"];
        assert_eq!(found.len(), 1, "one container: {found:?}");
        assert!(written.by_others);
        let of = |list, resource| written.get(list, resource);
        assert!(of("limits", "cpu") && of("requests", "memory") && written.any());
        assert!(!of("limits", "memory") && !of("requests", "cpu"));
        assert!(!of("limits", "nvidia.com/gpu") && !of("claims", "cpu"));
    }

    #[test]
    fn null_entries_are_ignored() {
        let empty = json!([{"manager": "kruise-manager", "subresource": "resize", "fieldsV1": null},
                           {"manager": "kruise-manager", "subresource": "resize", "fieldsV1": {"f:spec": {"f:containers": null}}}]);
        assert!(by_container(serde_json::from_value(empty).unwrap()).is_empty());
    }

    #[test]
    fn others_count_by_the_resize_endpoint_and_by_amounts_alone() {
        let of = |resources: &Value| json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:resources": resources}}}});
        let (amounts, none) = (of(&json!({"f:requests": {"f:cpu": {}}})), of(&json!({})));
        let by_others = |manager: &str, subresource: &str, fields: &Value| {
            let found = by_container(vec![entry(manager, subresource, fields)]);
            found.values().any(|written| written.by_others)
        };
        assert!(by_others("autoscaler", "resize", &amounts));
        for (manager, subresource, fields) in [
            ("autoscaler", "resize", &none),
            ("manager", "", &amounts),
            ("kruise-manager", "resize", &amounts),
        ] {
            assert!(
                !by_others(manager, subresource, fields),
                "{manager} {subresource}"
            );
        }
    }
}
