//! Keys of SidecarSets, of their revisions, and of the pods they inject into. Wire format.

/// Namespace label that the API server sets to the namespace's name.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// SidecarSet label in `v1alpha1`, and label of its revisions: `spec.customVersion`.
pub const CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";
/// SidecarSet annotation, `true`: pods that were made without the set's sidecars are made again. Not of OpenKruise.
pub const RECREATE_UNINJECTED: &str = "apps.kruise.io/sidecarset-recreate-uninjected";
/// Annotation of a set and of its revisions: hash of the containers. Of a pod: JSON, see `Records` of plan-kit.
pub const HASH: &str = "kruise.io/sidecarset-hash";
/// As [`HASH`], of the containers without their images. Never changed on a pod by an upgrade.
pub const HASH_WITHOUT_IMAGE: &str = "kruise.io/sidecarset-hash-without-image";
/// Pod annotation: names of the sets injected, sorted, joined by commas.
pub const INJECTED_LIST: &str = "kruise.io/sidecarset-injected-list";
/// Pod annotation: progress of upgrades in place, JSON by set.
pub const INPLACE_STATE: &str = "kruise.io/sidecarset-inplace-update-state";
/// Pod annotation: JSON, which of two containers does the work of each sidecar that is upgraded hot.
pub const WORKING: &str = "kruise.io/sidecarset-working-hotupgrade-container";
/// Prefix of a pod annotation that ends in the name of a container: its version.
pub const VERSION_PREFIX: &str = "version.sidecarset.kruise.io/";
/// Prefix of a pod annotation that ends in the name of a container: the version of its twin.
pub const VERSION_ALT_PREFIX: &str = "versionalt.sidecarset.kruise.io/";
/// Label of a revision: name of its set.
pub const SET_NAME: &str = "kruise.io/sidecarset-name";
/// Annotation of a set, `true`: it stands in for the one that [`CANARY_BASE`] names.
pub const CANARY: &str = "apps.kruise.io/sidecarset-canary";
/// Annotation of a canary: name of the set it stands in for.
pub const CANARY_BASE: &str = "apps.kruise.io/sidecarset-base";
/// Key of the configuration: annotations of pods that sets may patch.
pub const PATCH_WHITELIST: &str = "SidecarSet_PatchPodMetadata_WhiteList";
/// Environment variable of injected containers, `true`.
pub const ENV_INJECTED: &str = "IS_INJECTED";
/// Environment variable of a hot twin: its own version.
pub const ENV_VERSION: &str = "SIDECARSET_VERSION";
/// Environment variable of a hot twin: the version of the other.
pub const ENV_VERSION_ALT: &str = "SIDECARSET_VERSION_ALT";
