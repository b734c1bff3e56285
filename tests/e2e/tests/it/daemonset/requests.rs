//! What a pod costs in requests, by the API server's own count, and how many nodes lack a ready pod meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use kruise_e2e::audit::{AuditLog, Counts, Entry, MANAGER};
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::{Nodes, agent, image, in_service, patch, uids, until_status_within};
use crate::cluster::{LIMIT, scenario, text};

/// Writes to a pod, in hundredths.
pub(crate) const CREATE: u64 = 205;
const IN_PLACE: u64 = 305;

/// Nodes; `KRUISE_E2E_REPLICAS` sets another number.
pub(crate) fn count() -> usize {
    std::env::var("KRUISE_E2E_REPLICAS").map_or(20, |text| text.parse().unwrap())
}

/// Holds that the writes to pods since the last time are within the bar; `log` is the scenario's. Returns the
/// number of all writes.
pub(crate) fn hold(log: &mut AuditLog, what: &str, bar: u64, pods: usize) -> usize {
    // Coalesced status comes late.
    wait::observe_for(Duration::from_secs(2));
    let requests = log.read_new(MANAGER).unwrap();
    let writes: Vec<&Entry> = requests.iter().filter(|request| request.is_write()).collect();
    let of_pods: Vec<&Entry> = writes
        .iter()
        .copied()
        .filter(|request| request.resource.starts_with("pods"))
        .collect();
    let others = writes.len() - of_pods.len();
    println!(
        "{what}, {pods} pods: {} writes ({}), {others} others",
        of_pods.len(),
        Counts::of(of_pods.iter().copied())
    );
    assert!(!of_pods.is_empty(), "{what}: nothing was counted");
    // Of few pods one may be written once more: a refused write is repeated.
    assert!(of_pods.len() as u64 * 100 <= bar * pods as u64 + 199, "{what}");
    writes.len()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_daemonset_is_updated_in_place_on_a_tenth_of_its_nodes_at_a_time_for_three_requests_a_pod() {
    let scenario = scenario("daemonset-requests");
    let pods = count();
    let nodes = Nodes::new(&scenario, pods);
    let mut log = scenario.audit_log();
    let limit = LIMIT + Duration::from_secs(pods as u64);
    let rolling = json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "10%"});
    scenario.kubectl.apply(&agent(&nodes, &rolling)).unwrap();
    until_status_within(
        limit,
        &scenario,
        &json!({"numberAvailable": pods, "desiredNumberScheduled": pods}),
    );
    hold(&mut log, "create", CREATE, pods);

    let before = uids(&scenario);
    let watch = Watch::start(&scenario.kubectl, "pods", "app=agent").unwrap();
    watch.until_shown(pods, LIMIT).unwrap();
    patch(&scenario, &image("nginx:2"));
    let updated = json!({"numberAvailable": pods, "updatedNumberScheduled": pods, "numberUnavailable": null});
    until_status_within(limit, &scenario, &updated);
    hold(&mut log, "in place", IN_PLACE, pods);
    assert_eq!(uids(&scenario), before, "every pod stays");
    let mut seen: BTreeMap<String, Value> = BTreeMap::new();
    let mut most = 0;
    for event in watch.stop().unwrap() {
        let pod = &event["object"];
        seen.insert(text(pod, "/metadata/name"), pod.clone());
        if seen.len() == pods {
            let out = seen.values().filter(|pod| !in_service(pod)).count();
            most = most.max(out);
        }
    }
    assert!(
        (1..=pods.div_ceil(10)).contains(&most),
        "{most} of {pods} pods out of service at once"
    );
}
