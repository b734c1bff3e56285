//! The options of a deletion, from its body or its query.

use kube_schema::validate::{Errors, FieldError};
use serde_json::Value;

use crate::api::Call;
use crate::status::{Failure, Subject};
use crate::validation::text;

/// `DeleteOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) policy: Option<Policy>,
    /// The deprecated form of the policy was used.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: bool,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Background,
    Foreground,
    Orphan,
}

impl DeleteOptions {
    pub(super) fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let body = super::body::delete_options(call)?;
        let mut options = Self {
            dry_run: call.dry_run,
            ..Self::default()
        };
        let policy = if body.is_object() {
            options.of_body(&body);
            text(&body, "propagationPolicy").to_owned()
        } else {
            options.grace = call.query.number("gracePeriodSeconds")?;
            if call.query.has("orphanDependents") {
                options.orphan_dependents = Some(call.query.flag("orphanDependents"));
            }
            call.query.text("propagationPolicy").to_owned()
        };
        options.policy = match policy.as_str() {
            "" => None,
            "Background" => Some(Policy::Background),
            "Foreground" => Some(Policy::Foreground),
            "Orphan" => Some(Policy::Orphan),
            _ => return Err(unknown_policy(&policy)),
        };
        if options.orphan_dependents.is_some() && options.policy.is_some() {
            let mut errors = Errors::default();
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.invalid("propagationPolicy", policy, why);
            return Err(invalid(&errors.0));
        }
        Ok(options)
    }

    /// Of a body, or of the options inside an eviction.
    pub(super) fn of_body(&mut self, body: &Value) {
        self.grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
        self.orphan_dependents = body.get("orphanDependents").and_then(Value::as_bool);
        let preconditions = body.get("preconditions").unwrap_or(&Value::Null);
        let given = |name: &str| preconditions.get(name).and_then(Value::as_str).map(str::to_owned);
        self.uid = given("uid");
        self.resource_version = given("resourceVersion");
        let dry_run = body.get("dryRun").and_then(Value::as_array);
        self.dry_run |= dry_run.is_some_and(|values| values.contains(&"All".into()));
    }
}

fn unknown_policy(policy: &str) -> Failure {
    const POLICIES: &[&str] = &["Foreground", "Background", "Orphan", "nil"];
    let mut errors = Errors::default();
    errors.one_of("propagationPolicy", policy, POLICIES);
    invalid(&errors.0)
}

fn invalid(errors: &[FieldError]) -> Failure {
    Failure::invalid(&Subject::new("meta.k8s.io", "DeleteOptions"), "", errors)
}
