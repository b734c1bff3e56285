//! Options of a plan, from feature gates and facts about the API server.

use kruise_frame::{leader::LeaderSettings, registration::ServerFacts};
use kruise_plan_kit::ResourceId;
use kruise_plan_workloads::statefulset::Options;
use kruise_runtime::Served;

/// Feature gate: claims grow with their templates.
pub(super) const RESIZE_CLAIMS: &str = "StatefulSetAutoResizePVCGate";

/// Feature gate: jobs pull the images of an update before pods are updated.
pub(super) const IMAGES_AHEAD: &str = "PreDownloadImageForInPlaceUpdate";

/// The options.
pub fn options(settings: &LeaderSettings, server: &ServerFacts, served: &Served) -> Options {
    let gates = &settings.gates;
    Options {
        start_ordinal: gates.on("StatefulSetStartOrdinal"),
        delete_claims: gates.on("StatefulSetAutoDeletePVC"),
        resize_claims: server.allows(gates, served, RESIZE_CLAIMS, ResourceId::STORAGE_CLASSES),
        index_label: gates.on("PodIndexLabel"),
        preparing_update_as_update: gates.on("PreparingUpdateAsUpdate"),
        pod_ready_gate: gates.on("PodWebhook"),
        environment_from_metadata: gates.on("InPlaceUpdateEnvFromMetadata"),
        vertical_scaling: server.vertical_scaling,
        images_ahead: server.allows(gates, served, IMAGES_AHEAD, kruise_api::imagepulljob::RESOURCE),
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::inplace::VerticalScaling;

    use super::*;
    use kruise_frame::gates::Gates;

    fn with(gates: &str, served: &Served, denied: &[ResourceId]) -> Options {
        let settings = LeaderSettings {
            gates: Gates::parse(gates, "").unwrap(),
            exclude_preparing_delete: false,
        };
        let server = ServerFacts {
            denied: denied.iter().copied().collect(),
            ..ServerFacts::default()
        };
        options(&settings, &server, served)
    }

    #[test]
    fn without_flags_the_gates_have_the_defaults_that_plans_are_tested_with() {
        assert_eq!(with("", &Served::default(), &[]), Options::DEFAULT);
    }

    #[test]
    fn every_gate_changes_the_option_of_its_name() {
        let served: Served = [(&kruise_api::imagepulljob::KIND, "v1beta1")]
            .into_iter()
            .collect();
        let default = Options::DEFAULT;
        let changed = |gates| with(gates, &served, &[]);
        for (gates, expected) in [
            (
                "StatefulSetStartOrdinal=true",
                Options {
                    start_ordinal: true,
                    ..default
                },
            ),
            (
                "StatefulSetAutoDeletePVC=false",
                Options {
                    delete_claims: false,
                    ..default
                },
            ),
            (
                "StatefulSetAutoResizePVCGate=true",
                Options {
                    resize_claims: true,
                    ..default
                },
            ),
            (
                "PodIndexLabel=false",
                Options {
                    index_label: false,
                    ..default
                },
            ),
            (
                "PreparingUpdateAsUpdate=true",
                Options {
                    preparing_update_as_update: true,
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
                "PreDownloadImageForInPlaceUpdate=true",
                Options {
                    images_ahead: true,
                    ..default
                },
            ),
        ] {
            assert_eq!(changed(gates), expected, "{gates}");
        }
    }

    #[test]
    fn running_containers_are_resized_as_the_server_can() {
        let settings = LeaderSettings {
            gates: Gates::parse("", "").unwrap(),
            exclude_preparing_delete: false,
        };
        let server = ServerFacts {
            vertical_scaling: VerticalScaling::Endpoint,
            ..ServerFacts::default()
        };
        let options = options(&settings, &server, &Served::default());
        assert_eq!(options.vertical_scaling, VerticalScaling::Endpoint);
    }

    #[test]
    fn claims_are_resized_and_images_pulled_only_where_classes_and_jobs_may_be_listed() {
        let gates = "StatefulSetAutoResizePVCGate=true,PreDownloadImageForInPlaceUpdate=true";
        let served: Served = [(&kruise_api::imagepulljob::KIND, "v1beta1")]
            .into_iter()
            .collect();
        let denied = [ResourceId::STORAGE_CLASSES, kruise_api::imagepulljob::RESOURCE];
        assert_eq!(with(gates, &served, &denied), Options::DEFAULT);
        // Without the definition of ImagePullJobs.
        assert!(!with(gates, &Served::default(), &[]).images_ahead);
    }
}
