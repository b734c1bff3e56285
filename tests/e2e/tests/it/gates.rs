//! What feature gates of upstream's change.

use kruise_e2e::manager::SHORT_LEASE;
use serde_json::json;

use crate::cluster::{Flagged, container, scenario_alone, web};

#[test]
fn a_raised_partition_takes_updated_pods_back_in_place() {
    let Some(scenario) = scenario_alone("partition-rollback") else {
        return;
    };
    let kubeconfig = scenario.kubectl.kubeconfig();
    let gate = ["--feature-gates=CloneSetPartitionRollback=true"];
    let _flagged = Flagged::shared(kubeconfig, &[SHORT_LEASE, &gate].concat());
    let partition = |count: u32| json!({"spec": {"updateStrategy": {"partition": count}}});
    let mut set = web(4);
    set["spec"]["updateStrategy"]["partition"] = json!(1);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4}));
    let uids = scenario.uids();
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 3}));

    scenario.patch(&partition(3));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReplicas": 1, "updatedReadyReplicas": 1}));
    scenario.patch(&partition(0));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 4}));
    assert_eq!(scenario.uids(), uids, "in place, there and back");
}
