//! DaemonSets: defaults of everything but the pod template, which is stored as it was written.
//!
//! | Field | Rule |
//! |---|---|
//! | `selector` | valid, not empty, matches the template; stays |
//! | `template` | could become pods that always restart |
//! | `minReadySeconds`, `revisionHistoryLimit` | not negative |
//! | `burstReplicas` | a count or percentage, not negative |
//! | `updateStrategy.type` | known; rolling updates have parameters |
//! | `….maxUnavailable`, `maxSurge` | at most 100%; one of them, not both, is above 0 |
//! | `….rollingUpdateType` | known; in place needs `maxUnavailable` |
//! | `….partition` | not negative, at most 100% |
//! | `….selector` | well formed |
//! | `lifecycle.inPlaceUpdate` | not supported |

use go_compat::{IntOrString, Rounding};
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::advice::empty_hooks;
use super::{KindWebhooks, Scope, judged, parts};
use crate::json::{fill, integer, items, made, member, present, text};
use crate::workload::{self, not_negative};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("mdaemonset.kb.io"),
    validating: Some("vdaemonset.kb.io"),
    deletions: true,
    parts: &[parts::TEMPLATE],
    defaults,
    rules,
    changes,
    templates: judged::of_workload,
    advice: |object, _| member(object, "spec").map(advice).unwrap_or_default(),
    ..KindWebhooks::of(&kruise_api::daemonset::KIND)
};

const ROLLING: &str = "spec.updateStrategy.rollingUpdate";

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    fill(spec, "burstReplicas", 250);
    fill(spec, "revisionHistoryLimit", 10);
    let Some(update) = made(spec, "updateStrategy") else {
        return;
    };
    fill(update, "type", "RollingUpdate");
    if text(update, "type") != "RollingUpdate" {
        return;
    }
    let Some(rolling) = made(update, "rollingUpdate") else {
        return;
    };
    if scope.version == "v1alpha1" && text(rolling, "rollingUpdateType") == "Surging" {
        fill(rolling, "maxSurge", 1);
        fill(rolling, "maxUnavailable", 0);
        if let Some(kind) = rolling.get_mut("rollingUpdateType") {
            *kind = json!("Standard");
        }
    }
    fill(rolling, "rollingUpdateType", "Standard");
    let neither = ["maxUnavailable", "maxSurge"]
        .iter()
        .all(|name| present(rolling, name).is_none());
    if neither {
        fill(rolling, "maxUnavailable", 1);
        fill(rolling, "maxSurge", 0);
    }
}

fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    errors.0.extend(validate::metadata(metadata, "metadata"));
    let spec = object.get("spec").unwrap_or(&Value::Null);
    workload::selector(errors, spec, "DaemonSet");
    let template = spec.get("template").unwrap_or(&Value::Null);
    workload::template(errors, template, &[], "spec.template", scope.options);
    workload::always_running(errors, spec, "DaemonSet");
    for name in ["minReadySeconds", "revisionHistoryLimit"] {
        not_negative(errors, spec, name, format!("spec.{name}"));
    }
    amount(errors, spec, "burstReplicas", "spec", None);
    if spec
        .pointer("/lifecycle/inPlaceUpdate")
        .is_some_and(|hook| !hook.is_null())
    {
        errors.forbidden("spec.lifecycle.inPlaceUpdate", "not supported by DaemonSet");
    }
    strategy(errors, spec, scope.version);
}

/// What OpenKruise accepts, and an author hardly means.
fn advice(spec: &Value) -> Vec<String> {
    let mut texts = empty_hooks(spec);
    texts.extend(surge_without_ports(spec));
    texts
}

/// Warns of pods that are to run beside those of before, and cannot: a port of a node serves one pod.
fn surge_without_ports(spec: &Value) -> Option<String> {
    let rolling = spec.pointer("/updateStrategy/rollingUpdate")?;
    let surge = IntOrString::deserialize(present(rolling, "maxSurge")?).ok()?;
    if !matches!(surge.scaled_a(100, Rounding::Up), Ok(1..)) {
        return None;
    }
    let port = host_port(spec.pointer("/template/spec")?)?;
    Some(format!(
        "{ROLLING}.maxSurge: a new pod cannot run beside the old one, which has port {port} of the node, and waits for it without \
         end; with maxSurge 0 and maxUnavailable above 0 the old pod is deleted first"
    ))
}

/// A port of the node that a pod takes for as long as it lives.
fn host_port(pod: &Value) -> Option<i64> {
    let is_on_host = pod.get("hostNetwork") == Some(&Value::Bool(true));
    let sidecars = items(pod, "initContainers").iter();
    let sidecars = sidecars.filter(|one| text(one, "restartPolicy") == "Always");
    let containers = items(pod, "containers").iter().chain(sidecars);
    let mut ports = containers.flat_map(|one| items(one, "ports"));
    ports.find_map(|port| {
        let on_host = integer(port, "hostPort").filter(|port| *port > 0);
        on_host.or_else(|| integer(port, "containerPort").filter(|_| is_on_host))
    })
}

fn strategy(errors: &mut Errors, spec: &Value, version: &str) {
    let update = spec.get("updateStrategy").unwrap_or(&Value::Null);
    let kind = text(update, "type");
    if kind.is_empty() {
        errors.required("spec.updateStrategy.type", "");
    }
    errors.one_of("spec.updateStrategy.type", kind, &["RollingUpdate", "OnDelete"]);
    if kind != "RollingUpdate" {
        return;
    }
    let Some(rolling) = member(update, "rollingUpdate") else {
        return errors.required(ROLLING, "");
    };
    let unavailable = amount(errors, rolling, "maxUnavailable", ROLLING, Some(100));
    let surge = amount(errors, rolling, "maxSurge", ROLLING, Some(100));
    amount(errors, rolling, "partition", ROLLING, Some(100));
    let value = |name: &str| rolling.get(name).cloned().unwrap_or_default();
    match (unavailable, surge) {
        (Some(0), Some(0)) => errors.required(
            format!("{ROLLING}.maxUnavailable"),
            "cannot be 0 when maxSurge is 0",
        ),
        (Some(1..), Some(1..)) => errors.invalid(
            format!("{ROLLING}.maxSurge"),
            value("maxSurge"),
            "may not be set when maxUnavailable is not 0",
        ),
        _ => {}
    }
    let types: &'static [&'static str] = match version {
        "v1alpha1" => &["Standard", "InPlaceIfPossible", "Surging"],
        _ => &["Standard", "InPlaceIfPossible"],
    };
    let how = text(rolling, "rollingUpdateType");
    errors.one_of(format!("{ROLLING}.rollingUpdateType"), how, types);
    if how == "InPlaceIfPossible" && surge.is_some_and(|surge| surge > 0) {
        let detail = "must be 0 with rollingUpdateType InPlaceIfPossible";
        errors.invalid(format!("{ROLLING}.maxSurge"), value("maxSurge"), detail);
    }
    if let Some(selector) = member(rolling, "selector") {
        let path = format!("{ROLLING}.selector");
        errors.0.extend(validate::selector(selector, &path));
    }
}

/// A count or percentage as a share of a hundred, 0 if absent; `None` after an error. The sign must not depend on how
/// many nodes there are now.
fn amount(
    errors: &mut Errors,
    object: &Value,
    name: &str,
    path: &str,
    most_percent: Option<i32>,
) -> Option<i32> {
    let Some(value) = present(object, name) else {
        return Some(0);
    };
    let path = format!("{path}.{name}");
    let read = IntOrString::deserialize(value).ok()?;
    let scaled = read.scaled_a(100, Rounding::Up);
    let is_percent = matches!(read, IntOrString::String(_));
    match scaled {
        Ok(count) if count < 0 => {
            errors.invalid(path, value.clone(), "must be greater than or equal to 0");
            None
        }
        Ok(count) if is_percent && most_percent.is_some_and(|most| count > most) => {
            errors.invalid(path, value.clone(), "must not be greater than 100%");
            None
        }
        Ok(count) => Some(count),
        Err(error) => {
            errors.invalid(path, value.clone(), &error.to_string());
            None
        }
    }
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

    const CASE: Case = case("DaemonSet", good);

    #[test]
    fn surge_of_pods_that_hold_a_port_of_their_node_is_warned_of() {
        let port =
            |port: Value| json!({"containers": [{"name": "agent", "image": "agent:1", "ports": [port]}]});
        let mut on_host = port(json!({"containerPort": 9100}));
        on_host["hostNetwork"] = json!(true);
        let sidecar = json!({"containers": [{"name": "agent", "image": "agent:1"}],
            "initContainers": [{"name": "s", "image": "s:1", "restartPolicy": "Always",
                "ports": [{"containerPort": 1, "hostPort": 81}]}]});
        for (pod, port) in [
            (port(json!({"containerPort": 80})), None),
            (port(json!({"containerPort": 80, "hostPort": 8080})), Some(8080)),
            (on_host, Some(9100)),
            (sidecar, Some(81)),
        ] {
            for (surge, unavailable) in [
                (json!(1), json!(0)),
                (json!("34%"), json!(0)),
                (json!(0), json!(1)),
            ] {
                let mut spec = good();
                spec["template"]["spec"] = pod.clone();
                let rolling = json!({"rollingUpdateType": "Standard", "maxSurge": surge, "maxUnavailable": unavailable});
                spec["updateStrategy"]["rollingUpdate"] = rolling;
                let texts = CASE.warnings("CREATE", &CASE.object("v1beta1", &spec), &Value::Null);
                let expected = port.filter(|_| surge != json!(0));
                assert_eq!(texts.len(), usize::from(expected.is_some()), "{texts:?}");
                if let Some(port) = expected {
                    assert!(
                        texts[0].contains(&format!("has port {port} of the node")),
                        "{texts:?}"
                    );
                }
            }
        }
    }

    fn good() -> Value {
        json!({
            "selector": {"matchLabels": {"app": "log"}},
            "template": {
                "metadata": {"labels": {"app": "log"}},
                "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
            },
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0},
            },
        })
    }

    #[test]
    fn what_is_left_out_is_filled_in_but_not_in_the_template() {
        for version in ["v1alpha1", "v1beta1"] {
            let mut bare = good();
            bare.as_object_mut().unwrap().remove("updateStrategy");
            let found = CASE.mutated(version, &bare);
            let mut expected = good();
            expected["burstReplicas"] = json!(250);
            expected["revisionHistoryLimit"] = json!(10);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn one_limit_alone_stays_alone_and_on_delete_needs_none() {
        let with = |update: Value| {
            let mut spec = good();
            spec["updateStrategy"] = update;
            CASE.mutated("v1beta1", &spec)["updateStrategy"].take()
        };
        assert_eq!(
            with(json!({"rollingUpdate": {"maxSurge": 1}})),
            json!({"type": "RollingUpdate", "rollingUpdate": {"rollingUpdateType": "Standard", "maxSurge": 1}})
        );
        assert_eq!(with(json!({"type": "OnDelete"})), json!({"type": "OnDelete"}));
    }

    #[test]
    fn the_old_word_for_a_surge_becomes_one() {
        let mut spec = good();
        spec["updateStrategy"] = json!({"rollingUpdate": {"rollingUpdateType": "Surging"}});
        let found = CASE.mutated("v1alpha1", &spec);
        assert_eq!(
            found["updateStrategy"]["rollingUpdate"],
            json!({"rollingUpdateType": "Standard", "maxSurge": 1, "maxUnavailable": 0})
        );
        assert_eq!(CASE.refused("v1alpha1", &found), None);
        assert!(CASE.refused("v1beta1", &spec).is_some());
    }

    #[test]
    #[rustfmt::skip]
    fn every_broken_rule_names_its_field() {
        CASE.each_is_refused(&[
            ("selector", json!({}), "spec.selector: Invalid"),
            ("selector.matchLabels", json!({"app": "db"}), "spec.template.metadata.labels: Invalid"),
            ("template.spec.containers.0.image", json!(""), "spec.template.spec.containers[0].image: Required"),
            ("template.spec.restartPolicy", json!("Never"), "spec.template.spec.restartPolicy: Unsupported"),
            ("template.spec.activeDeadlineSeconds", json!(1), "spec.template.spec.activeDeadlineSeconds: Forbidden"),
            ("minReadySeconds", json!(-1), "spec.minReadySeconds: Invalid value: -1"),
            ("revisionHistoryLimit", json!(-1), "spec.revisionHistoryLimit: Invalid value: -1"),
            ("burstReplicas", json!(-1), "spec.burstReplicas: Invalid value: -1"),
            ("burstReplicas", json!("many"), "spec.burstReplicas: Invalid value: \"many\""),
            ("lifecycle", json!({"inPlaceUpdate": {}}), "spec.lifecycle.inPlaceUpdate: Forbidden"),
            ("updateStrategy", json!({}), "spec.updateStrategy.type: Required"),
            ("updateStrategy.type", json!("Sometimes"), "spec.updateStrategy.type: Unsupported"),
            ("updateStrategy.rollingUpdate", Value::Null, "spec.updateStrategy.rollingUpdate: Required"),
            ("updateStrategy.rollingUpdate.maxUnavailable", json!(0), "rollingUpdate.maxUnavailable: Required"),
            ("updateStrategy.rollingUpdate.maxUnavailable", json!("101%"), "rollingUpdate.maxUnavailable: Invalid"),
            ("updateStrategy.rollingUpdate.maxUnavailable", json!("x"), "rollingUpdate.maxUnavailable: Invalid"),
            ("updateStrategy.rollingUpdate.maxUnavailable", json!(-1), "rollingUpdate.maxUnavailable: Invalid"),
            ("updateStrategy.rollingUpdate.maxSurge", json!(1), "rollingUpdate.maxSurge: Invalid value: 1: may not"),
            ("updateStrategy.rollingUpdate", json!({"maxSurge": 1, "rollingUpdateType": "InPlaceIfPossible"}), "rollingUpdate.maxSurge: Invalid value: 1: must be 0"),
            ("updateStrategy.rollingUpdate.rollingUpdateType", json!("Fast"), "rollingUpdate.rollingUpdateType: Unsupported"),
            ("updateStrategy.rollingUpdate.partition", json!("200%"), "rollingUpdate.partition: Invalid"),
            ("updateStrategy.rollingUpdate.partition", json!(-1), "rollingUpdate.partition: Invalid"),
            ("updateStrategy.rollingUpdate.selector", json!({"matchLabels": {"a b": ""}}), "rollingUpdate.selector.matchLabels: Invalid"),
        ]);
    }

    #[test]
    fn protected_daemonsets_stay_while_nodes_want_their_pods_and_the_gate_is_on() {
        for version in ["v1alpha1", "v1beta1"] {
            let stored = |protection: &str, nodes: Option<i32>| {
                let mut set = CASE.object(version, &good());
                set["metadata"]["labels"] = json!({"policy.kruise.io/delete-protection": protection});
                set["status"] = json!({"desiredNumberScheduled": nodes});
                set
            };
            let delete = |set: &Value, deletion_protection| {
                let options = Options {
                    deletion_protection,
                    ..Options::DEFAULT
                };
                CASE.with(options).refusal("DELETE", &Value::Null, set)
            };
            let because = |text: &str| {
                let protection =
                    "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection";
                Some((403, format!("{protection}={text}")))
            };
            let cascading = because("Cascading and nodes 3>0");
            assert_eq!(delete(&stored("Cascading", Some(3)), true), cascading);
            assert_eq!(delete(&stored("Always", Some(0)), true), because("Always"));
            for (protection, nodes, gate) in [
                ("Cascading", Some(3), false),
                ("Always", Some(3), false),
                ("Cascading", Some(0), true),
                ("Cascading", None, true),
                ("Sometimes", Some(3), true),
            ] {
                assert_eq!(delete(&stored(protection, nodes), gate), None, "{protection}");
            }
            let mut going = stored("Always", Some(3));
            going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            assert_eq!(delete(&going, true), None);
        }
    }

    #[test]
    fn all_but_the_selector_may_change() {
        let mut changed = good();
        changed["selector"]["matchLabels"]["app"] = json!("db");
        changed["template"]["metadata"]["labels"]["app"] = json!("db");
        let message = CASE.update_refused(&good(), &changed).unwrap();
        assert!(message.contains("spec.selector: Invalid"), "{message}");
        let mut changed = good();
        changed["template"]["spec"]["containers"][0]["image"] = json!("agent:2");
        changed["updateStrategy"] = json!({"type": "OnDelete"});
        assert_eq!(CASE.update_refused(&good(), &changed), None);
    }
}
