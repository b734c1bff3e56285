//! PodProbeMarkers: nothing is filled in.
//!
//! | Field | Rule |
//! |---|---|
//! | `selector` | valid, not empty; stays |
//! | `probes` | at least one; named, each name once, without `#`, not like a condition of every pod |
//! | `….containerName` | there |
//! | `….probe` | one handler that can be asked, counts not negative |
//! | `….podConditionType` | the name of a condition, once |
//! | `….markerPolicy` | known states, each once, with labels or annotations that are well formed |
//! | `….podConditionType`, `markerPolicy` | at least one of them |
//!
//! OpenKruise also demands the scheme of HTTP probes, although it is said to be HTTP by default. Here the
//! controller fills it in.

use std::collections::BTreeSet;

use kruise_api::meta::LabelSelector;
use kruise_api::podprobemarker::PodProbeMarker;
use kube_schema::validate::{self, Errors, Kind};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{KindWebhooks, Scope};
use crate::json::{items, member, present, text};
use crate::pod::sidecars::Reach;
use crate::widening::PODS_OF_SETS;
use crate::widening::{StoredSoon, Widening};
use crate::workload::{self, not_negative};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    validating: Some("vpodprobemarker.kb.io"),
    codes: (400, 400),
    gate: |options| match (options.daemon, options.probe_markers) {
        (false, _) => Some("KruiseDaemon"),
        (true, false) => Some("PodProbeMarkerGate"),
        (true, true) => None,
    },
    rules,
    changes,
    advice: |marker, _| native_conditions(marker),
    widens,
    may_widen: true,
    ..KindWebhooks::of(&kruise_api::podprobemarker::KIND)
};

/// Webhooks must be called for the pods that a new object selects, and for those that name their markers, where
/// pods have their probes in annotations. The selector does not change.
fn widens(marker: &Value, scope: &Scope<'_>) -> Vec<Widening> {
    if scope.old.is_some() || !scope.options.serverless_probes {
        return Vec::new();
    }
    let Ok(mut marker) = PodProbeMarker::from_value(marker.clone()) else {
        return Vec::new();
    };
    scope.namespace.clone_into(&mut marker.metadata.namespace);
    let object = StoredSoon::of(scope.kind, &marker.metadata);
    let reaches = Reach::of_probe_marker(&marker);
    if reaches.is_empty() {
        return Vec::new();
    }
    vec![Widening::of_pods(PODS_OF_SETS, object, reaches)]
}

/// Conditions that others write.
const NATIVE: [&str; 6] = [
    "PodScheduled",
    "Initialized",
    "Ready",
    "ContainersReady",
    "KruisePodReady",
    "InPlaceUpdateReady",
];
const HANDLERS: [&str; 3] = ["exec", "httpGet", "tcpSocket"];
const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

fn rules(errors: &mut Errors, object: &Value, _scope: &Scope<'_>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    errors.0.extend(validate::metadata(metadata, "metadata"));
    let spec = object.get("spec").unwrap_or(&Value::Null);
    selector(errors, spec);
    let probes = items(spec, "probes");
    if probes.is_empty() {
        errors.required("spec.probes", "a probe is needed");
    }
    let (mut names, mut conditions) = (BTreeSet::new(), BTreeSet::new());
    for (index, one) in probes.iter().enumerate() {
        let path = format!("spec.probes[{index}]");
        name(errors, text(one, "name"), &mut names, format!("{path}.name"));
        if text(one, "containerName").is_empty() {
            errors.required(format!("{path}.containerName"), "");
        }
        probe(
            errors,
            one.get("probe").unwrap_or(&Value::Null),
            &format!("{path}.probe"),
        );
        let kind = text(one, "podConditionType");
        condition(errors, kind, &mut conditions, format!("{path}.podConditionType"));
        policies(errors, items(one, "markerPolicy"), &path);
        if kind.is_empty() && items(one, "markerPolicy").is_empty() {
            errors.required(
                format!("{path}.podConditionType"),
                "podConditionType or markerPolicy is needed",
            );
        }
    }
}

fn selector(errors: &mut Errors, spec: &Value) {
    let Some(value) = present(spec, "selector") else {
        return errors.required("spec.selector", "");
    };
    let found = validate::selector(value, "spec.selector");
    let is_empty = LabelSelector::deserialize(value).is_ok_and(|selector| selector.is_empty());
    if found.is_empty() && is_empty {
        errors.invalid("spec.selector", value.clone(), "an empty selector is not allowed");
    }
    errors.0.extend(found);
}

fn name<'a>(errors: &mut Errors, name: &'a str, seen: &mut BTreeSet<&'a str>, path: String) {
    if name.is_empty() {
        errors.required(path, "");
    } else if name.contains('#') {
        errors.invalid(path, name, "must not contain '#'");
    } else if NATIVE.contains(&name) {
        errors.invalid(path, name, "is the name of a condition that others write");
    } else if !seen.insert(name) {
        errors.add(path, Kind::Duplicate, name, "");
    }
}

fn condition<'a>(errors: &mut Errors, kind: &'a str, seen: &mut BTreeSet<&'a str>, path: String) {
    if kind.is_empty() {
        return;
    }
    if let Some(reason) = validate::qualified_name(kind) {
        errors.invalid(path, kind, reason);
    } else if !seen.insert(kind) {
        errors.add(path, Kind::Duplicate, kind, "");
    }
}

fn probe(errors: &mut Errors, probe: &Value, path: &str) {
    for name in COUNTS {
        not_negative(errors, probe, name, format!("{path}.{name}"));
    }
    let given: Vec<(&str, &Value)> = HANDLERS
        .into_iter()
        .filter_map(|name| Some((name, member(probe, name)?)))
        .collect();
    if given.is_empty() {
        errors.required(path, "must specify a handler: exec, httpGet or tcpSocket");
    }
    for (name, _) in given.iter().skip(1) {
        let detail = "may not specify more than 1 handler type";
        errors.forbidden(format!("{path}.{name}"), detail);
    }
    if let Some((name, handler)) = given.first() {
        let path = format!("{path}.{name}");
        match *name {
            "exec" if items(handler, "command").is_empty() => errors.required(format!("{path}.command"), ""),
            "httpGet" => http(errors, handler, &path),
            "tcpSocket" => port(errors, handler, &path),
            _ => {}
        }
    }
}

fn http(errors: &mut Errors, action: &Value, path: &str) {
    if text(action, "path").is_empty() {
        errors.required(format!("{path}.path"), "");
    }
    errors.one_of(
        format!("{path}.scheme"),
        text(action, "scheme"),
        &["HTTP", "HTTPS"],
    );
    for (index, header) in items(action, "httpHeaders").iter().enumerate() {
        let name = text(header, "name");
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(good) {
            let detail = "a header name must consist of alphanumeric characters or '-'";
            errors.invalid(format!("{path}.httpHeaders[{index}].name"), name, detail);
        }
    }
    port(errors, action, path);
}

/// Where a handler asks: a port of the pod, never of another host.
fn port(errors: &mut Errors, action: &Value, path: &str) {
    let host = text(action, "host");
    if !host.is_empty() {
        errors.invalid(
            format!("{path}.host"),
            host,
            "must be empty: a probe asks its own pod",
        );
    }
    let path = format!("{path}.port");
    match action.get("port") {
        Some(Value::String(name)) => {
            if let Some(reason) = validate::port_name(name) {
                errors.invalid(path, name.as_str(), reason);
            }
        }
        Some(number)
            if number
                .as_i64()
                .is_some_and(|number| (1..=65535).contains(&number)) => {}
        other => {
            let detail = "must be between 1 and 65535, inclusive";
            errors.invalid(path, other.cloned().unwrap_or_default(), detail);
        }
    }
}

fn policies(errors: &mut Errors, policies: &[Value], path: &str) {
    let mut seen = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        let path = format!("{path}.markerPolicy[{index}]");
        let state = text(policy, "state");
        if state.is_empty() {
            errors.required(format!("{path}.state"), "must be Succeeded or Failed");
        } else if !seen.insert(state) {
            errors.add(format!("{path}.state"), Kind::Duplicate, state, "");
        }
        errors.one_of(format!("{path}.state"), state, &["Succeeded", "Failed"]);
        let is_empty = |name: &str| {
            let map = policy.get(name).and_then(Value::as_object);
            map.is_none_or(serde_json::Map::is_empty)
        };
        if is_empty("labels") && is_empty("annotations") {
            errors.required(path, "labels or annotations are needed");
            continue;
        }
        let marks =
            json!({"name": "x", "labels": policy.get("labels"), "annotations": policy.get("annotations")});
        errors.0.extend(validate::metadata(&marks, &path));
    }
}

/// Warns of probes whose results overwrite conditions that others write.
fn native_conditions(marker: &Value) -> Vec<String> {
    let spec = marker.get("spec").unwrap_or(&Value::Null);
    let types = items(spec, "probes").iter().enumerate();
    let native = types.filter(|(_, probe)| NATIVE.contains(&text(probe, "podConditionType")));
    let warning = |(index, probe): (usize, &Value)| {
        format!(
            "spec.probes[{index}].podConditionType: the kubelet or a controller writes {}, and the probe overwrites it",
            text(probe, "podConditionType")
        )
    };
    native.map(warning).collect()
}

fn changes(errors: &mut Errors, new: &Value, old: &Value, _scope: &Scope<'_>) {
    if let (Some(new), Some(old)) = (member(new, "spec"), member(old, "spec")) {
        workload::same_selector(errors, new, old);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, case};
    use super::*;
    use crate::Options;

    const CASE: Case = case("PodProbeMarker", good);

    fn good() -> Value {
        json!({
            "selector": {"matchLabels": {"app": "game"}},
            "probes": [
                {
                    "name": "idle", "containerName": "main", "podConditionType": "game.example/idle",
                    "probe": {"exec": {"command": ["/idle.sh"]}, "periodSeconds": 10},
                    "markerPolicy": [
                        {"state": "Succeeded", "labels": {"game": "idle"}},
                        {"state": "Failed", "annotations": {"controller.kubernetes.io/pod-deletion-cost": "10"}},
                    ],
                },
                {
                    "name": "web", "containerName": "main", "podConditionType": "game.example/web",
                    "probe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}},
                },
                {
                    "name": "tcp", "containerName": "main", "podConditionType": "game.example/tcp",
                    "probe": {"tcpSocket": {"port": "http"}},
                },
            ],
        })
    }

    #[test]
    #[rustfmt::skip]
    fn every_broken_rule_names_its_field() {
        let get = |member: &str, value: Value| {
            let mut probe = json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}});
            probe["httpGet"][member] = value;
            probe
        };
        let policy = |policy: Value| json!([{"state": "Succeeded", "labels": {"a": "b"}}, policy]);
        CASE.each_is_refused(&[
            ("selector", Value::Null, "spec.selector: Required"),
            ("selector", json!({}), "spec.selector: Invalid"),
            ("selector.matchLabels", json!({"a b": ""}), "spec.selector.matchLabels: Invalid"),
            ("probes", json!([]), "spec.probes: Required"),
            ("probes.0.name", json!(""), "spec.probes[0].name: Required"),
            ("probes.0.name", json!("a#b"), "spec.probes[0].name: Invalid value: \"a#b\""),
            ("probes.0.name", json!("Ready"), "spec.probes[0].name: Invalid value: \"Ready\""),
            ("probes.1.name", json!("idle"), "spec.probes[1].name: Duplicate value: \"idle\""),
            ("probes.0.containerName", Value::Null, "spec.probes[0].containerName: Required"),
            ("probes.0.podConditionType", json!("a b"), "spec.probes[0].podConditionType: Invalid"),
            ("probes.1.podConditionType", json!("game.example/idle"), "spec.probes[1].podConditionType: Duplicate"),
            ("probes.1.podConditionType", Value::Null, "spec.probes[1].podConditionType: Required"),
            ("probes.0.probe", json!({}), "spec.probes[0].probe: Required"),
            ("probes.0.probe", json!({"grpc": {"port": 1}}), "spec.probes[0].probe: Required"),
            ("probes.0.probe.tcpSocket", json!({"port": 1}), "spec.probes[0].probe.tcpSocket: Forbidden"),
            ("probes.0.probe.periodSeconds", json!(-1), "spec.probes[0].probe.periodSeconds: Invalid value: -1"),
            ("probes.0.probe.exec", json!({}), "spec.probes[0].probe.exec.command: Required"),
            ("probes.1.probe", get("path", json!("")), "spec.probes[1].probe.httpGet.path: Required"),
            ("probes.1.probe", get("scheme", json!("http")), "spec.probes[1].probe.httpGet.scheme: Unsupported"),
            ("probes.1.probe", get("host", json!("a")), "spec.probes[1].probe.httpGet.host: Invalid"),
            ("probes.1.probe", get("port", json!(0)), "spec.probes[1].probe.httpGet.port: Invalid value: 0"),
            ("probes.1.probe", get("httpHeaders", json!([{"name": "a b"}])), "spec.probes[1].probe.httpGet.httpHeaders[0].name: Invalid"),
            ("probes.2.probe.tcpSocket.port", json!("HTTP"), "spec.probes[2].probe.tcpSocket.port: Invalid"),
            ("probes.2.probe.tcpSocket.host", json!("a"), "spec.probes[2].probe.tcpSocket.host: Invalid"),
            ("probes.0.markerPolicy", policy(json!({"state": "Succeeded", "labels": {"a": "b"}})), "spec.probes[0].markerPolicy[1].state: Duplicate"),
            ("probes.0.markerPolicy", policy(json!({"labels": {"a": "b"}})), "spec.probes[0].markerPolicy[1].state: Required"),
            ("probes.0.markerPolicy", policy(json!({"state": "Unknown", "labels": {"a": "b"}})), "spec.probes[0].markerPolicy[1].state: Unsupported"),
            ("probes.0.markerPolicy", policy(json!({"state": "Failed"})), "spec.probes[0].markerPolicy[1]: Required"),
            ("probes.0.markerPolicy", policy(json!({"state": "Failed", "labels": {"a b": ""}})), "spec.probes[0].markerPolicy[1].labels: Invalid"),
            ("probes.0.markerPolicy", policy(json!({"state": "Failed", "annotations": {"a b": ""}})), "spec.probes[0].markerPolicy[1].annotations: Invalid"),
        ]);
    }

    #[test]
    fn a_scheme_may_be_missing_and_conditions_of_others_are_warned_of() {
        let mut spec = good();
        spec["probes"][1]["probe"]["httpGet"]
            .as_object_mut()
            .unwrap()
            .remove("scheme");
        let marker = CASE.object("v1alpha1", &spec);
        assert_eq!(CASE.refusal("CREATE", &marker, &Value::Null), None);
        assert!(CASE.warnings("CREATE", &marker, &Value::Null).is_empty());
        spec["probes"][1]["podConditionType"] = json!("Ready");
        let marker = CASE.object("v1alpha1", &spec);
        let warnings = CASE.warnings("CREATE", &marker, &Value::Null);
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].starts_with("spec.probes[1].podConditionType: "),
            "{warnings:?}"
        );
        assert!(CASE.warnings("UPDATE", &marker, &marker).is_empty());
    }

    #[test]
    fn the_selector_stays_and_probes_may_change() {
        let mut new = good();
        new["selector"]["matchLabels"]["app"] = json!("shop");
        let message = CASE.update_refused(&good(), &new).unwrap();
        assert!(message.contains("spec.selector: Invalid"), "{message}");
        let mut new = good();
        new["probes"].as_array_mut().unwrap().pop();
        assert_eq!(CASE.update_refused(&good(), &new), None);
    }

    #[test]
    fn a_new_one_widens_the_condition_of_the_webhook_where_pods_have_their_probes_in_annotations() {
        let object = CASE.object("v1alpha1", &good());
        let scope = |old, serverless_probes| Scope {
            kind: "PodProbeMarker",
            version: "v1alpha1",
            namespace: "shop",
            name: "good",
            old,
            now: jiff::Timestamp::UNIX_EPOCH,
            options: Options {
                serverless_probes,
                ..Options::DEFAULT
            },
        };
        let [widening] = &widens(&object, &scope(None, true))[..] else {
            panic!("one webhook")
        };
        assert_eq!(widening.webhook, PODS_OF_SETS);
        let [exact, by_key, every] = &widening.conditions()[..] else {
            panic!("three conditions")
        };
        let named = "request.namespace == 'shop' && has(object.metadata.annotations) && \
                     'kruise.io/podprobemarker-list' in object.metadata.annotations";
        let selected = "'app' in l && l['app'] == 'game' && request.namespace == 'shop'";
        assert!(exact.contains(named) && exact.contains(selected), "{exact}");
        assert!(
            by_key.contains(named) && by_key.contains("'app' in l"),
            "{by_key}"
        );
        for condition in [exact, by_key, every] {
            assert!(widening.is_within(condition), "{condition}");
        }
        for part in [named, selected] {
            let condition =
                format!("[has(object.metadata.labels) ? object.metadata.labels : {{}}].exists(l, {part})");
            assert!(!widening.is_within(&condition), "{condition}");
        }
        assert!(
            widens(&object, &scope(Some(&object), true)).is_empty(),
            "the selector stays"
        );
        assert!(
            widens(&object, &scope(None, false)).is_empty(),
            "no pod gets an annotation"
        );
    }

    #[test]
    fn without_its_gates_none_is_taken() {
        let marker = CASE.object("v1alpha1", &good());
        let refused = |options| CASE.with(options).refusal("CREATE", &marker, &Value::Null);
        for (options, gate) in [
            (
                Options {
                    daemon: false,
                    ..Options::DEFAULT
                },
                "KruiseDaemon",
            ),
            (
                Options {
                    probe_markers: false,
                    ..Options::DEFAULT
                },
                "PodProbeMarkerGate",
            ),
        ] {
            let expected = format!("feature-gate {gate} is not enabled");
            assert_eq!(refused(options), Some((403, expected)));
        }
        assert_eq!(refused(Options::DEFAULT), None);
    }
}
