//! The containers of a set, as upgrades use them.

use kruise_plan_kit::sidecars::{is_hot, sidecar_list, twins};
use serde_json::Value;

/// One container of the specification.
pub(crate) struct Sidecar {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) kind: Kind,
}

/// How it is upgraded.
pub(crate) enum Kind {
    /// It restarts.
    Cold,
    /// Its other container starts first.
    Hot {
        /// The two containers.
        twins: [String; 2],
        /// What the one that does not work runs.
        empty: String,
    },
}

/// All containers of a set.
pub(crate) struct Sidecars {
    pub(crate) all: Vec<Sidecar>,
    /// Names for the pod's record.
    pub(crate) list: Vec<String>,
    /// Names of their containers in pods, sorted.
    containers: Vec<String>,
}

impl Sidecars {
    /// Those of a specification.
    pub(crate) fn of(spec: &Value) -> Self {
        let items = spec.get("containers").and_then(Value::as_array);
        let all: Vec<Sidecar> = items.into_iter().flatten().map(sidecar).collect();
        let mut containers: Vec<String> = all
            .iter()
            .flat_map(|sidecar| match &sidecar.kind {
                Kind::Cold => vec![sidecar.name.clone()],
                Kind::Hot { twins, .. } => twins.to_vec(),
            })
            .collect();
        containers.sort_unstable();
        Self {
            all,
            list: sidecar_list(spec),
            containers,
        }
    }

    /// Is this the name of a sidecar's container, in a pod?
    pub(crate) fn has(&self, container: &str) -> bool {
        self.containers
            .binary_search_by(|name| name.as_str().cmp(container))
            .is_ok()
    }

    /// Names of all their containers in pods, sorted.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().map(String::as_str)
    }

    /// Those that restart: name and image.
    pub(crate) fn cold(&self) -> impl Iterator<Item = (&str, &str)> {
        let cold = |sidecar: &&Sidecar| matches!(sidecar.kind, Kind::Cold);
        let all = self.all.iter().filter(cold);
        all.map(|sidecar| (sidecar.name.as_str(), sidecar.image.as_str()))
    }

    /// Those that are upgraded hot: name, twins, empty image.
    pub(crate) fn hot(&self) -> impl Iterator<Item = (&str, &[String; 2], &str)> {
        self.all.iter().filter_map(|sidecar| match &sidecar.kind {
            Kind::Cold => None,
            Kind::Hot { twins, empty } => Some((sidecar.name.as_str(), twins, empty.as_str())),
        })
    }
}

fn sidecar(container: &Value) -> Sidecar {
    let text = |pointer: &str| {
        let text = container.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let name = text("/name");
    let kind = if is_hot(container) {
        Kind::Hot {
            twins: twins(&name),
            empty: text("/upgradeStrategy/hotUpgradeEmptyImage"),
        }
    } else {
        Kind::Cold
    };
    Sidecar {
        image: text("/image"),
        name,
        kind,
    }
}
