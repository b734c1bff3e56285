//! Keys that live on stored objects. They are wire format: a typo here orphans somebody's pods.
//!
//! This is the one place where they are spelled; `cargo xtask tidy` holds that. Those of one family of kinds are in a file
//! of their own, types and reasons of conditions in [`conditions`], reasons of events in [`events`]. Names of kinds that
//! nothing acts on yet are here like their fields: objects in clusters have them. Reasons of events are those that are
//! written.

pub mod budgets;
pub mod conditions;
pub mod events;
pub mod images;
pub mod jobs;
pub mod numbered;
pub mod placement;
pub mod probes;
pub mod sidecars;

/// API group of the workload kinds.
pub const APPS_GROUP: &str = "apps.kruise.io";
/// What this program calls itself to the API server, which remembers it as the writer of fields.
pub const MANAGER: &str = "kruise-manager";

/// Pod and PVC label: the instance id, five characters, that also ends the names of both.
pub const INSTANCE_ID: &str = "apps.kruise.io/cloneset-instance-id";
/// Pod label: the revision, full name or (gate `CloneSetShortHash`) hash only.
pub const REVISION_HASH: &str = "controller-revision-hash";
/// Pod label: always the bare revision hash.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";
/// `ControllerRevision` label: the hash in its name.
pub const CONTROLLER_HASH: &str = "controller.kubernetes.io/hash";
/// `ControllerRevision` annotation: hash of the volume claim templates, `""` when there are none.
pub const CLAIM_TEMPLATES_HASH: &str = "kruise.io/cloneset-volumeclaimtemplate-hash";
/// kubectl's own annotation, not copied to revisions.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Pod label, any value: the workload must delete and replace this pod.
pub const SPECIFIED_DELETE: &str = "apps.kruise.io/specified-delete";
/// SidecarSet annotation, `true`: pods that were made without the set's sidecars are made again. Not of OpenKruise.
pub const RECREATE_UNINJECTED: &str = "apps.kruise.io/sidecarset-recreate-uninjected";
/// Pod annotation: signed 32-bit cost, lower is deleted first.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// CloneSet label read by conversion only.
pub const EXCLUDE_PREPARING_DELETE: &str = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";
/// Label: `Always` or `Cascading` protects the object from deletion.
pub const DELETE_PROTECTION: &str = "policy.kruise.io/delete-protection";
/// Annotation holding what an older served version cannot express (rulings: conversion is lossless).
pub const CONVERSION_DATA: &str = "kruise.io/conversion-data";
/// Annotation of the leader lease: how its holder decides.
pub const LEADER_SETTINGS: &str = "kruise.io/leader-settings";
/// Annotation form of `imagePreDownloadParallelism` in `v1alpha1`.
pub const PREDOWNLOAD_PARALLELISM: &str = "apps.kruise.io/image-predownload-parallelism";
/// Annotation form of `imagePreDownloadTimeoutSeconds` in `v1alpha1`.
pub const PREDOWNLOAD_TIMEOUT: &str = "apps.kruise.io/image-predownload-timeout-seconds";
/// Annotation form of `imagePreDownloadMinUpdatedReadyPods` in `v1alpha1`.
pub const PREDOWNLOAD_MIN_READY: &str = "apps.kruise.io/image-predownload-min-updated-ready-pods";
/// `ControllerRevision` label, spelled so on the wire: jobs that pull its images ahead were made.
pub const PREDOWNLOAD_CREATED: &str = "apps.kruise.io/pre-predownload-created";
/// `ControllerRevision` label: its images are not worth pulling ahead.
pub const PREDOWNLOAD_IGNORED: &str = "apps.kruise.io/image-predownload-ignored";

/// Pod label: where the pod is in its life.
pub const LIFECYCLE_STATE: &str = "lifecycle.apps.kruise.io/state";
/// Pod annotation: when [`LIFECYCLE_STATE`] last changed, RFC 3339.
pub const LIFECYCLE_TIMESTAMP: &str = "lifecycle.apps.kruise.io/timestamp";

/// Pod annotation: progress of the current in-place update, JSON.
pub const INPLACE_STATE: &str = "apps.kruise.io/inplace-update-state";
/// Older key of [`INPLACE_STATE`]: read as a fallback, deleted when the state is written.
pub const INPLACE_STATE_LEGACY: &str = "inplace-update-state";
/// Pod annotation: the change held back by the grace period, JSON.
pub const INPLACE_GRACE: &str = "apps.kruise.io/inplace-update-grace";
/// Older key of [`INPLACE_GRACE`].
pub const INPLACE_GRACE_LEGACY: &str = "inplace-update-grace";
/// Pod annotation written by the node daemon: hashes of what really runs, JSON.
pub const RUNTIME_CONTAINERS_META: &str = "apps.kruise.io/runtime-containers-meta";

/// Readiness gate and condition: False while an in-place update is under way.
pub const IN_PLACE_UPDATE_READY: &str = "InPlaceUpdateReady";
/// Readiness gate and condition: False while a lifecycle hook or a container recreation asks for it.
pub const KRUISE_POD_READY: &str = "KruisePodReady";
/// Condition that a kubelet sets: a change of resources waits for room on its node, or can never be made there.
pub const POD_RESIZE_PENDING: &str = "PodResizePending";
/// Condition that a kubelet sets: a change of resources is under way.
pub const POD_RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";

/// Pod annotation: `Ordered` starts the containers one after the other, as they are listed.
pub const LAUNCH_PRIORITY: &str = "apps.kruise.io/container-launch-priority";
/// Pod annotation: every container may start, nothing is left to be ordered.
pub const LAUNCH_COMPLETED: &str = "apps.kruise.io/container-launch-priority-completed";
/// Variable of a container: a number; containers with higher ones start first.
pub const LAUNCH_PRIORITY_VARIABLE: &str = "KRUISE_CONTAINER_PRIORITY";
/// Variable whose key `p_<n>` in the pod's barrier holds a container back until those with a higher number run.
pub const LAUNCH_BARRIER_VARIABLE: &str = "KRUISE_CONTAINER_BARRIER";
/// Label of barriers, by which they are told from all other ConfigMaps.
pub const LAUNCH_BARRIER_LABEL: &str = "apps.kruise.io/container-launch-barrier";
/// Selects barriers.
pub const LAUNCH_BARRIER_SELECTOR: &str = "apps.kruise.io/container-launch-barrier=true";

/// Namespace label that the API server sets to the namespace's name.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// SidecarSet label in `v1alpha1`, and label of its revisions: `spec.customVersion`.
pub const SIDECARSET_CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";
/// DaemonSet annotation form of `scaleStrategy.partitionedScaling`: `"true"`.
pub const PROGRESSIVE_CREATE_POD: &str = "daemonset.kruise.io/progressive-create-pod";
/// API group of the budgets.
pub const POLICY_GROUP: &str = "policy.kruise.io";
/// PodUnavailableBudget annotation form of `protectOperations` in `v1alpha1`: a comma-separated list.
pub const PUB_PROTECT_OPERATIONS: &str = "kruise.io/pub-protect-operations";
/// PodUnavailableBudget annotation form of `protectTotalReplicas` in `v1alpha1`: a number.
pub const PUB_PROTECT_TOTAL_REPLICAS: &str = "pub.kruise.io/protect-total-replicas";
/// ContainerRecreateRequest annotation form of `status.containerStatusSnapshot` in `v1alpha1`: JSON.
pub const CRR_SYNC_CONTAINER_STATUSES: &str = "crr.apps.kruise.io/sync-container-statuses";
/// ContainerRecreateRequest annotation in `v1alpha1`: when the pod was taken out of service, RFC 3339.
pub const CRR_UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";
/// ContainerRecreateRequest finalizer, spelled as the annotation: its pod is out of service on its behalf.
pub const CRR_UNREADY_FINALIZER: &str = CRR_UNREADY_ACQUIRED;
/// ContainerRecreateRequest label, `"true"` until it is over.
pub const CRR_ACTIVE: &str = "crr.apps.kruise.io/active";
/// ContainerRecreateRequest label: uid of the pod.
pub const CRR_POD_UID: &str = "crr.apps.kruise.io/pod-uid";
/// ContainerRecreateRequest label: node of the pod.
pub const CRR_NODE_NAME: &str = "crr.apps.kruise.io/node-name";
/// Node label, and label of requests for its pods: what kind of node it is.
pub const NODE_TYPE: &str = "type";
/// Value of [`NODE_TYPE`] of a node that is no machine.
pub const VIRTUAL_KUBELET: &str = "virtual-kubelet";
/// Pod condition: its job is over, and its sidecars were ended.
pub const SIDECAR_TERMINATED: &str = "SidecarTerminated";
/// ContainerRecreateRequest condition: the pod has been taken out of service before its containers stop.
pub const PRE_RECREATE_GRACE: &str = "PreRecreateGrace";
