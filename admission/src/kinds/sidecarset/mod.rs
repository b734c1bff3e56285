//! SidecarSets, in the version of the request.

mod defaults;
mod hashes;
mod validate;

use std::sync::Arc;

use serde_json::Value;

use super::judged::Template;
use super::{KindWebhooks, Scope, parts};
use crate::json::{integer, text};
use crate::pod::sidecars::{Reach, Set};
use crate::widening::PODS_OF_SETS;
use crate::widening::{StoredSoon, Widening};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("msidecarset.kb.io"),
    validating: Some("vsidecarset.kb.io"),
    parts: &[
        parts::part("spec.containers[]", "core/v1.Container"),
        parts::part("spec.initContainers[]", "core/v1.Container"),
        parts::part("spec.volumes[]", "core/v1.Volume"),
    ],
    defaults: |set, _| complete(set),
    rules: |errors, set, _| validate::rules(errors, set),
    changes: |errors, new, old, _| validate::changes(errors, new, old),
    others: validate::others::check,
    templates: |set| vec![Template::new("", &validate::containers::pod_of(set), &[])],
    advice: |set, _| validate::containers::hosts(set),
    warnings: validate::others::warnings,
    widens: |set, scope| widening(set, scope).into_iter().collect(),
    may_widen: true,
    ..KindWebhooks::of(&kruise_api::sidecarset::KIND)
};

/// The webhook for pods must be called for the pods of a set that begins to inject, or begins to match others.
fn widening(set: &Value, scope: &Scope<'_>) -> Option<Widening> {
    let reach = |set: &Value| Reach::of(&Set::new(Arc::new(set.clone())));
    let now = reach(set)?;
    if scope.old.and_then(reach).as_ref() == Some(&now) {
        return None;
    }
    let metadata = set.get("metadata").unwrap_or(&Value::Null);
    let object = StoredSoon {
        kind: scope.kind.to_owned(),
        namespace: String::new(),
        name: text(metadata, "name").to_owned(),
        uid: text(metadata, "uid").to_owned(),
        generation: integer(metadata, "generation").unwrap_or_default(),
    };
    Some(Widening::of_pods(PODS_OF_SETS, Arc::new(object), [now]))
}

/// Fills in defaults and the hashes of the containers, as the webhook does.
pub fn complete(set: &mut Value) {
    defaults::apply(set);
    hashes::write(set);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::quiet;
    use crate::{Lookups, Options, Outcome, Request, Response};

    fn set(selector: &Value, paused: bool) -> Value {
        let mut set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": "logs", "uid": "u", "generation": 3},
            "spec": {"selector": selector, "injectionStrategy": {"paused": paused},
                     "containers": [{"name": "agent", "image": "agent:1"}]}});
        complete(&mut set);
        set
    }

    /// What is widened before the set is stored.
    fn widening(new: &Value, old: &Value, dry_run: bool) -> Option<Widening> {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let request = Request::from_review(json!({
            "kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "SidecarSet"}, "name": "logs",
            "operation": operation, "dryRun": dry_run, "object": new, "oldObject": old,
        }));
        let mut lookups = Lookups::default();
        loop {
            match WEBHOOKS.validate(request.as_ref().unwrap(), Options::DEFAULT, &lookups) {
                Outcome::Missing(missing) => missing.into_iter().for_each(|lookup| {
                    let result = quiet(&lookup);
                    lookups.insert(lookup, result);
                }),
                Outcome::Widen(mut widenings, response) => {
                    assert!(matches!(response, Response::Allow { .. }));
                    assert_eq!(widenings.len(), 1);
                    return widenings.pop();
                }
                _ => return None,
            }
        }
    }

    #[test]
    fn a_set_that_begins_to_inject_into_pods_widens_the_condition_first() {
        let (web, db) = (
            json!({"matchLabels": {"app": "web"}}),
            json!({"matchLabels": {"app": "db"}}),
        );
        let found = widening(&set(&web, false), &Value::Null, false).unwrap();
        assert_eq!(found.webhook, "mpod-sidecars.kb.io");
        assert_eq!(
            (&*found.object.name, &*found.object.uid, found.object.generation),
            ("logs", "u", 3)
        );
        let conditions = found.conditions();
        let [exact, by_key, every] = conditions.as_slice() else {
            panic!("{conditions:?}");
        };
        assert!(exact.contains("l['app'] == 'web'") && by_key.contains("'app' in l") && every == "true");
        for (old, needed) in [
            (set(&web, false), false),
            (set(&db, false), true),
            (set(&web, true), true),
        ] {
            let found = widening(&set(&web, false), &old, false);
            assert_eq!(found.is_some(), needed, "{old}");
        }
    }

    #[test]
    fn nothing_is_widened_for_a_set_that_is_not_stored_or_does_not_inject() {
        let web = json!({"matchLabels": {"app": "web"}});
        assert_eq!(widening(&set(&web, false), &Value::Null, true), None, "a dry run");
        assert_eq!(widening(&set(&web, true), &Value::Null, false), None, "paused");
        assert_eq!(
            widening(&set(&json!({}), false), &Value::Null, false),
            None,
            "refused"
        );
    }
}
