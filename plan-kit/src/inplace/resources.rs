//! Processor time and memory that running containers get more or less of.
//!
//! Only amounts that were there before may be replaced, and only where the pod's class of service stays what it is:
//! that is all a server takes; before 1.34 it takes a lower memory limit only of a container that restarts for it.
//! A request that the template leaves out is what its limit says, because the server filled it in so when the pod
//! was made: it follows the limit.

use std::collections::BTreeMap;

use kruise_api::names::{POD_RESIZE_IN_PROGRESS, POD_RESIZE_PENDING};
use kruise_views::{AmountsView, ConditionView, PodView, Truth, amount};
use serde_json::{Value, json};

use crate::put;

/// The lists of amounts of a container.
pub(super) const LISTS: [&str; 2] = ["limits", "requests"];
/// The resources whose amounts may change while a container runs.
pub(super) const NAMES: [&str; 2] = ["cpu", "memory"];

/// May resources of running containers change, and by which request?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerticalScaling {
    /// They need a new pod.
    #[default]
    Off,
    /// With the pod's specification, as servers before 1.32 want it.
    Specification,
    /// By the pod's `resize` endpoint, but for memory limits that go down: servers before 1.34.
    RaisingEndpoint,
    /// By the pod's `resize` endpoint.
    Endpoint,
}

impl VerticalScaling {
    /// The way that a server of this version (`gitVersion`) takes; one that cannot be read counts as old.
    pub fn of_server(version: &str) -> Self {
        let mut numbers = version
            .trim_start_matches(|c: char| !c.is_ascii_digit())
            .split('.')
            .map(|part| {
                let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
                part.get(..end).unwrap_or_default().parse::<u32>().ok()
            });
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) if (major, minor) >= (1, 34) => Self::Endpoint,
            (Some(major), Some(minor)) if (major, minor) >= (1, 32) => Self::RaisingEndpoint,
            _ => Self::Specification,
        }
    }

    /// Do resources have a request of their own?
    pub fn has_endpoint(self) -> bool {
        matches!(self, Self::RaisingEndpoint | Self::Endpoint)
    }
}

/// Other amounts for one container.
#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    /// Those that change: `{"limits": {…}, "requests": {…}}`.
    pub amounts: Value,
    /// Does the container restart for one of them, by its `resizePolicy`?
    pub restarts: bool,
}

impl Default for Resize {
    fn default() -> Self {
        Self {
            amounts: json!({}),
            restarts: false,
        }
    }
}

impl Resize {
    /// An amount that was written down before. Whether it restarts its container was not: perhaps it does.
    pub(super) fn recorded(amounts: Value) -> Self {
        Self {
            amounts,
            restarts: true,
        }
    }

    /// Adds what an earlier one has still to change and this one does not speak of.
    pub(super) fn take_over(&mut self, earlier: Self) {
        for (list, name, amount) in each(&earlier.amounts) {
            if self.amounts.get(list).and_then(|list| list.get(name)).is_none() {
                put(&mut self.amounts, &[list, name], amount.clone());
            }
        }
        self.restarts |= earlier.restarts;
    }

    /// Does a container ask for all of this already?
    pub(super) fn is_asked(&self, have: Option<&AmountsView>) -> bool {
        each(&self.amounts).all(|(list, name, wanted)| {
            amount(wanted).is_some_and(|wanted| have.and_then(|have| have.get(list, name)) == Some(wanted))
        })
    }
}

/// List, resource and quantity of all amounts.
pub(super) fn each(amounts: &Value) -> impl Iterator<Item = (&'static str, &'static str, &Value)> {
    let places = LISTS.into_iter().flat_map(|list| NAMES.map(|name| (list, name)));
    places.filter_map(|(list, name)| Some((list, name, amounts.get(list)?.get(name)?)))
}

/// The other amounts of each container, or why the server would not take them.
pub(super) fn changed(
    old: &Value,
    new: &Value,
    scaling: VerticalScaling,
) -> Result<BTreeMap<String, Resize>, &'static str> {
    if !keeps_class_of_service(old, new) {
        return Err("the class of service would be another");
    }
    let mut changed = BTreeMap::new();
    for (before, after) in containers(old, "containers").zip(containers(new, "containers")) {
        let mut resize = Resize::default();
        for (list, name) in LISTS.into_iter().flat_map(|list| NAMES.map(|name| (list, name))) {
            let (had, wanted) = (asked(before, list, name), asked(after, list, name));
            if had.and_then(amount) == wanted.and_then(amount) {
                continue;
            }
            let is_lower = wanted.and_then(amount) < had.and_then(amount);
            let is_memory_limit = (list, name) == ("limits", "memory");
            if scaling != VerticalScaling::Endpoint
                && (is_memory_limit && is_lower)
                && !restarts_for(after, name)
            {
                return Err("this server lowers memory limits only with a restart");
            }
            if let Some(wanted) = wanted {
                put(&mut resize.amounts, &[list, name], wanted.clone());
                resize.restarts |= restarts_for(after, name);
            }
        }
        let name = after.get("name").and_then(Value::as_str).unwrap_or_default();
        if each(&resize.amounts).next().is_some() {
            changed.insert(name.to_owned(), resize);
        }
    }
    Ok(changed)
}

pub(super) fn containers<'a>(template: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    let found = template
        .get("spec")
        .and_then(|spec| spec.get(list))
        .and_then(Value::as_array);
    found.into_iter().flatten()
}

/// What the container of a pod of this template asks for.
pub(super) fn asked<'a>(container: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    let resources = container.get("resources")?;
    let own = |list: &str| resources.get(list).and_then(|list| list.get(name));
    own(list).or_else(|| own("limits").filter(|_| list == "requests"))
}

/// Does the container restart for another amount of this resource, by its `resizePolicy`?
pub(crate) fn restarts_for(container: &Value, name: &str) -> bool {
    let policies = container.get("resizePolicy").and_then(Value::as_array);
    let is = |policy: &Value, key: &str, value: &str| policy.get(key).is_some_and(|have| have == value);
    policies
        .into_iter()
        .flatten()
        .any(|policy| is(policy, "resourceName", name) && is(policy, "restartPolicy", "RestartContainer"))
}

/// A pod's class of service, as Kubernetes derives it from the amounts that are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    BestEffort,
    Burstable,
    Guaranteed,
}

/// Is the class of service the same?
pub(crate) fn keeps_class_of_service(old: &Value, new: &Value) -> bool {
    class_of_service(old) == class_of_service(new)
}

fn class_of_service(template: &Value) -> Class {
    let all = containers(template, "containers").chain(containers(template, "initContainers"));
    let (mut any, mut guaranteed) = (false, true);
    for (container, name) in all.flat_map(|container| NAMES.map(|name| (container, name))) {
        let positive = |list: &str| {
            asked(container, list, name)
                .and_then(amount)
                .filter(|amount| *amount > 0)
        };
        let (request, limit) = (positive("requests"), positive("limits"));
        any |= request.is_some() || limit.is_some();
        guaranteed &= limit.is_some() && request == limit;
    }
    match (any, guaranteed) {
        (false, _) => Class::BestEffort,
        (true, true) => Class::Guaranteed,
        (true, false) => Class::Burstable,
    }
}

/// The first container that does not have yet what it asks for.
pub(super) fn awaited(pod: &PodView) -> Option<&str> {
    let lacks = pod.containers.iter().find(|container| {
        let status = pod.status_of(&container.name);
        status.is_none_or(|status| status.resources.as_deref() != container.resources.as_deref())
    });
    lacks.map(|container| &*container.name)
}

/// Why a container does not have what it asks for, in the words of its node where there are any.
pub(super) fn waiting(pod: &PodView, container: &str) -> String {
    let said = |condition: &ConditionView| {
        let colon = if condition.message.is_empty() { "" } else { ": " };
        format!("({}){colon}{}", condition.reason, condition.message)
    };
    if let Some(refusal) = refusal(pod) {
        let says = said(refusal);
        return if is_infeasible(refusal) {
            format!("its node can never give container {container} the resources that it asks for {says}")
        } else {
            format!("its node has no room for the resources that container {container} asks for {says}")
        };
    }
    let under_way = pod
        .condition(POD_RESIZE_IN_PROGRESS)
        .filter(|condition| condition.status == Truth::True);
    match under_way.filter(|condition| !condition.reason.is_empty()) {
        Some(error) => format!(
            "container {container} does not get its new resources {}",
            said(error)
        ),
        None => format!("container {container} does not have its new resources yet"),
    }
}

/// The condition in which a pod's node refuses the resources that its containers request. A refusal of an earlier
/// request does not count.
pub fn refusal(pod: &PodView) -> Option<&ConditionView> {
    pod.condition(POD_RESIZE_PENDING)
        .filter(|condition| condition.status == Truth::True && awaited(pod).is_some())
}

/// Will the node never give it, whatever else runs there?
pub fn is_infeasible(refusal: &ConditionView) -> bool {
    &*refusal.reason == "Infeasible"
}

/// The patch that changes resources of these containers.
pub(super) fn patch<'a>(containers: impl Iterator<Item = (&'a String, &'a Resize)>) -> Option<Value> {
    let all: Vec<Value> = containers
        .map(|(name, resize)| json!({"name": name, "resources": resize.amounts}))
        .collect();
    (!all.is_empty()).then(|| json!({"spec": {"containers": all}}))
}

/// Puts a change of resources into the patch of a specification, where the server has no other way.
pub fn fold(resize: Value, into: &mut Value) {
    let resized = resize
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .cloned();
    let mut all = into
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for container in resized.into_iter().flatten() {
        let same = |have: &&mut Value| have.get("name") == container.get("name");
        match (all.iter_mut().find(same), container.get("resources")) {
            (Some(have), Some(resources)) => put(have, &["resources"], resources.clone()),
            _ => all.push(container),
        }
    }
    put(into, &["spec", "containers"], all.into());
}

#[cfg(test)]
mod tests {
    use kruise_views::{ContainerStatusView, ContainerView};

    use super::*;
    use crate::inplace::{Progress, diff, fixture, progress};

    fn template(resources: &Value, policy: &str) -> Value {
        let policy = json!([{"resourceName": policy, "restartPolicy": "RestartContainer"}]);
        json!({"spec": {"containers": [{"name": "main", "image": "web:1", "resources": resources, "resizePolicy": policy}]}})
    }

    /// The other amounts, or what blocks them.
    fn step(old: &Value, new: &Value) -> Result<Value, String> {
        let (old, new) = (template(old, "memory"), template(new, "memory"));
        let change = diff(&old, &new, VerticalScaling::Endpoint).map_err(|blocked| blocked.path)?;
        Ok(change
            .resources
            .get("main")
            .map_or(Value::Null, |resize| resize.amounts.clone()))
    }

    #[test]
    fn replaced_amounts_change_in_place_and_nothing_but_them_is_named() {
        let old = json!({"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}});
        let new = json!({"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "1"}});
        assert_eq!(step(&old, &new), Ok(json!({"requests": {"cpu": "200m"}})));
        assert_eq!(step(&old, &old), Ok(Value::Null));
    }

    #[test]
    fn amounts_that_come_or_go_and_other_resources_need_a_new_pod() {
        let old = json!({"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}});
        for (new, path) in [
            (
                json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}),
                "requests/memory",
            ),
            (
                json!({"requests": {}, "limits": {"nvidia.com/gpu": "1"}}),
                "requests/cpu",
            ),
            (
                json!({"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
                "limits/nvidia.com~1gpu",
            ),
            (
                json!({"requests": {"cpu": "x"}, "limits": {"nvidia.com/gpu": "1"}}),
                "requests/cpu",
            ),
        ] {
            assert_eq!(
                step(&old, &new),
                Err(format!("/spec/containers/0/resources/{path}"))
            );
        }
    }

    #[test]
    fn an_init_container_with_other_resources_needs_a_new_pod() {
        let of = |cpu: &str| json!({"spec": {"initContainers": [{"name": "init", "resources": {"limits": {"cpu": cpu}}}]}});
        let blocked = diff(&of("1"), &of("2"), VerticalScaling::Endpoint).unwrap_err();
        assert_eq!(blocked.path, "/spec/initContainers/0/resources/limits/cpu");
    }

    #[test]
    fn without_the_gate_other_resources_need_a_new_pod() {
        let of = |cpu: &str| template(&json!({"limits": {"cpu": cpu}}), "memory");
        let blocked = diff(&of("1"), &of("2"), VerticalScaling::Off).unwrap_err();
        assert_eq!(blocked.path, "/spec/containers/0/resources/limits/cpu");
    }

    #[test]
    fn another_class_of_service_needs_a_new_pod() {
        let of = |request: &str| json!({"requests": {"cpu": request, "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        for (old, new) in [("1", "500m"), ("500m", "1")] {
            let blocked = step(&of(old), &of(new)).unwrap_err();
            assert!(blocked.contains("class of service"), "{blocked}");
        }
        assert!(step(&of("500m"), &of("600m")).is_ok());
    }

    #[test]
    fn a_lower_memory_limit_needs_a_new_pod_on_older_servers_unless_its_container_restarts_for_it() {
        let of = |memory: &str| json!({"requests": {"memory": "1Mi"}, "limits": {"memory": memory}});
        let (old, newer) = (VerticalScaling::Specification, VerticalScaling::RaisingEndpoint);
        for (from, to, policy, server, taken) in [
            ("2Gi", "1Gi", "cpu", old, false),
            ("2Gi", "1Gi", "cpu", newer, false),
            ("2Gi", "1Gi", "cpu", VerticalScaling::Endpoint, true),
            ("2Gi", "1Gi", "memory", old, true),
            ("2Gi", "1Gi", "memory", newer, true),
            ("1Gi", "2Gi", "cpu", old, true),
            ("1Gi", "2Gi", "cpu", newer, true),
        ] {
            let found = diff(&template(&of(from), policy), &template(&of(to), policy), server);
            assert_eq!(found.is_ok(), taken, "{from} to {to}, {policy}, {server:?}");
            if let Err(blocked) = found {
                assert!(
                    blocked.path.contains("limits/memory (this server"),
                    "{}",
                    blocked.path
                );
            }
        }
    }

    #[test]
    fn a_request_that_the_template_leaves_out_follows_its_limit() {
        let of = |cpu: &str| json!({"limits": {"cpu": cpu, "memory": "1Gi"}});
        let both = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "2"}});
        assert_eq!(step(&of("1"), &of("2")), Ok(both), "the pod stays Guaranteed");
    }

    #[test]
    fn a_resize_restarts_if_the_policy_of_a_resource_that_changes_says_so() {
        let amounts = |cpu: &str, memory: &str| json!({"limits": {"cpu": cpu, "memory": memory}});
        let change = |policy, new: &Value| {
            diff(
                &template(&amounts("1", "1Gi"), policy),
                &template(new, policy),
                VerticalScaling::Endpoint,
            )
            .unwrap()
        };
        for (policy, new, restarts) in [
            ("memory", amounts("2", "1Gi"), false),
            ("memory", amounts("1", "2Gi"), true),
            ("cpu", amounts("2", "1Gi"), true),
        ] {
            let change = change(policy, &new);
            assert_eq!(change.restarts(), restarts, "{policy} {new}");
            assert!(change.takes_time());
        }
    }

    #[test]
    fn the_servers_version_says_how_resources_change() {
        for version in ["v1.34.2", "v1.34+", "v2.0.0"] {
            assert_eq!(
                VerticalScaling::of_server(version),
                VerticalScaling::Endpoint,
                "{version}"
            );
        }
        for version in ["v1.32.3+vendor.1", "1.32+gke.1", "v1.33.9"] {
            assert_eq!(
                VerticalScaling::of_server(version),
                VerticalScaling::RaisingEndpoint,
                "{version}"
            );
        }
        for version in ["v1.31.9", "garbage", "", "v1", "v1.x", "0.99.0"] {
            assert_eq!(
                VerticalScaling::of_server(version),
                VerticalScaling::Specification,
                "{version}"
            );
        }
    }

    #[test]
    fn an_earlier_change_adds_what_the_later_one_does_not_speak_of() {
        let mut later = Resize {
            amounts: json!({"limits": {"cpu": "3"}}),
            restarts: false,
        };
        later.take_over(Resize::recorded(json!({"limits": {"cpu": "2", "memory": "2Gi"}})));
        assert_eq!(later.amounts, json!({"limits": {"cpu": "3", "memory": "2Gi"}}));
        assert!(later.restarts);
    }

    /// A pod whose container asks for two processors, gets so much, and of which its node says this.
    fn resizing(given: Option<i64>, said: Option<(&str, &str, &str)>) -> PodView {
        let amounts = |cpu| {
            Box::new(AmountsView {
                cpu_limit: Some(cpu),
                ..AmountsView::default()
            })
        };
        let state =
            r#"{"revision":"r","updateTimestamp":null,"lastContainerStatuses":null,"updateResources":true}"#;
        PodView {
            annotations: [("apps.kruise.io/inplace-update-state", state)]
                .into_iter()
                .collect(),
            containers: Box::new([
                ContainerView {
                    name: "main".into(),
                    resources: Some(amounts(2000)),
                    ..ContainerView::default()
                },
                ContainerView {
                    name: "idle".into(),
                    ..ContainerView::default()
                },
            ]),
            statuses: ["main", "idle"]
                .map(|name| ContainerStatusView {
                    name: name.into(),
                    resources: given.filter(|_| name == "main").map(amounts),
                    ..ContainerStatusView::default()
                })
                .into(),
            conditions: said
                .map(|(kind, reason, message)| ConditionView {
                    reason: reason.into(),
                    message: message.into(),
                    ..fixture::condition(kind, Truth::True)
                })
                .into_iter()
                .collect(),
            ..PodView::default()
        }
    }

    fn words(pod: &PodView) -> String {
        match progress(pod, fixture::now()) {
            Progress::Waiting(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn an_update_waits_until_each_container_has_what_it_asks_for() {
        assert_eq!(words(&resizing(Some(2000), None)), "Complete");
        for given in [Some(1000), None] {
            assert_eq!(
                words(&resizing(given, None)),
                "container main does not have its new resources yet"
            );
        }
        let mut starting = resizing(Some(2000), None);
        starting.statuses = Box::new([]);
        assert!(words(&starting).contains("does not have"));
    }

    #[test]
    fn a_pod_waits_in_the_words_of_its_node() {
        for (said, words_said) in [
            (
                ("PodResizePending", "Infeasible", "capacity: 2000"),
                "its node can never give container main the resources that it asks for (Infeasible): capacity: 2000",
            ),
            (
                ("PodResizePending", "Deferred", ""),
                "its node has no room for the resources that container main asks for (Deferred)",
            ),
            (
                ("PodResizeInProgress", "Error", "cgroup"),
                "container main does not get its new resources (Error): cgroup",
            ),
            (
                ("PodResizeInProgress", "", ""),
                "container main does not have its new resources yet",
            ),
        ] {
            assert_eq!(words(&resizing(Some(1000), Some(said))), words_said);
        }
        // What the node still says of an earlier wish does not matter.
        let stale = ("PodResizePending", "Infeasible", "");
        assert_eq!(words(&resizing(Some(2000), Some(stale))), "Complete");
    }
}
