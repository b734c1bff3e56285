//! Keys and inputs.

use std::sync::Arc;

use kruise_api::advancedcronjob::{AdvancedCronJob, KIND};
use kruise_frame::caches::owners;
use kruise_runtime::Served;
use kruise_views::ScheduledJobView;
use kube_cache::{Delta, ObjectKey};
use serde_json::json;

use super::Inputs;

fn job(namespace: &str, owner: (&str, &str, &str)) -> Arc<ScheduledJobView> {
    let (api_version, kind, uid) = owner;
    let job = json!({"metadata": {"name": "nightly-1", "namespace": namespace, "uid": "j", "resourceVersion": "2",
        "ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "nightly", "uid": uid, "controller": true}]}});
    Arc::new(serde_json::from_value(job).unwrap())
}

#[test]
fn a_job_enqueues_its_schedule_whichever_version_its_owner_reference_names() {
    for (api_version, kind, found) in [
        ("apps.kruise.io/v1alpha1", "AdvancedCronJob", true),
        ("apps.kruise.io/v1beta1", "AdvancedCronJob", true),
        ("batch/v1", "CronJob", false),
        ("example.com/v1", "AdvancedCronJob", false),
    ] {
        let delta = Delta {
            old: None,
            new: Some(job("ops", (api_version, kind, "u"))),
        };
        let keys: Vec<ObjectKey> = owners(&KIND, &delta).collect();
        let wanted = ObjectKey::new("ops", "nightly");
        assert_eq!(
            keys,
            Vec::from_iter(found.then_some(wanted)),
            "{api_version} {kind}"
        );
    }
}

#[test]
fn jobs_are_found_by_the_uid_of_their_owner_and_not_by_its_name() {
    let cron = AdvancedCronJob::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "nightly", "namespace": "ops", "uid": "u"},
        "spec": {"schedule": "@daily", "template": {"jobTemplate": {"spec": {}}}},
    }))
    .unwrap();
    let own = ("apps.kruise.io/v1alpha1", "AdvancedCronJob", "u");
    let earlier = ("apps.kruise.io/v1beta1", "AdvancedCronJob", "earlier");
    let all = vec![job("ops", own), job("ops", earlier), job("elsewhere", own)];
    let inputs = Inputs::new(&cron, &Served::default(), all);
    assert_eq!(inputs.jobs, [job("ops", own)]);
    assert_eq!(inputs.job_api_version.as_deref(), Some("batch/v1"));
}
