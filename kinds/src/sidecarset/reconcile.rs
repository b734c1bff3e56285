//! One reconcile of a SidecarSet: its plan, without the pods that other SidecarSets have locked.

use std::{
    collections::BTreeMap,
    sync::{MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kruise_api::sidecarset::{KIND, SidecarSet};
use kruise_plan_kit::Memory;
use kruise_plan_sidecars::{Explain, Repairs, WriteLocks, learn, plan, uninjected};
use kruise_runtime::invalid_spec;
use kruise_runtime::{
    events::ObjectRef,
    worker::{Outcome, Reconciler},
};
use kube_cache::ObjectKey;

use super::{Parameters, SidecarSets};

impl Reconciler for SidecarSets {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.sets.snapshot().get(key);
        let (Some(cached), Ok(api_version)) =
            (cached, self.served.api_version(kruise_api::sidecarset::RESOURCE))
        else {
            self.forget(key);
            return Outcome::Gone;
        };
        let set = match SidecarSet::from_json(&cached.set.object) {
            Ok(set) => set,
            Err(error) => {
                // Its selector is not known, so no pod counts as uninjected, and it writes no pod.
                self.uninjected_metric.forget(&[&key.name]);
                self.write_locks().release(&key.name);
                return Outcome::Plan(Box::new(invalid_spec::plan(&error)));
            }
        };
        let mut inputs = self.read_inputs(&cached, &set);
        if !self.injects {
            inputs.not_injected.clear();
        }
        let uid = &set.metadata.uid;
        let tried = self.repairs().get(key).filter(|(of, _)| of == uid).cloned();
        let tried = tried.map(|(_, repairs)| repairs).unwrap_or_default();
        let parameters = Parameters {
            set: &set,
            api_version: &api_version,
            namespace: &self.namespace,
            memory,
            repairs: &tried,
            explain: Explain::No,
        };
        let mut repairs = tried.clone();
        let plan = inputs.with_snapshot(&parameters, |snapshot| {
            let mut plan = plan(snapshot, now);
            self.write_locks().lock(&set.metadata.name, &mut plan, memory);
            learn(&mut repairs, snapshot, &plan, now);
            self.uninjected_metric
                .set(&[&set.metadata.name], uninjected(snapshot));
            plan
        });
        self.repairs().insert(key.clone(), (uid.clone(), repairs));
        Outcome::Plan(Box::new(plan))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let sets = self.sets.snapshot();
        sets.iter().map(|set| ObjectKey::of(&**set)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let set = self.sets.snapshot().get(key)?;
        let api_version = self.served.api_version(kruise_api::sidecarset::RESOURCE).ok()?;
        Some(ObjectRef::of(&*set, api_version, KIND.kind))
    }
}

impl SidecarSets {
    pub(super) fn repairs(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (String, Repairs)>> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write_locks(&self) -> MutexGuard<'_, WriteLocks> {
        self.write_locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &ObjectKey) {
        self.write_locks().release(&key.name);
        self.repairs().remove(key);
        self.uninjected.forget(&key.name);
        self.uninjected_metric.forget(&[&key.name]);
    }
}
