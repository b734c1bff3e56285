//! A webhook for pods that is called for fewer pods than a feature gate of the manager needs.
//!
//! The gate is set on the manager, and the match conditions are in the configuration that an installer applied. If only one
//! of both is changed, pods silently miss something; the manager logs that at its start.

use kruise_admission::manifests::{MUTATE_POD, MUTATING, PODS_OF_SETS};
use kruise_runtime::Client;
use kruise_server::webhook_controller::{Api as _, Phase};
use serde_json::Value;

use crate::{gates::Gates, manifests::NEED_ALL_PODS};

use super::registrar::Registrar;

/// Reads the configuration if one of the gates is on, and logs what pods miss.
pub(super) async fn warn(client: &Client, gates: &Gates) {
    if !NEED_ALL_PODS.iter().any(|(gate, _)| gates.on(gate)) {
        return;
    }
    let registrar = Registrar(client.clone());
    match registrar.get_configuration(Phase::Mutating, MUTATING).await {
        Ok(configuration) => {
            for warning in warnings(&configuration, gates) {
                tracing::warn!("{warning}");
            }
        }
        Err(error) => tracing::warn!(%error, "cannot read {MUTATING}"),
    }
}

/// A line for each gate that is on and needs pods that are not sent.
fn warnings(configuration: &Value, gates: &Gates) -> Vec<String> {
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
        let narrow = configurations("kruise-system", false).remove(0);
        let mut outside = narrow.clone();
        for webhook in outside["webhooks"].as_array_mut().unwrap() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            let url = format!("https://192.0.2.1:9876{path}");
            webhook["clientConfig"] = serde_json::json!({"url": url});
        }
        for (gate, _) in NEED_ALL_PODS {
            let gates = Gates::parse(&format!("{gate}=true"), "").unwrap();
            for configuration in [&narrow, &outside] {
                let found = warnings(configuration, &gates);
                assert!(
                    found.len() == 1 && found[0].contains(gate) && found[0].contains("mpod.kb.io"),
                    "{found:?}"
                );
                assert!(warnings(configuration, &Gates::parse("", "").unwrap()).is_empty());
            }
            assert!(warnings(&configurations("kruise-system", true)[0], &gates).is_empty());
        }
    }
}
