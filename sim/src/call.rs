//! A request for objects, understood.

use std::cell::RefCell;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::conversion;
use crate::form::Form;
use crate::query::Query;
use crate::registry::{Resource, Version};
use crate::route::Target;
use crate::store::{Key, Stored};
use crate::validation::text;
use crate::verbs::{Progress, Touched};
use crate::webhook::{Answers, Stop};
use crate::wire::Request;

/// Whether a call is yet to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Due,
    /// The object of a subresource was admitted; what follows from it is not admitted again.
    Done,
}

/// Whether a call is to change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Act,
    /// Only to learn which webhooks will be called.
    Rehearsal,
}

/// A request for objects, understood.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: Version,
    pub(crate) form: Form,
    pub(crate) now: Timestamp,
    pub(crate) dry_run: bool,
    pub(crate) purpose: Purpose,
    pub(crate) admission: Admission,
    /// What this request may change of the object.
    pub(crate) touched: Touched,
    /// For the client, each once. Webhooks add to them while they are asked about a call that does not change.
    pub(crate) warnings: RefCell<Vec<String>>,
    /// Source of the uid and name that this request gives.
    pub(crate) seed: u64,
    /// The answers of webhooks so far.
    pub(crate) answers: &'a Answers,
    /// What was done before one of them was called.
    pub(crate) progress: Option<Box<Progress>>,
}

impl Call<'_> {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.target.namespace, &self.target.name)
    }

    /// Adds warnings for the client.
    pub(crate) fn warn(&self, texts: impl IntoIterator<Item = String>) {
        let mut warnings = self.warnings.borrow_mut();
        for text in texts {
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(&self.version.name)
    }

    /// The object as a stored one reads in the requested version.
    pub(crate) fn read(&self, stored: &Stored) -> Result<Arc<Value>, Stop> {
        let object = stored.value();
        if text(&object, "apiVersion") == self.api_version() {
            return Ok(object);
        }
        let object = conversion::one(self, Arc::unwrap_or_clone(object), &self.version.name)?;
        Ok(Arc::new(object))
    }

    /// As [`Call::read`], of many.
    pub(crate) fn read_all<'s>(&self, stored: impl Iterator<Item = &'s Stored>) -> Result<Vec<Value>, Stop> {
        let objects = stored.map(|one| Arc::unwrap_or_clone(one.value()));
        conversion::all(self, objects.collect(), &self.version.name)
    }
}

/// What a verb answers.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) value: Arc<Value>,
}

impl Reply {
    pub(crate) fn new(code: u16, value: impl Into<Arc<Value>>) -> Self {
        let value = value.into();
        Self { code, value }
    }
}
