//! The probes of one pod, as its node's agent needs them.

use kruise_api::{
    nodepodprobe::{ContainerProbe, ProbeName},
    podprobemarker::{MarkedProbe, PodProbeMarker},
};
use kruise_views::PodView;
use serde_json::{Map, Value};

/// Counts of a probe. Zero is written as nothing, as Go's types do it.
const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];
const HTTP: &str = "httpGet";
/// The handlers that ask a port.
const NETWORK: [&str; 2] = [HTTP, "tcpSocket"];

/// A pod, and the probes that it gets.
pub(super) struct Wanted<'a> {
    /// The pod.
    pub pod: &'a PodView,
    /// Its probes, in the order of the marker.
    pub probes: Vec<ContainerProbe>,
    /// The probes that it cannot get: their containers have no port of the name.
    pub unresolved: Vec<&'a MarkedProbe>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(marker: &'a PodProbeMarker, pod: &'a PodView) -> Self {
        let (mut probes, mut unresolved) = (Vec::<ContainerProbe>::new(), Vec::new());
        for one in &marker.spec.probes {
            let name = ProbeName {
                marker: &marker.metadata.name,
                probe: &one.name,
            }
            .to_text();
            // The webhook refuses a name twice; a marker that was stored without it may have one.
            if probes.iter().any(|have| have.name == name) {
                continue;
            }
            match resolve(&one.probe, &one.container_name, pod) {
                Some(probe) => probes.push(ContainerProbe {
                    name,
                    container_name: one.container_name.clone(),
                    probe,
                    others: Map::new(),
                }),
                None => unresolved.push(one),
            }
        }
        Self {
            pod,
            probes,
            unresolved,
        }
    }
}

/// The name of the port that a probe asks, if it is no number.
pub(super) fn port_name(probe: &Value) -> Option<&str> {
    let mut handlers = NETWORK.iter().filter_map(|handler| probe.get(handler));
    handlers.find_map(|action| action.get("port")?.as_str())
}

/// The probe with numbers for the names of ports, and without members that say nothing. `None` if the container has
/// no such port.
fn resolve(probe: &Value, container: &str, pod: &PodView) -> Option<Value> {
    let mut probe = probe.clone();
    let Some(members) = probe.as_object_mut() else {
        return Some(probe);
    };
    members.retain(|name, value| {
        let is_unset = COUNTS.contains(&name.as_str()) && value.as_i64() == Some(0);
        !value.is_null() && !is_unset
    });
    for handler in NETWORK {
        let Some(action) = members.get_mut(handler).and_then(Value::as_object_mut) else {
            continue;
        };
        action.retain(|_, value| !is_empty(value));
        if let Some(name) = action.get("port").and_then(Value::as_str) {
            let number = pod.port_of(container, name).or_else(|| name.parse().ok())?;
            action.insert("port".to_owned(), number.into());
        }
        if handler == HTTP {
            // As the API says of this field. Agents need it.
            action.entry("scheme").or_insert_with(|| "HTTP".into());
        }
    }
    Some(probe)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
