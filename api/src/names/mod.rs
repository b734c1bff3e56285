//! Keys of stored objects. They are wire format: with a typo here, workloads no longer find their pods.
//!
//! This is the one place where they are spelled; `cargo xtask tidy` checks that. Keys of one kind are in the file
//! of that kind, types and reasons of conditions in [`conditions`], reasons of events in [`events`]. Keys of kinds
//! without a controller are here too, because objects in clusters have them. Only reasons of events that are
//! written are listed.

pub mod advancedcronjob;
pub mod agent;
pub mod broadcastjob;
pub mod conditions;
pub mod containerrecreaterequest;
pub mod daemonset;
pub mod ephemeraljob;
pub mod events;
pub mod imagepulljob;
pub mod livenessprobe;
pub mod nodeimage;
pub mod persistentpodstate;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod resourcedistribution;
pub mod sidecarset;
pub mod sidecarterminator;
pub mod statefulset;
pub mod uniteddeployment;
pub mod workloadspread;

/// API group of the workload kinds.
pub const APPS_GROUP: &str = "apps.kruise.io";
/// Field manager of all writes, as the API server records it in `managedFields`.
pub const MANAGER: &str = "kruise-manager";

/// Environment variable: the namespace of the Secrets that node agents may read.
pub const AGENT_NAMESPACE_VARIABLE: &str = "KRUISE_DAEMON_CONFIG_NS";
/// Namespace of the Secrets that node agents may read, unless the environment names another one.
pub const AGENT_NAMESPACE: &str = "kruise-daemon-config";

/// Key of the configuration: kinds of workload of others whose replicas are in their specification.
pub const CUSTOM_WORKLOADS: &str = persistentpodstate::WORKLOADS;
/// Annotation of the Secret of the certificates: a release of our chart created it, so that its data is not in the
/// release.
pub const DATA_OF_THE_MANAGER: &str = "kruise.io/data-of-the-manager";

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
/// `ControllerRevision` annotation: hash of the template that the revision is for, as the workload has it.
/// OpenKruise drops fields that its types do not know from the revision.
pub const TEMPLATE_HASH: &str = "kruise.io/template-hash";
/// Annotation of kubectl, not copied to revisions.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Pod label, any value: the workload must delete and replace this pod.
pub const SPECIFIED_DELETE: &str = "apps.kruise.io/specified-delete";
/// Pod annotation: signed 32-bit cost, lower is deleted first.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// CloneSet label read by conversion only.
pub const EXCLUDE_PREPARING_DELETE: &str = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";
/// Label: `Always` or `Cascading` protects the object from deletion.
pub const DELETE_PROTECTION: &str = "policy.kruise.io/delete-protection";
/// Annotation: fields that the stored version of the object cannot hold, JSON. Conversion between versions restores
/// them.
pub const CONVERSION_DATA: &str = "kruise.io/conversion-data";
/// Annotation of the leader lease: the settings of the leader that decisions depend on, JSON.
pub const LEADER_SETTINGS: &str = "kruise.io/leader-settings";
/// Annotation of a webhook configuration: what was added to match conditions for objects about to be stored, JSON.
pub const WIDENED_CONDITIONS: &str = "kruise.io/widened-match-conditions";
/// Annotation form of `imagePreDownloadParallelism` in `v1alpha1`.
pub const PREDOWNLOAD_PARALLELISM: &str = "apps.kruise.io/image-predownload-parallelism";
/// Annotation form of `imagePreDownloadTimeoutSeconds` in `v1alpha1`.
pub const PREDOWNLOAD_TIMEOUT: &str = "apps.kruise.io/image-predownload-timeout-seconds";
/// Annotation form of `imagePreDownloadMinUpdatedReadyPods` in `v1alpha1`.
pub const PREDOWNLOAD_MIN_READY: &str = "apps.kruise.io/image-predownload-min-updated-ready-pods";
/// `ControllerRevision` label, spelled so on the wire: jobs that pull its images ahead were created.
pub const PREDOWNLOAD_CREATED: &str = "apps.kruise.io/pre-predownload-created";
/// `ControllerRevision` label: its images are not pulled ahead.
pub const PREDOWNLOAD_IGNORED: &str = "apps.kruise.io/image-predownload-ignored";

/// Pod label: lifecycle state.
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
/// Pod annotation written by the node agent: hashes of the running containers, JSON.
pub const RUNTIME_CONTAINERS_META: &str = "apps.kruise.io/runtime-containers-meta";

/// Readiness gate and condition: False during an in-place update.
pub const IN_PLACE_UPDATE_READY: &str = "InPlaceUpdateReady";
/// Readiness gate and condition: False while a lifecycle hook or a ContainerRecreateRequest keeps the pod not ready.
pub const KRUISE_POD_READY: &str = "KruisePodReady";
/// Pod condition written by the kubelet: a resize waits for free resources on its node, or is impossible there.
pub const POD_RESIZE_PENDING: &str = "PodResizePending";
/// Pod condition written by the kubelet: all containers are being restarted, whatever `Ready` says.
pub const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";
/// Pod condition written by the kubelet: a resize is in progress.
pub const POD_RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";

/// Pod annotation: `Ordered` starts the containers one after the other, in the order of the specification.
pub const LAUNCH_PRIORITY: &str = "apps.kruise.io/container-launch-priority";
/// Pod annotation, `true`: every container may start.
pub const LAUNCH_COMPLETED: &str = "apps.kruise.io/container-launch-priority-completed";
/// Environment variable: an integer; containers with higher numbers start first.
pub const LAUNCH_PRIORITY_VARIABLE: &str = "KRUISE_CONTAINER_PRIORITY";
/// Environment variable that refers to key `p_<n>` of the pod's barrier ConfigMap. The kubelet does not start the
/// container until the key exists.
pub const LAUNCH_BARRIER_VARIABLE: &str = "KRUISE_CONTAINER_BARRIER";
/// Label of barrier ConfigMaps.
pub const LAUNCH_BARRIER_LABEL: &str = "apps.kruise.io/container-launch-barrier";
/// Selects barriers.
pub const LAUNCH_BARRIER_SELECTOR: &str = "apps.kruise.io/container-launch-barrier=true";

/// API group of the budgets.
pub const POLICY_GROUP: &str = "policy.kruise.io";

/// Is an API group one of this project?
pub fn is_ours(group: &str) -> bool {
    group.ends_with(".kruise.io")
}
