//! The workload of a subset as it is to be.

mod placement;

use go_compat::{IntOrString, Rounding, json::to_go_json};
use kruise_api::{
    cloneset::convert::V1ALPHA1,
    convert::convert_as,
    meta::StringMap,
    names::uniteddeployment::{SUBSET_NAME, SUBSET_PATCH, SUBSET_REVISION},
    uniteddeployment::{Child, Subset, UnitedDeployment},
};
use kruise_plan_kit::put;
use kube_schema::{patch::strategic, table::Table};
use serde_json::{Map, Value, json};

use crate::change::without_nulls;

/// Where CloneSets of the newest version say that new pods get the claims of deleted ones.
const ENABLE_PVC_REUSE: [&str; 2] = ["scaleStrategy", "enablePVCReuse"];

/// What a workload is made from.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) united: &'a UnitedDeployment,
    pub(crate) child: Child,
    /// The template of the workload: its `metadata` and `spec`.
    pub(crate) template: &'a Value,
    /// Name of the revision that the template is of.
    pub(crate) revision: &'a str,
    pub(crate) subset: &'a Subset,
    /// The patch of the pod template.
    pub(crate) patch: Option<&'a Value>,
    pub(crate) share: Share,
    /// The version in which the workload is served.
    pub(crate) api_version: &'a str,
}

/// What one subset gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) replicas: i32,
    pub(crate) partition: i32,
    /// How many pods may be unavailable during an update; `None` for what the template says.
    pub(crate) max_unavailable: Option<i32>,
}

/// The patch of a subset, as the annotation has it.
pub(crate) fn patch_text(patch: Option<&Value>) -> String {
    patch.map(to_go_json).unwrap_or_default()
}

/// The patch in an annotation.
pub(crate) fn patch_of(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

impl Parts<'_> {
    /// The workload in the newest version, without a name and owners. Fails, in plain words, if the patch does not fit.
    pub(crate) fn build(&self) -> Result<Value, String> {
        let selector = &self.united.spec.selector;
        let kruise = [(SUBSET_REVISION, self.revision), (SUBSET_NAME, &self.subset.name)];
        let kruise = kruise.map(|(key, value)| (key.to_owned(), Value::from(value)));
        let mut labels = members(self.template.pointer("/metadata/labels"));
        labels.extend(values(&selector.match_labels));
        labels.extend(kruise.clone());
        let mut annotations = members(self.template.pointer("/metadata/annotations"));
        annotations.insert(SUBSET_PATCH.to_owned(), patch_text(self.patch).into());

        let mut spec = Value::Object(members(self.template.get("spec")));
        let mut of_subset = selector.clone();
        of_subset
            .match_labels
            .insert(SUBSET_NAME.to_owned(), self.subset.name.clone());
        put(
            &mut spec,
            &["selector"],
            serde_json::to_value(of_subset).unwrap_or_default(),
        );
        put(&mut spec, &["replicas"], self.share.replicas.into());
        let mut pods = Value::Object(members(spec.get("template")));
        let mut pod_labels = members(pods.pointer("/metadata/labels"));
        pod_labels.extend(kruise);
        put(&mut pods, &["metadata", "labels"], Value::Object(pod_labels));
        placement::apply(&mut pods, self.subset);
        put(&mut spec, &["template"], self.patched(pods)?);
        self.limit_update(&mut spec);
        if self.keeps_claims() {
            put(&mut spec, &ENABLE_PVC_REUSE, true.into());
        }

        let metadata = json!({"labels": labels, "annotations": annotations});
        let mut object = json!({"apiVersion": self.child.api_version(), "kind": self.child.kind(),
            "metadata": metadata, "spec": spec});
        without_nulls(&mut object);
        Ok(object)
    }

    /// Does the version in which a CloneSet is served decide what becomes of its claims? The template says nothing
    /// about it: what that means differs between the versions, and the older one keeps claims.
    pub(crate) fn keeps_claims(&self) -> bool {
        let said = ENABLE_PVC_REUSE
            .iter()
            .try_fold(self.template.get("spec").unwrap_or(&Value::Null), |value, key| {
                value.get(*key)
            });
        self.child == Child::CloneSet && self.api_version == V1ALPHA1 && said.is_none_or(Value::is_null)
    }

    fn patched(&self, pods: Value) -> Result<Value, String> {
        let table = Table::builtin();
        // A pod template has the members of a pod that a patch is for.
        let Some((patch, of)) = self.patch.zip(table.find("core/v1.Pod")) else {
            return Ok(pods);
        };
        let patched = strategic(table, of, pods, patch.clone());
        patched.map_err(|error| format!("the patch of subset {} does not fit: {error}", self.subset.name))
    }

    /// Partition and `maxUnavailable`.
    fn limit_update(&self, spec: &mut Value) {
        let Some(path) = partition_path(self.child, spec) else {
            if self.child == Child::Deployment {
                self.limit_unavailable(spec, "strategy");
            }
            return;
        };
        put(spec, &path, self.share.partition.into());
        if self.child == Child::StatefulSet {
            put(spec, &["updateStrategy", "type"], "RollingUpdate".into());
        }
        if self.child == Child::CloneSet {
            self.limit_unavailable(spec, "updateStrategy");
        }
    }

    fn limit_unavailable(&self, spec: &mut Value, strategy: &str) {
        let recreates = spec
            .pointer("/strategy/type")
            .is_some_and(|kind| kind == "Recreate");
        if let Some(max) = self.share.max_unavailable.filter(|_| !recreates) {
            put(spec, &[strategy, "rollingUpdate", "maxUnavailable"], max.into());
        }
    }
}

/// Where the partition is; `None` if there is none.
fn partition_path(child: Child, spec: &Value) -> Option<[&'static str; 3]> {
    let kind = spec.pointer("/updateStrategy/type").and_then(Value::as_str);
    let rolls = matches!(kind, None | Some("" | "RollingUpdate"));
    let has_one = match child {
        Child::StatefulSet | Child::AdvancedStatefulSet => rolls,
        Child::CloneSet => true,
        Child::Deployment => false,
    };
    has_one.then_some(["updateStrategy", "rollingUpdate", "partition"])
}

/// What of the share of a subset its workload has.
pub(crate) fn share_of(child: Child, object: &Value) -> Share {
    let none = Value::Null;
    let object = newest(child, object);
    let spec = object.get("spec").unwrap_or(&none);
    let number = |value: Option<&Value>| {
        value
            .and_then(Value::as_i64)
            .and_then(|value| i32::try_from(value).ok())
    };
    let replicas = number(spec.get("replicas")).unwrap_or(1);
    let partition = spec.pointer("/updateStrategy/rollingUpdate/partition");
    let partition = partition.and_then(|value| serde_json::from_value::<IntOrString>(value.clone()).ok());
    let strategy = if child == Child::Deployment {
        "strategy"
    } else {
        "updateStrategy"
    };
    let max = spec.pointer(&format!("/{strategy}/rollingUpdate/maxUnavailable"));
    Share {
        replicas,
        partition: partition.map_or(0, |value| value.scaled_b(replicas, Rounding::Up)),
        max_unavailable: number(max),
    }
}

/// Whether a workload has the share that a subset is to have. `desired` is the workload that it is to be.
pub(crate) fn has_share(child: Child, desired: &Value, actual: &Value, reserves: bool) -> bool {
    let (wanted, present) = (share_of(child, desired), share_of(child, actual));
    let spec = desired.get("spec").unwrap_or(&Value::Null);
    let partition_matters = partition_path(child, spec).is_some();
    // Only a subset with reserved pods has a maxUnavailable of ours: in place of that of the template, or of the
    // default.
    let max_matters = reserves && matches!(child, Child::Deployment | Child::CloneSet);
    wanted.replicas == present.replicas
        && (!partition_matters || wanted.partition == present.partition)
        && (!max_matters || wanted.max_unavailable == present.max_unavailable)
}

/// An object in the version of plans.
fn newest(child: Child, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(kind) = child.definition() {
        // What cannot be converted is read as it is.
        drop(convert_as(kind, &mut object, child.api_version()));
    }
    object
}

/// An object as the cluster serves it. Fails if it cannot be converted.
pub(crate) fn served(child: Child, mut object: Value, api_version: &str) -> Result<Value, String> {
    if let Some(kind) = child.definition() {
        convert_as(kind, &mut object, api_version).map_err(|error| error.to_string())?;
    }
    Ok(object)
}

fn members(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn values(map: &StringMap) -> impl Iterator<Item = (String, Value)> {
    map.iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
}
