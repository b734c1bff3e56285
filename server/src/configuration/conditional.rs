//! A webhook that is registered only while somebody needs it.
//!
//! It is like another one of the template, under a name of its own and with one match condition in place of the other's,
//! and comes right before it (before the first, if several have its path). Where the other is called without conditions it is called for everything already, and
//! there is none.

use serde_json::{Map, Value, json};

/// Which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditional {
    /// Its name.
    pub name: String,
    /// Path of the one it is like.
    pub path: String,
    /// Name of its condition.
    pub condition: String,
}

/// Whether it is to be there now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// Somebody else says so: it stays as it is found.
    #[default]
    AsFound,
    /// Nobody needs it.
    Absent,
    /// Where this holds, in CEL.
    Where(String),
}

impl Conditional {
    /// Does this webhook have its name?
    pub(super) fn is(&self, webhook: &Map<String, Value>) -> bool {
        webhook.get("name").and_then(Value::as_str) == Some(&self.name)
    }

    /// It, where `like` is the webhook at its path, and `existing` what is registered.
    pub(super) fn webhook(
        &self,
        presence: &Presence,
        like: &Map<String, Value>,
        existing: &Value,
    ) -> Option<Map<String, Value>> {
        let conditions = like.get("matchConditions").and_then(Value::as_array);
        if conditions.is_none_or(Vec::is_empty) {
            return None;
        }
        let expression = match presence {
            Presence::Absent => return None,
            Presence::Where(expression) => expression.clone(),
            Presence::AsFound => {
                let found = existing
                    .as_array()?
                    .iter()
                    .filter_map(Value::as_object)
                    .find(|webhook| self.is(webhook))?;
                let expression = found.get("matchConditions")?.get(0)?.get("expression")?;
                expression.as_str()?.to_owned()
            }
        };
        let mut webhook = like.clone();
        webhook.insert("name".into(), json!(self.name));
        let condition = json!([{"name": self.condition, "expression": expression}]);
        webhook.insert("matchConditions".into(), condition);
        Some(webhook)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, webhooks};
    use super::*;

    fn conditional() -> Conditional {
        Conditional {
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

    /// The configuration as it is after a pass; `None` if nothing is to be written.
    fn passed(current: &Value, presence: &Presence) -> Option<Value> {
        let endpoint = Endpoint::Service {
            namespace: "ns".into(),
            name: "svc".into(),
        };
        let conditional = conditional();
        let conditional = Some((&conditional, presence));
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
    fn it_comes_changes_and_goes_with_one_write_each() {
        let needed = |expression: &str| Presence::Where(expression.to_owned());
        let first = passed(&installed(&on()), &needed("a")).unwrap();
        assert_eq!(names(&first), ["one", "more", "two"]);
        let more = &first["webhooks"][1];
        assert_eq!(
            more["matchConditions"],
            json!([{"name": "needed", "expression": "a"}])
        );
        assert_eq!(more["clientConfig"], first["webhooks"][2]["clientConfig"]);
        assert_eq!(more["timeoutSeconds"], 7);
        assert_eq!(passed(&first, &needed("a")), None);
        assert_eq!(passed(&first, &Presence::AsFound), None);
        let second = passed(&first, &needed("b")).unwrap();
        assert_eq!(second["webhooks"][1]["matchConditions"][0]["expression"], "b");
        let last = passed(&second, &Presence::Absent).unwrap();
        assert_eq!(names(&last), ["one", "two"]);
        assert_eq!(passed(&last, &Presence::AsFound), None);
    }

    #[test]
    fn of_two_webhooks_that_it_is_like_only_the_first_gets_it() {
        let mut two = installed(&on());
        let mut again = two["webhooks"][1].clone();
        again["name"] = json!("three");
        two["webhooks"].as_array_mut().unwrap().push(again);
        let after = passed(&two, &Presence::Where("a".into())).unwrap();
        assert_eq!(names(&after), ["one", "more", "two", "three"]);
        assert_eq!(passed(&after, &Presence::Where("a".into())), None);
    }

    #[test]
    fn it_follows_the_certificates_whoever_says_whether_it_is_there() {
        let mut found = passed(&installed(&on()), &Presence::Where("a".into())).unwrap();
        found["webhooks"][1]["clientConfig"]["caBundle"] = json!("b2xk");
        let mended = passed(&found, &Presence::AsFound).unwrap();
        assert_eq!(mended["webhooks"][1]["clientConfig"]["caBundle"], "Y2E=");
        assert_eq!(mended["webhooks"][1]["matchConditions"][0]["expression"], "a");
    }

    #[test]
    fn it_does_not_become_part_of_a_template_that_is_taken_anew() {
        let mut found = passed(&installed(&on()), &Presence::Where("a".into())).unwrap();
        // what applying the installation again does: entries it does not name stay
        found["metadata"]["annotations"]["template"] = json!("");
        let anew = passed(&found, &Presence::Absent).unwrap();
        assert_eq!(names(&anew), ["one", "two"]);
        assert!(
            !anew["metadata"]["annotations"]["template"]
                .as_str()
                .unwrap()
                .contains("more")
        );
    }

    #[test]
    fn where_everything_is_asked_about_already_it_is_not_there() {
        for conditions in [Value::Null, json!([])] {
            let after = passed(&installed(&conditions), &Presence::Where("a".into())).unwrap();
            assert_eq!(names(&after), ["one", "two"]);
        }
    }
}
