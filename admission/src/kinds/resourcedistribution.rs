//! ResourceDistributions: what is copied, and to which namespaces. Without their feature gate no new one is taken;
//! what is stored can be changed.
//!
//! | Field | Rule |
//! |---|---|
//! | `metadata` | well formed |
//! | `resource` | a Secret or ConfigMap of the core group with a good name; what it is and its name stay |
//! | `resource` | a server would take it: it is tried, in the manager's namespace, when it is new or changed |
//! | `targets.includedNamespaces`, `excludedNamespaces` | names of namespaces, none in both |
//! | `targets.namespaceSelector` | well formed |

use kube_schema::validate::{self, Errors};
use serde_json::Value;

use super::{KindWebhooks, Scope};
use crate::json::{items, member, present, text};
use crate::lookup::{Reader, Refusal};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    validating: Some("vresourcedistribution.kb.io"),
    newest: true,
    gate_of_new: |options| (!options.distributions).then_some("ResourceDistributionGate"),
    rules,
    changes,
    others,
    ..KindWebhooks::of(&kruise_api::resourcedistribution::KIND)
};

const RESOURCE: &str = "spec.resource";
const TARGETS: &str = "spec.targets";

fn rules(errors: &mut Errors, object: &Value, _: &Scope<'_>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    errors.0.extend(validate::metadata(metadata, "metadata"));
    let spec = object.get("spec").unwrap_or(&Value::Null);
    match member(spec, "resource").filter(|resource| resource.as_object().is_some_and(|all| !all.is_empty()))
    {
        Some(resource) => what(errors, resource),
        None => return errors.invalid(RESOURCE, Value::Null, "a Secret or ConfigMap is needed"),
    }
    let targets = spec.get("targets").unwrap_or(&Value::Null);
    let included = names(errors, targets, "includedNamespaces");
    let excluded = names(errors, targets, "excludedNamespaces");
    for (index, name) in included.iter().enumerate() {
        if excluded.contains(name) {
            let path = format!("{TARGETS}.includedNamespaces.list[{index}].name");
            errors.invalid(path, *name, "is among the excluded namespaces, too");
        }
    }
    if let Some(selector) = present(targets, "namespaceSelector") {
        let path = format!("{TARGETS}.namespaceSelector");
        errors.0.extend(validate::selector(selector, &path));
    }
}

fn what(errors: &mut Errors, resource: &Value) {
    let kind = (text(resource, "apiVersion"), text(resource, "kind"));
    if !matches!(kind, ("v1", "Secret" | "ConfigMap")) {
        let value = format!("{}, Kind={}", kind.0, kind.1);
        return errors.invalid(
            RESOURCE,
            value,
            "only Secret and ConfigMap of v1 can be distributed",
        );
    }
    let metadata = resource.get("metadata").unwrap_or(&Value::Null);
    let path = format!("{RESOURCE}.metadata");
    errors.0.extend(validate::metadata(metadata, &path));
}

/// The names of a list of namespaces, those that could be none refused.
fn names<'a>(errors: &mut Errors, targets: &'a Value, list: &str) -> Vec<&'a str> {
    let listed = items(targets.get(list).unwrap_or(&Value::Null), "list");
    let mut all = Vec::new();
    for (index, one) in listed.iter().enumerate() {
        let name = text(one, "name");
        if let Some(reason) = validate::not_a_dns_label(name) {
            errors.invalid(format!("{TARGETS}.{list}.list[{index}].name"), name, reason);
        }
        all.push(name);
    }
    all
}

fn changes(errors: &mut Errors, new: &Value, old: &Value, _: &Scope<'_>) {
    let identity = |object: &Value| {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        [
            text("/spec/resource/apiVersion"),
            text("/spec/resource/kind"),
            text("/spec/resource/metadata/name"),
        ]
    };
    let is = identity(new);
    if is != identity(old) {
        let value = is.map(Option::unwrap_or_default).join(" ");
        errors.invalid(RESOURCE, value, "apiVersion, kind and name cannot be changed");
    }
}

fn others(errors: &mut Errors, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) {
    let resource = |object: &Value| object.pointer("/spec/resource").cloned();
    let is = resource(object).unwrap_or_default();
    if scope.old.is_some_and(|old| resource(old).as_ref() == Some(&is)) {
        return;
    }
    let plural = match text(&is, "kind") {
        "Secret" => "secrets",
        _ => "configmaps",
    };
    match reader.dry_run(plural, &is) {
        // one of that name in the manager's namespace says nothing about those to be made
        None | Some(Ok(()) | Err(Refusal { code: 409, .. })) => {}
        Some(Err(Refusal { code: 403, message })) => errors.forbidden(RESOURCE, message),
        Some(Err(Refusal { message, .. })) => {
            let name = is.pointer("/metadata/name").cloned().unwrap_or_default();
            errors.invalid(RESOURCE, name, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{Case, case, put};
    use super::*;
    use crate::Options;

    const DISTRIBUTION: Case = case("ResourceDistribution", good);

    fn good() -> Value {
        json!({
            "resource": {
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry"}, "type": "Opaque",
                "data": {"token": "c2FtcGxl"},
            },
            "targets": {
                "namespaceSelector": {"matchLabels": {"team": "shop"}},
                "includedNamespaces": {"list": [{"name": "tools"}]},
                "excludedNamespaces": {"list": [{"name": "shop-sandbox"}]},
            },
            "newerThanUs": true,
        })
    }

    #[test]
    fn each_broken_rule_is_refused_with_its_field() {
        DISTRIBUTION.each_is_refused(&[
            ("resource", Value::Null, "spec.resource: Invalid"),
            ("resource", json!({}), "spec.resource: Invalid"),
            ("resource.kind", json!("Pod"), "spec.resource: Invalid"),
            ("resource.apiVersion", json!("apps/v1"), "spec.resource: Invalid"),
            (
                "resource.metadata.name",
                json!(""),
                "spec.resource.metadata.name: Required",
            ),
            (
                "resource.metadata.name",
                json!("Not a name"),
                "spec.resource.metadata.name: Invalid",
            ),
            (
                "targets.includedNamespaces.list.0.name",
                json!("Not_One"),
                "spec.targets.includedNamespaces.list[0].name: Invalid",
            ),
            (
                "targets.excludedNamespaces.list.0.name",
                json!(""),
                "spec.targets.excludedNamespaces.list[0].name: Invalid",
            ),
            (
                "targets.excludedNamespaces.list.0.name",
                json!("tools"),
                "spec.targets.includedNamespaces.list[0].name: Invalid",
            ),
            (
                "targets.namespaceSelector.matchLabels.team",
                json!("a b"),
                "spec.targets.namespaceSelector.matchLabels: Invalid",
            ),
        ]);
    }

    #[test]
    fn a_resource_is_tried_when_it_is_new_or_changed() {
        let object = DISTRIBUTION.object("v1beta1", &good());
        let said = |answer: Value| {
            let seen = [("secrets", answer)];
            DISTRIBUTION.seeing(&seen, "CREATE", &object, &Value::Null)
        };
        for code in [json!({}), json!(409)] {
            assert_eq!(said(code), None);
        }
        assert!(
            said(json!(422))
                .unwrap()
                .contains("spec.resource: Invalid value: \"registry\": because")
        );
        assert!(
            said(json!(403))
                .unwrap()
                .contains("spec.resource: Forbidden: because")
        );
        let mut other = object.clone();
        other["spec"]["targets"] = json!({});
        assert_eq!(DISTRIBUTION.seeing(&[], "UPDATE", &other, &object), None);
        other["spec"]["resource"]["data"] = json!({"token": "b3RoZXI="});
        let message = DISTRIBUTION.seeing(&[("secrets", json!(422))], "UPDATE", &other, &object);
        assert!(message.is_some());
        let mut map = good();
        put(&mut map, "resource.kind", &json!("ConfigMap"));
        let map = DISTRIBUTION.object("v1beta1", &map);
        let message = DISTRIBUTION.seeing(&[("configmaps", json!(400))], "CREATE", &map, &Value::Null);
        assert!(message.is_some());
    }

    #[test]
    fn without_their_gate_no_new_distribution_is_taken_and_stored_ones_can_be_changed() {
        let without = DISTRIBUTION.with(Options::DEFAULT);
        let message = without.refused("v1beta1", &good()).unwrap();
        assert_eq!(message, "feature-gate ResourceDistributionGate is not enabled");
        let mut other = good();
        put(&mut other, "targets.allNamespaces", &json!(true));
        assert_eq!(without.update_refused(&good(), &other), None);
    }

    #[test]
    fn what_matches_nothing_is_legal() {
        let mut spec = good();
        put(&mut spec, "targets", &json!({}));
        assert_eq!(DISTRIBUTION.refused("v1beta1", &spec), None);
        let older = json!({
            "resource": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}},
            "targets": {"namespaceLabelSelector": {"matchLabels": {"a b": "c"}}},
        });
        let message = DISTRIBUTION.refused("v1alpha1", &older).unwrap();
        assert!(message.contains("spec.targets.namespaceSelector"), "{message}");
    }

    #[test]
    fn what_is_copied_keeps_its_kind_and_name() {
        let mut other = good();
        put(&mut other, "resource.data.token", &json!("b3RoZXI="));
        put(&mut other, "targets.allNamespaces", &json!(true));
        assert_eq!(DISTRIBUTION.update_refused(&good(), &other), None);
        for (path, value) in [
            ("resource.kind", json!("ConfigMap")),
            ("resource.metadata.name", json!("other")),
        ] {
            let mut other = good();
            put(&mut other, path, &value);
            let message = DISTRIBUTION.update_refused(&good(), &other).unwrap();
            assert!(message.contains("spec.resource: Invalid"), "{message}");
        }
    }
}
