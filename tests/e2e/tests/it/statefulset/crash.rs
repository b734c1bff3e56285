//! A manager that is killed in the middle of an ordered rollout: nothing is done twice, out of order, or at the
//! same time.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kruise_e2e::audit::MANAGER;
use kruise_e2e::manager::SHORT_LEASE;
use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{
    all_in_service, at_every_moment, claims, db, ended, image, in_service, is_terminating, most_unavailable,
    name, patch, pods, revision, rolling, set, template, uids, until, until_updated, watch_pods, with_claims,
};
use crate::claims::storage_class;
use crate::cluster::{Flagged, audit_log, restart_manager, scenario_alone, text};
use crate::crash::{Writes, until_held};

const PODS: u32 = 4;

/// Kills per test run; `KRUISE_E2E_CRASHES` sets another number.
fn crashes() -> u32 {
    std::env::var("KRUISE_E2E_CRASHES").map_or(2, |text| text.parse().unwrap())
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_manager_killed_in_an_ordered_rollout_repeats_nothing_and_keeps_the_order() {
    let scenario = scenario_alone("statefulset-crash");
    let random = RandomState::new();
    let _flagged = Flagged::shared(scenario.kubectl.kubeconfig(), SHORT_LEASE);
    until_held(&scenario, 2);
    storage_class(&scenario);
    scenario
        .kubectl
        .apply(&with_claims(db(PODS), "host-path"))
        .unwrap();
    let replicas = PODS as usize;
    until_updated(&scenario, replicas);
    // Slow enough for a kill in the middle.
    patch(&scenario, &rolling(&json!({"minReadySeconds": 1})));
    let bound = uids(&claims(&scenario));
    let mut half_way = 0;
    for run in 0..crashes() {
        let before = uids(&pods(&scenario));
        let old = text(&set(&scenario), "/status/updateRevision");
        // Even runs update in place, odd ones recreate.
        let in_place = run % 2 == 0;
        let watch = watch_pods(&scenario, replicas);
        let mut log = audit_log();
        patch(
            &scenario,
            &template(
                &format!("nginx:{run}-0"),
                &"b".repeat(1 + run.div_ceil(2) as usize),
            ),
        );
        until(&scenario, "pods", "the first pod is changed", |pods| {
            pods.len() < replicas
                || pods
                    .values()
                    .any(|pod| is_terminating(pod) || revision(pod) != old)
        });
        let moment = Duration::from_millis(random.hash_one(run) % 1000);
        wait::observe_for(moment);
        let mut requests = log.read_new(MANAGER).unwrap();
        let begun = Writes::of(&requests, "statefulset-crash");
        restart_manager(scenario.kubectl.kubeconfig(), SHORT_LEASE);
        until_updated(&scenario, replicas);
        let newest = text(&set(&scenario), "/status/updateRevision");
        let updated = |pod: &Value| revision(pod) == newest;
        let events = ended(watch, "the end", |pods| {
            pods.len() == replicas && all_in_service(pods) && pods.values().all(updated)
        });
        requests.extend(log.read_new(MANAGER).unwrap());
        let writes = Writes::of(&requests, "statefulset-crash");
        let at = format!("run {run} at {moment:?}: {writes:?}");
        half_way += u32::from(!begun.done.is_empty() && begun.done.len() < writes.done.len());
        assert_eq!(most_unavailable(&events, replicas), 1, "{at}");
        at_every_moment(&events, |pods, changed| {
            if updated(changed) || is_terminating(changed) {
                let mut above = pods.values().filter(|pod| name(pod) > name(changed));
                assert!(above.all(|pod| updated(pod) && in_service(pod)), "{at}: {pods:?}");
            }
        });
        let (recreated, patched) = if in_place { (0, PODS) } else { (PODS, 0) };
        assert!(
            writes.once("create", recreated)
                && writes.once("delete", recreated)
                && writes.once("patch", patched),
            "{at}"
        );
        let after = uids(&pods(&scenario));
        assert!(
            before.iter().all(|(name, uid)| (after[name] == *uid) == in_place),
            "{at}"
        );
        assert!(
            pods(&scenario)
                .values()
                .all(|pod| image(pod) == format!("nginx:{run}-0"))
        );
        assert_eq!(uids(&claims(&scenario)), bound, "{at}");
    }
    println!("{} kills, {half_way} half-way through the pods", crashes());
    assert!(half_way > 0, "no kill was in the middle of a rollout");
}
