//! Schedules that OpenKruise stored.

use std::{fs, path::Path};

use jiff::tz::TimeZone;
use kruise_api::advancedcronjob::{AdvancedCronJob, KIND};
use kruise_plan_kit::{Explain, Memory};
use kruise_plan_workloads::advancedcronjob::{Snapshot, plan};
use serde_json::Value;

#[test]
fn stored_schedules_of_three_versions_are_read_and_at_rest_until_their_next_activation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    for version in ["1.8.4", "1.9.0", "main"] {
        for stage in ["rest", "mid"] {
            let file = folder
                .join(version)
                .join(format!("{stage}-advancedcronjobs.json"));
            let stored: Vec<Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            assert!(!stored.is_empty(), "{}", file.display());
            for object in stored {
                let cron = AdvancedCronJob::from_value(object).unwrap();
                let created = cron.metadata.creation_timestamp.unwrap();
                let snapshot = Snapshot {
                    cron: &cron,
                    api_version: &cron.api_version,
                    job_api_version: Some("apps.kruise.io/v1beta1"),
                    jobs: &[],
                    local: &TimeZone::UTC,
                    memory: &Memory::default(),
                    explain: Explain::No,
                };
                let plan = plan(&snapshot, created);
                let name = format!("{version} {stage} {} {}", KIND.kind, cron.metadata.name);
                assert_eq!(
                    (plan.writes, plan.status, plan.events),
                    Default::default(),
                    "{name}"
                );
                assert!(plan.requeue.is_some(), "{name}");
            }
        }
    }
}
