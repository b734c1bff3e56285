//! What a review knows of the cluster: results of lookups, and what its caller passes in.

use std::{cell::RefCell, sync::Arc};

use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::workloads::{Ownership, Wanted};
use kruise_views::PodView;

use crate::lookup::{Belief, Lookup, Lookups, ObjectName};

/// What is known of the cluster.
pub trait Known {
    /// A pod as a cache has it, or as the server has it if the cache lacks it.
    fn pod(&self, namespace: &str, name: &str) -> Found<PodView>;

    /// A pod as the server has it now.
    fn live_pod(&self, namespace: &str, name: &str) -> Found<PodView>;

    /// A budget.
    fn budget(&self, namespace: &str, name: &str) -> Found<PodUnavailableBudget>;

    /// Does anybody want a pod to run that says this of its owners? `None` if that has yet to be looked up.
    fn wanted(&self, namespace: &str, pod: &Ownership, belief: Belief) -> Option<Wanted>;

    /// Is this namespace being deleted? `None` if that has yet to be looked up.
    fn is_ending(&self, namespace: &str) -> Option<bool>;

    /// Is the charge of this request stored in that budget?
    fn is_charged(&self, _namespace: &str, _name: &str) -> bool {
        false
    }
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<T> {
    /// The object.
    Object(Arc<T>),
    /// There is none.
    NotFound,
    /// It is there, and cannot be read.
    Unreadable(String),
    /// It has yet to be looked up.
    Missing,
}

/// The pod that a request carries, as it is stored: with the same uid, and not being deleted. A forged review may
/// carry any.
pub(super) fn stored_as(pod: &PodView, known: &impl Known) -> Found<PodView> {
    let is_it = |found: &PodView| found.uid == pod.uid && !found.deleting;
    match known.pod(&pod.namespace, &pod.name) {
        Found::Object(found) if is_it(&found) => return Found::Object(found),
        Found::Missing => return Found::Missing,
        _ => {}
    }
    match known.live_pod(&pod.namespace, &pod.name) {
        Found::Object(found) if !is_it(&found) => Found::NotFound,
        found => found,
    }
}

/// The results of lookups, and which of them are missing.
pub(super) struct Results<'a> {
    lookups: &'a Lookups,
    missing: RefCell<Vec<Lookup>>,
}

impl<'a> Results<'a> {
    pub(super) fn new(lookups: &'a Lookups) -> Self {
        Self {
            lookups,
            missing: RefCell::default(),
        }
    }

    /// What was read and is not there.
    pub(super) fn missing(self) -> Vec<Lookup> {
        self.missing.into_inner()
    }

    fn view(&self, lookup: Lookup) -> Found<PodView> {
        self.found(self.lookups.pod(lookup), |pod| Found::Object(Arc::clone(pod)))
    }

    /// What a lookup says; `None` if it is missing.
    fn noted<T>(&self, result: Result<T, Lookup>) -> Option<T> {
        result
            .map_err(|missing| self.missing.borrow_mut().push(missing))
            .ok()
    }

    fn found<T, F>(&self, result: Result<Option<&T>, Lookup>, read: impl FnOnce(&T) -> Found<F>) -> Found<F> {
        match self.noted(result) {
            Some(Some(found)) => read(found),
            Some(None) => Found::NotFound,
            None => Found::Missing,
        }
    }
}

impl Known for Results<'_> {
    fn pod(&self, namespace: &str, name: &str) -> Found<PodView> {
        self.view(Lookup::Pod(ObjectName::new(namespace, name)))
    }

    fn live_pod(&self, namespace: &str, name: &str) -> Found<PodView> {
        self.view(Lookup::LivePod(ObjectName::new(namespace, name)))
    }

    fn budget(&self, namespace: &str, name: &str) -> Found<PodUnavailableBudget> {
        let budget = self
            .lookups
            .one::<PodUnavailableBudget>(ObjectName::new(namespace, name));
        self.found(budget, |budget| match budget {
            Ok(budget) => Found::Object(Arc::clone(budget)),
            Err(why) => Found::Unreadable(why.clone()),
        })
    }

    fn wanted(&self, namespace: &str, pod: &Ownership, belief: Belief) -> Option<Wanted> {
        let lookup = Lookup::Wanted {
            namespace: namespace.to_owned(),
            pod: Box::new(pod.clone()),
            belief,
        };
        self.noted(self.lookups.wanted(lookup)).cloned()
    }

    fn is_ending(&self, namespace: &str) -> Option<bool> {
        self.noted(self.lookups.ends(namespace))
    }

    fn is_charged(&self, namespace: &str, name: &str) -> bool {
        let budget = Lookup::one::<PodUnavailableBudget>(ObjectName::new(namespace, name));
        self.lookups.is_stored(&budget)
    }
}
