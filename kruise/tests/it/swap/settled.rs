//! Whether a manager has planned every object, by its metrics, and is called for pods.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kruise_admission::manifests::{MUTATING, PODS_OF_SETS};
use kruise_plan_test_kit::Fleet;

use super::cluster::Cluster;
use super::replicas::Managers;
use crate::process::{LIMIT, exchange};

/// Waits until every object was reconciled and no controller of any manager has anything to do.
pub(super) fn wait(managers: &Managers, fleet: &Fleet) {
    let since = Instant::now();
    loop {
        let mut now = Work::default();
        for metrics in managers.metrics() {
            now.read(metrics);
        }
        let missing = now.missing(fleet);
        if missing.is_empty() && now.is_idle() {
            return;
        }
        assert!(since.elapsed() < LIMIT, "{missing:?} {now:?}: {}", managers.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the API server sends the pods of SidecarSets to the manager. The leader registers that once it knows
/// the sets.
pub(super) fn wait_registered(api: &Cluster) {
    let path = format!("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{MUTATING}");
    let since = Instant::now();
    loop {
        let configuration = api.get(&path);
        let mut webhooks = configuration["webhooks"].as_array().unwrap().iter();
        let of_sets = webhooks.find(|webhook| webhook["name"] == PODS_OF_SETS);
        if of_sets.is_some_and(|webhook| webhook["matchConditions"].to_string().contains("yes-0")) {
            return;
        }
        assert!(since.elapsed() < LIMIT, "{configuration}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What controllers have done and have to do.
#[derive(Debug, Default)]
struct Work {
    /// By the name of the controller, in lower case.
    done: BTreeMap<String, usize>,
    waiting: usize,
    active: usize,
}

impl Work {
    /// Adds what the controllers of one manager have done and have to do.
    fn read(&mut self, metrics: SocketAddr) {
        let (_, text) = exchange(metrics, "GET", "/metrics", ("text/plain", ""));
        for line in text.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let (family, labels) = series.split_once('{').unwrap_or((series, ""));
            let Ok(value) = value.parse::<usize>() else {
                continue;
            };
            match family {
                "controller_runtime_reconcile_total" => {
                    let name = labels
                        .split("controller=\"")
                        .nth(1)
                        .and_then(|rest| rest.split('"').next());
                    // Two controllers keep the names that OpenKruise gives them.
                    *self.done.entry(name.unwrap().to_lowercase()).or_default() += value;
                }
                "workqueue_depth" => self.waiting += value,
                "controller_runtime_active_workers" => self.active += value,
                _ => {}
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting + self.active == 0
    }

    /// Kinds of which not every object was reconciled.
    fn missing(&self, fleet: &Fleet) -> Vec<&'static str> {
        let kinds = kruise_kinds::kinds().iter().copied().filter(|kind| {
            let objects = fleet.of_kind(kind.group, kind.kind).count();
            let done = self.done.get(&format!("{}-controller", kind.kind.to_lowercase()));
            done.copied().unwrap_or_default() < objects
        });
        kinds.map(|kind| kind.kind).collect()
    }
}
