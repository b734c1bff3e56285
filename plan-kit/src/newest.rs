//! The newest pod that each node had: the names of pods that follow one another on a node are made from it, so that no
//! pod has the name of the one before it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use kruise_views::PodView;

use crate::{Memory, injected::is_injected, instance::name_for_node};

/// How many nodes without a pod, which may not exist any more, are remembered.
const GONE: usize = 1000;

/// The newest pod of each node, as far as plans have seen.
pub type Newest = BTreeMap<Box<str>, Predecessor>;

/// A pod that was the newest of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its uid.
    pub uid: Box<str>,
    /// When it was created.
    pub created: Option<Timestamp>,
}

impl Predecessor {
    fn of(pod: &PodView) -> Self {
        Self {
            uid: pod.uid.clone(),
            created: pod.created,
        }
    }
}

/// What is known once these pods have been seen too. `owner` is the name and the uid of the owner; its places are nodes
/// with their pods, in any state.
///
/// A pod that the last plan created may be gone before it was seen: its name says which node it was for.
pub fn newest<'p, P>(
    memory: &Memory,
    owner: (&str, &str),
    places: impl Iterator<Item = (&'p str, P)> + Clone,
    now: Timestamp,
) -> Arc<Newest>
where
    P: Iterator<Item = &'p PodView>,
{
    if is_injected("PredecessorsName") {
        return Arc::default();
    }
    let mut all = Arc::clone(&memory.newest);
    let mut count: usize = 0;
    for (node, pods) in places.clone() {
        count = count.saturating_add(1);
        let known = all.get(node);
        let mut newest = created_for(memory, owner, node, known, now).or_else(|| known.cloned());
        for pod in pods {
            let is_newer = |before: &Predecessor| before.uid == pod.uid || is_after(pod, before, owner, node);
            if newest.as_ref().is_none_or(is_newer) {
                newest = Some(Predecessor::of(pod));
            }
        }
        if newest.as_ref() != known
            && let Some(newest) = newest
        {
            Arc::make_mut(&mut all).insert(node.into(), newest);
        }
    }
    if all.len() > count.saturating_add(GONE) {
        let nodes: BTreeSet<&str> = places.map(|(node, _)| node).collect();
        Arc::make_mut(&mut all).retain(|node, _| nodes.contains(&**node));
    }
    all
}

/// Did this pod come after that one? Times are whole seconds: of the same second, its name says so.
fn is_after(pod: &PodView, before: &Predecessor, owner: (&str, &str), node: &str) -> bool {
    let successor = || name_for_node(owner, (node, Some(&before.uid)), &BTreeSet::new());
    pod.created > before.created || (pod.created == before.created && *pod.name == successor())
}

/// The pod that the last plan created for a node.
fn created_for(
    memory: &Memory,
    owner: (&str, &str),
    node: &str,
    before: Option<&Predecessor>,
    now: Timestamp,
) -> Option<Predecessor> {
    if memory.created.is_empty() {
        return None;
    }
    let before = before.map(|before| &*before.uid);
    let name = name_for_node(owner, (node, before), &memory.taken_names);
    let uid = memory.created.get(&name)?;
    Some(Predecessor {
        uid: uid.as_str().into(),
        created: Some(now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// A pod that was created after one of this uid.
    fn pod(uid: &str, created: i64, before: Option<&str>) -> PodView {
        PodView {
            name: name(before).into(),
            uid: uid.into(),
            created: Some(at(created)),
            ..PodView::default()
        }
    }

    fn name(before: Option<&str>) -> String {
        name_for_node(("agent", "uid"), ("n1", before), &BTreeSet::new())
    }

    /// The uid of the newest pod of a node that has these pods now.
    fn after(memory: &mut Memory, pods: &[&PodView]) -> Option<String> {
        let places = [("n1", pods)].into_iter();
        let places = places.map(|(node, pods)| (node, pods.iter().copied()));
        memory.newest = newest(memory, ("agent", "uid"), places, at(50));
        memory.newest.get("n1").map(|newest| newest.uid.to_string())
    }

    #[test]
    fn the_newest_pod_is_known_after_it_is_gone_and_though_older_ones_stay() {
        let mut memory = Memory::default();
        let [first, second, third] = [
            pod("z", 10, None),
            pod("b", 20, Some("z")),
            pod("a", 20, Some("b")),
        ];
        assert_eq!(after(&mut memory, &[]), None);
        assert_eq!(after(&mut memory, &[&first]).as_deref(), Some("z"));
        assert_eq!(after(&mut memory, &[]).as_deref(), Some("z"));
        assert_eq!(after(&mut memory, &[&second, &first]).as_deref(), Some("b"));
        assert_eq!(after(&mut memory, &[&first]).as_deref(), Some("b"));
        assert_eq!(
            after(&mut memory, &[&third, &second, &first]).as_deref(),
            Some("a"),
            "of the same second"
        );
        assert_eq!(after(&mut memory, &[&second, &third]).as_deref(), Some("a"));
        assert_eq!(after(&mut memory, &[&second]).as_deref(), Some("a"));
    }

    #[test]
    fn a_pod_that_was_created_and_never_seen_is_a_predecessor() {
        let mut memory = Memory {
            created: Arc::new(BTreeMap::from([(name(None), "z".to_owned())])),
            ..Memory::default()
        };
        assert_eq!(after(&mut memory, &[]).as_deref(), Some("z"));
        memory.created = Arc::new(BTreeMap::from([(name(Some("z")), "b".to_owned())]));
        assert_eq!(after(&mut memory, &[&pod("z", 10, None)]).as_deref(), Some("b"));
        memory.created = Arc::default();
        assert_eq!(after(&mut memory, &[]).as_deref(), Some("b"));
    }

    #[test]
    fn nodes_that_do_not_exist_any_more_are_forgotten_where_they_are_many() {
        let mut memory = Memory::default();
        let pod = pod("z", 10, None);
        let of = |memory: &Memory, first: usize| {
            let nodes: Vec<String> = (first..first + 600).map(|node| format!("n{node}")).collect();
            let places = nodes.iter().map(|node| (&**node, std::iter::once(&pod)));
            newest(memory, ("agent", "uid"), places, at(50))
        };
        for (first, known) in [(0, 600), (600, 1200), (1200, 600)] {
            memory.newest = of(&memory, first);
            assert_eq!(memory.newest.len(), known);
        }
    }
}
