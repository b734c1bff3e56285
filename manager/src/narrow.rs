//! A webhook that is called for fewer requests than a feature gate of the manager needs.
//!
//! The gate is set on the manager, and the match conditions are in the configuration that an installer applied or
//! that a manager without the gate left. If only one of both is changed, pods silently miss something, or evictions
//! pass that a budget refuses; the manager logs that at its start.

use kruise_admission::disruption::EVICTIONS;
use kruise_admission::manifests::{MUTATE_POD, MUTATING, PODS_OF_SETS, VALIDATING};
use kruise_frame::gates::{Gates, NEED_ALL_PODS};
use kruise_runtime::Client;
use kruise_server::webhook_controller::{Api as _, Phase};
use serde_json::Value;

use super::registrar::Registrar;

/// With this gate no manager updates the match condition of the webhook for evictions.
const EXTERNAL: &str = "EnableExternalCerts";

/// Reads the configurations if one of the gates is on, and logs what is missed.
pub(super) async fn warn(client: &Client, gates: &Gates) {
    if !NEED_ALL_PODS.iter().any(|(gate, _)| gates.on(gate)) {
        return;
    }
    let registrar = Registrar(client.clone());
    for (phase, name) in [(Phase::Mutating, MUTATING), (Phase::Validating, VALIDATING)] {
        match registrar.get_configuration(phase, name).await {
            Ok(configuration) => {
                let warnings = match phase {
                    Phase::Mutating => of_pods(&configuration, gates),
                    Phase::Validating => of_evictions(&configuration, gates).into_iter().collect(),
                };
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
            }
            Err(error) => tracing::warn!(%error, "cannot read {name}"),
        }
    }
}

/// A line if the gate is on, and evictions are not sent that a budget may refuse.
fn of_evictions(configuration: &Value, gates: &Gates) -> Option<String> {
    if !gates.on(EXTERNAL) || !gates.on("PodUnavailableBudgetDeleteGate") {
        return None;
    }
    let mut webhooks = configuration.get("webhooks")?.as_array()?.iter();
    let entry = webhooks.find(|entry| entry.get("name").and_then(Value::as_str) == Some(EVICTIONS));
    let what = match entry {
        None => "is not there",
        Some(entry) if is_narrow(entry) => "has match conditions that keep evictions away",
        Some(_) => return None,
    };
    Some(format!(
        "gate {EXTERNAL} is on, but the webhook {EVICTIONS} of {VALIDATING} {what}: nobody changes that with the budgets, so \
         evictions may pass that a budget refuses; apply what `kruise manifests --feature-gates={EXTERNAL}=true` prints"
    ))
}

/// Does it have a condition that may be false?
fn is_narrow(webhook: &Value) -> bool {
    let conditions = webhook.get("matchConditions").and_then(Value::as_array);
    let mut expressions = conditions.into_iter().flatten().map(|one| one.get("expression"));
    expressions.any(|expression| expression.and_then(Value::as_str) != Some("true"))
}

/// A line for each gate that is on and needs pods that are not sent.
fn of_pods(configuration: &Value, gates: &Gates) -> Vec<String> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array);
    let narrow = webhooks.into_iter().flatten().find_map(narrow_webhook_for_pods);
    let Some(webhook) = narrow else {
        return Vec::new();
    };
    let needed = NEED_ALL_PODS.iter().filter(|(gate, _)| gates.on(gate));
    let line = |(gate, missed): &(&str, &str)| {
        format!(
            "gate {gate} is on, but the webhook {webhook} of {MUTATING} has match conditions: {missed}; remove them, or \
             apply what `kruise manifests --feature-gates={gate}=true` prints"
        )
    };
    needed.map(line).collect()
}

/// Its name, if it is for pods, and is not the one that the manager adds.
fn narrow_webhook_for_pods(webhook: &Value) -> Option<&str> {
    let name = webhook
        .get("name")?
        .as_str()
        .filter(|name| *name != PODS_OF_SETS)?;
    let client = webhook.get("clientConfig")?;
    let path = client.pointer("/service/path").and_then(Value::as_str);
    let url = client.get("url").and_then(Value::as_str);
    let is_for_pods = path.or(url).is_some_and(|at| at.ends_with(MUTATE_POD));
    let conditions = webhook.get("matchConditions").and_then(Value::as_array)?;
    (is_for_pods && !conditions.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use kruise_admission::manifests::configurations;

    use super::*;

    #[test]
    fn a_gate_that_needs_pods_which_are_not_sent_is_warned_of() {
        let narrow = configurations(kruise_kinds::webhooks(), "kruise-system", false).remove(0);
        let mut outside = narrow.clone();
        for webhook in outside["webhooks"].as_array_mut().unwrap() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            let url = format!("https://192.0.2.1:9876{path}");
            webhook["clientConfig"] = serde_json::json!({"url": url});
        }
        for (gate, _) in NEED_ALL_PODS {
            let gates = Gates::parse(&format!("{gate}=true"), "").unwrap();
            for configuration in [&narrow, &outside] {
                let found = of_pods(configuration, &gates);
                assert!(
                    found.len() == 1 && found[0].contains(gate) && found[0].contains("mpod.kb.io"),
                    "{found:?}"
                );
                assert!(of_pods(configuration, &Gates::parse("", "").unwrap()).is_empty());
            }
            assert!(
                of_pods(
                    &configurations(kruise_kinds::webhooks(), "kruise-system", true)[0],
                    &gates
                )
                .is_empty()
            );
        }
    }

    #[test]
    fn a_warning_is_logged_if_evictions_are_not_sent_and_no_manager_changes_that() {
        let printed = configurations(kruise_kinds::webhooks(), "kruise-system", true).remove(1);
        let entry = |configuration: &mut Value| {
            let entries = configuration["webhooks"].as_array_mut().unwrap();
            let position = entries.iter().position(|entry| entry["name"] == EVICTIONS);
            position.unwrap()
        };
        let mut narrow = printed.clone();
        let at = entry(&mut narrow);
        narrow["webhooks"][at]["matchConditions"][0]["expression"] = "request.namespace == 'shop'".into();
        let mut removed = printed.clone();
        let at = entry(&mut removed);
        removed["webhooks"].as_array_mut().unwrap().remove(at);
        let external = Gates::parse("EnableExternalCerts=true", "").unwrap();
        for configuration in [&narrow, &removed] {
            assert!(
                of_evictions(configuration, &external)
                    .unwrap()
                    .contains(EVICTIONS)
            );
            for gates in [
                "",
                "KruisePodReadinessGate=true",
                "EnableExternalCerts=true,PodUnavailableBudgetDeleteGate=false",
            ] {
                let gates = Gates::parse(gates, "").unwrap();
                assert_eq!(of_evictions(configuration, &gates), None);
            }
        }
        assert_eq!(of_evictions(&printed, &external), None);
    }
}
