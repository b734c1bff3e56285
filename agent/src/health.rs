//! What `/healthz` says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use kruise_agent_core::{Health, NodeImageView, NodePodProbeView, RequestView};
use kruise_views::NodePodView;
use kube_cache::SharedInformer;

/// What the health of an agent depends on.
pub(crate) struct Checks {
    pub(crate) node_image: SharedInformer<NodeImageView>,
    /// The cluster does not serve NodeImages, so that there is nothing to wait for.
    pub(crate) is_not_served: AtomicBool,
    pub(crate) requests: SharedInformer<RequestView>,
    /// The cluster does not serve ContainerRecreateRequests.
    pub(crate) are_requests_not_served: AtomicBool,
    /// `None` if no probes are run.
    pub(crate) probes: Option<Probes>,
    /// `None` if pods are not watched.
    pub(crate) pods: Option<SharedInformer<NodePodView>>,
    pub(crate) runtime: Mutex<Health>,
}

/// What is known of the NodePodProbe.
pub(crate) struct Probes {
    pub(crate) informer: SharedInformer<NodePodProbeView>,
    /// The cluster does not serve NodePodProbes.
    pub(crate) are_not_served: AtomicBool,
}

impl Probes {
    /// Nothing is known yet.
    pub(crate) fn new() -> Self {
        Self {
            informer: SharedInformer::new([]),
            are_not_served: AtomicBool::new(false),
        }
    }
}

impl Checks {
    /// Nothing is known yet.
    pub(crate) fn new(watches_pods: bool, runs_probes: bool) -> Self {
        Self {
            node_image: SharedInformer::new([]),
            is_not_served: AtomicBool::new(false),
            requests: SharedInformer::new([]),
            are_requests_not_served: AtomicBool::new(false),
            probes: runs_probes.then(Probes::new),
            pods: watches_pods.then(|| SharedInformer::new([])),
            runtime: Mutex::new(Health::Starting),
        }
    }

    /// # Errors
    /// The first check that fails, in upstream's words.
    pub(crate) fn judge(&self) -> Result<(), String> {
        let synced = |is_synced: bool| is_synced.then_some(()).ok_or_else(|| "not synced".to_owned());
        let is_served = !self.is_not_served.load(Ordering::Relaxed);
        let node_image = synced(!is_served || self.node_image.synced_version().is_some());
        let are_served = !self.are_requests_not_served.load(Ordering::Relaxed);
        let requests = synced(!are_served || self.requests.synced_version().is_some());
        let probes = synced(self.probes.as_ref().is_none_or(|probes| {
            probes.are_not_served.load(Ordering::Relaxed) || probes.informer.synced_version().is_some()
        }));
        let pods = self.pods.as_ref();
        let pods = synced(pods.is_none_or(|pods| pods.synced_version().is_some()));
        let checks = [
            ("nodeImageInformerSynced", node_image),
            ("crrInformerSynced", requests),
            ("nodePodProbeInformerSynced", probes),
            ("podInformerSynced", pods),
            ("containerRuntime", self.runtime()),
        ];
        for (name, verdict) in checks {
            verdict.map_err(|reason| format!("check {name} failed, err: {reason}"))?;
        }
        Ok(())
    }

    fn runtime(&self) -> Result<(), String> {
        match &*self.runtime.lock().unwrap_or_else(PoisonError::into_inner) {
            Health::Ready => Ok(()),
            Health::Starting => Err("not detected yet".to_owned()),
            Health::Degraded(problem) => Err(problem.to_string()),
        }
    }

    pub(crate) fn set_runtime(&self, health: Health) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }
}

#[cfg(test)]
mod tests {
    use kube_cache::Event;

    use super::*;

    fn sync<T: kube_cache::Cached>(informer: &SharedInformer<T>) {
        for event in [
            Event::ListStarted,
            Event::Page(Vec::new()),
            Event::ListDone {
                version: "7".parse().unwrap(),
            },
        ] {
            assert!(informer.apply(event).is_ok());
        }
    }

    #[test]
    fn s7_1_the_first_check_that_fails_is_named() {
        let checks = Checks::new(true, true);
        let fails = |text: &str| assert_eq!(checks.judge(), Err(text.to_owned()));
        fails("check nodeImageInformerSynced failed, err: not synced");
        checks.is_not_served.store(true, Ordering::Relaxed);
        fails("check crrInformerSynced failed, err: not synced");
        checks.are_requests_not_served.store(true, Ordering::Relaxed);
        fails("check nodePodProbeInformerSynced failed, err: not synced");
        let probes = checks.probes.as_ref().unwrap();
        probes.are_not_served.store(true, Ordering::Relaxed);
        fails("check podInformerSynced failed, err: not synced");
        checks.are_requests_not_served.store(false, Ordering::Relaxed);
        sync(&checks.requests);
        checks.is_not_served.store(false, Ordering::Relaxed);
        sync(&checks.node_image);
        probes.are_not_served.store(false, Ordering::Relaxed);
        fails("check nodePodProbeInformerSynced failed, err: not synced");
        sync(&probes.informer);
        fails("check podInformerSynced failed, err: not synced");
        sync(checks.pods.as_ref().unwrap());
        fails("check containerRuntime failed, err: not detected yet");
        checks.set_runtime(Health::Degraded("there is no socket at unix:///a".into()));
        fails("check containerRuntime failed, err: there is no socket at unix:///a");
        checks.set_runtime(Health::Ready);
        assert_eq!(checks.judge(), Ok(()));
    }
}
