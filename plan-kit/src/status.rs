//! The one writer of status patches.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{plan::StatusPatch, write::Target};

/// Which reports cannot wait to be merged with later ones.
#[derive(Clone, Copy, Debug)]
pub struct Urgency<'a> {
    /// Members whose change is sent at once.
    pub members: &'a [&'a str],
    /// Everything wanted is there: people and autoscalers wait for this report.
    pub settled: bool,
}

/// A merge patch of the members that differ from what is stored; `None` if none do. The first report, with nothing
/// `before` it, names every member: the server demands the counts, zero or not. `version` is the `resourceVersion`
/// of the object whose status this is.
pub fn status_patch<S: Serialize>(
    target: Target,
    version: &str,
    before: Option<&S>,
    after: &S,
    urgency: Urgency<'_>,
) -> Option<StatusPatch> {
    let before = before.map(members).unwrap_or_default();
    let after = members(after);
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let mut changed: Map<String, Value> = removed.map(|key| (key.clone(), Value::Null)).collect();
    let differs = |(key, value): &(String, Value)| before.get(key) != Some(value);
    changed.extend(after.into_iter().filter(differs));
    if changed.is_empty() {
        return None;
    }
    let urgent = urgency.settled || urgency.members.iter().any(|key| changed.contains_key(*key));
    Some(StatusPatch {
        target,
        version: version.to_owned(),
        patch: json!({"status": changed}),
        urgent,
    })
}

fn members(status: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Urgency, status_patch};
    use crate::ResourceId;
    use crate::write::Target;

    #[test]
    fn only_what_differs_is_written_and_the_first_report_is_whole() {
        let patch = |before: Option<serde_json::Value>, after, settled| {
            let target = Target {
                resource: ResourceId::PODS,
                namespace: String::new(),
                name: "any".into(),
            };
            let urgency = Urgency {
                members: &["revision"],
                settled,
            };
            let patch = status_patch(target, "7", before.as_ref(), &after, urgency)?;
            assert_eq!(patch.version, "7");
            Some((patch.patch, patch.urgent))
        };
        let stored = || Some(json!({"replicas": 1, "ready": 0, "note": "x"}));
        let next = json!({"replicas": 2, "ready": 0});
        let changed = json!({"status": {"replicas": 2, "note": null}});
        assert_eq!(patch(stored(), stored().unwrap(), true), None);
        assert_eq!(
            patch(stored(), next.clone(), false),
            Some((changed.clone(), false))
        );
        assert_eq!(patch(stored(), next.clone(), true), Some((changed, true)));
        assert_eq!(
            patch(None, next.clone(), false),
            Some((json!({"status": next}), false))
        );
        let named = json!({"replicas": 1, "ready": 0, "note": "x", "revision": "b"});
        let change = json!({"status": {"revision": "b"}});
        assert_eq!(patch(stored(), named, false), Some((change, true)));
    }
}
