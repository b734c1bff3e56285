//! Options of a plan, from feature gates, flags and facts about the API server.

use kruise_frame::{leader::LeaderSettings, registration::ServerFacts};
use kruise_plan_workloads::cloneset::Options;
use kruise_runtime::Served;

/// Feature gate: jobs pull the images of an update before pods are updated.
pub(super) const IMAGES_AHEAD: &str = "PreDownloadImageForInPlaceUpdate";

/// The options.
pub fn options(settings: &LeaderSettings, server: &ServerFacts, served: &Served) -> Options {
    let gates = &settings.gates;
    Options {
        vertical_scaling: server.vertical_scaling,
        short_hash: gates.on("CloneSetShortHash"),
        preparing_update_as_update: gates.on("PreparingUpdateAsUpdate"),
        partition_rollback: gates.on("CloneSetPartitionRollback"),
        exclude_preparing_delete: settings.exclude_preparing_delete,
        pod_ready_gate: gates.on("PodWebhook"),
        environment_from_metadata: gates.on("InPlaceUpdateEnvFromMetadata"),
        recreate_for_claims: gates.on("RecreatePodWhenChangeVCTInCloneSetGate"),
        images_ahead: server.allows(gates, served, IMAGES_AHEAD, kruise_api::imagepulljob::RESOURCE),
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::inplace::VerticalScaling;

    use super::*;
    use kruise_frame::gates::Gates;

    /// With these gates, where jobs that pull images are served or not.
    fn with(gates: &str, images_ahead: bool) -> Options {
        let settings = LeaderSettings {
            gates: Gates::parse(gates, "").unwrap(),
            exclude_preparing_delete: false,
        };
        let server = ServerFacts {
            vertical_scaling: VerticalScaling::Off,
            ..ServerFacts::default()
        };
        let jobs = images_ahead.then_some((&kruise_api::imagepulljob::KIND, "v1beta1"));
        options(&settings, &server, &jobs.into_iter().collect())
    }

    #[test]
    fn images_are_pulled_ahead_with_the_gate_where_jobs_are_served() {
        let gate = "PreDownloadImageForInPlaceUpdate=true";
        assert!(with(gate, true).images_ahead);
        assert!(!with(gate, false).images_ahead && !with("", true).images_ahead);
    }

    #[test]
    fn without_the_daemon_its_reports_are_not_waited_for() {
        for (gates, followed) in [
            ("", true),
            ("KruiseDaemon=false", false),
            ("InPlaceUpdateEnvFromMetadata=false", false),
        ] {
            assert_eq!(with(gates, false).environment_from_metadata, followed, "{gates}");
        }
    }
}
