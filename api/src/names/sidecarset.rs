//! Keys of SidecarSets, of their revisions, and of the pods they inject into. Wire format.

/// Namespace label that the API server sets to the namespace's name.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// SidecarSet label in `v1alpha1`, and label of its revisions: `spec.customVersion`.
pub const CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";
/// SidecarSet annotation, `true`: pods that were created without the sidecars of the SidecarSet are recreated.
/// OpenKruise does not have it.
pub const RECREATE_UNINJECTED: &str = "apps.kruise.io/sidecarset-recreate-uninjected";
/// Annotation of a SidecarSet and of its revisions: hash of the containers. Of a pod: JSON, the hash and time of each
/// injected SidecarSet.
pub const HASH: &str = "kruise.io/sidecarset-hash";
/// As [`HASH`], of the containers without their images. Never changed on a pod by an upgrade.
pub const HASH_WITHOUT_IMAGE: &str = "kruise.io/sidecarset-hash-without-image";
/// Pod annotation: names of the injected SidecarSets, sorted, joined by commas.
pub const INJECTED_LIST: &str = "kruise.io/sidecarset-injected-list";
/// Pod annotation: progress of in-place upgrades, JSON by SidecarSet.
pub const INPLACE_STATE: &str = "kruise.io/sidecarset-inplace-update-state";
/// Pod annotation: JSON, which of the two containers of each hot-upgraded sidecar works.
pub const WORKING: &str = "kruise.io/sidecarset-working-hotupgrade-container";
/// Prefix of a pod annotation that ends in the name of a container: its version.
pub const VERSION_PREFIX: &str = "version.sidecarset.kruise.io/";
/// Prefix of a pod annotation that ends in the name of a container: the version of the other container of a
/// hot-upgraded sidecar.
pub const VERSION_ALT_PREFIX: &str = "versionalt.sidecarset.kruise.io/";
/// Label of a revision: name of its SidecarSet.
pub const SET_NAME: &str = "kruise.io/sidecarset-name";
/// Annotation of a SidecarSet, `true`: it replaces the one that [`CANARY_BASE`] names, for the pods that it matches.
pub const CANARY: &str = "apps.kruise.io/sidecarset-canary";
/// Annotation of a canary: name of the SidecarSet that it replaces.
pub const CANARY_BASE: &str = "apps.kruise.io/sidecarset-base";
/// Key of the configuration: pod annotations that SidecarSets may patch.
pub const PATCH_WHITELIST: &str = "SidecarSet_PatchPodMetadata_WhiteList";
/// Environment variable of injected containers, `true`.
pub const ENV_INJECTED: &str = "IS_INJECTED";
/// Environment variable of a container that is upgraded hot: its own version.
pub const ENV_VERSION: &str = "SIDECARSET_VERSION";
/// Environment variable of a container that is upgraded hot: the version of the other one.
pub const ENV_VERSION_ALT: &str = "SIDECARSET_VERSION_ALT";
