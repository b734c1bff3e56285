//! The agents of nodes: they report results of the probes that NodePodProbes list, as OpenKruise's agent does.

use super::start::{PROBES, RESULT};
use crate::rules::prelude::*;

/// How often an agent looks at its node.
const PAUSE: Duration = Duration::from_secs(1);

/// Reports the results of all nodes, for ever.
pub async fn attend(cluster: Arc<Cluster>) {
    loop {
        sleep(PAUSE).await;
        let reports = cluster.look(|state| {
            let now = state.world.now();
            let nodes = state.mirror.of(PROBES).now();
            let reports = nodes.filter_map(|node| {
                let statuses = report(node, &state.mirror, now)?;
                Some((node.name.clone(), node.version, statuses))
            });
            reports.collect::<Vec<_>>()
        });
        for (name, version, statuses) in reports {
            let metadata = json!({"resourceVersion": version.to_string()});
            let patch = json!({"metadata": metadata, "status": {"podProbeStatuses": statuses}});
            let path = format!("{}/{name}/status", PROBES.path());
            let request = Request::new(Method::Patch, &path, Some(&patch)).content_type(MERGE);
            // A conflict is tried again with what is there then.
            insist(&cluster, request).await;
        }
    }
}

/// The results that the agent of a node reports now, if they are others.
fn report(node: &Object, mirror: &Mirror, now: Timestamp) -> Option<Vec<Value>> {
    let before = list(&node.status()["podProbeStatuses"]);
    let results = |entry: &Value| {
        let uid = entry["uid"].as_str()?;
        let pod = mirror.of(PODS).now().find(|pod| *pod.uid == *uid)?;
        let known = before.iter().find(|status| status["uid"] == uid);
        let known = known.map_or(&[][..], |status| list(&status["probeStates"]));
        let state = pod.annotations()[RESULT].as_str().unwrap_or("Succeeded");
        let probes = items(&entry["probes"]);
        let states: Vec<Value> = probes
            .map(|probe| result(&probe["name"], state, known, now))
            .collect();
        Some(
            json!({"name": entry["name"], "namespace": entry["namespace"], "uid": uid, "probeStates": states}),
        )
    };
    let after: Vec<Value> = items(&node.spec()["podProbes"]).filter_map(results).collect();
    (after != before).then_some(after)
}

/// The result of a probe: as it was reported, or new.
fn result(name: &Value, state: &str, known: &[Value], now: Timestamp) -> Value {
    let before = known.iter().find(|one| one["name"] == *name);
    if let Some(same) = before.filter(|one| one["state"] == state) {
        return same.clone();
    }
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({"name": name, "state": state, "lastProbeTime": at, "lastTransitionTime": at})
}
