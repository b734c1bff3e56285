//! A webhook that is registered only while its match condition can be true.
//!
//! It is a copy of another webhook of the template, the *base*: it has a name of its own, and one match condition in
//! place of those of the base. It is inserted right before the base, or before the first if several have its path. A base
//! without match conditions is called for every request already, and then no copy is inserted.

use serde_json::{Map, Value, json};

use super::widening::{Widened, joined};

/// Identifies the webhook and its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalWebhook {
    /// Name of the webhook.
    pub name: String,
    /// Request path of the base and of the webhook.
    pub path: String,
    /// Name of its match condition.
    pub condition: String,
}

/// The desired match condition of the webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DesiredCondition {
    /// Not known in this process: the registered condition stays.
    #[default]
    Unmanaged,
    /// No request matches: the webhook is removed.
    Absent,
    /// A CEL expression.
    Expression(String),
}

impl ConditionalWebhook {
    /// True if this webhook has its name.
    pub(super) fn is(&self, webhook: &Map<String, Value>) -> bool {
        webhook.get("name").and_then(Value::as_str) == Some(&self.name)
    }

    /// Replaces the match conditions of a webhook by this one, and its name by that of this webhook.
    pub(super) fn set(&self, webhook: &mut Map<String, Value>, expression: &str) {
        webhook.insert("name".into(), json!(self.name));
        let condition = json!([{"name": self.condition, "expression": expression}]);
        webhook.insert("matchConditions".into(), condition);
    }

    /// The webhook to register, if any. `base` is the webhook at its path, `existing` the registered `webhooks` array,
    /// `widened` the widenings that last.
    pub(super) fn webhook(
        &self,
        desired: &DesiredCondition,
        widened: &[Widened],
        base: &Map<String, Value>,
        existing: &Value,
    ) -> Option<Map<String, Value>> {
        let conditions = base.get("matchConditions").and_then(Value::as_array);
        if conditions.is_none_or(Vec::is_empty) {
            return None;
        }
        let widened = || widened.iter().filter(|one| one.webhook == self.name);
        let expression = match desired {
            DesiredCondition::Absent if widened().next().is_none() => return None,
            DesiredCondition::Absent => joined(None, widened()),
            DesiredCondition::Expression(expression) => joined(Some(expression), widened()),
            DesiredCondition::Unmanaged => {
                let found = existing
                    .as_array()?
                    .iter()
                    .filter_map(Value::as_object)
                    .find(|webhook| self.is(webhook))?;
                let expression = found.get("matchConditions")?.get(0)?.get("expression")?;
                expression.as_str()?.to_owned()
            }
        };
        let mut webhook = base.clone();
        self.set(&mut webhook, &expression);
        Some(webhook)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, webhooks};
    use super::*;

    fn conditional() -> ConditionalWebhook {
        ConditionalWebhook {
            name: "more".into(),
            path: "/two".into(),
            condition: "needed".into(),
        }
    }

    fn installed(conditions: &Value) -> Value {
        let entry = |name: &str, path: &str| {
            json!({"name": name, "clientConfig": {"service": {"namespace": "a", "name": "b", "path": path}},
                   "timeoutSeconds": 7, "matchConditions": conditions})
        };
        json!({"metadata": {"resourceVersion": "7"}, "webhooks": [entry("one", "/one"), entry("two", "/two")]})
    }

    /// The configuration after a reconcile; `None` if nothing is to be written.
    fn reconciled(current: &Value, desired: &DesiredCondition) -> Option<Value> {
        let endpoint = Endpoint::Service {
            namespace: "ns".into(),
            name: "svc".into(),
        };
        let conditional = conditional();
        let conditional = Some((&conditional, desired, jiff::Timestamp::UNIX_EPOCH));
        let patch = webhooks(current, b"ca", &endpoint, |_| true, conditional)
            .unwrap()
            .patch?;
        let mut after = current.clone();
        if let Some(text) = patch.pointer("/metadata/annotations/template") {
            after["metadata"]["annotations"] = json!({"template": text});
        }
        if let Some(wanted) = patch.get("webhooks") {
            after["webhooks"] = super::super::defaulted(wanted.clone());
        }
        Some(after)
    }

    fn names(configuration: &Value) -> Vec<&str> {
        let webhooks = configuration["webhooks"].as_array().unwrap().iter();
        webhooks
            .map(|webhook| webhook["name"].as_str().unwrap())
            .collect()
    }

    fn on() -> Value {
        json!([{"name": "c", "expression": "true"}])
    }

    #[test]
    fn it_is_inserted_changed_and_removed_with_one_write_each() {
        let needed = |expression: &str| DesiredCondition::Expression(expression.to_owned());
        let first = reconciled(&installed(&on()), &needed("a")).unwrap();
        assert_eq!(names(&first), ["one", "more", "two"]);
        let more = &first["webhooks"][1];
        assert_eq!(
            more["matchConditions"],
            json!([{"name": "needed", "expression": "a"}])
        );
        assert_eq!(more["clientConfig"], first["webhooks"][2]["clientConfig"]);
        assert_eq!(more["timeoutSeconds"], 7);
        assert_eq!(reconciled(&first, &needed("a")), None);
        assert_eq!(reconciled(&first, &DesiredCondition::Unmanaged), None);
        let second = reconciled(&first, &needed("b")).unwrap();
        assert_eq!(second["webhooks"][1]["matchConditions"][0]["expression"], "b");
        let last = reconciled(&second, &DesiredCondition::Absent).unwrap();
        assert_eq!(names(&last), ["one", "two"]);
        assert_eq!(reconciled(&last, &DesiredCondition::Unmanaged), None);
    }

    #[test]
    fn of_two_bases_only_the_first_gets_a_copy() {
        let mut two = installed(&on());
        let mut again = two["webhooks"][1].clone();
        again["name"] = json!("three");
        two["webhooks"].as_array_mut().unwrap().push(again);
        let after = reconciled(&two, &DesiredCondition::Expression("a".into())).unwrap();
        assert_eq!(names(&after), ["one", "more", "two", "three"]);
        assert_eq!(
            reconciled(&after, &DesiredCondition::Expression("a".into())),
            None
        );
    }

    #[test]
    fn an_unmanaged_condition_stays_and_its_ca_bundle_is_renewed() {
        let mut found = reconciled(&installed(&on()), &DesiredCondition::Expression("a".into())).unwrap();
        found["webhooks"][1]["clientConfig"]["caBundle"] = json!("b2xk");
        let mended = reconciled(&found, &DesiredCondition::Unmanaged).unwrap();
        assert_eq!(mended["webhooks"][1]["clientConfig"]["caBundle"], "Y2E=");
        assert_eq!(mended["webhooks"][1]["matchConditions"][0]["expression"], "a");
    }

    #[test]
    fn it_does_not_become_part_of_a_template_that_is_stored_anew() {
        let mut found = reconciled(&installed(&on()), &DesiredCondition::Expression("a".into())).unwrap();
        // Applying the manifests again keeps entries that they do not name.
        found["metadata"]["annotations"]["template"] = json!("");
        let anew = reconciled(&found, &DesiredCondition::Absent).unwrap();
        assert_eq!(names(&anew), ["one", "two"]);
        assert!(
            !anew["metadata"]["annotations"]["template"]
                .as_str()
                .unwrap()
                .contains("more")
        );
    }

    #[test]
    fn a_base_without_match_conditions_gets_no_copy() {
        for conditions in [Value::Null, json!([])] {
            let after =
                reconciled(&installed(&conditions), &DesiredCondition::Expression("a".into())).unwrap();
            assert_eq!(names(&after), ["one", "two"]);
        }
    }
}
