//! Keys of ContainerRecreateRequests and of the nodes of their pods. Wire format.

/// ContainerRecreateRequest annotation form of `status.containerStatusSnapshot` in `v1alpha1`: JSON.
pub const SYNC_CONTAINER_STATUSES: &str = "crr.apps.kruise.io/sync-container-statuses";
/// ContainerRecreateRequest annotation in `v1alpha1`: when the pod was made not ready, RFC 3339.
pub const UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";
/// ContainerRecreateRequest finalizer, spelled as the annotation: its pod is not ready because of the request.
pub const UNREADY_FINALIZER: &str = UNREADY_ACQUIRED;
/// `userAgent` of the keys in the message of `KruisePodReady` by which requests keep their pods out of service.
pub const READINESS_WRITER: &str = "ContainerRecreateRequest";
/// ContainerRecreateRequest label, `"true"` until the request is finished.
pub const ACTIVE: &str = "crr.apps.kruise.io/active";
/// ContainerRecreateRequest label: uid of the pod.
pub const POD_UID: &str = "crr.apps.kruise.io/pod-uid";
/// ContainerRecreateRequest label: node of the pod.
pub const NODE_NAME: &str = "crr.apps.kruise.io/node-name";
/// Node label, and label of requests for its pods: what kind of node it is.
pub const NODE_TYPE: &str = "type";
/// Value of [`NODE_TYPE`] of a virtual node.
pub const VIRTUAL_KUBELET: &str = "virtual-kubelet";
