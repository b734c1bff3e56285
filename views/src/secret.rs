//! A Secret: what tells whether a copy of it is as it is. Its data is not kept.

use std::collections::BTreeMap;

use go_compat::sha256;
use kruise_api::{
    meta::ObjectMeta,
    names::imagepulljob::{SECRET_REFERENCES, SECRET_SOURCE},
};
use serde::{Deserialize, Deserializer};

/// Identity of a Secret, what it is a copy of, and a fingerprint of its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretView {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Type, such as `kubernetes.io/dockerconfigjson`.
    pub kind: Box<str>,
    /// SHA-256 over the keys and values of its data, in hexadecimal digits.
    pub fingerprint: Box<str>,
    /// If it is a copy of a pull secret: the original, `namespace/name`.
    pub source: Option<Box<str>>,
    /// The jobs that need the copy, `namespace/name`, sorted.
    pub references: Box<[Box<str>]>,
    /// Being deleted?
    pub deleting: bool,
}

kube_cache::cached!(SecretView; deleting);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: ObjectMeta,
    #[serde(rename = "type")]
    kind: Option<Box<str>>,
    data: Option<BTreeMap<Box<str>, Option<Box<str>>>>,
}

impl<'de> Deserialize<'de> for SecretView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, kind, data } = Wire::deserialize(deserializer)?;
        let annotation = |key: &str| metadata.annotations.get(key);
        Ok(Self {
            source: annotation(SECRET_SOURCE).map(|source| source.as_str().into()),
            references: annotation(SECRET_REFERENCES).map_or_else(Box::default, |text| jobs(text)),
            fingerprint: fingerprint(&data.unwrap_or_default()).into(),
            kind: kind.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: metadata.uid.into(),
            resource_version: metadata.resource_version.into(),
        })
    }
}

/// The jobs that an annotation lists.
fn jobs(text: &str) -> Box<[Box<str>]> {
    let jobs = text.split(',').map(str::trim).filter(|job| !job.is_empty());
    let mut jobs: Vec<Box<str>> = jobs.map(Into::into).collect();
    jobs.sort();
    jobs.dedup();
    jobs.into()
}

/// Each text is preceded by its length, so that no two lists of keys and values are written alike.
fn fingerprint(data: &BTreeMap<Box<str>, Option<Box<str>>>) -> String {
    let mut bytes = Vec::new();
    for text in data
        .iter()
        .flat_map(|(key, value)| [&**key, value.as_deref().unwrap_or_default()])
    {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    sha256::hex(&bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::SecretView;

    fn secret(data: &Value, annotations: &Value) -> SecretView {
        let secret = json!({
            "metadata": {"namespace": "shop", "name": "reg", "uid": "u", "resourceVersion": "7",
                "annotations": annotations},
            "type": "kubernetes.io/dockerconfigjson", "data": data,
        });
        serde_json::from_str(&secret.to_string()).unwrap()
    }

    #[test]
    fn what_a_copy_is_of_and_for_is_read() {
        let copy = secret(
            &json!({}),
            &json!({"imagepulljobs.kruise.io/source-key": "shop/reg",
                "imagepulljobs.kruise.io/references": "shop/b, shop/a,,shop/b"}),
        );
        assert_eq!(copy.source.as_deref(), Some("shop/reg"));
        assert_eq!(*copy.references, ["shop/a".into(), "shop/b".into()]);
        assert_eq!(
            (&*copy.kind, copy.deleting),
            ("kubernetes.io/dockerconfigjson", false)
        );
        let plain = secret(&Value::Null, &Value::Null);
        assert_eq!((plain.source, plain.references.len()), (None, 0));
    }

    #[test]
    fn the_fingerprint_is_that_of_the_data_and_nothing_else() {
        let of = |data: Value| secret(&data, &Value::Null).fingerprint;
        let one = of(json!({"a": "MQ==", "b": "Mg=="}));
        assert_eq!(
            one,
            secret(&json!({"b": "Mg==", "a": "MQ=="}), &json!({"x": "y"})).fingerprint
        );
        for other in [
            json!({"a": "MQ=="}),
            json!({"a": "Mg==", "b": "MQ=="}),
            json!({"aM": "Q==", "b": "Mg=="}),
            Value::Null,
        ] {
            assert_ne!(one, of(other));
        }
    }
}
