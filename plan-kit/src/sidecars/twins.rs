//! Sidecars that are upgraded hot: two containers, of which one works.

use std::collections::BTreeMap;

use go_compat::json::to_go_json;
use serde_json::Value;

use super::fields::{items, text};

/// Is this sidecar upgraded by starting its other container first?
pub fn is_hot(sidecar: &Value) -> bool {
    text(sidecar, "/upgradeStrategy/upgradeType") == "HotUpgrade"
}

/// Does this init container keep running?
pub fn is_native(init: &Value) -> bool {
    text(init, "/restartPolicy") == "Always"
}

/// The two containers of a sidecar that is upgraded hot.
pub fn twins(name: &str) -> [String; 2] {
    [format!("{name}-1"), format!("{name}-2")]
}

/// Which container works for each sidecar: the annotation [`super::names::WORKING`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Working(pub BTreeMap<String, String>);

impl Working {
    /// Reads an annotation. One that is not JSON counts as empty.
    pub fn read(annotation: &str) -> Self {
        Self(serde_json::from_str(annotation).unwrap_or_default())
    }

    /// The text of the annotation.
    pub fn write(&self) -> String {
        let entry = |(name, twin): (&String, &String)| (name.clone(), Value::from(twin.clone()));
        to_go_json(&Value::Object(self.0.iter().map(entry).collect()))
    }

    /// The container that works for a sidecar, and the other one. Where nothing usable is recorded, it is the second.
    pub fn of(&self, sidecar: &str) -> [String; 2] {
        let [first, second] = twins(sidecar);
        if self.0.get(sidecar) == Some(&first) {
            [first, second]
        } else {
            [second, first]
        }
    }
}

/// Names of the sidecars of a specification: native ones and regular ones, sorted, each once.
pub fn sidecar_list(spec: &Value) -> Vec<String> {
    let native = items(spec, "initContainers").iter().filter(|one| is_native(one));
    let all = native.chain(items(spec, "containers"));
    let mut list: Vec<String> = all.map(|one| text(one, "/name").to_owned()).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// Does a pod have every container the specification would have injected? `has` knows its containers and init
/// containers.
pub fn is_structurally_consistent(spec: &Value, has: impl Fn(&str) -> bool, working: &Working) -> bool {
    items(spec, "containers").iter().all(|sidecar| {
        let name = text(sidecar, "/name");
        if is_hot(sidecar) {
            working.0.contains_key(name) && twins(name).iter().all(|twin| has(twin))
        } else {
            has(name)
        }
    })
}

/// Does a pod have every sidecar, of this `upgradeType` or another one? An earlier SidecarSet of the name injected it
/// so.
pub fn has_sidecars(spec: &Value, has: impl Fn(&str) -> bool) -> bool {
    items(spec, "containers").iter().all(|sidecar| {
        let name = text(sidecar, "/name");
        has(name) || twins(name).iter().all(|twin| has(twin))
    })
}
