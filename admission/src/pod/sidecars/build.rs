//! What the chosen sets add to a pod.

use kruise_plan_kit::sidecars::{Working, is_hot, is_native, names, twins};
use serde_json::{Value, json};

use super::{Choice, resources, share};
use crate::json::{items, text};

/// Everything to be put into a pod.
#[derive(Debug, Default)]
pub(super) struct Additions {
    /// Init containers.
    pub(super) init: Vec<Addition>,
    /// Containers.
    pub(super) containers: Vec<Addition>,
    /// Volumes that the sidecars' own mounts name.
    pub(super) volumes: Vec<Value>,
    /// Pull secrets.
    pub(super) secrets: Vec<Value>,
    /// Names of sidecars that are upgraded hot.
    pub(super) hot: Vec<String>,
}

/// A container, and on which side of the pod's own it goes.
#[derive(Debug)]
pub(super) struct Addition {
    pub(super) container: Value,
    pub(super) is_before: bool,
}

impl Additions {
    pub(super) fn is_empty(&self) -> bool {
        self.init.is_empty() && self.containers.is_empty()
    }
}

/// Builds all of it; an error is a resource policy that cannot be computed for this pod.
pub(super) fn additions(pod: &Value, chosen: &[&Choice<'_>]) -> Result<Additions, String> {
    let mut all = Additions::default();
    let sidecars: Vec<&str> = chosen
        .iter()
        .flat_map(|one| {
            items(&one.spec, "initContainers")
                .iter()
                .chain(items(&one.spec, "containers"))
        })
        .map(|sidecar| text(sidecar, "name"))
        .collect();
    for one in chosen {
        let prepare = |sidecar: &Value| {
            let policy = sidecar.get("resourcesPolicy").filter(|policy| !policy.is_null());
            let computed = policy
                .map(|policy| resources::computed(policy, pod, &sidecars))
                .transpose();
            let computed = computed.map_err(|why| {
                format!(
                    "resources of {} of SidecarSet {}: {why}",
                    text(sidecar, "name"),
                    one.name
                )
            })?;
            Ok::<_, String>(share::prepared(sidecar, pod, computed))
        };
        for sidecar in items(&one.spec, "initContainers") {
            let is_before = text(sidecar, "podInjectPolicy") == "BeforeAppContainer";
            let twice = is_hot(sidecar) && is_native(sidecar);
            add(&mut all, Kind::Init, sidecar, prepare(sidecar)?, is_before, twice);
            volumes(&mut all, sidecar, &one.spec);
        }
        all.secrets
            .extend_from_slice(items(&one.spec, "imagePullSecrets"));
        for sidecar in items(&one.spec, "containers") {
            let is_before = text(sidecar, "podInjectPolicy") == "BeforeAppContainer";
            add(
                &mut all,
                Kind::Regular,
                sidecar,
                prepare(sidecar)?,
                is_before,
                is_hot(sidecar),
            );
            volumes(&mut all, sidecar, &one.spec);
        }
    }
    Ok(all)
}

#[derive(Clone, Copy)]
enum Kind {
    Init,
    Regular,
}

fn add(all: &mut Additions, kind: Kind, sidecar: &Value, ready: Value, is_before: bool, twice: bool) {
    let ready = if twice {
        all.hot.push(text(sidecar, "name").to_owned());
        pair(sidecar, &ready)
    } else {
        vec![ready]
    };
    let list = match kind {
        Kind::Init => &mut all.init,
        Kind::Regular => &mut all.containers,
    };
    list.extend(
        ready
            .into_iter()
            .map(|container| Addition { container, is_before }),
    );
}

/// The two containers of a sidecar that is upgraded hot: the first works, the second idles on an empty image.
fn pair(sidecar: &Value, ready: &Value) -> Vec<Value> {
    let empty = sidecar.pointer("/upgradeStrategy/hotUpgradeEmptyImage");
    let mut both = Vec::new();
    for (index, name) in twins(text(sidecar, "name")).into_iter().enumerate() {
        let Some(mut container) = ready.as_object().cloned() else {
            continue;
        };
        container.insert("name".to_owned(), name.clone().into());
        if index == 1 {
            container.insert("image".to_owned(), empty.cloned().unwrap_or_default());
        }
        let mut container = Value::Object(container);
        for (variable, prefix) in [
            (names::ENV_VERSION, names::VERSION_PREFIX),
            (names::ENV_VERSION_ALT, names::VERSION_ALT_PREFIX),
        ] {
            let path = format!("metadata.annotations['{prefix}{name}']");
            let env =
                json!({"name": variable, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
            if let Some(list) = crate::pod::draft::list(&mut container, "env") {
                list.push(env);
            }
        }
        both.push(container);
    }
    both
}

/// Adds those volumes of the set that the sidecar mounts itself.
fn volumes(all: &mut Additions, sidecar: &Value, spec: &Value) {
    let mounted = items(sidecar, "volumeMounts")
        .iter()
        .chain(items(sidecar, "volumeDevices"));
    for name in mounted.map(|mount| text(mount, "name")) {
        let is_there = |volume: &Value| text(volume, "name") == name;
        let found = items(spec, "volumes").iter().find(|volume| is_there(volume));
        if let Some(volume) = found.filter(|_| !all.volumes.iter().any(is_there)) {
            all.volumes.push(volume.clone());
        }
    }
}

/// The annotations that distinguish the two containers of hot sidecars, given those already there.
pub(super) fn hot_annotations(hot: &[String], working: &str) -> Vec<(String, String)> {
    if hot.is_empty() {
        return Vec::new();
    }
    let mut map = Working::read(working);
    let mut annotations = Vec::new();
    for name in hot {
        let [first, second] = twins(name);
        for (twin, version, alt) in [(&first, "1", "0"), (&second, "0", "1")] {
            annotations.push((format!("{}{twin}", names::VERSION_PREFIX), version.to_owned()));
            annotations.push((format!("{}{twin}", names::VERSION_ALT_PREFIX), alt.to_owned()));
        }
        map.0.insert(name.clone(), first);
    }
    annotations.push((names::WORKING.to_owned(), map.write()));
    annotations
}
