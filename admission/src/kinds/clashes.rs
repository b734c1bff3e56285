//! Containers of a pod template that have the name of a sidecar which its pods get.
//!
//! A sidecar takes the place of a container of its name, so pods would never run what the template says. That is
//! refused where it is new. What is stored with such a container stays writable: its SidecarSet may have come
//! later.

use std::collections::BTreeSet;

use kruise_plan_kit::sidecars::{is_hot, twins};
use kube_schema::validate::Errors;
use serde_json::Value;

use super::{KindWebhooks, Scope, parts};
use crate::json::{items, text};
use crate::lookup::{Lookup, Reader};
use crate::pod::sidecars::{Set, is_injected, noted_sets};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// A container with the name of a sidecar.
struct Clash {
    path: String,
    container: String,
    set: String,
}

/// Refuses clashes that the stored object does not have.
pub(super) fn check(
    kind: &KindWebhooks,
    errors: &mut Errors,
    object: &Value,
    scope: &Scope<'_>,
    reader: &mut Reader<'_>,
) {
    let found = clashes(kind, object, scope, reader);
    let stored = match scope.old {
        Some(old) if !found.is_empty() => clashes(kind, old, scope, reader),
        _ => Vec::new(),
    };
    let known: BTreeSet<(&str, &str)> = stored.iter().map(|one| (&*one.container, &*one.set)).collect();
    for Clash { path, container, set } in &found {
        if !known.contains(&(container.as_str(), set.as_str())) {
            let detail = format!(
                "SidecarSet {set} injects a container of this name into the pods, which would take the place of this one"
            );
            errors.invalid(path.clone(), container.as_str(), &detail);
        }
    }
}

/// All of them, as far as the SidecarSets are known.
fn clashes(kind: &KindWebhooks, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) -> Vec<Clash> {
    let mut all = Vec::new();
    for (path, template) in parts::pod_templates(kind, object) {
        let Some(sets) = noted_sets(reader) else {
            return Vec::new();
        };
        let spec = template.get("spec").unwrap_or(&Value::Null);
        for set in sets.iter() {
            let names = &names(set);
            let clashing = LISTS.iter().flat_map(|list| {
                let own = items(spec, list).iter().enumerate();
                let own = own.filter(|(_, one)| names.contains(text(one, "name")) && !is_injected(one));
                own.map(move |(index, one)| {
                    (format!("spec.{list}[{index}].name"), text(one, "name").to_owned())
                })
            });
            let clashing: Vec<(String, String)> = clashing.collect();
            if clashing.is_empty() || matches(set, template, scope.namespace, reader) != Some(true) {
                continue;
            }
            all.extend(clashing.into_iter().map(|(field, container)| Clash {
                path: format!("{path}.{field}"),
                container,
                set: set.name.clone(),
            }));
        }
    }
    all
}

/// Is a SidecarSet for the pods of this template? `None` while labels of the namespace are missing.
fn matches(set: &Set, template: &Value, namespace: &str, reader: &mut Reader<'_>) -> Option<bool> {
    let lookups = reader.lookups;
    let labels = || lookups.labels(Lookup::NamespaceLabels(namespace.to_owned()));
    let result = set.mismatch(template, namespace, labels);
    reader.noted(result.map(|mismatch| mismatch.is_none()))
}

/// Names of the containers that a set injects.
fn names(set: &Set) -> BTreeSet<String> {
    let all = LISTS.iter().flat_map(|list| items(set.spec(), list));
    all.flat_map(|sidecar| {
        let name = text(sidecar, "name");
        if is_hot(sidecar) {
            twins(name).to_vec()
        } else {
            vec![name.to_owned()]
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::lookup::StoredKind;
    use crate::pod::sidecars::Set;
    use serde_json::{Value, json};

    use crate::kinds::testing::{decided, quiet, sample, webhooks_of};
    use crate::lookup::{Lookup, LookupResult};

    use crate::table::Phase;
    use crate::{Options, Request, Response};

    fn set(spec: &Value) -> Value {
        let mut set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "logs"},
            "spec": {"selector": {"matchLabels": {"side": "car"}}}});
        for (key, value) in spec.as_object().unwrap() {
            set["spec"][key] = value.clone();
        }
        set
    }

    /// A CloneSet with these containers.
    fn workload(containers: &[&str]) -> Value {
        let (_, mut object) = sample("CloneSet");
        let labels = json!({"app": "web", "side": "car"});
        let containers: Vec<Value> = containers
            .iter()
            .map(|name| json!({"name": name, "image": "web:1"}))
            .collect();
        object["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
        object["spec"]["template"] =
            json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let template = &mut object["spec"]["template"];
        kube_schema::defaults::pod_template(template, kube_schema::defaults::Options::default());
        object
    }

    fn review(new: &Value, old: Option<&Value>, sets: &[Value]) -> Response {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let request = Request::from_review(json!({
            "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "CloneSet"}, "name": "web",
            "namespace": "shop", "operation": operation, "object": new, "oldObject": old,
        }));
        let look_up = |lookup: &Lookup| match lookup {
            Lookup::All(kind, _) if *kind == StoredKind::of::<Set>() => kind.all(sets.to_vec()),
            Lookup::NamespaceLabels(_) => LookupResult::Labels([("team".into(), "blue".into())].into()),
            other => quiet(other),
        };
        let webhooks = webhooks_of("CloneSet");
        decided(
            webhooks,
            Phase::Validating,
            &request.unwrap(),
            Options::DEFAULT,
            &look_up,
        )
    }

    fn is_allowed(response: &Response) -> bool {
        matches!(response, Response::Allow { .. })
    }

    #[test]
    fn a_new_container_with_the_name_of_a_sidecar_is_refused_with_the_name_of_the_set() {
        let cold = set(&json!({"containers": [{"name": "agent", "image": "agent:1"}]}));
        let refused = review(&workload(&["main", "agent"]), None, std::slice::from_ref(&cold));
        let text = format!("{refused:?}");
        assert!(!is_allowed(&refused), "{text}");
        assert!(text.contains("spec.template.spec.containers[1].name"), "{text}");
        assert!(text.contains("SidecarSet logs"), "{text}");
        assert!(is_allowed(&review(&workload(&["main"]), None, &[cold])));
    }

    #[test]
    fn hot_sidecars_and_init_containers_count_by_the_names_that_they_have_in_pods() {
        let hot = json!({"name": "agent", "image": "a:1", "upgradeStrategy": {"upgradeType": "HotUpgrade"}});
        for (spec, name, allowed) in [
            (json!({"containers": [hot]}), "agent-2", false),
            (json!({"containers": [hot]}), "agent", true),
            (
                json!({"initContainers": [{"name": "init", "image": "i:1"}]}),
                "init",
                false,
            ),
        ] {
            let found = review(&workload(&[name]), None, &[set(&spec)]);
            assert_eq!(is_allowed(&found), allowed, "{name}: {found:?}");
        }
    }

    #[test]
    fn sets_for_other_pods_or_other_namespaces_are_in_nobodys_way() {
        let agent = json!([{"name": "agent", "image": "agent:1"}]);
        for (spec, allowed) in [
            (json!({"selector": {"matchLabels": {"side": "board"}}}), true),
            (
                json!({"namespaceSelector": {"matchLabels": {"team": "red"}}}),
                true,
            ),
            (
                json!({"namespaceSelector": {"matchLabels": {"team": "blue"}}}),
                false,
            ),
            (json!({"injectionStrategy": {"paused": true}}), true),
        ] {
            let mut one = set(&spec);
            one["spec"]["containers"] = agent.clone();
            let found = review(&workload(&["agent"]), None, &[one]);
            assert_eq!(is_allowed(&found), allowed, "{spec}: {found:?}");
        }
    }

    #[test]
    fn what_is_stored_stays_writable_and_may_not_get_worse() {
        let both = set(
            &json!({"containers": [{"name": "agent", "image": "a:1"}, {"name": "proxy", "image": "p:1"}]}),
        );
        let old = workload(&["main", "agent"]);
        let mut image = workload(&["agent", "main"]);
        image["spec"]["template"]["spec"]["containers"][0]["image"] = json!("web:2");
        assert!(is_allowed(&review(
            &image,
            Some(&old),
            std::slice::from_ref(&both)
        )));
        let worse = workload(&["main", "agent", "proxy"]);
        assert!(!is_allowed(&review(&worse, Some(&old), &[both])));
    }

    #[test]
    fn a_manifest_of_injected_pods_is_taken() {
        let cold = set(&json!({"containers": [{"name": "agent", "image": "agent:1"}]}));
        let mut dumped = workload(&["main", "agent"]);
        dumped["spec"]["template"]["spec"]["containers"][1]["env"] =
            json!([{"name": "IS_INJECTED", "value": "true"}]);
        assert!(is_allowed(&review(&dumped, None, &[cold])));
    }
}
