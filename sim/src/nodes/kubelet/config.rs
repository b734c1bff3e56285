//! What a container's environment takes from ConfigMaps and Secrets: while it is not there, the container is not created.
//!
//! Not there: volumes of such, without which a pod on a real node waits, too.

use serde_json::Value;

use crate::api::Api;
use crate::object::at;
use crate::store::{Key, ResourceId};

/// The two kinds, as they are spoken of.
const MAP: Kind = Kind {
    plural: "configmaps",
    missing: "configmap",
    keyless: "ConfigMap",
};
const SECRET: Kind = Kind {
    plural: "secrets",
    missing: "secret",
    keyless: "Secret",
};

#[derive(Clone, Copy, Debug)]
struct Kind {
    plural: &'static str,
    missing: &'static str,
    keyless: &'static str,
}

/// An object that has to be there, or a key of it.
#[derive(Clone, Debug)]
pub(super) struct Need<'a> {
    kind: Kind,
    name: &'a str,
    key: Option<&'a str>,
}

/// What a container needs, in the order of its spec.
pub(super) fn needs(container: &Value) -> Vec<Need<'_>> {
    let list = |name: &str| {
        let list = container.get(name).and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let whole = list("envFrom").filter_map(|source| {
        need(source.get("configMapRef"), MAP).or_else(|| need(source.get("secretRef"), SECRET))
    });
    let keys = list("env").filter_map(|variable| {
        let source = variable.get("valueFrom")?;
        need(source.get("configMapKeyRef"), MAP).or_else(|| need(source.get("secretKeyRef"), SECRET))
    });
    whole.chain(keys).collect()
}

fn need(reference: Option<&Value>, kind: Kind) -> Option<Need<'_>> {
    let reference = reference?;
    let text = |name: &str| reference.get(name).and_then(Value::as_str);
    let is_optional = reference.get("optional") == Some(&Value::Bool(true));
    (!is_optional).then(|| Need {
        kind,
        name: text("name").unwrap_or_default(),
        key: text("key"),
    })
}

/// The first thing that is not there, in the words of the kubelet.
pub(super) fn missing(api: &Api, namespace: &str, needs: &[Need<'_>]) -> Option<String> {
    needs.iter().find_map(|need| {
        let Kind {
            plural,
            missing,
            keyless,
        } = need.kind;
        let id = ResourceId {
            group: "".into(),
            plural: plural.into(),
        };
        let Some(stored) = api.store.get(&id, &Key::new(namespace, need.name)) else {
            return Some(format!("{missing} {:?} not found", need.name));
        };
        let key = need.key?;
        let object = stored.value();
        let has = ["/data", "/binaryData"]
            .iter()
            .any(|part| at(&object, part).is_some_and(|part| part.get(key).is_some()));
        (!has).then(|| format!("couldn't find key {key} in {keyless} {namespace}/{}", need.name))
    })
}
