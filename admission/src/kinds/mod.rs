//! The webhooks of kinds: one folder a kind, and here what all have in common.
//!
//! A kind says what is filled in, what is refused, and what must not change ([`KindWebhooks`]). This module makes the
//! review of it: it finds out whether there is something to review, makes a minimal patch, and holds nothing against an
//! UPDATE that the stored object breaks in the same way. So what is stored stays writable, whatever rules are added.
//!
//! Rules about other objects come last, once the object's own are kept: they [look objects up](crate::lookup). So does the
//! server's own judgement of pod templates ([`judged`]).
//!
//! Rules read the request's own version, so that errors name the field that the client wrote. Kinds whose versions differ
//! in more than words set `newest`: an object of the older version is converted first, and what it cannot say is judged as
//! it is kept.

mod advancedcronjob;
mod advice;
mod broadcastjob;
mod clashes;
pub(crate) mod cloneset;
mod containerrecreaterequest;
mod daemonset;
mod ephemeraljob;
mod imagelistpulljob;
mod imagepulljob;
mod judged;
mod nodeimage;
mod older_fields;
mod parts;
mod persistentpodstate;
mod podprobemarker;
mod podunavailablebudget;
mod resourcedistribution;
mod scope;
pub mod sidecarset;
mod statefulset;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod uniteddeployment;
mod workloadspread;

use std::borrow::Cow;

use kruise_api::convert::{Conversion, NEWER, OLDER, convert_as};
use kruise_api::definition;
use kube_schema::validate::{self, Errors, FieldError};
use serde_json::Value;

use self::judged::Template;
pub use self::parts::wrong_types;
pub(crate) use self::scope::Scope;
use crate::json::text;
use crate::lookup::{Lookup, Lookups, Read, Reader};
use crate::table::Phase;
use crate::widening::Widening;
use crate::{Operation, Options, Outcome, Request, Response, deletion};

/// The webhooks of a kind.
pub struct KindWebhooks {
    /// The kind.
    pub kind: &'static definition::Kind,
    /// Name of the mutating webhook, if there is one.
    pub mutating: Option<&'static str>,
    /// Name of the validating webhook; without one, the mutating webhook refuses.
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
    /// The gate without which no new object of the kind is taken. What is stored can be changed.
    gate_of_new: fn(Options) -> Option<&'static str>,
    /// Parts that the schema does not describe.
    parts: &'static [parts::Part],
    /// Refuses what the controller could not read, though all types are right.
    decode: fn(&Value) -> Result<(), String>,
    defaults: fn(&mut Value, &Scope<'_>),
    rules: fn(&mut Errors, &Value, &Scope<'_>),
    /// What the stored object forbids.
    changes: fn(&mut Errors, &Value, &Value, &Scope<'_>),
    /// What is wrong with it among other objects. On UPDATE it judges only what changed.
    others: fn(&mut Errors, &Value, &Scope<'_>, &mut Reader<'_>),
    /// Its pod templates.
    templates: fn(&Value) -> Vec<Template>,
    /// What the author of a good object is warned of. On UPDATE, what is stored already is not repeated.
    advice: fn(&Value, &Scope<'_>) -> Vec<String>,
    /// What the author of a good object is warned of because of other objects.
    warnings: fn(&Value, &mut Reader<'_>) -> Vec<String>,
    /// Fills in what other objects say.
    copies: fn(&mut Value, &Scope<'_>, &mut Reader<'_>),
    /// What webhooks must be called for before it is stored.
    widens: fn(&Value, &Scope<'_>) -> Vec<Widening>,
    /// Can there be something?
    may_widen: bool,
}

/// The kinds that have webhooks.
pub const KINDS: &[KindWebhooks] = &[
    advancedcronjob::WEBHOOKS,
    broadcastjob::WEBHOOKS,
    cloneset::WEBHOOKS,
    containerrecreaterequest::WEBHOOKS,
    daemonset::WEBHOOKS,
    ephemeraljob::WEBHOOKS,
    imagelistpulljob::WEBHOOKS,
    imagepulljob::WEBHOOKS,
    nodeimage::WEBHOOKS,
    persistentpodstate::WEBHOOKS,
    podprobemarker::WEBHOOKS,
    podunavailablebudget::WEBHOOKS,
    resourcedistribution::WEBHOOKS,
    sidecarset::WEBHOOKS,
    statefulset::WEBHOOKS,
    uniteddeployment::WEBHOOKS,
    workloadspread::WEBHOOKS,
];

impl KindWebhooks {
    /// Webhooks that fill in and refuse nothing.
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
            gate_of_new: |_| None,
            parts: &[],
            decode: |_| Ok(()),
            defaults: |_, _| {},
            rules: |_, _, _| {},
            changes: |_, _, _, _| {},
            others: |_, _, _, _| {},
            templates: |_| Vec::new(),
            advice: |_, _| Vec::new(),
            warnings: |_, _| Vec::new(),
            copies: |_, _, _| {},
            widens: |_, _| Vec::new(),
            may_widen: false,
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
    fn readable<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let mut found = Cow::Borrowed(object);
        let wanted = format!("{}/{NEWER}", self.kind.group);
        if self.newest && text(object, "apiVersion") != wanted {
            let mut newer = object.clone();
            if convert_as(self.kind, &mut newer, &wanted).is_ok() {
                found = Cow::Owned(newer);
            }
        }
        found
    }

    /// The response if it breaks a rule: its own first, then those about other objects.
    fn refusal(&self, new: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) -> Option<Response> {
        let (code, errors) = self.judge(new, scope);
        if let Some(refused) = self.denied(code, new, scope, &errors) {
            return Some(refused);
        }
        let mut errors = Errors::default();
        (self.others)(&mut errors, &self.readable(new), scope, reader);
        clashes::check(self, &mut errors, new, scope, reader);
        // The server is asked last: about objects that nothing else is wrong with.
        if errors.0.is_empty() && reader.is_complete() {
            judged::check(&mut errors, (self.templates)(new), scope, self.templates, reader);
        }
        self.denied(self.codes.0, new, scope, &errors.0)
    }

    fn denied(&self, code: u16, new: &Value, scope: &Scope<'_>, errors: &[FieldError]) -> Option<Response> {
        let metadata = new.get("metadata").unwrap_or(&Value::Null);
        let names = [scope.name, text(metadata, "name"), text(metadata, "generateName")];
        let name = names
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        (!errors.is_empty()).then(|| {
            let (kind, group) = (self.kind.kind, self.kind.group);
            let errors = validate::aggregate(errors);
            Response::denied(code, format!("{kind}.{group} {name:?} is invalid: {errors}"))
        })
    }

    /// What there is to review of a request; the outcome if there is nothing.
    fn subject<'a>(&self, request: &'a Request, options: Options) -> Result<Scope<'a>, Outcome> {
        if !request.sub_resource.is_empty() || request.operation == Operation::Connect {
            return Err(Response::ALLOW.into());
        }
        let is_known = self.kind.kind == request.kind
            && (self.kind.group == request.group || request.group.is_empty())
            && self.versions().contains(&request.version.as_str());
        if !is_known {
            return Err(Response::undecodable(format_args!(
                "{} {} is not known here",
                request.version, request.kind
            ))
            .into());
        }
        if request.operation == Operation::Delete {
            return Err(if self.deletions {
                deletion::review(self.kind.kind, request, options)
            } else {
                Response::ALLOW.into()
            });
        }
        let is_new = request.operation == Operation::Create;
        let of_new = is_new.then(|| (self.gate_of_new)(options)).flatten();
        if let Some(gate) = (self.gate)(options).or(of_new) {
            return Err(Response::denied(403, format!("feature-gate {gate} is not enabled")).into());
        }
        request.specified()?;
        let old = (request.operation == Operation::Update).then_some(&request.old_object);
        self.of_its_types(&request.version, &request.object, old)?;
        (self.decode)(&request.object).map_err(|error| {
            let fractions =
                parts::whole_fractions(request.object.get("spec").unwrap_or(&Value::Null), "spec");
            match fractions.as_slice() {
                [] => Response::undecodable(error),
                [first, ..] => Response::undecodable(first),
            }
        })?;
        Ok(Scope {
            kind: self.kind.kind,
            version: &request.version,
            namespace: &request.namespace,
            name: &request.name,
            old,
            now: request.now,
            options,
        })
    }

    /// Refuses values of the wrong type. Those that the stored object has, too, are accepted.
    fn of_its_types(&self, version: &str, object: &Value, old: Option<&Value>) -> Result<(), Response> {
        let wrong = parts::new_mismatches(self, version, object, old);
        match wrong.as_slice() {
            [] => Ok(()),
            [one] => Err(Response::undecodable(one)),
            all => {
                let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
                Err(Response::undecodable(format_args!("[{}]", texts.join(", "))))
            }
        }
    }

    /// The warnings about an object that is not refused.
    fn warned(&self, object: &Value, scope: &Scope<'_>, reader: &mut Reader<'_>) -> Vec<String> {
        let mut texts = advice::advice(self, object, scope);
        texts.extend(older_fields::warnings(self, object, scope));
        texts.extend((self.warnings)(object, reader));
        texts
    }

    /// Fills in what the client left out, as a minimal patch.
    pub(crate) fn mutate(&self, request: &Request, options: Options, lookups: &Lookups) -> Outcome {
        let scope = match self.subject(request, options) {
            Ok(scope) => scope,
            Err(outcome) => return outcome,
        };
        let mut object = request.object.clone();
        (self.defaults)(&mut object, &scope);
        let mut reader = Reader::new(lookups);
        let validates = self.validating.is_none();
        let refusal = validates
            .then(|| self.refusal(&request.object, &scope, &mut reader))
            .flatten();
        let mut warnings = Vec::new();
        if refusal.is_none() {
            (self.copies)(&mut object, &scope, &mut reader);
            if validates {
                warnings = self.warned(&request.object, &scope, &mut reader);
            }
        }
        reader.outcome(|| refusal.unwrap_or_else(|| Response::patched(&request.object, &object, warnings)))
    }

    /// Checks an object about to be stored or deleted.
    pub(crate) fn validate(&self, request: &Request, options: Options, lookups: &Lookups) -> Outcome {
        let scope = match self.subject(request, options) {
            Ok(scope) => scope,
            Err(outcome) => return outcome,
        };
        let mut reader = Reader::new(lookups);
        let response = match self.refusal(&request.object, &scope, &mut reader) {
            Some(refusal) => refusal,
            None => Response::Allow {
                patch: None,
                warnings: self.warned(&request.object, &scope, &mut reader),
            },
        };
        let mut widenings = Vec::new();
        if matches!(response, Response::Allow { .. }) && !request.dry_run {
            widenings = (self.widens)(&self.readable(&request.object), &scope);
        }
        // A forged review may name a namespace that does not exist: nothing can be stored there.
        if !widenings.is_empty()
            && !scope.namespace.is_empty()
            && matches!(
                reader.labels(Lookup::NamespaceLabels(scope.namespace.to_owned())),
                Read::NotFound
            )
        {
            widenings.clear();
        }
        match reader.outcome(|| response) {
            Outcome::Response(response) if !widenings.is_empty() => Outcome::Widen(widenings, response),
            outcome => outcome,
        }
    }

    /// Does a review of this phase have an effect of its own, which a dry run must not have?
    pub(crate) fn has_effect(&self, phase: Phase) -> bool {
        phase == Phase::Validating && self.may_widen
    }
}

#[cfg(test)]
mod tests;
