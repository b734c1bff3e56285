//! Admission of all kinds but two, as one table.
//!
//! An entry says what is filled in, what is refused, and what may not change; this module does what all have in common:
//! it finds the kind, makes a minimal patch, and holds nothing against an UPDATE that the stored object breaks in the
//! same way. So what is stored stays writable, whatever rules are added.
//!
//! Rules about other objects come last, once the object's own are kept: they [ask](crate::look) an API server.
//!
//! Rules read the newest version where the two differ in more than words: an object of the older one is converted
//! first, and what it cannot say is judged as it is kept. Paths are the same in both.

mod advancedcronjob;
mod broadcastjob;
mod budget;
mod daemonset;
mod distribution;
mod ephemeraljob;
mod nodeimage;
mod persistent;
mod podprobemarker;
mod pulljob;
mod recreate;
mod scope;
mod spread;
mod statefulset;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod united;

use kruise_api::convert::{Conversion, NEWER, OLDER, convert_as};
use kruise_api::definition;
use kube_schema::validate::{self, Errors, FieldError};
use serde_json::Value;

pub(crate) use self::scope::Scope;
use crate::json::text;
use crate::look::Looks;
use crate::pod::{Known, Outcome};
use crate::{Answer, Operation, Options, Request, deletion};

/// How objects of a kind are admitted.
pub struct Admitted {
    /// The kind.
    pub kind: &'static definition::Kind,
    /// Name of the webhook that fills in, if there is one.
    pub mutating: Option<&'static str>,
    /// Name of the webhook that refuses; without one, the one that fills in does.
    pub validating: Option<&'static str>,
    /// Deletions are reviewed, too: of objects that are protected by label.
    pub deletions: bool,
    /// HTTP status of a refusal, and of one because something must not change.
    codes: (u16, u16),
    /// Rules read the newest version.
    newest: bool,
    /// The path of its webhooks names the version, as charts register it to this day.
    path_has_version: bool,
    /// The gate without which nothing of the kind is taken.
    gate: fn(Options) -> Option<&'static str>,
    defaults: fn(&mut Value, &Scope<'_>),
    rules: fn(&mut Errors, &Value, &Scope<'_>),
    /// What the stored object forbids.
    changes: fn(&mut Errors, &Value, &Value, &Scope<'_>),
    /// What is wrong with it among other objects. On UPDATE it judges only what changed.
    others: fn(&mut Errors, &Value, &Scope<'_>, &mut Looks<'_>),
    /// Fills in what other objects say.
    copies: fn(&mut Value, &Scope<'_>, &mut Looks<'_>),
}

/// Every kind that is admitted here.
pub const KINDS: &[Admitted] = &[
    advancedcronjob::ENTRY,
    broadcastjob::ENTRY,
    budget::ENTRY,
    daemonset::ENTRY,
    distribution::ENTRY,
    ephemeraljob::ENTRY,
    nodeimage::ENTRY,
    persistent::ENTRY,
    podprobemarker::ENTRY,
    pulljob::JOB,
    pulljob::LIST,
    recreate::ENTRY,
    spread::ENTRY,
    statefulset::ENTRY,
    united::ENTRY,
];

impl Admitted {
    /// An entry in which nothing is filled in or refused.
    const fn of(kind: &'static definition::Kind) -> Self {
        Self {
            kind,
            mutating: None,
            validating: None,
            deletions: false,
            codes: (422, 422),
            newest: false,
            path_has_version: false,
            gate: |_| None,
            defaults: |_, _| {},
            rules: |_, _, _| {},
            changes: |_, _, _, _| {},
            others: |_, _, _, _| {},
            copies: |_, _, _| {},
        }
    }

    /// The versions it is served in.
    pub fn versions(&self) -> &'static [&'static str] {
        match self.kind.conversion {
            Conversion::OneVersion => &[OLDER],
            _ => &[OLDER, NEWER],
        }
    }

    /// Where the webhook of a phase, `mutate` or `validate`, is called.
    pub fn path(&self, phase: &str) -> String {
        if self.path_has_version {
            return self.older_path(phase);
        }
        let (group, kind) = (self.kind.group.replace('.', "-"), self.kind.kind.to_lowercase());
        format!("/{phase}-{group}-{kind}")
    }

    /// Where older charts registered the same webhook.
    pub fn older_path(&self, phase: &str) -> String {
        let (group, kind) = (self.kind.group.replace('.', "-"), self.kind.kind.to_lowercase());
        format!("/{phase}-{group}-{OLDER}-{kind}")
    }

    /// What is wrong, but for what is stored already, with the status to answer with.
    fn judge(&self, new: &Value, scope: &Scope<'_>) -> (u16, Vec<FieldError>) {
        let errors_of = |object: &Value| {
            let mut errors = Errors::default();
            (self.rules)(&mut errors, &self.readable(object), scope);
            errors.0
        };
        let mut errors = errors_of(new);
        let Some(old) = scope.old else {
            return (self.codes.0, errors);
        };
        let mut changes = Errors::default();
        (self.changes)(&mut changes, &self.readable(new), &self.readable(old), scope);
        if !errors.is_empty() {
            errors = validate::new_errors(errors, errors_of(old));
        }
        let code = if errors.is_empty() {
            self.codes.1
        } else {
            self.codes.0
        };
        errors.extend(changes.0);
        (code, errors)
    }

    /// The object in the version that the rules read.
    fn readable<'a>(&self, object: &'a Value) -> std::borrow::Cow<'a, Value> {
        let mut found = std::borrow::Cow::Borrowed(object);
        let wanted = format!("{}/{NEWER}", self.kind.group);
        if self.newest && text(object, "apiVersion") != wanted {
            let mut newer = object.clone();
            if convert_as(self.kind, &mut newer, &wanted).is_ok() {
                found = std::borrow::Cow::Owned(newer);
            }
        }
        found
    }

    /// The answer if it breaks a rule: its own first, then those about other objects.
    fn refusal(&self, new: &Value, scope: &Scope<'_>, looks: &mut Looks<'_>) -> Option<Answer> {
        let (code, errors) = self.judge(new, scope);
        if let Some(refused) = self.denied(code, new, &errors) {
            return Some(refused);
        }
        let mut errors = Errors::default();
        (self.others)(&mut errors, &self.readable(new), scope, looks);
        self.denied(self.codes.0, new, &errors.0)
    }

    fn denied(&self, code: u16, new: &Value, errors: &[FieldError]) -> Option<Answer> {
        let null = Value::Null;
        let metadata = new.get("metadata").unwrap_or(&null);
        let name = ["name", "generateName"].map(|name| text(metadata, name));
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        (!errors.is_empty()).then(|| Answer::Deny {
            code,
            message: format!(
                "{}.{} {name:?} is invalid: {}",
                self.kind.kind,
                self.kind.group,
                validate::aggregate(errors)
            ),
        })
    }
}

/// The entry of a request that is to be looked at; the answer to any other.
fn subject(request: &Request, options: Options) -> Result<(&'static Admitted, Scope<'_>), Answer> {
    if !request.sub_resource.is_empty() || request.operation == Operation::Connect {
        return Err(Answer::ALLOW);
    }
    let known = |one: &&Admitted| {
        one.kind.kind == request.kind
            && (one.kind.group == request.group || request.group.is_empty())
            && one.versions().contains(&request.version.as_str())
    };
    let Some(found) = KINDS.iter().find(known) else {
        return Err(Answer::undecodable(format_args!(
            "{} {} is not known here",
            request.version, request.kind
        )));
    };
    if request.operation == Operation::Delete {
        return Err(if found.deletions {
            deletion::answer(&request.old_object, options)
        } else {
            Answer::ALLOW
        });
    }
    if let Some(gate) = (found.gate)(options) {
        return Err(Answer::Deny {
            code: 403,
            message: format!("feature-gate {gate} is not enabled"),
        });
    }
    request.specified()?;
    let old = (request.operation == Operation::Update).then_some(&request.old_object);
    let scope = Scope {
        version: &request.version,
        namespace: &request.namespace,
        name: &request.name,
        old,
        now: &request.now,
        options,
    };
    Ok((found, scope))
}

/// Fills in what the client left out, as a minimal patch.
pub fn mutate(request: &Request, options: Options, known: &Known) -> Outcome {
    let (found, scope) = match subject(request, options) {
        Ok(found) => found,
        Err(answer) => return Outcome::Answer(answer),
    };
    let mut object = request.object.clone();
    (found.defaults)(&mut object, &scope);
    let mut looks = Looks::new(known);
    let refusal = (found.validating.is_none())
        .then(|| found.refusal(&request.object, &scope, &mut looks))
        .flatten();
    if refusal.is_none() {
        (found.copies)(&mut object, &scope, &mut looks);
    }
    outcome(looks, || {
        refusal.unwrap_or_else(|| Answer::patched(&request.object, &object))
    })
}

/// Checks an object about to be stored or deleted.
pub fn validate(request: &Request, options: Options, known: &Known) -> Outcome {
    let (found, scope) = match subject(request, options) {
        Ok(found) => found,
        Err(answer) => return Outcome::Answer(answer),
    };
    let mut looks = Looks::new(known);
    let refusal = found.refusal(&request.object, &scope, &mut looks);
    outcome(looks, || refusal.unwrap_or(Answer::ALLOW))
}

/// The answer once all is known that it depends on.
fn outcome(looks: Looks<'_>, answer: impl FnOnce() -> Answer) -> Outcome {
    let missing = looks.missing();
    if missing.is_empty() {
        Outcome::Answer(answer())
    } else {
        Outcome::Needs(missing)
    }
}

#[cfg(test)]
mod tests;
