//! Puts additions into a pod, and writes down that it did.

use jiff::Timestamp;
use kruise_plan_kit::sidecars::{Record, Records, add_to_list, names, sidecar_list};
use serde_json::Value;

use super::Choice;
use super::build::{Addition, Additions, hot_annotations};
use super::share::is_injected;
use crate::Options;
use crate::json::{items, text};
use crate::pod::draft::{annotate, entry, list};

/// Puts everything at its place.
pub(super) fn additions(pod: &mut Value, mut all: Additions, options: Options) {
    all.init.sort_by(by_name);
    if options.sort_sidecars {
        all.containers.sort_by(by_name);
    }
    let working = entry(pod, "annotations", names::WORKING).unwrap_or_default();
    for (key, value) in hot_annotations(&all.hot, working) {
        annotate(pod, &key, value);
    }
    let Some(spec) = pod.get_mut("spec") else {
        return;
    };
    for (field, found) in [("initContainers", all.init), ("containers", all.containers)] {
        if !found.is_empty()
            && let Some(own) = list(spec, field)
        {
            merge(own, found);
        }
    }
    for (field, found) in [("volumes", all.volumes), ("imagePullSecrets", all.secrets)] {
        for item in found {
            if let Some(own) = list(spec, field)
                && !own.iter().any(|one| text(one, "name") == text(&item, "name"))
            {
                own.push(item);
            }
        }
    }
}

fn by_name(a: &Addition, b: &Addition) -> std::cmp::Ordering {
    text(&a.container, "name").cmp(text(&b.container, "name"))
}

/// A warning for each container of the pod's own that a sidecar takes the place of. Asked before they are put in.
pub(super) fn replaced(pod: &Value, all: &Additions) -> Vec<String> {
    let Some(spec) = pod.get("spec") else {
        return Vec::new();
    };
    let lists = [("initContainers", &all.init), ("containers", &all.containers)];
    let pairs = lists.into_iter().flat_map(|(field, found)| {
        let of_name = |name: &str| items(spec, field).iter().find(|own| text(own, "name") == name);
        let found = found.iter().map(|addition| text(&addition.container, "name"));
        found
            .filter(|name| of_name(name).is_some_and(|own| !is_injected(own)))
            .map(move |name| {
                format!("spec.{field}: the pod's own container {name:?} is replaced by the sidecar of the same name")
            })
            .collect::<Vec<_>>()
    });
    pairs.collect()
}

/// A sidecar takes the place of a container of its name; others go before or behind the pod's own, which keep their
/// order.
fn merge(own: &mut Vec<Value>, additions: Vec<Addition>) {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for Addition { container, is_before } in additions {
        let name = text(&container, "name");
        match own.iter_mut().find(|one| text(one, "name") == name) {
            Some(same) => *same = container,
            None if is_before => before.push(container),
            None => behind.push(container),
        }
    }
    own.splice(0..0, before);
    own.append(&mut behind);
}

/// Records in the pod's annotations which sets were injected, as what.
pub(super) fn records(pod: &mut Value, chosen: &[&Choice<'_>], now: Timestamp) -> Result<(), String> {
    let update_timestamp = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (key, is_full) in [(names::HASH, true), (names::HASH_WITHOUT_IMAGE, false)] {
        let present = entry(pod, "annotations", key).unwrap_or_default();
        let mut records = Records::read(present)
            .map_err(|_| format!("the pod's annotation {key} is not a record of sets"))?;
        for one in chosen {
            let (hash, controller_revision) = if is_full {
                (&one.hashes.full, one.revision.clone())
            } else {
                (&one.hashes.without_image, String::new())
            };
            let record = Record {
                update_timestamp: update_timestamp.clone(),
                hash: hash.clone(),
                sidecar_set_name: one.name.to_owned(),
                sidecar_list: sidecar_list(&one.spec),
                controller_revision,
                ..Record::default()
            };
            records.0.insert(one.name.to_owned(), record);
        }
        annotate(pod, key, records.write());
    }
    let present = entry(pod, "annotations", names::INJECTED_LIST).unwrap_or_default();
    let injected = add_to_list(present, chosen.iter().map(|one| one.name));
    annotate(pod, names::INJECTED_LIST, injected);
    Ok(())
}
