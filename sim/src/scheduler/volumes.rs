//! A pod's claims: they are bound, or get their volumes once the pod has a node.

use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{at, get_metadata};
use crate::storage::{self, Binding, SELECTED_NODE};
use crate::store::{Key, ResourceId};
use crate::world::Client;

/// A claim whose volume is made for the node of its pod.
pub(super) struct Unbound {
    pub(super) key: Key,
    /// Whether its provisioner knows the node.
    pub(super) has_node: bool,
}

/// The claims of a pod whose volumes are made for its node.
///
/// # Errors
/// The reason why the pod can have no node yet.
pub(super) fn unbound(api: &Api, key: &Key, pod: &Value) -> Result<Vec<Unbound>, String> {
    let id = ResourceId {
        group: "".into(),
        plural: "persistentvolumeclaims".into(),
    };
    let volumes = at(pod, "/spec/volumes").and_then(Value::as_array);
    let names = volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| at(volume, "/persistentVolumeClaim/claimName")?.as_str());
    let mut unbound = Vec::new();
    for name in names {
        let key = Key::new(&key.namespace, name);
        let Some(claim) = api.store.get(&id, &key).map(|stored| stored.value()) else {
            return Err(format!("persistentvolumeclaim {name:?} not found"));
        };
        if !get_metadata(&claim, "deletionTimestamp").is_null() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if at(&claim, "/status/phase") == Some(&"Bound".into()) {
            continue;
        }
        let has_node = get_metadata(&claim, "annotations").get(SELECTED_NODE).is_some();
        match storage::binding(api, &claim) {
            Binding::AtOnce => {}
            Binding::Delayed => unbound.push(Unbound { key, has_node: false }),
            Binding::Provisioned(_) if has_node => unbound.push(Unbound { key, has_node }),
            _ => return Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
        }
    }
    Ok(unbound)
}

/// Tells the provisioner of a claim which node its pod is to have.
pub(super) fn choose(client: &mut Client<'_>, claim: &Key, node: &str) {
    let (namespace, name) = (&claim.namespace, &claim.name);
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
    client.merge(
        &path,
        &json!({"metadata": {"annotations": {SELECTED_NODE: node}}}),
    );
}
