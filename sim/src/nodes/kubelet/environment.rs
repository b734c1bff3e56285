//! Environment variables: a process keeps the values that were there when it began. Those that come from its pod's
//! own labels and annotations are known by themselves ([`read`]).

use serde_json::Value;

use super::config;
use crate::api::Api;
use crate::object::{get_metadata, metadata_text};

/// Names for versions of injected containers; a change of them restarts nothing.
const EXCLUDED: [&str; 2] = ["SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"];

/// Such variables of a container with the values that they would have now, in the order of names.
pub(super) fn read(container: &Value, pod: &Value) -> Vec<(String, String)> {
    let variables = container.get("env").and_then(Value::as_array);
    let one = |variable: &Value| {
        let name = variable.get("name")?.as_str()?;
        let path = variable.pointer("/valueFrom/fieldRef/fieldPath")?.as_str()?;
        let (map, key) = path.strip_prefix("metadata.")?.split_once("['")?;
        let key = key.strip_suffix("']")?;
        if !matches!(map, "labels" | "annotations") || EXCLUDED.contains(&name) {
            return None;
        }
        let value = get_metadata(pod, map).get(key).and_then(Value::as_str);
        Some((name.to_owned(), value.unwrap_or_default().to_owned()))
    };
    let mut read: Vec<_> = variables.into_iter().flatten().filter_map(one).collect();
    read.sort_unstable();
    read
}

/// Where a pod runs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) address: String,
    pub(super) host: String,
}

/// The environment of a process that begins now, in the order of its specification: what the runtime gives it, whole
/// ConfigMaps and Secrets, and its variables. Amounts of resources are not among them.
pub(super) fn variables(api: &Api, container: &Value, pod: &Value, place: &Place) -> Vec<(String, String)> {
    let list = |name: &str| {
        let list = container.get(name).and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let name = metadata_text(pod, "name").to_owned();
    let mut all = vec![
        ("PATH".to_owned(), PATH.to_owned()),
        ("HOSTNAME".to_owned(), name),
    ];
    let namespace = metadata_text(pod, "namespace");
    for source in list("envFrom") {
        let prefix = source.get("prefix").and_then(Value::as_str).unwrap_or_default();
        for (key, value) in config::all(api, namespace, source) {
            put(&mut all, format!("{prefix}{key}"), value);
        }
    }
    for variable in list("env") {
        let Some(name) = variable.get("name").and_then(Value::as_str) else {
            continue;
        };
        let value = match (variable.get("value"), variable.get("valueFrom")) {
            (_, Some(source)) => config::value(api, namespace, source).or_else(|| field(source, pod, place)),
            (text, None) => {
                let text = text.and_then(Value::as_str).unwrap_or_default();
                Some(expanded(text, &all))
            }
        };
        if let Some(value) = value {
            put(&mut all, name.to_owned(), value);
        }
    }
    all
}

/// What a runtime gives every process.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn put(all: &mut Vec<(String, String)>, name: String, value: String) {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, before)) => *before = value,
        None => all.push((name, value)),
    }
}

/// A field of the pod.
fn field(source: &Value, pod: &Value, place: &Place) -> Option<String> {
    let path = source.pointer("/fieldRef/fieldPath")?.as_str()?;
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let value = match path {
        "metadata.name" => text("/metadata/name"),
        "metadata.namespace" => text("/metadata/namespace"),
        "metadata.uid" => text("/metadata/uid"),
        "spec.nodeName" => text("/spec/nodeName"),
        "spec.serviceAccountName" => text("/spec/serviceAccountName"),
        "status.hostIP" | "status.hostIPs" => &place.host,
        "status.podIP" | "status.podIPs" => &place.address,
        _ => {
            let (map, key) = path.strip_prefix("metadata.")?.split_once("['")?;
            let key = key.strip_suffix("']")?;
            let value = get_metadata(pod, map).get(key).and_then(Value::as_str);
            value.unwrap_or_default()
        }
    };
    Some(value.to_owned())
}

/// A text with `$(NAME)` replaced where a variable of that name came before; `$$` is a dollar.
fn expanded(text: &str, known: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let reference = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let found = reference.and_then(|(name, after)| {
            let value = known.iter().find(|(known, _)| known == name);
            value.map(|(_, value)| (value, after))
        });
        match found {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn variables_that_came_before_are_expanded() {
        let known = [("A".to_owned(), "1".to_owned())];
        for (text, value) in [
            ("", ""),
            ("x$(A)y$(A)", "x1y1"),
            ("$$(A)", "$(A)"),
            ("$(B) $ $(A", "$(B) $ $(A"),
            ("$", "$"),
        ] {
            assert_eq!(expanded(text, &known), value, "{text}");
        }
    }
}
