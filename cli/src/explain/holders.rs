//! What of Kruise holds a pod or a workload of Kubernetes: the object that owns it, else what guards or
//! changes its pods.

use std::fmt::Write as _;

use anyhow::Context;
use kruise_api::{
    meta::{LabelSelector, StringMap},
    persistentpodstate, podunavailablebudget, sidecarset, workloadspread,
};
use kruise_frame::json::text;
use serde::Deserialize;
use serde_json::Value;

use super::{Explaining, can_be_explained};
use crate::resources::{PODS, Resource, of_object};

/// Owners above each other, at most.
const DEPTH: usize = 5;

/// Where a name of a workload is in the kinds that are for workloads.
const TARGETS: [&str; 2] = ["/spec/targetRef", "/spec/targetReference"];

impl Explaining<'_> {
    /// An object that is not of Kruise.
    pub(super) async fn of_kubernetes(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<String> {
        let object = self.cluster.get(resource, namespace, name).await;
        let object = object.with_context(|| format!("cannot read {} {namespace}/{name}", resource.kind))?;
        let pod = (*resource == PODS).then_some(name);
        let mut chain = vec![(*resource, object)];
        while let Some((owner, name)) = chain.last().and_then(|(_, object)| controller(object)) {
            if owner.is_ours && can_be_explained(&owner) {
                return self.ours(&owner, namespace, &name, pod).await;
            }
            let known = self.cluster.get(&owner, namespace, &name).await;
            let Ok(object) = known else { break };
            chain.push((owner, object));
            if chain.len() > DEPTH {
                break;
            }
        }
        self.around(&chain, namespace, pod).await
    }

    /// What is for the pods of these objects, each of which owns the one before.
    async fn around(
        &self,
        chain: &[(Resource, Value)],
        namespace: &str,
        pod: Option<&str>,
    ) -> anyhow::Result<String> {
        let mut found = Vec::new();
        for kind in [
            &podunavailablebudget::KIND,
            &workloadspread::KIND,
            &persistentpodstate::KIND,
            &sidecarset::KIND,
        ] {
            let resource = Resource::of(kind);
            // What is not served or may not be read holds nothing that can be told of.
            let all = self
                .cluster
                .list(&resource, Some(namespace))
                .await
                .unwrap_or_default();
            let names = all.iter().filter(|holder| holds(holder, chain));
            found.extend(names.map(|holder| (resource, text(holder, "/metadata/name").to_owned())));
        }
        let (resource, object) = chain.first().context("there is no object")?;
        let name = format!("{}/{}", resource.plural, text(object, "/metadata/name"));
        if found.is_empty() {
            return Ok(format!(
                "{name} in namespace {namespace} is not of Kruise, and no PodUnavailableBudget, WorkloadSpread, \
                 PersistentPodState or SidecarSet is for it.\n"
            ));
        }
        let mut text = format!("{name} in namespace {namespace} is not of Kruise. For its pods there are:\n");
        for (resource, holder) in found {
            let explained = self.ours(&resource, namespace, &holder, pod).await;
            // One that does not know the pod yet is explained as a whole.
            let explained = match explained {
                Err(_) if pod.is_some() => self.ours(&resource, namespace, &holder, None).await?,
                explained => explained?,
            };
            let _infallible = write!(text, "\n{explained}");
        }
        Ok(text)
    }
}

/// The controller of an object: its resource, if that is known, and its name.
fn controller(object: &Value) -> Option<(Resource, String)> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let resource = of_object(text(owner, "/apiVersion"), text(owner, "/kind"))?;
    Some((resource, text(owner, "/name").to_owned()))
}

/// Is an object for the pods of these others? By the name of a workload, else by the labels of its pods.
fn holds(holder: &Value, chain: &[(Resource, Value)]) -> bool {
    let is_named = |target: &Value| {
        let resource = of_object(text(target, "/apiVersion"), text(target, "/kind"));
        let mut chain = chain.iter();
        chain.any(|(of, object)| {
            resource == Some(*of) && text(target, "/name") == text(object, "/metadata/name")
        })
    };
    if let Some(target) = TARGETS.iter().find_map(|path| holder.pointer(path)) {
        return is_named(target);
    }
    let selector = holder.pointer("/spec/selector");
    let Some(selector) = selector.and_then(|selector| LabelSelector::deserialize(selector).ok()) else {
        return false;
    };
    let labels = chain.first().map(|(resource, object)| labels(resource, object));
    !selector.is_empty() && labels.is_some_and(|labels| selector.matches(&labels))
}

/// The labels of a pod, or of the pods of a workload.
fn labels(resource: &Resource, object: &Value) -> StringMap {
    let paths: &[&str] = match (*resource == PODS, resource.kind) {
        (true, _) => &["/metadata/labels"],
        (_, "CronJob") => &["/spec/jobTemplate/spec/template/metadata/labels"],
        _ => &["/spec/template/metadata/labels"],
    };
    let labels = paths.iter().find_map(|path| object.pointer(path));
    let labels = labels.and_then(|labels| StringMap::deserialize(labels).ok());
    labels.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::named;

    fn deployment() -> Vec<(Resource, Value)> {
        let object = json!({"metadata": {"name": "web"},
            "spec": {"template": {"metadata": {"labels": {"app": "web"}}}}});
        vec![(named("deploy")[0], object)]
    }

    #[test]
    fn what_names_the_workload_or_selects_its_pods_is_for_it() {
        let target = |name: &str, kind: &str| json!({"spec": {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}, "selector": {}}});
        assert!(holds(&target("web", "Deployment"), &deployment()));
        assert!(!holds(&target("web", "StatefulSet"), &deployment()));
        assert!(!holds(&target("api", "Deployment"), &deployment()));
        let selector = |app: &str| json!({"spec": {"selector": {"matchLabels": {"app": app}}}});
        assert!(holds(&selector("web"), &deployment()) && !holds(&selector("api"), &deployment()));
        assert!(
            !holds(&json!({"spec": {"selector": {}}}), &deployment()),
            "an empty one selects nothing"
        );
    }

    #[test]
    fn the_controller_among_the_owners_of_an_object_is_the_one_that_holds_it() {
        let pod = json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n"},
            {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "controller": true}]}});
        let (resource, name) = controller(&pod).unwrap();
        assert_eq!((resource.plural, name.as_str()), ("clonesets", "web"));
        assert_eq!(controller(&json!({"metadata": {}})), None);
    }
}
