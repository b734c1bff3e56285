//! Options of reviews, from feature gates and flags.

use kruise_admission::Options;
use kruise_frame::{
    config::Config,
    gates::{BUDGET_DELETIONS, BUDGET_UPDATES, DEFINITIONS_PROTECTION, DELETION_PROTECTION, Gates},
};
use kruise_plan_kit::ledger;

use super::podprobemarker::SERVERLESS;

/// The options.
pub fn options(config: &Config) -> Options {
    Options {
        template_defaults: !config.gates.on("TemplateNoDefaults"),
        host_ports: config.gates.on("DefaultHostNetworkHostPortsInPodTemplates"),
        allow_privileged: config.allow_privileged,
        deletion_protection: config.gates.on(DELETION_PROTECTION),
        definitions_protection: config.gates.on(DEFINITIONS_PROTECTION),
        readiness_gate_for_all: config.gates.on("KruisePodReadinessGate"),
        sort_sidecars: config.gates.on("EnableSortSidecarContainerByName"),
        claims_deleted: config.gates.on("StatefulSetAutoDeletePVC"),
        claims_resized: config.gates.on("StatefulSetAutoResizePVCGate"),
        claims_recreate: config.gates.on("RecreatePodWhenChangeVCTInCloneSetGate"),
        short_hash: config.gates.on("CloneSetShortHash"),
        start_ordinal: config.gates.on("StatefulSetStartOrdinal"),
        daemon: config.gates.on("KruiseDaemon"),
        pull_jobs: config.gates.on("ImagePullJobGate"),
        distributions: config.gates.on("ResourceDistributionGate"),
        probe_markers: config.gates.on("PodProbeMarkerGate"),
        serverless_probes: config.gates.on(SERVERLESS) && config.gates.on("PodProbeMarkerGate"),
        patch_metadata_by_default: config.gates.on("SidecarSetPatchPodMetadataDefaultsAllowed"),
        workload_spread: config.gates.on("WorkloadSpread"),
        vertical_scaling: config.gates.on("InPlaceWorkloadVerticalScaling"),
        budgets: budgets(&config.gates),
    }
}

/// What budgets limit.
pub fn budgets(gates: &Gates) -> ledger::Gates {
    ledger::Gates {
        deletions: gates.on(BUDGET_DELETIONS),
        updates: gates.on(BUDGET_UPDATES),
        resizes_apart: gates.on("InPlacePodVerticalScaling"),
    }
}
