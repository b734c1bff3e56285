//! What the webhook configurations and the CRDs must say about this server.
//!
//! Both functions compare the object as read with the object as it should be and return a JSON merge patch, or
//! `None` when they agree: every replica reconciles, so an unneeded write would be repeated by all of them. The
//! patch carries the `resourceVersion` that was read, so that a write decided on old data fails with a conflict.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kruise_api::names::WIDENED_CONDITIONS;
use serde_json::{Map, Value, json};

use crate::Error;

mod conditional;
pub mod widening;

pub use conditional::{ConditionalWebhook, DesiredCondition};

/// The annotation that keeps the installer's `webhooks` array as JSON text.
pub const TEMPLATE: &str = "template";

/// The two kinds of webhook configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// MutatingWebhookConfiguration.
    Mutating,
    /// ValidatingWebhookConfiguration.
    Validating,
}

/// Where the API server reaches this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Through a Service of the cluster.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// The Service's name.
        name: String,
    },
    /// Directly by address (`WEBHOOK_HOST` is set).
    Url {
        /// Host name or IP address.
        host: String,
        /// TCP port.
        port: u16,
    },
}

impl Endpoint {
    /// The name or address by which the API server calls, which the certificate must be valid for.
    pub fn host(&self) -> String {
        match self {
            Self::Service { namespace, name } => format!("{name}.{namespace}.svc"),
            Self::Url { host, .. } => host.clone(),
        }
    }
}

/// The outcome for a webhook configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// The merge patch to send, if anything differs.
    pub patch: Option<Value>,
    /// Names of the template's webhooks that have no handler here and are left out.
    pub dropped: Vec<String>,
}

/// A conditional webhook, its desired match condition, and the current time.
pub type Desired<'d> = (&'d ConditionalWebhook, &'d DesiredCondition, Timestamp);

/// Requests that an API server sends to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'c> {
    /// Name of the webhook.
    pub webhook: &'c str,
    /// Its path.
    pub path: &'c str,
    /// The operation, as a rule names it; `*` for all of them.
    pub operation: &'c str,
}

/// Compares a mutating or validating webhook configuration with its template.
///
/// `ca_pem` is the PEM bundle; `served` is true for calls that have a handler. A rule loses the operations that
/// have none, and a webhook without operations is left out. Widenings of the conditional webhooks that last are
/// kept.
///
/// # Errors
/// Fails if the stored template is not a JSON array of webhooks, or a webhook has neither a service nor a URL.
pub fn webhooks(
    current: &Value,
    ca_pem: &[u8],
    endpoint: &Endpoint,
    served: impl Fn(&Call<'_>) -> bool,
    conditionals: &[Desired<'_>],
) -> Result<Registration, Error> {
    let all = widening::widened(current);
    let mut widened = all.clone();
    for (conditional, desired, now) in conditionals {
        if **desired != DesiredCondition::Unmanaged {
            widened = widening::kept(&widened, conditional, *now);
        }
    }
    let existing = current.get("webhooks").cloned().unwrap_or_else(|| json!([]));
    let stored = current
        .pointer("/metadata/annotations/template")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let text = if stored.is_empty() {
        without(&existing, conditionals).to_string()
    } else {
        stored.to_owned()
    };
    let template: Vec<Map<String, Value>> = serde_json::from_str(&text).map_err(Error::Template)?;

    let mut wanted = Vec::with_capacity(template.len() + conditionals.len());
    let mut dropped = Vec::new();
    // Names are unique: if two webhooks have its path, only the first gets a copy.
    let (in_place, mut copies): (Vec<_>, Vec<_>) = conditionals.iter().partition(|(one, ..)| one.in_place);
    for mut webhook in template {
        let name = webhook
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let Some(Value::Object(client)) = webhook.get_mut("clientConfig") else {
            return Err(Error::NoClientConfig(name));
        };
        let Some(path) = path_of(client) else {
            return Err(Error::NoClientConfig(name));
        };
        client.insert("caBundle".into(), Value::String(STANDARD.encode(ca_pem)));
        point_to(client, endpoint, &path);
        if !keep_handled(&mut webhook, &name, &path, &served) {
            dropped.push(name);
            continue;
        }
        copies.retain(|(conditional, desired, _)| {
            let more = (conditional.path == path)
                .then(|| conditional.webhook(desired, &widened, &webhook, &existing))
                .flatten();
            let is_added = more.is_some();
            wanted.extend(more.map(Value::Object));
            !is_added
        });
        let conditional = in_place.iter().find(|(one, ..)| one.is(&webhook));
        match conditional.filter(|_| has_conditions(&webhook)) {
            Some((conditional, desired, _)) => {
                let webhook = conditional.webhook(desired, &widened, &webhook, &existing);
                wanted.extend(webhook.map(Value::Object));
            }
            None => wanted.push(Value::Object(webhook)),
        }
    }

    let mut patch = Map::new();
    let mut annotations = Map::new();
    if stored.is_empty() {
        annotations.insert(TEMPLATE.into(), text.into());
    }
    if widened != all {
        annotations.insert(WIDENED_CONDITIONS.into(), widening::annotation(&widened));
    }
    if !annotations.is_empty() {
        patch.insert("metadata".into(), json!({"annotations": annotations}));
    }
    let wanted = Value::Array(wanted);
    if !contained(&defaulted(wanted.clone()), &existing) {
        patch.insert("webhooks".into(), wanted);
    }
    Ok(Registration {
        patch: tied(current, patch),
        dropped,
    })
}

/// The registered webhooks without copies of others, which is what an installer wrote.
fn without(existing: &Value, conditionals: &[Desired<'_>]) -> Value {
    let Some(webhooks) = existing.as_array() else {
        return existing.clone();
    };
    let is_copy = |webhook: &&Value| {
        let webhook = webhook.as_object();
        webhook.is_some_and(|webhook| {
            conditionals
                .iter()
                .any(|(one, ..)| !one.in_place && one.is(webhook))
        })
    };
    webhooks
        .iter()
        .filter(|webhook| !is_copy(webhook))
        .cloned()
        .collect()
}

/// Leaves only the operations that are handled; false if there are none.
fn keep_handled(
    webhook: &mut Map<String, Value>,
    name: &str,
    path: &str,
    served: &impl Fn(&Call<'_>) -> bool,
) -> bool {
    let is_handled = |operation: &str| {
        served(&Call {
            webhook: name,
            path,
            operation,
        })
    };
    let rules = webhook.get_mut("rules").and_then(Value::as_array_mut);
    let Some(rules) = rules.filter(|rules| !rules.is_empty()) else {
        return is_handled("*");
    };
    rules.retain_mut(|rule| {
        let operations = rule.get_mut("operations").and_then(Value::as_array_mut);
        operations.is_none_or(|operations| {
            operations.retain(|one| is_handled(one.as_str().unwrap_or("*")));
            !operations.is_empty()
        })
    });
    !rules.is_empty()
}

fn has_conditions(webhook: &Map<String, Value>) -> bool {
    let conditions = webhook.get("matchConditions").and_then(Value::as_array);
    conditions.is_some_and(|conditions| !conditions.is_empty())
}

/// Compares a CRD's conversion webhook with what this server offers.
///
/// A CRD whose strategy is not `Webhook` is left alone.
pub fn conversion(crd: &Value, ca_pem: &[u8], endpoint: &Endpoint) -> Option<Value> {
    let current = crd.pointer("/spec/conversion")?;
    if current.get("strategy").and_then(Value::as_str) != Some("Webhook") {
        return None;
    }
    let mut client = Map::new();
    client.insert("caBundle".into(), Value::String(STANDARD.encode(ca_pem)));
    let (chosen, other) = match endpoint {
        Endpoint::Service { namespace, name } => {
            let service = json!({"namespace": namespace, "name": name, "port": 443, "path": "/convert"});
            client.insert("service".into(), service);
            ("service", "url")
        }
        Endpoint::Url { .. } => {
            point_to(&mut client, endpoint, "/convert");
            ("url", "service")
        }
    };
    let versions = json!(["v1", "v1beta1"]);
    let now = current.pointer("/webhook/clientConfig");
    let field = |name: &str| now.and_then(|now| now.get(name));
    let same = field("caBundle") == client.get("caBundle")
        && field(chosen) == client.get(chosen)
        && field(other).is_none_or(Value::is_null)
        && current.pointer("/webhook/conversionReviewVersions") == Some(&versions);
    if same {
        return None;
    }
    client.insert(other.into(), Value::Null);
    let webhook = json!({"clientConfig": client, "conversionReviewVersions": versions});
    let mut patch = Map::new();
    patch.insert("spec".into(), json!({"conversion": {"webhook": webhook}}));
    tied(crd, patch)
}

/// Fills in what the API server fills in, so that an edit of a member the template leaves open is seen.
fn defaulted(mut webhooks: Value) -> Value {
    let fill = |object: Option<&mut Value>, defaults: Value| {
        if let (Some(Value::Object(object)), Value::Object(defaults)) = (object, defaults) {
            for (name, value) in defaults {
                object.entry(name).or_insert(value);
            }
        }
    };
    for webhook in webhooks.as_array_mut().into_iter().flatten() {
        fill(webhook.pointer_mut("/clientConfig/service"), json!({"port": 443}));
        let rules = webhook.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            fill(Some(rule), json!({"scope": "*"}));
        }
        let defaults = json!({
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
            "namespaceSelector": {}, "objectSelector": {}, "matchConditions": null,
        });
        fill(Some(webhook), defaults);
    }
    webhooks
}

/// True if `live` contains everything in `wanted`.
///
/// Unknown members may be defaults of a newer API server and are no difference; further elements of an array are. A
/// member that is null in `wanted` has to be absent, and an empty object, such as a selector, equals only an empty
/// object.
fn contained(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) if wanted.is_empty() => live.is_empty(),
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(name, wanted)| {
            let live = live.get(name).unwrap_or(&Value::Null);
            contained(wanted, live)
        }),
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted
                    .iter()
                    .zip(live)
                    .all(|(wanted, live)| contained(wanted, live))
        }
        _ => wanted == live,
    }
}

/// True if every webhook of a configuration trusts `ca_pem` and nothing else.
pub fn webhooks_trust(current: &Value, ca_pem: &[u8]) -> bool {
    let bundle = Value::String(STANDARD.encode(ca_pem));
    let webhooks = current.get("webhooks").and_then(Value::as_array);
    webhooks
        .into_iter()
        .flatten()
        .all(|webhook| webhook.pointer("/clientConfig/caBundle") == Some(&bundle))
}

/// True if a CRD that is converted by webhook trusts `ca_pem` and nothing else, or is not converted by webhook.
pub fn conversion_trusts(crd: &Value, ca_pem: &[u8]) -> bool {
    let bundle = Value::String(STANDARD.encode(ca_pem));
    let strategy = crd.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    strategy != Some("Webhook")
        || crd.pointer("/spec/conversion/webhook/clientConfig/caBundle") == Some(&bundle)
}

/// The request path of a client configuration, without query.
fn path_of(client: &Map<String, Value>) -> Option<String> {
    if let Some(service) = client.get("service").filter(|service| !service.is_null()) {
        return Some(
            service
                .get("path")
                .and_then(Value::as_str)
                .unwrap_or("/")
                .to_owned(),
        );
    }
    let url: http::Uri = client.get("url")?.as_str()?.parse().ok()?;
    Some(url.path().to_owned())
}

/// Directs a webhook to `endpoint`. Without `WEBHOOK_HOST`, one registered by URL stays where its author put it.
fn point_to(client: &mut Map<String, Value>, endpoint: &Endpoint, path: &str) {
    match endpoint {
        Endpoint::Service { namespace, name } => {
            if let Some(Value::Object(service)) = client.get_mut("service") {
                service.insert("namespace".into(), json!(namespace));
                service.insert("name".into(), json!(name));
            }
        }
        Endpoint::Url { host, port } => {
            client.remove("service");
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host.clone()
            };
            client.insert("url".into(), json!(format!("https://{host}:{port}{path}")));
        }
    }
}

/// Ties a non-empty patch to the version of the object it was computed from.
fn tied(current: &Value, mut patch: Map<String, Value>) -> Option<Value> {
    if patch.is_empty() {
        return None;
    }
    if let Some(version) = current.pointer("/metadata/resourceVersion") {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.insert("resourceVersion".into(), version.clone());
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests;
