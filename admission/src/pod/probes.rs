//! The probes of a new pod, for providers of serverless containers, which probe pods by themselves: two
//! annotations, with the probes of the PodProbeMarkers that match and with the names of these markers.
//!
//! The annotations are read by programs of others. They have the probes whose results a condition of the pod shows:
//! of two with the same condition, or with the same name for the same container, the first one. A pod that names
//! its markers itself has the probes of those.

use std::collections::BTreeSet;
use std::sync::Arc;

use kruise_api::definition::Kind;
use kruise_api::names::podprobemarker::{POD_MARKERS, POD_PROBES};
use kruise_api::podprobemarker::{MarkedProbe, PodProbeMarker};
use serde::Serialize;
use serde_json::Value;

use super::draft::{annotate, entry, labels};
use super::step::{Context, Done, Stop};
use crate::json::{items, text};
use crate::lookup::{Lookup, Stored, readable};

impl Stored for PodProbeMarker {
    const KIND: &'static Kind = &kruise_api::podprobemarker::KIND;

    type All = Vec<Arc<Self>>;

    fn read(object: Value) -> Result<Self, String> {
        Self::from_value(object)
    }

    fn collect(objects: Vec<Value>) -> Self::All {
        readable(objects)
    }
}

/// The PodProbeMarkers of the namespace; none are looked up unless the gate asks for it.
pub(super) fn known<'a>(context: &Context<'a>) -> Result<&'a [Arc<PodProbeMarker>], Lookup> {
    if !context.options.serverless_probes {
        return Ok(&[]);
    }
    context.lookups.list(&context.request.namespace)
}

/// Writes the annotations if the pod is probed.
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    let markers = known(context)?;
    if markers.is_empty() {
        return Ok(Done::NOTHING);
    }
    let (probes, names) = probes(pod, &matching(pod, markers));
    let Ok(probes) = serde_json::to_string(&probes) else {
        return Ok(Done::NOTHING);
    };
    if names.is_empty() {
        return Ok(Done::NOTHING);
    }
    let names = names.into_iter().collect::<Vec<_>>().join(",");
    let mut done = Done::NOTHING;
    for (key, value) in [(POD_PROBES, probes), (POD_MARKERS, names)] {
        if entry(pod, "annotations", key) != Some(&*value) {
            annotate(pod, key, value);
            done = Done::CHANGED;
        }
    }
    Ok(done)
}

/// The markers that the pod names, in its order, or else those whose selector matches.
fn matching<'a>(pod: &Value, markers: &'a [Arc<PodProbeMarker>]) -> Vec<&'a PodProbeMarker> {
    if let Some(names) = entry(pod, "annotations", POD_MARKERS).filter(|names| !names.is_empty()) {
        let named = |name| markers.iter().find(|marker| marker.metadata.name == name);
        return names
            .split(',')
            .filter_map(named)
            .map(|marker| &**marker)
            .collect();
    }
    let labels = labels(pod);
    let matches = |marker: &&PodProbeMarker| {
        let selector = &marker.spec.selector;
        !selector.is_empty() && selector.matches_by(|key| labels.get(key))
    };
    markers.iter().map(|marker| &**marker).filter(matches).collect()
}

/// A probe as the annotation has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: &'a str,
    container_name: &'a str,
    probe: &'a Value,
    pod_condition_type: &'a str,
}

/// The probes of these markers that the pod can have, and the names of the markers that they are of.
fn probes<'a>(pod: &Value, markers: &[&'a PodProbeMarker]) -> (Vec<Entry<'a>>, BTreeSet<&'a str>) {
    let containers = probed(pod);
    let (mut conditions, mut identities) = (BTreeSet::new(), BTreeSet::new());
    let (mut probes, mut names) = (Vec::new(), BTreeSet::new());
    for marker in markers {
        for probe in &marker.spec.probes {
            let MarkedProbe {
                name,
                container_name,
                probe,
                pod_condition_type: condition,
                ..
            } = probe;
            let identity = (container_name, name);
            let is_possible = !condition.is_empty() && containers.contains(container_name.as_str());
            if !is_possible || conditions.contains(condition) || identities.contains(&identity) {
                continue;
            }
            conditions.insert(condition);
            identities.insert(identity);
            names.insert(marker.metadata.name.as_str());
            probes.push(Entry {
                name,
                container_name,
                probe,
                pod_condition_type: condition,
            });
        }
    }
    (probes, names)
}

/// Names of the containers that run as long as the pod.
fn probed(pod: &Value) -> BTreeSet<&str> {
    let Some(spec) = pod.get("spec") else {
        return BTreeSet::new();
    };
    let sidecars = items(spec, "initContainers").iter();
    let sidecars = sidecars.filter(|one| text(one, "restartPolicy") == "Always");
    let containers = items(spec, "containers").iter().chain(sidecars);
    containers.map(|container| text(container, "name")).collect()
}

#[cfg(test)]
mod tests {
    use crate::pod::sidecars::Set;
    use kruise_api::podunavailablebudget::PodUnavailableBudget;
    use kruise_api::workloadspread::WorkloadSpread;
    use serde_json::json;

    use super::*;
    use crate::lookup::{LookupResult, Lookups};
    use crate::pod::review;
    use crate::{Options, Outcome, Request, Response};

    fn marker(name: &str, selector: &Value, probes: &[Value]) -> Arc<PodProbeMarker> {
        let object = json!({"apiVersion": "apps.kruise.io/v1alpha1", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"selector": selector, "probes": probes}});
        Arc::new(PodProbeMarker::from_value(object).unwrap())
    }

    fn probe(container: &str, name: &str, condition: &str) -> Value {
        json!({"name": name, "containerName": container, "podConditionType": condition,
            "probe": {"exec": {"command": ["/healthy.sh"]}, "periodSeconds": 5},
            "markerPolicy": [{"state": "Succeeded", "labels": {"a": "b"}}]})
    }

    fn apps(name: &str) -> Value {
        json!({"matchLabels": {"app": name}})
    }

    fn pod() -> Value {
        json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {
            "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
            "containers": [{"name": "main", "image": "web:1"}]}})
    }

    /// The two annotations that the pod gets; `None` if it stays as it is.
    fn annotated(pod: &Value, markers: &[Arc<PodProbeMarker>]) -> Option<(Value, String)> {
        let options = Options {
            serverless_probes: true,
            ..Options::DEFAULT
        };
        let request = Request::from_review(json!({"uid": "u", "operation": "CREATE", "namespace": "shop",
            "kind": {"version": "v1", "kind": "Pod"}, "object": pod}))
        .unwrap();
        let mut lookups = Lookups::default();
        lookups.insert(Lookup::all::<Set>(""), LookupResult::all::<Set>(Arc::default()));
        lookups.insert(
            Lookup::all::<PodUnavailableBudget>("shop"),
            LookupResult::all::<PodUnavailableBudget>(Vec::new()),
        );
        lookups.insert(
            Lookup::all::<WorkloadSpread>("shop"),
            LookupResult::all::<WorkloadSpread>(Vec::new()),
        );
        let markers = LookupResult::all::<PodProbeMarker>(markers.to_vec());
        lookups.insert(Lookup::all::<PodProbeMarker>("shop"), markers);
        let patch = match review(&request, options, &lookups) {
            Outcome::Response(Response::Allow { patch, .. }) => patch?,
            outcome => panic!("{outcome:?}"),
        };
        let patch: Vec<Value> = serde_json::from_str(&patch).unwrap();
        let mut values = json!({});
        for operation in &patch {
            match operation["path"].as_str().unwrap() {
                "/metadata/annotations" => values = operation["value"].clone(),
                path => {
                    let key = path.strip_prefix("/metadata/annotations/").unwrap();
                    values[key.replace("~1", "/")] = operation["value"].clone();
                }
            }
        }
        let text = |key: &str| values[key].as_str().unwrap_or_default().to_owned();
        Some((
            serde_json::from_str(&text(POD_PROBES)).unwrap(),
            text(POD_MARKERS),
        ))
    }

    #[test]
    fn s5_8_9_a_new_pod_gets_the_probes_of_its_markers_without_their_policies() {
        let markers = [
            marker("a", &apps("web"), &[probe("main", "idle", "example.com/idle")]),
            marker("b", &apps("web"), &[probe("proxy", "idle", "example.com/up")]),
            marker("c", &apps("other"), &[probe("main", "x", "example.com/x")]),
        ];
        let (probes, names) = annotated(&pod(), &markers).unwrap();
        let wanted = json!([
            {"name": "idle", "containerName": "main", "podConditionType": "example.com/idle",
             "probe": {"exec": {"command": ["/healthy.sh"]}, "periodSeconds": 5}},
            {"name": "idle", "containerName": "proxy", "podConditionType": "example.com/up",
             "probe": {"exec": {"command": ["/healthy.sh"]}, "periodSeconds": 5}},
        ]);
        assert_eq!((probes, &*names), (wanted, "a,b"));
    }

    #[test]
    fn probes_without_a_condition_of_their_own_or_a_container_that_stays_are_left_out_with_their_markers() {
        let markers = [
            marker(
                "a",
                &apps("web"),
                &[
                    probe("main", "none", ""),
                    probe("setup", "init", "example.com/init"),
                    probe("gone", "gone", "example.com/gone"),
                    probe("main", "idle", "example.com/idle"),
                    probe("main", "idle", "example.com/again"),
                ],
            ),
            marker("b", &apps("web"), &[probe("proxy", "other", "example.com/idle")]),
        ];
        let (probes, names) = annotated(&pod(), &markers).unwrap();
        let conditions: Vec<Value> = probes
            .as_array()
            .unwrap()
            .iter()
            .map(|probe| probe["podConditionType"].clone())
            .collect();
        assert_eq!((json!(conditions), &*names), (json!(["example.com/idle"]), "a"));
    }

    #[test]
    fn a_pod_that_names_its_markers_has_the_probes_of_those_that_exist() {
        let markers = [
            marker("a", &apps("web"), &[probe("main", "a", "example.com/a")]),
            marker("b", &apps("other"), &[probe("main", "b", "example.com/b")]),
        ];
        let mut pod = pod();
        pod["metadata"]["annotations"] = json!({(POD_MARKERS): "b,gone"});
        let (probes, names) = annotated(&pod, &markers).unwrap();
        assert_eq!(probes[0]["podConditionType"], "example.com/b");
        assert_eq!((probes.as_array().unwrap().len(), &*names), (1, "b"));
    }

    #[test]
    fn nothing_is_written_without_a_probe_or_with_a_selector_that_is_empty() {
        for marker in [
            marker("a", &apps("web"), &[probe("main", "none", "")]),
            marker("a", &json!({}), &[probe("main", "a", "example.com/a")]),
            marker("a", &apps("other"), &[probe("main", "a", "example.com/a")]),
        ] {
            assert_eq!(annotated(&pod(), &[marker]), None);
        }
        assert_eq!(annotated(&pod(), &[]), None);
    }

    #[test]
    fn without_the_gate_no_marker_is_looked_up() {
        let request = Request::from_review(json!({"uid": "u", "operation": "CREATE", "namespace": "shop",
            "kind": {"version": "v1", "kind": "Pod"}, "object": pod()}))
        .unwrap();
        let outcome = review(&request, Options::DEFAULT, &Lookups::default());
        let asked = match outcome {
            Outcome::Missing(missing) => missing,
            _ => Vec::new(),
        };
        assert!(
            !asked.contains(&Lookup::all::<PodProbeMarker>("shop")),
            "{asked:?}"
        );
    }
}
