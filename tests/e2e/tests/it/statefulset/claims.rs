//! Claims that go with their pods or their set, and claims that come back.

use std::collections::BTreeMap;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use super::{
    CLAIMS, at_every_moment, claims, is_terminating, name, names, parallel, patch, pods, set, uid, uids,
    until, until_status, with_claims,
};
use crate::claims::{hold, release, storage_class};
use crate::cluster::{LIMIT, scenario, text};

/// Kind and uid of the only owner of a claim, if it has one.
fn owner(claim: &Value) -> Option<(String, String)> {
    let owners = claim["metadata"]["ownerReferences"].as_array()?;
    assert_eq!(owners.len(), 1, "{claim}");
    assert!(owners[0]["controller"].is_null(), "{claim}");
    Some((text(&owners[0], "/kind"), text(&owners[0], "/uid")))
}

fn policy(scaled: &str, deleted: &str) -> Value {
    json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted}}})
}

fn is_gone(kubectl: &Kubectl, resource: &str) -> anyhow::Result<bool> {
    Ok(kubectl.list(resource, "app=db")?.is_empty())
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn claims_go_with_their_pods_or_their_set_as_the_policy_says_and_come_back_fresh() {
    let scenario = scenario("statefulset-retention");
    storage_class(&scenario);
    scenario
        .kubectl
        .apply(&with_claims(parallel(3), "host-path"))
        .unwrap();
    until_status(&scenario, &json!({"readyReplicas": 3}));
    let before = uids(&claims(&scenario));
    patch(&scenario, &policy("Delete", "Retain"));
    // The pod stays for a while, and with it its claim.
    let old = uid(&pods(&scenario)["db-1"]);
    hold(&scenario, "db-1");
    let watch = Watch::start(&scenario.kubectl, CLAIMS, "app=db").unwrap();
    watch.until_shown(3, LIMIT).unwrap();
    patch(&scenario, &json!({"spec": {"replicas": 1}}));
    until(&scenario, CLAIMS, "the claim of db-2 is gone", |claims| {
        names(claims) == ["data-db-0", "data-db-1"]
    });
    assert_eq!(
        owner(&claims(&scenario)["data-db-1"]),
        Some(("Pod".into(), old.clone()))
    );
    // Wanted again before its name and its claim are free.
    patch(&scenario, &json!({"spec": {"replicas": 3}}));
    until(&scenario, "pods", "db-2 is back", |pods| {
        names(pods) == ["db-0", "db-1", "db-2"]
    });
    release(&scenario, "db-1");
    until(&scenario, "pods", "db-1 is another pod", |pods| {
        pods.get("db-1").is_some_and(|pod| uid(pod) != old)
    });
    until_status(&scenario, &json!({"replicas": 3, "readyReplicas": 3}));
    let after = claims(&scenario);
    let fresh: Vec<&str> = names(&after);
    assert_eq!(fresh, ["data-db-0", "data-db-1", "data-db-2"]);
    let same = |(name, uid): &(&String, &String)| before[*name] == **uid;
    let after_uids = uids(&after);
    let kept: Vec<_> = after_uids.iter().filter(same).map(|(name, _)| name).collect();
    assert_eq!(kept, ["data-db-0"]);
    assert!(after.values().all(|claim| owner(claim).is_none()), "{after:?}");
    at_every_moment(&watch.stop().unwrap(), |_, changed| {
        if name(changed) == "data-db-0" {
            assert!(owner(changed).is_none() && !is_terminating(changed), "{changed}");
        }
    });

    patch(&scenario, &policy("Delete", "Delete"));
    let owned = ("StatefulSet".to_owned(), uid(&set(&scenario)));
    until(&scenario, CLAIMS, "the set owns its claims", |claims| {
        claims.len() == 3 && claims.values().all(|claim| owner(claim).as_ref() == Some(&owned))
    });
    scenario.kubectl.run(&["delete", "asts", "db"]).unwrap();
    wait::until_true("pods and claims are gone", wait::QUIET, || {
        Ok(is_gone(&scenario.kubectl, "pods")? && is_gone(&scenario.kubectl, CLAIMS)?)
    })
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_without_a_node_gets_its_deleted_claim_again() {
    let scenario = scenario("statefulset-pending");
    storage_class(&scenario);
    let mut set = with_claims(parallel(1), "host-path");
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"lab.test/nowhere": "yes"});
    scenario.kubectl.apply(&set).unwrap();
    until(&scenario, "pods", "the pod waits for a node", |pods| {
        pods.values()
            .any(|pod| super::condition(pod, "PodScheduled")["status"] == "False")
    });
    let (pod, claim) = (uids(&pods(&scenario)), uids(&claims(&scenario)));
    let delete = ["delete", CLAIMS, "data-db-0", "--wait=false"];
    scenario.kubectl.run(&delete).unwrap();
    let another = |now: &BTreeMap<String, String>| now.keys().eq(claim.keys()) && *now != claim;
    until(&scenario, CLAIMS, "another claim has the name", |claims| {
        another(&uids(claims)) && claims.values().all(|claim| !is_terminating(claim))
    });
    assert_eq!(uids(&pods(&scenario)), pod);
}
