//! What the tests of every kind do: review a specification, and break it in one place.

use serde_json::{Value, json};

use super::{KINDS, mutate, validate};
use crate::look::{Look, Seen};
use crate::pod::{Known, Need, Outcome};
use crate::{Answer, Options, Request};

/// When reviews come in.
pub(crate) const NOW: &str = "2026-02-02T00:00:00Z";

/// A kind and a good specification of it.
pub(crate) struct Case {
    kind: &'static str,
    good: fn() -> Value,
    pub(crate) options: Options,
}

/// A review until it is decided.
pub(crate) fn decided(
    review: fn(&Request, Options, &Known) -> Outcome,
    request: &Request,
    options: Options,
    see: &dyn Fn(&Look) -> Seen,
) -> Answer {
    let mut known = Known::default();
    for _ in 0..4 {
        match review(request, options, &known) {
            Outcome::Answer(answer) => return answer,
            Outcome::Needs(needs) => {
                for need in needs {
                    let Need::Look(look) = need else {
                        panic!("{need:?}")
                    };
                    let seen = see(&look);
                    assert_eq!(known.seen.insert(look, seen), None, "asked for twice");
                }
            }
        }
    }
    panic!("never decided")
}

/// A cluster in which every pod runs, with whatever containers tests name, and nothing else is in the way.
pub(crate) fn quiet(look: &Look) -> Seen {
    let names = ["web", "cache", "main", "sidecar", "app"];
    match look {
        Look::At(path) if path.contains("/pods/") => Seen::Found(json!({
            "metadata": {"uid": "u"},
            "spec": {"nodeName": "n", "containers": names.map(|name| json!({"name": name}))},
            "status": {"containerStatuses": names.map(|name| json!({"name": name, "containerID": "c://1"}))},
        })),
        Look::At(path) if path.contains("/nodes/") => Seen::Found(json!({})),
        Look::At(path) if path.contains("/storageclasses/") => {
            Seen::Found(json!({"allowVolumeExpansion": true}))
        }
        Look::Trial { .. } => Seen::Found(Value::Null),
        Look::At(_) | Look::Setting(_) => Seen::Nothing,
    }
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
    pub(crate) const fn with(&self, options: Options) -> Self {
        Self { options, ..*self }
    }

    /// Why a review is refused where exactly these objects are looked at: `null` does not exist. A path that begins with
    /// no slash is the name of a setting, a number the status with which a trial is refused.
    pub(crate) fn seeing(
        &self,
        seen: &[(&str, Value)],
        operation: &str,
        object: &Value,
        old: &Value,
    ) -> Option<String> {
        let request = self.request(operation, object, old);
        match decided(self.judges(), &request, self.options, &|look| shown(seen, look)) {
            Answer::Deny { message, .. } => Some(message),
            Answer::Allow { .. } => None,
        }
    }

    /// A new object as it is filled in where these objects are looked at.
    pub(crate) fn filled_in(&self, seen: &[(&str, Value)], object: &Value) -> Value {
        let request = self.request("CREATE", object, &Value::Null);
        patched(
            object,
            decided(mutate, &request, self.options, &|look| shown(seen, look)),
        )
    }

    /// The webhook that refuses.
    fn judges(&self) -> fn(&Request, Options, &Known) -> Outcome {
        match self.entry().validating {
            Some(_) => validate,
            None => mutate,
        }
    }

    fn entry(&self) -> &'static super::Admitted {
        KINDS
            .iter()
            .find(|one| one.kind.kind == self.kind)
            .expect("in the table")
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
        self.entry().kind.group
    }

    /// A review of an object, or of its change.
    pub(crate) fn request(&self, operation: &str, object: &Value, old: &Value) -> Request {
        let known = if object.is_null() { old } else { object };
        let version = known["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        let mut request = Request::from_review(json!({
            "kind": {"group": self.group(), "version": version, "kind": self.kind},
            "name": known["metadata"]["name"], "namespace": "default", "operation": operation,
            "object": object, "oldObject": old,
        }))
        .unwrap();
        NOW.clone_into(&mut request.now);
        request
    }

    /// The object after the patch. Patching twice is patching once, but for what only the system may fill in.
    pub(crate) fn mutated_object(&self, operation: &str, object: &Value, old: &Value) -> Value {
        let once = |object: &Value| {
            let request = self.request(operation, object, old);
            patched(object, decided(mutate, &request, self.options, &quiet))
        };
        let after = once(object);
        if self.entry().validating.is_some() {
            assert_eq!(once(&after), after);
        }
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
        match decided(self.judges(), &request, self.options, &quiet) {
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
        self.entry().versions().last().unwrap()
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

/// What a test says is to be seen.
fn shown(seen: &[(&str, Value)], look: &Look) -> Seen {
    let wanted = match look {
        Look::At(path) => path,
        Look::Setting(name) => *name,
        Look::Trial { plural, .. } => plural,
    };
    let found = seen.iter().find(|(path, _)| *path == wanted);
    let (_, found) = found.unwrap_or_else(|| panic!("{look:?} is not to be looked at"));
    match (look, found) {
        (_, Value::Null) => Seen::Nothing,
        (Look::Trial { .. }, Value::Number(code)) => Seen::Refused {
            code: code.as_u64().unwrap().try_into().unwrap(),
            message: "because".to_owned(),
        },
        (_, found) => Seen::Found(found.clone()),
    }
}

/// An object with the patch of an answer.
pub(crate) fn patched(object: &Value, answer: Answer) -> Value {
    let patch = match answer {
        Answer::Allow { patch, .. } => patch,
        Answer::Deny { message, .. } => panic!("denied: {message}"),
    };
    let mut after = object.clone();
    if let Some(patch) = patch {
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        json_patch::patch(&mut after, &patch).unwrap();
    }
    after
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
