//! What a CloneSet must satisfy to be stored, and to be deleted.
//!
//! | Fields | Rule | Where |
//! |---|---|---|
//! | `metadata` | name, labels and annotations are well formed | here |
//! | `spec.replicas`, `progressDeadlineSeconds` | ranges | [`spec`] |
//! | `spec.selector` | valid, not empty, matches the template | [`spec`] |
//! | `spec.template`, `volumeClaimTemplates` | could become pods that always restart | [`spec`] |
//! | `spec.updateStrategy` | known values; an update can make progress | [`strategy`] |
//! | `spec.scaleStrategy.podsToDelete` | distinct pods of this set | [`pods_to_delete`] |
//! | UPDATE | the selector stays; `InPlaceOnly` changes only what can change in place | [`update`] |
//! | DELETE | deletion protection | [`crate::deletion`] |
//!
//! **What is stored stays writable.** On UPDATE a rule that the stored object breaks in the same way is not held
//! against the new one: rules get stricter over time, and a CloneSet accepted by an older version must still be scaled
//! and its finalizers removed.

mod pods_to_delete;
mod spec;
pub(crate) mod strategy;
mod update;

use kube_schema::validate::{self, Errors, FieldError};
use serde_json::Value;

use super::decode;
use super::version::{Version, member, text};
use crate::{Answer, Operation, Options, Request, deletion};

/// A pod that exists under a name asked for by [`Outcome::NeedPods`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Name of the pod.
    pub name: String,
    /// UID of its controller, if it has one.
    pub controller: Option<String>,
    /// It has a `deletionTimestamp`.
    pub deleting: bool,
}

/// The answer, or what it depends on.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Decided.
    Answer(Answer),
    /// Look up these pods in the request's namespace and call [`validate_with_pods`].
    NeedPods(Vec<String>),
}

/// Checks a request as far as that is possible without looking at pods.
pub fn validate(request: &Request, options: Options) -> Outcome {
    let subject = match subject(request, options) {
        Ok(subject) => subject,
        Err(answer) => return Outcome::Answer(answer),
    };
    if let Some(answer) = subject.refusal(subject.errors()) {
        return Outcome::Answer(answer);
    }
    let names = pods_to_delete::added(subject.new, subject.old);
    if names.is_empty() {
        return Outcome::Answer(Answer::ALLOW);
    }
    Outcome::NeedPods(names.into_iter().map(|(_, name)| name.to_owned()).collect())
}

/// Checks a request, given those of the pods asked for that exist.
pub fn validate_with_pods(request: &Request, options: Options, pods: &[Pod]) -> Answer {
    let subject = match subject(request, options) {
        Ok(subject) => subject,
        Err(answer) => return answer,
    };
    let mut errors = subject.errors();
    errors.extend(pods_to_delete::ownership(subject.new, subject.old, pods));
    subject.refusal(errors).unwrap_or(Answer::ALLOW)
}

/// A CloneSet about to be stored.
struct Subject<'a> {
    version: Version,
    options: Options,
    name: &'a str,
    new: &'a Value,
    old: Option<&'a Value>,
}

/// What there is to check; an answer if there is nothing, or if it cannot be read.
fn subject(request: &Request, options: Options) -> Result<Subject<'_>, Answer> {
    if !request.sub_resource.is_empty() || request.operation == Operation::Connect {
        return Err(Answer::ALLOW);
    }
    let version = Version::of(request)?;
    if request.operation == Operation::Delete {
        return Err(deletion::answer(&request.old_object, options));
    }
    decode(request)?;
    Ok(Subject {
        version,
        options,
        name: &request.name,
        new: &request.object,
        old: (request.operation == Operation::Update).then_some(&request.old_object),
    })
}

impl Subject<'_> {
    /// Everything wrong that needs no other object, except what is already wrong in the stored one.
    fn errors(&self) -> Vec<FieldError> {
        let mut errors = self.errors_of(self.new);
        let Some(old) = self.old else {
            return errors;
        };
        if !errors.is_empty() {
            let stored = self.errors_of(old);
            errors.retain(|error| !stored.contains(error));
        }
        errors.extend(update::errors(self.version, self.new, old, self.options));
        errors
    }

    fn errors_of(&self, object: &Value) -> Vec<FieldError> {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let mut errors = Errors(validate::metadata(metadata, "metadata"));
        let Some(spec) = member(object, "spec") else {
            return errors.0;
        };
        spec::check(&mut errors, spec, self.options);
        strategy::check(&mut errors, spec, self.version);
        pods_to_delete::distinct(&mut errors, spec);
        errors.0
    }

    /// The answer that lists these errors, unless there are none.
    fn refusal(&self, errors: Vec<FieldError>) -> Option<Answer> {
        if errors.is_empty() {
            return None;
        }
        let name = if self.name.is_empty() {
            self.new
                .get("metadata")
                .map(|metadata| text(metadata, "name"))
                .unwrap_or_default()
        } else {
            self.name
        };
        Some(Answer::Deny {
            code: 422,
            message: format!(
                "CloneSet.apps.kruise.io {name:?} is invalid: {}",
                validate::aggregate(&errors)
            ),
        })
    }
}

#[cfg(test)]
mod tests;
