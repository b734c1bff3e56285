//! Controllers whose keys are the objects of one kind.

use jiff::Timestamp;
use kruise_api::definition::Kind;
use kruise_plan_kit::{Memory, Plan, ResourceId};
use kube_cache::{ObjectKey, SharedInformer};

use super::{Outcome, Reconciler};
use crate::{Served, events::ObjectRef, invalid_spec, parsed::Parsed};

/// Reconciles the objects of a kind, each by itself. It is a [`Reconciler`]: an object that is gone, or whose kind
/// is not served, has no plan, and one that cannot be parsed gets an event that says why.
pub trait KindReconciler: Send + Sync + 'static {
    /// An object in the version of plans.
    type Object: Clone + Send + Sync + 'static;

    /// The kind.
    const KIND: &'static Kind;

    /// Its cache.
    fn objects(&self) -> &SharedInformer<Parsed<Self::Object>>;

    /// Which kinds the cluster serves.
    fn served(&self) -> &Served;

    /// Plans an object; `None` if this controller does not manage it.
    fn plan(&self, object: &Self::Object, round: Round<'_>) -> Option<Plan>;
}

/// What a plan of an object depends on beside the caches.
#[derive(Clone, Copy)]
pub struct Round<'r> {
    /// The key of the object.
    pub key: &'r ObjectKey,
    /// The `apiVersion` in which its kind is served.
    pub api_version: &'r str,
    /// What became of earlier plans.
    pub memory: &'r Memory,
    /// The time.
    pub now: Timestamp,
}

impl<K: KindReconciler> Reconciler for K {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.objects().snapshot().get(key);
        let api_version = self.served().api_version(ResourceId::of(K::KIND));
        let (Some(cached), Ok(api_version)) = (cached, api_version) else {
            return Outcome::Gone;
        };
        let round = Round {
            key,
            api_version: &api_version,
            memory,
            now,
        };
        let plan = match &cached.object {
            Ok(object) => self.plan(object, round),
            Err(error) => Some(invalid_spec::plan(error)),
        };
        plan.map_or(Outcome::Gone, |plan| Outcome::Plan(Box::new(plan)))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let objects = self.objects().snapshot();
        objects.iter().map(|object| ObjectKey::of(&**object)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let object = self.objects().snapshot().get(key)?;
        let api_version = self.served().api_version(ResourceId::of(K::KIND)).ok()?;
        Some(ObjectRef::of(&*object, api_version, K::KIND.kind))
    }
}
