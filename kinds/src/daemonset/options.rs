//! Options of a plan, from feature gates and facts about the API server.

use kruise_frame::{leader::LeaderSettings, registration::ServerFacts};
use kruise_plan_workloads::daemonset::Options;
use kruise_runtime::Served;

/// Feature gate: jobs pull the images of an update before pods are updated.
pub(super) const IMAGES_AHEAD: &str = "PreDownloadImageForDaemonSetUpdate";

/// The options. How pods are bound is a flag, and no gate.
pub fn options(settings: &LeaderSettings, server: &ServerFacts, served: &Served) -> Options {
    let gates = &settings.gates;
    Options {
        prune_ineligible: gates.on("DaemonSetPruneIneligibleNodes"),
        by_scheduler: true,
        pod_ready_gate: gates.on("PodWebhook"),
        environment_from_metadata: gates.on("InPlaceUpdateEnvFromMetadata"),
        vertical_scaling: server.vertical_scaling,
        images_ahead: server.allows(gates, served, IMAGES_AHEAD, kruise_api::imagepulljob::RESOURCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kruise_frame::gates::Gates;

    fn with(gates: &str, served: &Served) -> Options {
        let settings = LeaderSettings {
            gates: Gates::parse(gates, "").unwrap(),
            exclude_preparing_delete: false,
        };
        options(&settings, &ServerFacts::default(), served)
    }

    #[test]
    fn without_flags_the_gates_have_the_defaults_that_plans_are_tested_with() {
        assert_eq!(with("", &Served::default()), Options::DEFAULT);
    }

    #[test]
    fn every_gate_changes_the_option_of_its_name() {
        let served: Served = [(&kruise_api::imagepulljob::KIND, "v1beta1")]
            .into_iter()
            .collect();
        let default = Options::DEFAULT;
        for (gates, expected) in [
            (
                "DaemonSetPruneIneligibleNodes=true",
                Options {
                    prune_ineligible: true,
                    ..default
                },
            ),
            (
                "PodWebhook=false",
                Options {
                    pod_ready_gate: false,
                    ..default
                },
            ),
            (
                "KruiseDaemon=false",
                Options {
                    environment_from_metadata: false,
                    ..default
                },
            ),
            (
                "PreDownloadImageForDaemonSetUpdate=true",
                Options {
                    images_ahead: true,
                    ..default
                },
            ),
        ] {
            assert_eq!(with(gates, &served), expected, "{gates}");
        }
        let unserved = with("PreDownloadImageForDaemonSetUpdate=true", &Served::default());
        assert!(!unserved.images_ahead);
    }
}
