//! Feature gates and flags that admission heeds.

use kruise_plan_kit::ledger::Gates;

/// What is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Fill in defaults of pod templates; off with gate `TemplateNoDefaults`.
    pub template_defaults: bool,
    /// Copy container ports to host ports under `hostNetwork`: gate `DefaultHostNetworkHostPortsInPodTemplates`.
    pub host_ports: bool,
    /// Templates may have privileged containers: flag `--allow-privileged`.
    pub allow_privileged: bool,
    /// Heed the deletion protection label: gate `ResourcesDeletionProtection`.
    pub deletion_protection: bool,
    /// Count the objects of a protected definition: gate `DeletionProtectionForCRDCascadingGate`.
    pub definitions_protection: bool,
    /// Every pod gets the readiness gate, whoever made it: gate `KruisePodReadinessGate`.
    pub readiness_gate_for_all: bool,
    /// Injected containers are sorted by name: gate `EnableSortSidecarContainerByName`.
    pub sort_sidecars: bool,
    /// Claims of a StatefulSet can be deleted with its pods: gate `StatefulSetAutoDeletePVC`.
    pub claims_deleted: bool,
    /// Claims of a StatefulSet can follow their templates: gate `StatefulSetAutoResizePVCGate`.
    pub claims_resized: bool,
    /// Pods of a CloneSet are made anew for other claim templates: gate `RecreatePodWhenChangeVCTInCloneSetGate`.
    pub claims_recreate: bool,
    /// The revision label of a CloneSet's pods is the hash alone: gate `CloneSetShortHash`.
    pub short_hash: bool,
    /// The pods of a StatefulSet can be numbered from another ordinal than 0: gate `StatefulSetStartOrdinal`.
    pub start_ordinal: bool,
    /// Nodes have a daemon of ours: gate `KruiseDaemon`.
    pub daemon: bool,
    /// Jobs may have nodes pull images: gate `ImagePullJobGate`.
    pub pull_jobs: bool,
    /// Objects are distributed to namespaces: gate `ResourceDistributionGate`.
    pub distributions: bool,
    /// Probes may mark pods: gate `PodProbeMarkerGate`.
    pub probe_markers: bool,
    /// New pods have their probes in annotations, for providers of serverless containers: gate
    /// `EnablePodProbeMarkerOnServerless`, where probes may mark pods at all.
    pub serverless_probes: bool,
    /// Without a whitelist SidecarSets may patch any annotation: gate `SidecarSetPatchPodMetadataDefaultsAllowed`.
    pub patch_metadata_by_default: bool,
    /// Workloads may be spread: gate `WorkloadSpread`.
    pub workload_spread: bool,
    /// CPU and memory of running containers may change: gate `InPlaceWorkloadVerticalScaling`.
    pub vertical_scaling: bool,
    /// What budgets of unavailable pods limit: gates `PodUnavailableBudgetDeleteGate`,
    /// `PodUnavailableBudgetUpdateGate` and `InPlacePodVerticalScaling`.
    pub budgets: Gates,
}

impl Options {
    /// The defaults of gates and flags.
    pub const DEFAULT: Self = Self {
        template_defaults: true,
        host_ports: false,
        allow_privileged: true,
        deletion_protection: false,
        definitions_protection: false,
        readiness_gate_for_all: false,
        sort_sidecars: false,
        claims_deleted: true,
        claims_resized: false,
        claims_recreate: false,
        short_hash: false,
        start_ordinal: false,
        daemon: true,
        pull_jobs: false,
        distributions: false,
        probe_markers: true,
        serverless_probes: false,
        patch_metadata_by_default: false,
        workload_spread: true,
        vertical_scaling: false,
        budgets: Gates::DEFAULT,
    };
}

impl Options {
    /// May there be budgets: is either of their gates on?
    pub(crate) fn has_budgets(&self) -> bool {
        self.budgets.deletions || self.budgets.updates
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}
