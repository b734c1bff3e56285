//! Validation rules in the definitions, in the Common Expression Language (CEL). They refuse objects that can never be
//! valid, also while the webhooks are not registered or not reachable.
//!
//! There is one table for all kinds. Each rule is also a rule of the webhook here and of the webhook of OpenKruise, for
//! every creation and update, so no object that OpenKruise accepted breaks one. A rule is attached to the smallest part
//! of the object that it reads, because servers from 1.30 on skip the rules of a part that an update does not change;
//! older servers evaluate all rules at every update. Fields that must not change have transition rules. No rule is
//! inside a list or a map, which would multiply its cost. Rules about the whole of `spec` have a reason that lets
//! servers from 1.28 on refuse in one line, without printing the object. Selectors are compared only so far as the
//! same selector cannot be written in two ways.

use serde_json::{Value, json};

use crate::schema::with;

/// One rule: the plurals of its kinds, its path in every version, the expression that must be true, and the message
/// if it is not.
struct Rule {
    plurals: &'static [&'static str],
    path: &'static str,
    holds: &'static str,
    message: &'static str,
    /// The member of the part that must be there, and is missing.
    missing: Option<&'static str>,
}

impl Rule {
    /// Names the missing member, so that the refusal does not print the whole part.
    const fn missing(self, member: &'static str) -> Self {
        Self {
            missing: Some(member),
            ..self
        }
    }

    /// As a schema has it.
    fn written(&self) -> Value {
        let mut rule = json!({"rule": self.holds, "message": self.message});
        if let Some(member) = self.missing {
            rule = with(rule, "reason", "FieldValueRequired".into());
            rule = with(rule, "fieldPath", format!(".{member}").into());
        } else if self.path == "spec" {
            rule = with(rule, "reason", "FieldValueForbidden".into());
        }
        rule
    }

    /// Pointer to its part of a schema.
    fn pointer(&self) -> String {
        format!("/properties/{}", self.path.replace('.', "/properties/"))
    }
}

const fn rule(
    plurals: &'static [&'static str],
    path: &'static str,
    holds: &'static str,
    message: &'static str,
) -> Rule {
    Rule {
        plurals,
        path,
        holds,
        message,
        missing: None,
    }
}

const NOT_CHANGED: &str = "self == oldSelf";
const IMMUTABLE: &str = "field is immutable";
/// The labels are equal, where absent equals empty, and the number of expressions is equal.
const SAME_SELECTOR: &str = "(has(self.matchLabels) && size(self.matchLabels) > 0) == \
    (has(oldSelf.matchLabels) && size(oldSelf.matchLabels) > 0) && \
    (!has(self.matchLabels) || !has(oldSelf.matchLabels) || self.matchLabels == oldSelf.matchLabels) && \
    (has(self.matchExpressions) ? size(self.matchExpressions) : 0) == \
    (has(oldSelf.matchExpressions) ? size(oldSelf.matchExpressions) : 0)";

const RULES: &[Rule] = &[
    rule(
        &["clonesets", "statefulsets", "uniteddeployments"],
        "spec.replicas",
        "self >= 0",
        "must be greater than or equal to 0",
    ),
    rule(
        &[
            "clonesets",
            "statefulsets",
            "daemonsets",
            "podprobemarkers",
            "podunavailablebudgets",
        ],
        "spec.selector",
        SAME_SELECTOR,
        IMMUTABLE,
    ),
    rule(
        &["sidecarsets"],
        "spec",
        "has(self.selector)",
        "a selector must say which pods are meant",
    )
    .missing("selector"),
    rule(
        &["uniteddeployments"],
        "spec.template",
        "has(self.statefulSetTemplate) ? \
         !(has(self.advancedStatefulSetTemplate) || has(self.cloneSetTemplate) || has(self.deploymentTemplate)) : \
         has(self.advancedStatefulSetTemplate) ? !(has(self.cloneSetTemplate) || has(self.deploymentTemplate)) : \
         has(self.cloneSetTemplate) != has(self.deploymentTemplate)",
        "exactly one template must be set",
    ),
    rule(
        &["workloadspreads"],
        "spec.subsets",
        "size(self) > 0",
        "one subset at least is needed",
    ),
    rule(
        &["workloadspreads", "persistentpodstates"],
        "spec.targetRef.kind",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["workloadspreads", "persistentpodstates"],
        "spec.targetRef.name",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["persistentpodstates"],
        "spec.targetRef.apiVersion",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["persistentpodstates"],
        "spec",
        "has(self.requiredPersistentTopology) || \
         (has(self.preferredPersistentTopology) && size(self.preferredPersistentTopology) > 0)",
        "requiredPersistentTopology or preferredPersistentTopology must say in what nodes agree",
    ),
    rule(
        &["resourcedistributions"],
        "spec.resource",
        "has(self.apiVersion) && self.apiVersion == 'v1' && has(self.kind) && self.kind in ['Secret', 'ConfigMap']",
        "only Secret and ConfigMap of v1 can be distributed",
    ),
    rule(
        &["resourcedistributions"],
        "spec.resource",
        "!has(oldSelf.kind) || (has(self.kind) && self.kind == oldSelf.kind)",
        "the kind cannot be changed",
    ),
    rule(
        &["resourcedistributions"],
        "spec.resource",
        "!has(self.metadata.name) || !has(oldSelf.metadata.name) || self.metadata.name == oldSelf.metadata.name",
        "the name cannot be changed",
    ),
    rule(
        &["podunavailablebudgets"],
        "spec",
        "has(self.selector) != has(self.targetRef)",
        "exactly one of selector and targetRef must be set",
    ),
    rule(
        &["podunavailablebudgets"],
        "spec",
        "has(self.maxUnavailable) != has(self.minAvailable)",
        "exactly one of maxUnavailable and minAvailable must be set",
    ),
    rule(
        &["podunavailablebudgets"],
        "spec",
        "has(self.selector) == has(oldSelf.selector) && has(self.targetRef) == has(oldSelf.targetRef)",
        "selector and targetRef cannot be modified",
    ),
    rule(
        &["podunavailablebudgets"],
        "spec.targetRef.apiVersion",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["podunavailablebudgets"],
        "spec.targetRef.kind",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["podunavailablebudgets"],
        "spec.targetRef.name",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["nodeimages"],
        "spec.images",
        "size(self) <= 256",
        "must have at most 256 images",
    ),
    rule(
        &["imagepulljobs", "imagelistpulljobs"],
        "spec",
        "!(has(self.selector) && has(self.podSelector))",
        "selector and podSelector exclude each other",
    ),
    rule(
        &["imagelistpulljobs"],
        "spec.images",
        "size(self) > 0 && size(self) <= 255",
        "must have 1 to 255 images",
    ),
    rule(
        &["imagepulljobs", "imagelistpulljobs", "broadcastjobs"],
        "spec.completionPolicy",
        "!has(self.type) || self.type != 'Never' || \
         !(has(self.activeDeadlineSeconds) || has(self.ttlSecondsAfterFinished))",
        "activeDeadlineSeconds and ttlSecondsAfterFinished may not be set with type Never",
    ),
    rule(
        &["containerrecreaterequests"],
        "spec.podName",
        NOT_CHANGED,
        IMMUTABLE,
    ),
    rule(
        &["containerrecreaterequests"],
        "spec.containers",
        "size(self) > 0",
        "one container at least is needed",
    ),
];

/// Writes the rules of a kind into the schema of one of its versions.
pub(crate) fn put(plural: &str, schema: &mut Value) {
    for rule in RULES.iter().filter(|rule| rule.plurals.contains(&plural)) {
        let pointer = rule.pointer();
        let part = schema.pointer_mut(&pointer).and_then(Value::as_object_mut);
        let rules = part.map(|part| {
            part.entry("x-kubernetes-validations")
                .or_insert_with(|| json!([]))
        });
        if let Some(rules) = rules.and_then(Value::as_array_mut) {
            rules.push(rule.written());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_rule_is_in_the_schema_of_every_version() {
        for rule in RULES {
            for plural in rule.plurals {
                let kind = kinds::ALL
                    .into_iter()
                    .find(|kind| kind.plural == *plural)
                    .unwrap();
                let manifest = kind.manifest("n");
                for version in manifest["spec"]["versions"].as_array().unwrap() {
                    let pointer = rule.pointer();
                    let part = version["schema"]["openAPIV3Schema"].pointer(&pointer);
                    let rules = part.and_then(|part| part["x-kubernetes-validations"].as_array());
                    let found = rules.is_some_and(|all| all.iter().any(|one| one["rule"] == rule.holds));
                    assert!(found, "{plural} {} {}", version["name"], rule.path);
                }
            }
        }
    }

    #[test]
    fn immutable_fields_have_transition_rules() {
        for rule in RULES.iter().filter(|rule| rule.message.contains("immutable")) {
            assert!(rule.holds.contains("oldSelf"), "{}", rule.path);
        }
    }
}
