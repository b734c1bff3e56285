//! Nodes that change, below kinds that run a pod on each of them.

use crate::engine::boot;
use crate::rules::prelude::*;

/// Label of nodes: `a` or `b`.
pub const POOL: &str = "pool";
/// Key of the taint that users put on nodes.
pub const TAINT: &str = "dedicated";

/// What happens to a node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum NodeEdit {
    /// It joins the cluster; means nothing if it is there.
    Join,
    /// It leaves the cluster.
    Leave,
    /// It changes to another pool.
    Pool(String),
    /// It has a taint with this effect, and no other one of users; empty for none.
    Taint(String),
    /// It is cordoned, or not any more.
    Cordon(bool),
    /// Its condition `Ready`: `True`, `False`, or `Unknown` if it does not answer.
    Ready(String),
}

impl NodeEdit {
    /// Does it end what would keep a workload from its end?
    pub fn is_release(&self) -> bool {
        *self == Self::Ready("True".into())
    }
}

/// The label of nodes of a pool; null for none.
pub fn pool(name: &str) -> Value {
    if name.is_empty() {
        Value::Null
    } else {
        json!({POOL: name})
    }
}

/// Name of the node with a number.
pub fn node_name(number: u8) -> String {
    format!("n{number}")
}

/// The pool of a node that joins.
pub fn first_pool(number: u8) -> &'static str {
    if number.is_multiple_of(3) { "b" } else { "a" }
}

/// A node that joins.
pub fn node(number: u8) -> Value {
    let mut node = boot::node(&node_name(number));
    node["metadata"]["labels"][POOL] = first_pool(number).into();
    node
}

/// The taint that users put on nodes.
pub fn taint(effect: &str) -> Value {
    json!({"key": TAINT, "value": "yes", "effect": effect})
}

/// So many nodes are there.
pub async fn prepare(cluster: &Arc<Cluster>, nodes: u8) {
    for number in 1..=nodes {
        if boot::NODES.contains(&node_name(number).as_str()) {
            edit(cluster, number, &NodeEdit::Pool(first_pool(number).into())).await;
        } else {
            edit(cluster, number, &NodeEdit::Join).await;
        }
    }
}

/// Changes a node. False if that is refused, or means nothing now.
pub async fn edit(cluster: &Arc<Cluster>, number: u8, edit: &NodeEdit) -> bool {
    let path = format!("{}/{}", NODES.path(), node_name(number));
    let patch = match edit {
        NodeEdit::Join => return user::create(cluster, &NODES.path(), &node(number)).await,
        NodeEdit::Leave => return user::delete(cluster, &path).await,
        NodeEdit::Pool(pool) => json!({"metadata": {"labels": {POOL: pool}}}),
        NodeEdit::Taint(effect) => match tainted(cluster, number, effect) {
            Some(taints) => json!({"spec": {"taints": taints}}),
            None => return false,
        },
        NodeEdit::Cordon(cordoned) => json!({"spec": {"unschedulable": cordoned}}),
        NodeEdit::Ready(status) => {
            let condition = json!({"type": "Ready", "status": status});
            let body = json!({"status": {"conditions": [condition]}});
            let request = Request::new(Method::Patch, &format!("{path}/status"), Some(&body));
            return insist(
                cluster,
                request.content_type("application/strategic-merge-patch+json"),
            )
            .await;
        }
    };
    user::patch(cluster, &path, &patch).await
}

/// The taints of a node, with another one of users; nothing if there is no such node.
fn tainted(cluster: &Arc<Cluster>, number: u8, effect: &str) -> Option<Vec<Value>> {
    cluster.look(|state| {
        let node = state.mirror.of(NODES).named(&node_name(number))?;
        let others = items(&node.spec()["taints"]).filter(|one| one["key"] != TAINT);
        let added = (!effect.is_empty()).then(|| taint(effect));
        Some(others.cloned().chain(added).collect())
    })
}

/// Something that happens to a node and need not end.
pub fn random(random: &mut Random) -> NodeEdit {
    match random.between(0, 99) {
        0..26 => NodeEdit::Join,
        26..44 => NodeEdit::Leave,
        44..56 => NodeEdit::Pool(any_pool(random)),
        56..76 => {
            NodeEdit::Taint(random.text(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]))
        }
        76..86 => NodeEdit::Taint(String::new()),
        _ => NodeEdit::Cordon(random.percent(60)),
    }
}

/// A pool.
pub fn any_pool(random: &mut Random) -> String {
    random.text(&["a", "a", "b"])
}

/// The node that a pod is on, or is pinned to.
pub fn node_of(pod: &Object) -> Option<&str> {
    let spec = pod.spec();
    spec["nodeName"].as_str().or_else(|| pinned(spec))
}

/// The node that a pod is pinned to by name.
pub fn pinned(spec: &Value) -> Option<&str> {
    let affinity = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let [term] = affinity["nodeSelectorTerms"].as_array()?.as_slice() else {
        return None;
    };
    let [field] = term["matchFields"].as_array()?.as_slice() else {
        return None;
    };
    let is_name = field["key"] == "metadata.name" && field["operator"] == "In";
    match field["values"].as_array()?.as_slice() {
        [name] if is_name => name.as_str(),
        _ => None,
    }
}

/// Nodes that lose their readiness have it again later: what happens to which node, and when.
pub fn lost_for_a_while(
    random: &mut Random,
    numbers: u64,
    end: u64,
    statuses: &[&str],
    longest: u64,
) -> Vec<(u64, (u8, NodeEdit))> {
    let mut edits = Vec::new();
    for _ in 0..random.between(0, 2) {
        let node = random.small(1, numbers);
        let from = random.between(2_000, end);
        let status = random.text(statuses);
        edits.push((from, (node, NodeEdit::Ready(status))));
        let until = from + random.between(2_000, longest);
        edits.push((until, (node, NodeEdit::Ready("True".into()))));
    }
    edits
}

/// Names of pods that each are for one node, of a kind that has a pod on each of them.
#[derive(Default)]
pub struct OnNodes {
    /// The node of each name that was requested.
    names: BTreeMap<String, String>,
    /// The newest pod of each owner on each node: who created it, its name, and its first version.
    newest: BTreeMap<(String, String), (ProcessId, String, u64)>,
}

impl OnNodes {
    /// Judges a creation that is sent, whatever becomes of it: no name is for two nodes.
    pub fn judge_sent(&mut self, write: &Write<'_>, component: Option<&str>) -> Option<Violation> {
        if component != Some(write.component) || write.resource != "pods" || write.method != Method::Post {
            return None;
        }
        let name = write.body["metadata"]["name"].as_str()?;
        let node = pinned(&write.body["spec"])?;
        let known = self
            .names
            .entry(name.to_owned())
            .or_insert_with(|| node.to_owned());
        never!(write, "a name is for one node", known != node => "requests {name} for {node}, and it was for {known}");
        None
    }

    /// Judges the creation of a pod: it has another name than the one before it on its node. A manager that was
    /// restarted does not know pods that are gone. None knows a pod that was deleted before its creation was
    /// answered or watched.
    pub fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let new = write.created(mirror, PODS)?;
        let key = (new.owner().to_owned(), pinned(new.spec())?.to_owned());
        let before = self
            .newest
            .insert(key, (write.process, new.name.to_string(), new.version));
        let sent = &write.sent;
        let is_known = |version| version <= sent.shown.of(PODS) && version <= sent.floors.of(PODS);
        let is_same = before.is_some_and(|(process, name, version)| {
            process == write.process && *name == *new.name && is_known(version)
        });
        never!(write, "a successor has a name of its own",
            is_same => "created {} after a pod of that name", new.name);
        None
    }
}
