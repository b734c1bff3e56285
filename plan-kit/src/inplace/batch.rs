//! Which containers change together, and the patch that changes them.
//!
//! Containers that wait for one another at their start change in the same order: those with the highest priority and
//! those without any first, the next when these are ready. Containers whose environment reads the same changed label or
//! annotation change together, for the value can change only once.

use std::collections::{BTreeMap, BTreeSet};

use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    diff::Change,
    resources::{self, Resize},
    state::{Batch, ImageStatus, UpdateState},
};
use crate::put;

/// The containers of the first batch; `None` if all change at once.
pub(super) fn first(change: &Change, pod: &PodView) -> Option<BTreeSet<String>> {
    let involved = involved(change);
    if involved.len() < 2 {
        return None;
    }
    let priority = |name: &&String| {
        let container = pod.containers.iter().find(|have| *have.name == ***name)?;
        container.priority
    };
    let highest = involved.iter().filter_map(|name| priority(&name)).max()?;
    let mut batch: BTreeSet<String> = involved
        .iter()
        .filter(|name| priority(name).is_none_or(|priority| priority == highest))
        .cloned()
        .collect();
    loop {
        let keys: BTreeSet<(String, String)> = batch.iter().flat_map(|name| keys_of(change, name)).collect();
        let sharing: Vec<&String> = involved
            .iter()
            .filter(|name| !batch.contains(*name))
            .filter(|name| keys_of(change, name).any(|key| keys.contains(&key)))
            .collect();
        if sharing.is_empty() {
            break;
        }
        batch.extend(sharing.into_iter().cloned());
    }
    (batch.len() < involved.len()).then_some(batch)
}

fn involved(change: &Change) -> BTreeSet<String> {
    let names = change.images.keys().chain(change.read.keys());
    names.chain(change.resources.keys()).cloned().collect()
}

/// `("labels" or "annotations", key)` of the changed metadata that a container's environment reads.
fn keys_of<'a>(change: &'a Change, container: &str) -> impl Iterator<Item = (String, String)> + 'a {
    let maps = change.read.get(container).and_then(Value::as_object);
    maps.into_iter().flatten().flat_map(|(map, values)| {
        let keys = values.as_object().into_iter().flatten();
        keys.map(move |(key, _)| (map.clone(), key.clone()))
    })
}

/// The patches that make one batch.
pub(super) struct Applied {
    /// Of the pod, without the progress annotation.
    pub(super) patch: Value,
    /// Of its containers' resources, to be made before that.
    pub(super) resize: Option<Value>,
}

/// The patches that make the first batch of a change; what is left, and what the containers ran until now, goes into
/// `state`.
pub(super) fn apply(change: &Change, pod: &PodView, state: &mut UpdateState, now: &str) -> Applied {
    let mut batch = involved(change);
    let mut later = BTreeSet::new();
    if let Some(first) = first(change, pod) {
        later = batch.difference(&first).cloned().collect();
        batch = first;
    }
    let of = |map: &BTreeMap<String, Value>, names: &BTreeSet<String>| -> BTreeMap<String, Value> {
        let chosen = map.iter().filter(|(name, _)| names.contains(*name));
        chosen
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    state.next_container_images = change
        .images
        .iter()
        .filter(|(name, _)| later.contains(*name))
        .map(|(name, image)| (name.clone(), image.as_str().into()))
        .collect();
    state.next_container_ref_metadata = of(&change.read, &later);
    state
        .next_container_ref_metadata
        .values_mut()
        .for_each(as_object_meta);
    state.next_container_resources = change
        .resources
        .iter()
        .filter(|(name, _)| later.contains(*name))
        .map(|(name, resize)| (name.clone(), resize.amounts.clone()))
        .collect();
    let resized = change
        .resources
        .iter()
        .filter(|(name, resize)| batch.contains(*name) && !resize.is_asked(pod.resources_of(name)));
    let resize = resources::patch(resized);
    state.pre_check_before_next = (!later.is_empty()).then(|| json!({"containersRequiredReady": batch}));
    let mut patch = json!({"metadata": change.metadata});
    let mut containers = Vec::new();
    for (name, image) in change.images.iter().filter(|(name, _)| batch.contains(*name)) {
        containers.push(json!({"name": name, "image": image}));
        record(pod, name, state);
    }
    if !containers.is_empty() {
        put(&mut patch, &["spec", "containers"], containers.into());
    }
    for read in of(&change.read, &batch).values() {
        for map in ["labels", "annotations"] {
            for (key, value) in read.get(map).and_then(Value::as_object).into_iter().flatten() {
                put(&mut patch, &["metadata", map, key], value.clone());
            }
        }
    }
    if !batch.is_empty() {
        state.container_batches_record.push(Batch {
            timestamp: Some(now.to_owned()),
            containers: batch.into_iter().collect(),
        });
    }
    Applied { patch, resize }
}

/// `ObjectMeta` as Go writes it.
pub(super) fn as_object_meta(metadata: &mut Value) {
    put(metadata, &["creationTimestamp"], Value::Null);
}

/// What the container runs now, so that its restart can be detected.
pub(super) fn record(pod: &PodView, name: &str, state: &mut UpdateState) {
    let Some(status) = pod.status_of(name) else { return };
    let before = ImageStatus {
        image_id: status.image_id.to_string(),
        container_id: status.running_id().to_owned(),
    };
    let statuses = state.last_container_statuses.get_or_insert_default();
    statuses.insert(name.to_owned(), before);
}

/// What a state still has to change.
pub(super) fn next(state: &UpdateState) -> Change {
    let images = state.next_container_images.iter();
    Change {
        images: images
            .filter_map(|(name, image)| Some((name.clone(), image.as_str()?.to_owned())))
            .collect(),
        read: state.next_container_ref_metadata.clone(),
        resources: state
            .next_container_resources
            .iter()
            .map(|(name, amounts)| (name.clone(), Resize::recorded(amounts.clone())))
            .collect(),
        metadata: json!({}),
        gives_back: false,
    }
}

/// The containers that must be ready before the next batch and are not.
pub(super) fn awaited<'a>(state: &'a UpdateState, pod: &PodView) -> Option<&'a str> {
    let names = state
        .pre_check_before_next
        .as_ref()?
        .get("containersRequiredReady")?;
    let mut names = names.as_array()?.iter().filter_map(Value::as_str);
    names.find(|name| !pod.status_of(name).is_some_and(|status| status.ready))
}

#[cfg(test)]
mod tests {
    use kruise_views::{ContainerStatusView, ContainerView, PodView};
    use serde_json::{Value, json};

    use super::{apply, awaited, first, next};
    use crate::inplace::{Change, Resize, UpdateState};

    fn pod(containers: &[(&str, Option<i64>)]) -> PodView {
        PodView {
            containers: containers
                .iter()
                .map(|(name, priority)| ContainerView {
                    name: (*name).into(),
                    image: format!("{name}:1").into(),
                    priority: *priority,
                    ..ContainerView::default()
                })
                .collect(),
            statuses: containers
                .iter()
                .map(|(name, _)| ContainerStatusView {
                    name: (*name).into(),
                    image_id: format!("id-{name}").into(),
                    ..ContainerStatusView::default()
                })
                .collect(),
            ..PodView::default()
        }
    }

    fn images(names: &[&str]) -> Change {
        Change {
            images: names
                .iter()
                .map(|name| ((*name).to_owned(), format!("{name}:2")))
                .collect(),
            metadata: json!({}),
            ..Change::default()
        }
    }

    fn reads(change: &mut Change, container: &str, key: &str) {
        let read = json!({"annotations": {key: "v2"}});
        change.read.insert(container.into(), read);
    }

    fn batch(change: &Change, containers: &[(&str, Option<i64>)]) -> Option<Vec<String>> {
        first(change, &pod(containers)).map(|batch| batch.into_iter().collect())
    }

    #[test]
    fn the_highest_priority_and_those_without_any_go_first() {
        let change = images(&["a", "b"]);
        assert_eq!(batch(&change, &[("a", Some(10)), ("b", None)]), None);
        assert_eq!(batch(&change, &[("a", None), ("b", None)]), None);
        assert_eq!(
            batch(&change, &[("a", Some(10)), ("b", Some(5))]),
            Some(vec!["a".into()])
        );
        let three = images(&["a", "b", "c"]);
        assert_eq!(
            batch(&three, &[("a", Some(-1)), ("b", None), ("c", Some(3))]),
            Some(vec!["b".into(), "c".into()])
        );
        // A container that does not change holds nobody up.
        assert_eq!(batch(&images(&["b"]), &[("a", Some(10)), ("b", Some(5))]), None);
    }

    #[test]
    fn containers_that_read_the_same_key_go_together() {
        let mut change = images(&[]);
        for (container, key) in [("a", "x"), ("b", "x"), ("c", "y")] {
            reads(&mut change, container, key);
        }
        let pod = [("a", Some(10)), ("b", Some(5)), ("c", Some(1))];
        assert_eq!(batch(&change, &pod), Some(vec!["a".into(), "b".into()]));
        change
            .read
            .insert("b".into(), json!({"annotations": {"x": "v2", "y": "v2"}}));
        assert_eq!(batch(&change, &pod), None, "sharing is passed on");
    }

    #[test]
    fn a_batch_leaves_the_rest_in_the_state_and_the_rest_is_the_next_batch() {
        let mut change = images(&["a", "b", "c"]);
        reads(&mut change, "b", "x");
        change.metadata = json!({"labels": {"plain": "1"}});
        let pod = pod(&[("a", Some(3)), ("b", Some(2)), ("c", Some(1))]);
        let mut state = UpdateState::default();
        let patch = apply(&change, &pod, &mut state, "t1").patch;
        assert_eq!(
            patch,
            json!({"metadata": {"labels": {"plain": "1"}}, "spec": {"containers": [{"name": "a", "image": "a:2"}]}})
        );
        assert_eq!(
            state.next_container_ref_metadata["b"],
            json!({"annotations": {"x": "v2"}, "creationTimestamp": null})
        );
        assert_eq!(awaited(&state, &pod), Some("a"));
        assert!(state.has_next_batch());
        let patch = apply(&next(&state), &pod, &mut state, "t2").patch;
        assert_eq!(
            patch,
            json!({"metadata": {"annotations": {"x": "v2"}}, "spec": {"containers": [{"name": "b", "image": "b:2"}]}})
        );
        assert_eq!(awaited(&state, &pod), Some("b"));
        apply(&next(&state), &pod, &mut state, "t3");
        assert!(!state.has_next_batch() && state.pre_check_before_next.is_none());
        let batches: Vec<Value> = state
            .container_batches_record
            .iter()
            .map(|batch| json!([batch.timestamp, batch.containers]))
            .collect();
        assert_eq!(
            batches,
            [json!(["t1", ["a"]]), json!(["t2", ["b"]]), json!(["t3", ["c"]])]
        );
        assert_eq!(state.last_container_statuses.unwrap().len(), 3);
    }
    #[test]
    fn resources_alone_are_a_batch_too() {
        let resize = |cpu: &str| Resize {
            amounts: json!({"limits": {"cpu": cpu}}),
            restarts: false,
        };
        let change = Change {
            resources: [("a".into(), resize("1")), ("b".into(), resize("2"))].into(),
            metadata: json!({}),
            ..Change::default()
        };
        let pod = pod(&[("a", Some(2)), ("b", Some(1))]);
        let mut state = UpdateState::default();
        let of = |name: &str, cpu: &str| json!({"spec": {"containers": [{"name": name, "resources": {"limits": {"cpu": cpu}}}]}});
        let applied = apply(&change, &pod, &mut state, "t1");
        assert_eq!(
            (applied.patch, applied.resize),
            (json!({"metadata": {}}), Some(of("a", "1")))
        );
        assert_eq!(
            state.next_container_resources["b"],
            json!({"limits": {"cpu": "2"}})
        );
        assert!(state.has_next_batch() && state.last_container_statuses.is_none());
        let applied = apply(&next(&state), &pod, &mut state, "t2");
        assert_eq!(applied.resize, Some(of("b", "2")));
        assert!(!state.has_next_batch());
    }

    #[test]
    fn what_a_container_asks_for_already_is_not_asked_for_again() {
        let amounts = json!({"limits": {"cpu": "1"}});
        let change = Change {
            resources: [(
                "a".into(),
                Resize {
                    amounts,
                    restarts: false,
                },
            )]
            .into(),
            metadata: json!({}),
            ..Change::default()
        };
        let mut pod = pod(&[("a", None)]);
        for (limit, again) in [(Some(1000), false), (Some(500), true), (None, true)] {
            let asked = kruise_views::AmountsView {
                cpu_limit: limit,
                ..kruise_views::AmountsView::default()
            };
            pod.containers[0].resources = Some(Box::new(asked));
            let applied = apply(&change, &pod, &mut UpdateState::default(), "t");
            assert_eq!(applied.resize.is_some(), again);
        }
    }
}
