//! The review of an object by the [webhooks](KindWebhooks) of its kind.

use kube_schema::validate::{self, Errors, FieldError};
use serde_json::Value;

use super::{KindWebhooks, Scope, advice, clashes, judged, older_fields, parts};
use crate::json::text;
use crate::lookup::{Lookup, Lookups, Read, Reader};
use crate::{Operation, Options, Outcome, Request, Response, deletion};

impl KindWebhooks {
    /// The errors to answer with, and their HTTP status. Errors that the stored object has too are left out.
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
}
