//! Keys of StatefulSets, of their pods and of their claims. Wire format.

/// Label of a StatefulSet's pod: its own name.
pub const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Label of a StatefulSet's pod: its ordinal.
pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// Annotation of a claim that follows its template: name of the StatefulSet.
pub const CLAIM_OWNER: &str = "apps.kruise.io/owned-by-asts";
/// What precedes the error in the message of condition [`FAILED_CREATE_POD`](super::conditions::FAILED_CREATE_POD).
pub const CREATE_FAILED: &str = "StatefulPodControl failed to create Pod error: ";
/// What precedes the error in the message of condition [`FAILED_UPDATE_POD`](super::conditions::FAILED_UPDATE_POD).
pub const UPDATE_FAILED: &str = "StatefulPodControl failed to update Pod error: ";
/// StorageClass annotation, `true`: the class of claims that name none.
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
