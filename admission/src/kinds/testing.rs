//! What the tests of every kind do: review a specification, and break it in one place.

use serde_json::{Value, json};

use super::{KINDS, mutate, validate};
use crate::{Answer, Options, Request};

/// When reviews come in.
pub(crate) const NOW: &str = "2026-02-02T00:00:00Z";

/// A kind and a good specification of it.
pub(crate) struct Case {
    kind: &'static str,
    good: fn() -> Value,
    pub(crate) options: Options,
}

/// A case under the defaults of gates and flags.
pub(crate) const fn case(kind: &'static str, good: fn() -> Value) -> Case {
    Case {
        kind,
        good,
        options: Options::DEFAULT,
    }
}

impl Case {
    /// The same under other gates and flags.
    pub(crate) fn with(&self, options: Options) -> Self {
        Self { options, ..*self }
    }

    /// An object around a specification.
    pub(crate) fn object(&self, version: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group()),
            "kind": self.kind,
            "metadata": {"name": "good", "namespace": "default"},
            "spec": spec,
        })
    }

    fn group(&self) -> &'static str {
        let found = KINDS.iter().find(|one| one.kind.kind == self.kind);
        found.expect("in the table").kind.group
    }

    /// A review of an object, or of its change.
    pub(crate) fn request(&self, operation: &str, object: &Value, old: &Value) -> Request {
        let known = if object.is_null() { old } else { object };
        let version = known["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        let mut request = Request::from_review(&json!({
            "kind": {"group": self.group(), "version": version, "kind": self.kind},
            "name": known["metadata"]["name"], "namespace": "default", "operation": operation,
            "object": object, "oldObject": old,
        }))
        .unwrap();
        NOW.clone_into(&mut request.now);
        request
    }

    /// The object after the patch. Patching twice is patching once.
    pub(crate) fn mutated_object(&self, operation: &str, object: &Value, old: &Value) -> Value {
        let once = |object: &Value| match mutate(&self.request(operation, object, old), self.options) {
            Answer::Allow { patch, .. } => {
                let mut after = object.clone();
                if let Some(patch) = patch {
                    let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
                    json_patch::patch(&mut after, &patch).unwrap();
                }
                after
            }
            Answer::Deny { message, .. } => panic!("denied: {message}"),
        };
        let after = once(object);
        assert_eq!(once(&after), after);
        after
    }

    /// The specification of a new object after the patch.
    pub(crate) fn mutated(&self, version: &str, spec: &Value) -> Value {
        let object = self.object(version, spec);
        self.mutated_object("CREATE", &object, &Value::Null)["spec"].take()
    }

    /// Why a review is refused, with its status.
    pub(crate) fn refusal(&self, operation: &str, object: &Value, old: &Value) -> Option<(u16, String)> {
        let request = self.request(operation, object, old);
        let entry = KINDS.iter().find(|one| one.kind.kind == self.kind).unwrap();
        let answer = match entry.validating {
            Some(_) => validate(&request, self.options),
            None => mutate(&request, self.options),
        };
        match answer {
            Answer::Deny { code, message } => Some((code, message)),
            Answer::Allow { .. } => None,
        }
    }

    /// Why a new object of this specification is refused.
    pub(crate) fn refused(&self, version: &str, spec: &Value) -> Option<String> {
        let refusal = self.refusal("CREATE", &self.object(version, spec), &Value::Null);
        refusal.map(|(_, message)| message)
    }

    /// Why the change of a specification is refused.
    pub(crate) fn update_refused(&self, old: &Value, new: &Value) -> Option<String> {
        let version = self.newest();
        let (old, new) = (self.object(version, old), self.object(version, new));
        self.refusal("UPDATE", &new, &old).map(|(_, message)| message)
    }

    fn newest(&self) -> &'static str {
        let entry = KINDS.iter().find(|one| one.kind.kind == self.kind).unwrap();
        entry.versions().last().unwrap()
    }

    /// Breaks the good specification in one place after the other: dotted path, value (`null` removes), and what the
    /// refusal says. What is broken already may stay so.
    pub(crate) fn each_is_refused(&self, rules: &[(&str, Value, &str)]) {
        assert_eq!(self.refused(self.newest(), &(self.good)()), None);
        for (path, value, expected) in rules {
            let mut spec = (self.good)();
            put(&mut spec, path, value);
            let message = self.refused(self.newest(), &spec);
            let message = message.unwrap_or_else(|| panic!("{path} = {value} passed"));
            assert!(
                message.contains(expected),
                "{path}: {message}\nexpected {expected}"
            );
            assert_eq!(self.update_refused(&spec, &spec), None, "{path}: is stored");
        }
    }
}

/// Sets a member by a dotted path, or removes it with `null`.
pub(crate) fn put(spec: &mut Value, path: &str, value: &Value) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = spec;
    for step in parent.split('.').filter(|step| !step.is_empty()) {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        };
    }
    match (value, name.parse::<usize>()) {
        (Value::Null, _) => {
            at.as_object_mut().unwrap().remove(name);
        }
        (_, Ok(index)) => at[index] = value.clone(),
        (_, Err(_)) => at[name] = value.clone(),
    }
}
