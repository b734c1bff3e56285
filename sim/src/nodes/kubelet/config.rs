//! What a container's environment takes from ConfigMaps and Secrets: while it is not there, the container is not
//! created.
//!
//! Not there: volumes of such, without which a pod on a real node waits, too.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
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

/// The pairs of the ConfigMap or Secret that a member of `envFrom` names, in the order of keys.
pub(super) fn all(api: &Api, namespace: &str, source: &Value) -> Vec<(String, String)> {
    let of = |field: &str, kind: Kind| {
        let name = source.get(field)?.get("name")?.as_str()?;
        object(api, kind, namespace, name).map(|object| (kind, object))
    };
    let found = of("configMapRef", MAP).or_else(|| of("secretRef", SECRET));
    let Some((kind, object)) = found else {
        return Vec::new();
    };
    let data = at(&object, "/data").and_then(Value::as_object);
    let pairs = data.into_iter().flatten();
    pairs
        .map(|(key, value)| (key.clone(), kind.text(value)))
        .collect()
}

/// The value of the key of a ConfigMap or Secret that a variable names; `None` if it names none that is there.
pub(super) fn value(api: &Api, namespace: &str, source: &Value) -> Option<String> {
    let of = |field: &str, kind: Kind| {
        let reference = source.get(field)?;
        let object = object(api, kind, namespace, reference.get("name")?.as_str()?)?;
        let value = object.get("data")?.get(reference.get("key")?.as_str()?)?;
        Some(kind.text(value))
    };
    of("configMapKeyRef", MAP).or_else(|| of("secretKeyRef", SECRET))
}

impl Kind {
    /// A value of such an object; those of Secrets are in base64.
    fn text(self, value: &Value) -> String {
        let text = value.as_str().unwrap_or_default();
        if self.plural == MAP.plural {
            return text.to_owned();
        }
        let decoded = BASE64_STANDARD.decode(text).unwrap_or_default();
        String::from_utf8_lossy(&decoded).into_owned()
    }
}

fn object(api: &Api, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
    let id = ResourceId {
        group: "".into(),
        plural: kind.plural.into(),
    };
    Some(api.store.get(&id, &Key::new(namespace, name))?.value())
}

/// The first thing that is not there, in the words of the kubelet.
pub(super) fn missing(api: &Api, namespace: &str, needs: &[Need<'_>]) -> Option<String> {
    needs.iter().find_map(|need| {
        let Kind { missing, keyless, .. } = need.kind;
        let Some(object) = object(api, need.kind, namespace, need.name) else {
            return Some(format!("{missing} {:?} not found", need.name));
        };
        let key = need.key?;
        let has = ["/data", "/binaryData"]
            .iter()
            .any(|part| at(&object, part).is_some_and(|part| part.get(key).is_some()));
        (!has).then(|| format!("couldn't find key {key} in {keyless} {namespace}/{}", need.name))
    })
}
