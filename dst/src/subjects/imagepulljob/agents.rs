//! The agents of nodes: they pull what NodeImages list, and report it as OpenKruise's agent does.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_sim::{Method, Request};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::start::{NODE_IMAGES, Start};
use crate::engine::{
    cluster::Cluster,
    object::Object,
    random::{Purpose, Random},
    user::{MERGE, insist},
};

/// Which pulls fail.
const RESULTS: Purpose = Purpose(901);
/// How often an agent looks at its node.
const PAUSE: Duration = Duration::from_secs(1);
/// Label of a node whose agent is silent.
pub const SILENT: &str = "dst/silent";

/// Reports what becomes of the tags of all nodes, for ever.
pub async fn attend(cluster: Arc<Cluster>, start: Start, seed: u64) {
    loop {
        sleep(PAUSE).await;
        let (nodes, now) = cluster.look(|state| {
            let nodes = state.mirror.of(NODE_IMAGES).now().cloned();
            (nodes.collect::<Vec<_>>(), state.world.now())
        });
        for node in nodes {
            if node.label(SILENT).is_empty()
                && let Some(status) = report(&node, &start, seed, now)
            {
                let metadata = json!({"resourceVersion": node.version.to_string()});
                let patch = json!({"metadata": metadata, "status": status});
                let path = format!("{}/{}/status", NODE_IMAGES.path(), node.name);
                let request = Request::new(Method::Patch, &path, Some(&patch)).content_type(MERGE);
                // A conflict is tried again with what is there then.
                insist(&cluster, request).await;
            }
        }
    }
}

/// The status that the agent of a node reports now, if it is another one.
fn report(node: &Object, start: &Start, seed: u64, now: Timestamp) -> Option<Value> {
    let (spec, before) = (
        &node.value()["spec"]["images"],
        &node.value()["status"]["imageStatuses"],
    );
    let names = |of: &Value| {
        of.as_object()
            .map(|all| all.keys().cloned().collect::<BTreeSet<String>>())
    };
    let (listed, reported) = (names(spec).unwrap_or_default(), names(before).unwrap_or_default());
    let mut statuses = json!({});
    for gone in reported.difference(&listed) {
        statuses[gone] = Value::Null;
    }
    let mut count = 0;
    for name in &listed {
        let tags = spec[name]["tags"].as_array().cloned().unwrap_or_default();
        count += tags.len();
        let known = before[name]["tags"].as_array().cloned().unwrap_or_default();
        let new: Vec<Value> = tags
            .iter()
            .map(|tag| state(node, name, tag, &known, start, seed, now))
            .collect();
        if new != known {
            statuses[name] = json!({"tags": new});
        }
    }
    let is_same = statuses.as_object().is_some_and(serde_json::Map::is_empty);
    (!is_same).then(|| json!({"desired": count, "imageStatuses": statuses}))
}

/// How pulling a tag is.
fn state(
    node: &Object,
    name: &str,
    tag: &Value,
    known: &[Value],
    start: &Start,
    seed: u64,
    now: Timestamp,
) -> Value {
    let version = tag["version"].as_i64().unwrap_or(0);
    let of_round = known
        .iter()
        .find(|one| one["tag"] == tag["tag"] && one["version"].as_i64().unwrap_or(0) == version);
    let text = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let fresh = || {
        let mut status = json!({"tag": tag["tag"], "phase": "Pulling", "progress": 0, "startTime": text});
        if version != 0 {
            status["version"] = version.into();
        }
        status
    };
    let Some(status) = of_round else { return fresh() };
    if !status["completionTime"].is_null() {
        return status.clone();
    }
    let Some(began) = status["startTime"]
        .as_str()
        .and_then(|text| text.parse::<Timestamp>().ok())
    else {
        // The manager gave up waiting.
        return fresh();
    };
    if now.duration_since(began).as_secs() < i64::from(start.seconds) {
        return status.clone();
    }
    let mut ended = status.clone();
    ended["completionTime"] = text.into();
    let salt = format!("{}/{name}/{}/{version}", node.name, tag["tag"]);
    let salt = salt.bytes().fold(seed, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    if Random::new(salt, RESULTS).percent(start.failing) {
        ended["phase"] = "Failed".into();
        ended["message"] = "no such image".into();
    } else {
        ended["phase"] = "Succeeded".into();
        ended["progress"] = 100.into();
    }
    ended
}
