//! Warnings of pods' events: the kubelet reports failing probes and mounts there only.

use std::collections::BTreeMap;
use std::fmt;

use kruise_api::{names::events::FAILED_CREATE, path::segment};
use kruise_runtime::Client;
use serde_json::Value;

use super::pods::{one_line, text};

/// The last warning about each pod, by uid.
#[derive(Default)]
pub struct Warnings(BTreeMap<String, Warning>);

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    reason: String,
    message: String,
    from: String,
    when: String,
}

impl Warning {
    /// Its message, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            reason,
            message,
            from,
            when,
        } = self;
        write!(f, "last warning, from {from} at {when}: {reason}: {message}")
    }
}

impl Warnings {
    /// Reads them from one namespace, or from all. Somebody who may not read events sees none.
    pub async fn read(client: &Client, namespace: Option<&str>) -> Self {
        let place = namespace.map_or_else(String::new, |namespace| format!("namespaces/{namespace}/"));
        let path = format!("/api/v1/{place}events?fieldSelector=involvedObject.kind%3DPod%2Ctype%3DWarning");
        let list: Value = client.get(&path).await.unwrap_or_default();
        Self::of(
            list.get("items")
                .and_then(Value::as_array)
                .map_or(&[], Vec::as_slice),
        )
    }

    /// The last warning that a pod of this object could not be created. Somebody who may not read events sees none.
    pub async fn refusal(client: &Client, namespace: &str, (kind, name): (&str, &str)) -> Option<Warning> {
        let reason = FAILED_CREATE.name;
        let of_object =
            format!("involvedObject.kind={kind},involvedObject.name={name},type=Warning,reason={reason}");
        let path = format!(
            "/api/v1/namespaces/{}/events?fieldSelector={}",
            segment(namespace),
            segment(&of_object)
        );
        let list: Value = client.get(&path).await.unwrap_or_default();
        let items = list
            .get("items")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let all = Self::of(&items).0.into_values();
        all.max_by(|one, other| one.when.cmp(&other.when))
    }

    /// The last one about each pod.
    pub fn of(events: &[Value]) -> Self {
        let mut last: BTreeMap<String, Warning> = BTreeMap::new();
        for event in events.iter().filter(|event| text(event, "type") == "Warning") {
            let about = event.get("involvedObject").unwrap_or(&Value::Null);
            let warning = Warning {
                reason: text(event, "reason").to_owned(),
                message: one_line(text(event, "message")),
                from: source(event).to_owned(),
                when: last_seen(event).to_owned(),
            };
            let known = last
                .entry(text(about, "uid").to_owned())
                .or_insert_with(|| warning.clone());
            if known.when <= warning.when {
                *known = warning;
            }
        }
        Self(last)
    }

    /// The last one about a pod.
    pub fn of_pod(&self, pod: &Value) -> Option<&Warning> {
        self.0.get(pod.pointer("/metadata/uid")?.as_str()?)
    }
}

fn source(event: &Value) -> &str {
    let old = event.pointer("/source/component").and_then(Value::as_str);
    let found = old.filter(|name| !name.is_empty());
    found.unwrap_or_else(|| text(event, "reportingComponent"))
}

/// When an event was seen last; empty if it does not say. Times of one form compare as texts.
pub fn last_seen(event: &Value) -> &str {
    let series = event.pointer("/series/lastObservedTime").and_then(Value::as_str);
    // The time of a series is when it began.
    let times = [
        series.unwrap_or_default(),
        text(event, "lastTimestamp"),
        text(event, "eventTime"),
        text(event, "firstTimestamp"),
    ];
    times
        .into_iter()
        .find(|time| !time.is_empty())
        .unwrap_or_default()
}
