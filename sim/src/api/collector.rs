//! Garbage collection: dependents follow their owners, after a while. Owners that wait for their dependents are
//! worked off at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Api;
use crate::object::{finalizers, metadata_text};
use crate::store::Place;
use crate::validation::text;
use crate::verbs::{FOREGROUND, ORPHAN};
use crate::wire::{Method, Request};

/// Who collects, as servers name it.
pub(super) const GARBAGE: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

impl Api {
    /// Follows owner references: what lost all its owners is deleted; owners that wait for their dependents are
    /// released.
    pub(super) fn collect_garbage(&mut self, now: Timestamp) {
        let mut bereaved: BTreeSet<Place> = BTreeSet::new();
        for (uid, places) in self.store.owners() {
            if !self.store.has_uid(uid) {
                bereaved.extend(places.iter().cloned());
            }
        }
        let abandoned = bereaved.into_iter().filter(|place| {
            let stored = self.store.get(&place.0, &place.1);
            stored.is_some_and(|stored| {
                let mut owners = stored.head.owners.iter();
                !stored.head.deleting
                    && owners.all(|owner| !self.store.has_uid(owner))
                    && self.knows_owners(&stored.value())
            })
        });
        let abandoned: Vec<Place> = abandoned.collect();
        for place in self.garbage.look(abandoned, now) {
            self.delete_place(GARBAGE, &place, &json!({"propagationPolicy": "Background"}), now);
        }
        for (place, object) in self.waiting_owners() {
            self.release(&place, &object, now);
        }
    }

    /// Whether the kinds of all owners are known: of others nobody can tell that an owner is gone.
    fn knows_owners(&self, object: &Value) -> bool {
        let owners = object
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array);
        let mut owners = owners.into_iter().flatten();
        owners.all(|owner| {
            self.registry
                .knows(text(owner, "apiVersion"), text(owner, "kind"))
        })
    }

    /// When garbage is collected that was found before.
    pub(crate) fn garbage_due(&self) -> Option<Timestamp> {
        // Nothing is due while a collection waits for a webhook.
        self.garbage.due().filter(|_| !self.waits(GARBAGE))
    }

    /// Garbage is collected this long after it came to be.
    pub(crate) fn delay_garbage(&mut self, delay: Duration) {
        self.garbage.delay = delay;
    }

    /// Objects being deleted whose dependents decide when they go.
    fn waiting_owners(&self) -> Vec<(Place, Arc<Value>)> {
        let mut found = Vec::new();
        for place in self.store.deleting() {
            let Some(stored) = self.store.get(&place.0, &place.1) else {
                continue;
            };
            let object = stored.value();
            if finalizers(&object)
                .iter()
                .any(|one| *one == ORPHAN || *one == FOREGROUND)
            {
                found.push((place.clone(), object));
            }
        }
        found
    }

    fn release(&mut self, place: &Place, owner: &Value, now: Timestamp) {
        let uid = metadata_text(owner, "uid").to_owned();
        let dependents: Vec<Place> = self.store.dependents(&uid).cloned().collect();
        let orphan = finalizers(owner).contains(&ORPHAN);
        for dependent in &dependents {
            if orphan {
                self.disown(dependent, &uid, now);
            } else if !self.is_going(dependent) {
                let foreground = json!({"propagationPolicy": "Foreground"});
                self.delete_place(GARBAGE, dependent, &foreground, now);
            }
        }
        if !orphan
            && self
                .store
                .dependents(&uid)
                .any(|dependent| self.blocks(dependent, &uid))
        {
            return;
        }
        let kept: Vec<&str> = finalizers(owner)
            .into_iter()
            .filter(|one| *one != ORPHAN && *one != FOREGROUND)
            .collect();
        let patch = json!({"metadata": {"finalizers": kept}});
        self.patch_place(place, &patch, now);
    }

    /// Is it being deleted? It would only be told once more, without end while a finalizer of its own keeps it.
    fn is_going(&self, place: &Place) -> bool {
        let stored = self.store.get(&place.0, &place.1);
        stored.is_some_and(|stored| stored.head.deleting)
    }

    /// Whether an owner has to wait for a dependent, by the reference of the dependent.
    fn blocks(&self, place: &Place, uid: &str) -> bool {
        let stored = self.store.get(&place.0, &place.1);
        let object = stored.map(|stored| stored.value()).unwrap_or_default();
        let owners = object
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array);
        owners.into_iter().flatten().any(|owner| {
            owner.get("uid") == Some(&uid.into()) && owner.get("blockOwnerDeletion") == Some(&true.into())
        })
    }

    /// Takes one owner from an object.
    fn disown(&mut self, place: &Place, uid: &str, now: Timestamp) {
        let Some(stored) = self.store.get(&place.0, &place.1) else {
            return;
        };
        let object = stored.value();
        let owners = object
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array);
        let kept: Vec<&Value> = owners
            .into_iter()
            .flatten()
            .filter(|owner| owner.get("uid") != Some(&uid.into()))
            .collect();
        let patch = json!({"metadata": {"ownerReferences": kept}});
        self.patch_place(place, &patch, now);
    }

    fn patch_place(&mut self, place: &Place, patch: &Value, now: Timestamp) {
        if let Some(path) = self.path(place) {
            let request = Request::new(Method::Patch, &path, Some(patch));
            self.act(GARBAGE, request.content_type("application/merge-patch+json"), now);
        }
    }
}
