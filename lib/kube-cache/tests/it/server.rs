//! A naive model of an API server: the full history of one resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cache::{Cached, Delta, Event, Index, Informer, ObjectKey, Version};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub version: String,
    pub owner: String,
}

impl Cached for Object {
    fn namespace(&self) -> &str {
        &self.namespace
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.version
    }
}

pub const BY_OWNER: Index<Object> =
    Index::new("owner", |object| vec![object.owner.as_str().into(), "any".into()]);

pub type State = BTreeMap<ObjectKey, Object>;

/// A change of one of six names: present objects are updated or deleted, absent ones created.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub slot: u8,
    pub owner: u8,
    pub delete: bool,
    /// Versions skipped because other resources use them.
    pub skip: u64,
}

pub fn change() -> impl Strategy<Value = Change> {
    (0..6u8, 0..3u8, prop::bool::weighted(0.3), 1..4u64).prop_map(|(slot, owner, delete, skip)| Change {
        slot,
        owner,
        delete,
        skip,
    })
}

/// The version history of one resource.
#[derive(Debug, Default)]
pub struct Server {
    log: Vec<(u64, Event<Object>)>,
    states: Vec<(u64, State)>,
}

impl Server {
    pub fn version(&self) -> u64 {
        self.states.last().map_or(1, |(version, _)| *version)
    }

    pub fn state_at(&self, version: u64) -> State {
        self.states
            .iter()
            .rev()
            .find(|(at, _)| *at <= version)
            .map(|(_, state)| state.clone())
            .unwrap_or_default()
    }

    pub fn events_after(&self, version: u64) -> impl Iterator<Item = &(u64, Event<Object>)> {
        self.log.iter().filter(move |(at, _)| *at > version)
    }

    pub fn apply(&mut self, change: Change) -> Option<Object> {
        let version = self.version() + change.skip;
        let mut state = self.state_at(version);
        let namespace = format!("ns{}", change.slot % 2);
        let name = format!("n{}", change.slot / 2);
        let key = ObjectKey::new(namespace.as_str(), name.as_str());
        let (event, result) = match (state.remove(&key), change.delete) {
            (None, true) => return None,
            (Some(mut object), true) => {
                object.version = version.to_string();
                (Event::Deleted(object), None)
            }
            (old, false) => {
                let uid = old
                    .as_ref()
                    .map_or_else(|| format!("uid{version}"), |old| old.uid.clone());
                let owner = format!("o{}", change.owner);
                let object = Object {
                    namespace,
                    name,
                    uid,
                    version: version.to_string(),
                    owner,
                };
                state.insert(key, object.clone());
                let event = if old.is_some() {
                    Event::Modified
                } else {
                    Event::Added
                };
                (event(object.clone()), Some(object))
            }
        };
        self.log.push((version, event));
        self.states.push((version, state));
        result
    }
}

/// Replays deltas on a plain map and checks that each starts from the map's state.
pub fn fold(shadow: &mut State, deltas: &[Delta<Object>]) {
    for delta in deltas {
        let key = ObjectKey::of(&**delta.latest().expect("a delta without objects"));
        let old = delta.old.as_deref().cloned();
        assert_eq!(
            shadow.remove(&key),
            old,
            "delta of {key} starts from another object"
        );
        assert_ne!(delta.old, delta.new, "delta without a change");
        if let Some(new) = &delta.new {
            assert!(
                old.is_none_or(|old| old.uid == new.uid),
                "two incarnations in one delta"
            );
            shadow.insert(key, Object::clone(new));
        }
    }
}

/// Asserts that every way to read the informer shows exactly `state`.
pub fn assert_shows(informer: &Informer<Object>, state: &State) {
    let plain =
        |objects: Vec<&Arc<Object>>| objects.into_iter().map(|o| Object::clone(o)).collect::<Vec<_>>();
    let expected = |filter: &dyn Fn(&Object) -> bool| {
        state
            .values()
            .filter(|object| filter(object))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(plain(informer.iter().collect()), expected(&|_| true));
    assert_eq!(informer.len(), state.len());
    for namespace in ["ns0", "ns1", "ns", ""] {
        assert_eq!(
            plain(informer.list(namespace).collect()),
            expected(&|o| o.namespace == namespace)
        );
    }
    for owner in ["o0", "o1", "o2", "any", "none"] {
        let by_owner = expected(&|o| o.owner == owner || owner == "any");
        assert_eq!(plain(informer.by_index(&BY_OWNER, owner).collect()), by_owner);
    }
    for (key, object) in state {
        assert_eq!(informer.get(key).map(|found| &**found), Some(object));
    }
}

pub fn version(number: u64) -> Version {
    Version::new(number)
}
