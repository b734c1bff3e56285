//! Creations and deletions by two webhooks whose caches lag behind, against a model that counts pods.

use std::collections::BTreeMap;

use kruise_api::workloadspread::WorkloadSpread;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{at, matched, named, spread};
use crate::spread::{Choice, GoingPod, IGNORED, assign, delete, status_patch};

/// The server: a WorkloadSpread, and which version of it is stored.
struct Server {
    stored: WorkloadSpread,
    version: u64,
}

impl Server {
    /// Stores a status if this version is the stored one, as a patch of what differs.
    fn write(&mut self, seen: &Seen, after: &WorkloadSpread) -> bool {
        if seen.version != self.version {
            return false;
        }
        let patch = status_patch(&seen.spread.status, &after.status);
        let mut status = json!(self.stored.status);
        merge(&mut status, &patch.unwrap_or_default()["status"]);
        self.stored.status = serde_json::from_value(status).unwrap_or_default();
        self.version += 1;
        true
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        return *into = patch.clone();
    };
    for (name, member) in members {
        merge(&mut into[name], member);
    }
}

/// What a replica knows.
#[derive(Clone)]
struct Seen {
    spread: WorkloadSpread,
    version: u64,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Create(u8),
    Delete(u8),
}

fn requests() -> impl Strategy<Value = Vec<(bool, bool, Request)>> {
    let request = prop_oneof![
        3 => any::<u8>().prop_map(|pod| Request::Create(pod % 12)),
        2 => any::<u8>().prop_map(|pod| Request::Delete(pod % 12)),
    ];
    prop::collection::vec((any::<bool>(), any::<bool>(), request), 1..80)
}

proptest! {
    /// Whatever the caches of two replicas have seen: no subset has more pods than it may, and the numbers are
    /// exactly what is left. A write on an old version is refused, and the review is made again on the stored one.
    #[test]
    fn counts_are_exact_with_two_replicas(limits in (0_i32..5, 0_i32..5), requests in requests()) {
        let limits = [limits.0, limits.1];
        let web = spread(&[("a", json!(limits[0])), ("b", json!(limits[1]))]);
        let mut server = Server { stored: web.clone(), version: 1 };
        let mut replicas = [Seen { spread: web.clone(), version: 1 }, Seen { spread: web, version: 1 }];
        // The model: each pod that exists, and its subset. Everything happens within the life of an entry.
        let mut pods: BTreeMap<u8, String> = BTreeMap::new();
        for (step, (second_replica, sees, request)) in requests.into_iter().enumerate() {
            let now = at(step as i64 / 8);
            let seen = &mut replicas[usize::from(second_replica)];
            if sees {
                *seen = Seen { spread: server.stored.clone(), version: server.version };
            }
            loop {
                let (pod, decided, subset) = match request {
                    Request::Create(pod) if pods.contains_key(&pod) => break,
                    Request::Delete(pod) if !pods.contains_key(&pod) => break,
                    Request::Create(pod) => match assign(&seen.spread, &named(&format!("web-{pod}")), None, now) {
                        Ok(Choice::Counted(matched, status)) => (pod, Some(status), Some(matched.subset)),
                        Ok(Choice::Free(matched)) => (pod, None, Some(matched.subset)),
                        other => {
                            prop_assert_eq!(other, Ok(Choice::Nothing));
                            // A cache that is behind may show no room; one read says whether that is so.
                            (pod, None, None)
                        }
                    },
                    Request::Delete(pod) => {
                        let name = format!("web-{pod}");
                        let going = GoingPod { name: &name, version: IGNORED, created: None };
                        let subset = pods.get(&pod).cloned().unwrap_or_default();
                        (pod, delete(&seen.spread, &going, &matched(&subset, ""), None, now), Some(subset))
                    }
                };
                let live = seen.version == server.version;
                if !live && decided.is_none() {
                    *seen = Seen { spread: server.stored.clone(), version: server.version };
                    continue;
                }
                if let Some(status) = decided {
                    let after = WorkloadSpread { status, ..seen.spread.clone() };
                    let is_stored = server.write(seen, &after);
                    *seen = Seen { spread: server.stored.clone(), version: server.version };
                    if !is_stored {
                        continue;
                    }
                }
                match (request, subset) {
                    (Request::Create(_), Some(subset)) => { pods.insert(pod, subset); }
                    (Request::Create(_), None) => {
                        let full = pods.len() as i32 >= limits[0] + limits[1];
                        prop_assert!(full, "turned away though there is room: {pods:?}");
                    }
                    (Request::Delete(_), _) => { pods.remove(&pod); }
                }
                break;
            }
            let stored = server.stored.status.versioned_subset_statuses.get(IGNORED);
            for (index, (name, limit)) in ["a", "b"].into_iter().zip(limits).enumerate() {
                let number = pods.values().filter(|subset| *subset == name).count() as i32;
                prop_assert!(number <= limit);
                let missing = stored.map_or(limit, |subsets| subsets[index].missing_replicas);
                prop_assert_eq!(missing, limit - number, "subset {} after {:?}", name, request);
            }
        }
    }
}
