use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{Head, Key, ResourceId, Store};

fn pods() -> ResourceId {
    ResourceId {
        group: "".into(),
        plural: "pods".into(),
    }
}

fn put(store: &mut Store, name: &str, owner: Option<&str>) {
    let owners: Vec<_> = owner.into_iter().map(|uid| json!({"uid": uid})).collect();
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    let head = Head::of(&object, ["/metadata/name"].into_iter());
    store.put(&pods(), Key::new("a", name), head, &Arc::new(object));
}

#[test]
fn dependents_follow_the_owner_references() {
    let mut store = Store::new(10);
    put(&mut store, "x", Some("1"));
    put(&mut store, "y", Some("1"));
    assert_eq!(store.dependents("1").count(), 2);
    put(&mut store, "x", Some("2"));
    store.remove(&pods(), &Key::new("a", "y"), &Arc::default());
    assert_eq!(
        (store.dependents("1").count(), store.dependents("2").count()),
        (0, 1)
    );
    assert_eq!(store.owners().count(), 1);
}

proptest! {
    /// The store has of a past revision what a copy taken then has; compacted ones are refused.
    #[test]
    fn past_revisions_read_as_they_were(steps in prop::collection::vec((0_u8..6, any::<bool>()), 1..60), window in 1_usize..40) {
        let mut store = Store::new(window);
        let mut copies: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
        let mut now: BTreeMap<String, u64> = BTreeMap::new();
        for (name, write) in steps {
            let name = format!("p{name}");
            let key = Key::new("a", &name);
            if write {
                put(&mut store, &name, None);
                now.insert(name, store.revision());
            } else if store.remove(&pods(), &key, &Arc::default()).is_some() {
                now.remove(&name);
            }
            copies.insert(store.revision(), now.clone());
        }
        let Some(collection) = store.collection(&pods()) else { return Ok(()) };
        for (revision, copy) in copies {
            let seen = collection.at(revision).map(|objects| {
                objects.iter().map(|(key, one)| (key.name.to_string(), one.revision)).collect::<BTreeMap<_, _>>()
            });
            if revision < collection.log.compacted() {
                prop_assert!(seen.is_none());
            } else {
                prop_assert_eq!(seen, Some(copy));
            }
        }
    }
}
