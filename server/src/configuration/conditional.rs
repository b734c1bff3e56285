//! A webhook that is registered only while its match condition can be true.
//!
//! It is made of another webhook of the template, the *base*, with one match condition in place of those of the base. A
//! base without match conditions is called for every request already, and then it stays as it is.
//! - A copy has a name of its own. It is inserted right before the base, or before the first if several have its path.
//! - A webhook in place has the name of its base, and is registered instead of it.

use serde_json::{Map, Value, json};

use super::{
    has_conditions,
    widening::{Widened, joined},
};

/// Identifies the webhook and its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalWebhook {
    /// Name of the webhook.
    pub name: String,
    /// Request path of the base and of the webhook.
    pub path: String,
    /// Name of its match condition.
    pub condition: String,
    /// Is it registered instead of its base, which has its name?
    pub in_place: bool,
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
        if !has_conditions(base) {
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
            in_place: false,
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
        let conditional = conditional();
        reconciled_by(&conditional, current, desired)
    }

    fn reconciled_by(
        conditional: &ConditionalWebhook,
        current: &Value,
        desired: &DesiredCondition,
    ) -> Option<Value> {
        let endpoint = Endpoint::Service {
            namespace: "ns".into(),
            name: "svc".into(),
        };
        let conditional = [(conditional, desired, jiff::Timestamp::UNIX_EPOCH)];
        let patch = webhooks(current, b"ca", &endpoint, |_| true, &conditional)
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

    fn in_place() -> ConditionalWebhook {
        ConditionalWebhook {
            name: "two".into(),
            in_place: true,
            ..conditional()
        }
    }

    #[test]
    fn a_webhook_in_place_has_the_derived_condition_while_there_is_one() {
        let needed = |text: &str| DesiredCondition::Expression(text.into());
        let printed = installed(&json!([{"name": "needed", "expression": "true"}]));
        let reconciled =
            |current: &Value, desired: &DesiredCondition| reconciled_by(&in_place(), current, desired);
        let first = reconciled(&printed, &DesiredCondition::Unmanaged).unwrap();
        assert_eq!(names(&first), ["one", "two"]);
        let expression = |found: &Value| found["webhooks"][1]["matchConditions"][0]["expression"].clone();
        assert_eq!(expression(&first), "true", "nobody knows better yet");
        let narrow = reconciled(&first, &needed("a")).unwrap();
        assert_eq!(
            (names(&narrow), expression(&narrow)),
            (vec!["one", "two"], json!("a"))
        );
        assert_eq!(reconciled(&narrow, &needed("a")), None);
        assert_eq!(reconciled(&narrow, &DesiredCondition::Unmanaged), None);
        let none = reconciled(&narrow, &DesiredCondition::Absent).unwrap();
        assert_eq!(names(&none), ["one"]);
        assert_eq!(reconciled(&none, &DesiredCondition::Unmanaged), None);
        let again = reconciled(&none, &needed("b")).unwrap();
        assert_eq!(
            (names(&again), expression(&again)),
            (vec!["one", "two"], json!("b"))
        );
    }

    #[test]
    fn a_webhook_in_place_stays_part_of_a_template_that_is_stored_anew() {
        let printed = installed(&json!([{"name": "needed", "expression": "true"}]));
        let needed = DesiredCondition::Expression("a".into());
        let mut found = reconciled_by(&in_place(), &printed, &needed).unwrap();
        found["metadata"]["annotations"]["template"] = json!("");
        let anew = reconciled_by(&in_place(), &found, &DesiredCondition::Absent).unwrap();
        assert_eq!(names(&anew), ["one"]);
        let back = reconciled_by(&in_place(), &anew, &needed).unwrap();
        assert_eq!(names(&back), ["one", "two"]);
    }

    #[test]
    fn a_webhook_in_place_that_is_called_for_everything_is_left_alone() {
        let found = installed(&Value::Null);
        let needed = DesiredCondition::Expression("a".into());
        for desired in [needed, DesiredCondition::Absent] {
            let after = reconciled_by(&in_place(), &found, &desired).unwrap();
            assert_eq!(names(&after), ["one", "two"]);
            assert!(after["webhooks"][1]["matchConditions"].is_null());
        }
    }
}
