//! What separates two templates, and may it be changed on a live pod?

use std::collections::{BTreeMap, BTreeSet};

use kruise_views::MetadataVariable;
use serde_json::{Map, Value, json};

use super::resources::{self, Resize, VerticalScaling};
use crate::{ledger::Operation, put};

/// A step from one template to another that a live pod can take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// New image of each container whose image differs.
    pub images: BTreeMap<String, String>,
    /// Labels and annotations that differ and that the environment of a container reads, by container:
    /// `{"labels": {…}, "annotations": {…}}`, null for what is removed.
    pub read: BTreeMap<String, Value>,
    /// Processor time and memory of each container that gets another amount.
    pub resources: BTreeMap<String, Resize>,
    /// Merge patch for `metadata`: all other `labels`, `annotations`, `finalizers` that differ; `{}` if none do.
    pub metadata: Value,
    /// Does it give resources back that an update had taken that broke off?
    pub gives_back: bool,
}

impl Change {
    /// Does taking this step restart a container? If not, the pod stays in service.
    pub fn restarts(&self) -> bool {
        let resizes = || self.resources.values().any(|resize| resize.restarts);
        !self.images.is_empty() || !self.read.is_empty() || resizes()
    }

    /// Does it change nothing?
    pub fn is_empty(&self) -> bool {
        let is_none = |patch: &Value| match patch {
            Value::Object(members) => members.is_empty(),
            Value::Array(items) => items.is_empty(),
            patch => patch.is_null(),
        };
        !self.takes_time()
            && self
                .metadata
                .as_object()
                .is_none_or(|maps| maps.values().all(is_none))
    }

    /// Does it take containers time to follow? Labels and annotations that nothing reads are there at once.
    pub fn takes_time(&self) -> bool {
        self.restarts() || !self.resources.is_empty()
    }

    /// What it is for a budget; `None` if the pod stays in service.
    pub fn operation(&self) -> Option<Operation> {
        if self.restarts() {
            return Some(Operation::Update);
        }
        (!self.resources.is_empty()).then_some(Operation::Resize)
    }

    /// The change where nobody restarts containers for their environment: then all metadata is alike.
    #[must_use]
    pub fn without_environment(mut self) -> Self {
        for read in std::mem::take(&mut self.read).into_values() {
            merge(&mut self.metadata, &read);
        }
        self
    }

    /// This change and, where it changes nothing, what an earlier one has still to do.
    #[must_use]
    pub fn over(mut self, earlier: Self) -> Self {
        let mut read = earlier.read;
        let mut metadata = earlier.metadata;
        // A key has one value: the new one, whoever reads it.
        let patches: Vec<&Value> = self.read.values().chain([&self.metadata]).collect();
        for old in read.values_mut().chain([&mut metadata]) {
            for patch in &patches {
                forget(old, patch);
            }
        }
        read.retain(|_, old| {
            old.as_object().is_some_and(|maps| {
                maps.values()
                    .any(|map| map.as_object().is_some_and(|map| !map.is_empty()))
            })
        });
        merge(&mut metadata, &self.metadata);
        self.metadata = metadata;
        for (container, old) in read {
            merge(self.read.entry(container).or_insert_with(|| json!({})), &old);
        }
        for (container, image) in earlier.images {
            self.images.entry(container).or_insert(image);
        }
        for (container, resize) in earlier.resources {
            let own = self.resources.entry(container).or_default();
            own.take_over(resize);
        }
        self
    }
}

/// Why a step needs a new pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotInPlace {
    /// JSON pointer, relative to the template, of the first difference that a live pod cannot take, perhaps with a word
    /// on why.
    pub path: String,
}

/// Compares two canonical templates. Lists are compared position by position, so a reordered, added or renamed
/// container always needs a new pod. Other amounts of processor time and memory need one unless `scaling` is on.
pub fn diff(old: &Value, new: &Value, scaling: VerticalScaling) -> Result<Change, NotInPlace> {
    let mut change = Change {
        metadata: kube_schema::metadata_patch(old, new),
        ..Change::default()
    };
    let (mut differences, mut resized) = (Vec::new(), None);
    collect(String::new(), Some(old), Some(new), &mut differences);
    for difference in differences {
        if difference.path.starts_with("/metadata/") {
            continue;
        }
        if let Some((container, image)) = difference.image_of_container(old) {
            change.images.insert(container, image);
        } else if scaling != VerticalScaling::Off && difference.is_amount() {
            resized.get_or_insert(difference.path);
        } else {
            let path = difference.path;
            return Err(NotInPlace { path });
        }
    }
    if let Some(path) = resized {
        let refused = |why| NotInPlace {
            path: format!("{path} ({why})"),
        };
        change.resources = resources::changed(old, new, scaling).map_err(refused)?;
    }
    change.read = read_metadata(old, new);
    for patch in change.read.values() {
        forget(&mut change.metadata, patch);
    }
    Ok(change)
}

/// Merges labels and annotations key by key, and lists of finalizers.
fn merge(into: &mut Value, patch: &Value) {
    for (name, value) in patch.as_object().into_iter().flatten() {
        match value {
            Value::Object(keys) => {
                for (key, value) in keys {
                    put(into, &[name, key], value.clone());
                }
            }
            Value::Array(items) => {
                let mut all = into
                    .get(name)
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                let fresh = items.iter().filter(|item| !all.contains(item));
                let fresh: Vec<Value> = fresh.cloned().collect();
                all.extend(fresh);
                put(into, &[name], all.into());
            }
            _ => {}
        }
    }
}

/// Drops the labels and annotations that a patch names, and maps left empty.
fn forget(from: &mut Value, patch: &Value) {
    for map in ["labels", "annotations"] {
        let keys = patch.get(map).and_then(Value::as_object);
        let Some(have) = from.get_mut(map).and_then(Value::as_object_mut) else {
            continue;
        };
        for key in keys.into_iter().flat_map(Map::keys) {
            have.remove(key);
        }
        let emptied = have.is_empty();
        if emptied && let Some(from) = from.as_object_mut() {
            from.remove(map);
        }
    }
}

struct Difference<'a> {
    path: String,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

impl Difference<'_> {
    /// Container name and new image, if this difference replaces the image of a regular container.
    fn image_of_container(&self, template: &Value) -> Option<(String, String)> {
        let index: usize = self
            .path
            .strip_prefix("/spec/containers/")?
            .strip_suffix("/image")?
            .parse()
            .ok()?;
        let name = template
            .pointer("/spec/containers")?
            .get(index)?
            .get("name")?
            .as_str()?;
        self.old?.as_str()?;
        Some((name.to_owned(), self.new?.as_str()?.to_owned()))
    }

    /// Does this difference replace an amount, that a running container may have another of, by one that can be read?
    fn is_amount(&self) -> bool {
        let place = || {
            let (index, member) = self.path.strip_prefix("/spec/containers/")?.split_once('/')?;
            let (list, resource) = member.strip_prefix("resources/")?.split_once('/')?;
            let known = resources::LISTS.contains(&list) && resources::NAMES.contains(&resource);
            (known && index.parse::<usize>().is_ok()).then_some(())
        };
        let is_readable =
            |value: Option<&Value>| value.is_some_and(|value| kruise_views::amount(value).is_some());
        place().is_some() && is_readable(self.old) && is_readable(self.new)
    }
}

fn collect<'a>(path: String, old: Option<&'a Value>, new: Option<&'a Value>, out: &mut Vec<Difference<'a>>) {
    // Most of two templates is the same: only what differs needs a path.
    match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (old, new) = (a.get(key), b.get(key));
                if old != new {
                    let escaped = key.replace('~', "~0").replace('/', "~1");
                    collect(format!("{path}/{escaped}"), old, new, out);
                }
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                let (old, new) = (a.get(index), b.get(index));
                if old != new {
                    collect(format!("{path}/{index}"), old, new, out);
                }
            }
        }
        _ if old == new => {}
        _ => out.push(Difference { path, old, new }),
    }
}

/// The variables of a container of a template that read one label or annotation.
fn variables(container: &Value) -> impl Iterator<Item = MetadataVariable> {
    let variables = container.get("env").and_then(Value::as_array);
    variables.into_iter().flatten().filter_map(|variable| {
        if variable.get("value").is_some_and(|value| value != "") {
            return None;
        }
        let path = variable.pointer("/valueFrom/fieldRef/fieldPath")?.as_str()?;
        MetadataVariable::of(variable.get("name")?.as_str()?, path)
    })
}

fn read_metadata(old: &Value, new: &Value) -> BTreeMap<String, Value> {
    let value = |template: &Value, map: &str, key: &str| -> Option<Value> {
        template
            .get("metadata")?
            .get(map)
            .and_then(Value::as_object)
            .and_then(|map: &Map<_, _>| map.get(key))
            .cloned()
    };
    let containers = new
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut read: BTreeMap<String, Value> = BTreeMap::new();
    for container in containers {
        let Some(name) = container.get("name").and_then(Value::as_str) else {
            continue;
        };
        for MetadataVariable { map, key, .. } in variables(container) {
            let (map, key) = (map.as_str(), &*key);
            let after = value(new, map, key);
            if value(old, map, key) != after {
                let of_container = read.entry(name.to_owned()).or_insert_with(|| json!({}));
                put(of_container, &[map, key], after.unwrap_or(Value::Null));
            }
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Change, NotInPlace, VerticalScaling};

    fn diff(old: &Value, new: &Value) -> Result<Change, NotInPlace> {
        super::diff(old, new, VerticalScaling::Off)
    }

    fn template() -> Value {
        json!({"metadata": {"labels": {"app": "web"}, "annotations": {"config": "v1"}},
               "spec": {"containers": [{"name": "main", "image": "web:1"}, {"name": "log", "image": "log:1"}],
                        "initContainers": [{"name": "init", "image": "init:1"}]}})
    }

    fn changed(edit: impl FnOnce(&mut Value)) -> Result<super::Change, String> {
        let mut new = template();
        edit(&mut new);
        diff(&template(), &new).map_err(|blocked| blocked.path)
    }

    #[test]
    fn images_of_regular_containers_change_in_place() {
        let change = changed(|new| new["spec"]["containers"][1]["image"] = json!("log:2")).unwrap();
        assert_eq!(
            change.images.into_iter().collect::<Vec<_>>(),
            [("log".to_owned(), "log:2".to_owned())]
        );
    }

    #[test]
    fn two_containers_that_swap_places_need_a_new_pod() {
        let blocked = changed(|new| new["spec"]["containers"].as_array_mut().unwrap().swap(0, 1));
        assert_eq!(blocked, Err("/spec/containers/0/name".into()));
    }

    #[test]
    fn an_init_container_image_needs_a_new_pod() {
        let blocked = changed(|new| new["spec"]["initContainers"][0]["image"] = json!("init:2"));
        assert_eq!(blocked, Err("/spec/initContainers/0/image".into()));
    }

    #[test]
    fn an_added_container_or_an_added_field_needs_a_new_pod() {
        let added = changed(|new| {
            new["spec"]["containers"]
                .as_array_mut()
                .unwrap()
                .push(json!({"name": "x"}));
        });
        assert_eq!(added, Err("/spec/containers/2".into()));
        let field = changed(|new| new["spec"]["nodeName"] = json!("n"));
        assert_eq!(field, Err("/spec/nodeName".into()));
    }

    #[test]
    fn an_annotation_that_nothing_reads_restarts_nothing() {
        let change = changed(|new| new["metadata"]["annotations"]["config"] = json!("v2")).unwrap();
        assert!(!change.restarts());
        assert_eq!(change.metadata, json!({"annotations": {"config": "v2"}}));
    }

    #[test]
    fn dropping_the_last_annotation_removes_that_key_only() {
        let change =
            changed(|new| drop(new["metadata"].as_object_mut().unwrap().remove("annotations"))).unwrap();
        assert_eq!(change.metadata, json!({"annotations": {"config": null}}));
    }

    #[test]
    fn an_annotation_read_by_the_environment_restarts_its_container() {
        let read = |template: &mut Value| {
            template["spec"]["containers"][0]["env"] = json!([{"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['config']"}}}]);
        };
        let mut old = template();
        read(&mut old);
        for edit in [
            json!({"config": "v2"}),
            json!({}),
            json!({"config": "v1", "other": "x"}),
        ] {
            let mut new = old.clone();
            new["metadata"]["annotations"] = edit.clone();
            assert_eq!(
                diff(&old, &new).unwrap().restarts(),
                edit.get("config") != Some(&json!("v1")),
                "{edit}"
            );
        }
    }

    #[test]
    fn the_first_annotation_of_all_restarts_who_reads_it() {
        let mut old = template();
        reading(&mut old, 0, "config");
        old["metadata"].as_object_mut().unwrap().remove("annotations");
        let mut new = old.clone();
        new["metadata"]["annotations"] = json!({"config": "v1"});
        assert_eq!(
            diff(&old, &new).unwrap().read["main"],
            json!({"annotations": {"config": "v1"}})
        );
        assert!(diff(&new, &old).unwrap().restarts());
    }

    fn reading(template: &mut Value, container: usize, key: &str) {
        let path = format!("metadata.annotations['{key}']");
        template["spec"]["containers"][container]["env"] =
            json!([{"name": "C", "valueFrom": {"fieldRef": {"fieldPath": path}}}]);
    }

    #[test]
    fn what_the_environment_reads_stands_by_its_container_and_nowhere_else() {
        let mut old = template();
        reading(&mut old, 0, "config");
        let mut new = old.clone();
        new["metadata"]["annotations"] = json!({"config": "v2", "plain": "1"});
        let change = diff(&old, &new).unwrap();
        assert_eq!(change.read["main"], json!({"annotations": {"config": "v2"}}));
        assert_eq!(change.metadata, json!({"annotations": {"plain": "1"}}));
        new["metadata"]["annotations"] = json!({"plain": "1"});
        let change = diff(&old, &new).unwrap();
        assert_eq!(change.read["main"], json!({"annotations": {"config": null}}));
        assert_eq!(
            change.without_environment().metadata,
            json!({"annotations": {"plain": "1", "config": null}})
        );
    }

    #[test]
    fn a_later_change_takes_over_what_an_earlier_one_left_and_wins_where_both_speak() {
        let earlier = super::Change {
            images: [("main".into(), "web:2".into()), ("log".into(), "log:2".into())].into(),
            read: [(
                "main".into(),
                json!({"annotations": {"config": "v2", "other": "v2"}, "creationTimestamp": null}),
            )]
            .into(),
            metadata: json!({"labels": {"tier": "a", "zone": null}}),
            ..Change::default()
        };
        let later = super::Change {
            images: [("main".into(), "web:3".into())].into(),
            read: [("log".into(), json!({"annotations": {"config": "v3"}}))].into(),
            metadata: json!({"labels": {"tier": "b"}}),
            ..Change::default()
        };
        let both = later.over(earlier);
        assert_eq!(
            both.images.into_iter().collect::<Vec<_>>(),
            [
                ("log".to_owned(), "log:2".to_owned()),
                ("main".to_owned(), "web:3".to_owned())
            ]
        );
        assert_eq!(both.read["main"], json!({"annotations": {"other": "v2"}}));
        assert_eq!(both.read["log"], json!({"annotations": {"config": "v3"}}));
        assert_eq!(both.metadata, json!({"labels": {"tier": "b", "zone": null}}));
    }
}
