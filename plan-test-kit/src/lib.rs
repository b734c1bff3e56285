//! What the tests of every planner share: a model cluster with a server and nodes, a store of objects of any kind,
//! when controllers plan, pods in a line of words each, plans as text, and cases that pair the two; clusters as
//! OpenKruise stored them, many times over; and several managers behind one address. Never shipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "this is test code: what is not as expected ends the test"
)]

mod agenda;
mod balancer;
mod budgets;
mod cases;
mod cluster;
mod fleet;
mod nodes;
mod placement;
mod pods;
mod rounds;
mod server;
mod store;
mod text;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use agenda::{Agenda, fingerprint};
pub use balancer::Balancer;
pub use budgets::{ReadBudgets, budget};
pub use cases::{Letters, compare, compare_all};
pub use cluster::{Cluster, mounts, uid_of};
pub use fleet::{FLEETS, Fleet, collection, resource};
pub use placement::{decode, node_of, pinned, placed};
pub use pods::{Labelled, change, pod, wrote};
pub use rounds::{Expected, differences, line, node};
pub use server::{Refused, create, may_delete, merge, patch, strategic};
pub use store::{Key, Store, key_of, planned, reads_first};
pub use text::{decisions, reasons, spoken};

/// RFC 3339 as servers write it.
pub fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Status of a pod's condition.
pub fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a str> {
    let list = pod["status"]["conditions"].as_array()?;
    list.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

/// Gives a pod's condition a status since then.
pub fn set_condition(pod: &mut Value, kind: &str, status: &str, since: &str) {
    let entry = json!({"type": kind, "status": status, "lastTransitionTime": since});
    strategic(pod, &json!({"status": {"conditions": [entry]}}));
}
