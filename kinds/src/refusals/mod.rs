//! Refusals by guards: each is counted by object and user, and has a line in the protection log. A budget that
//! refuses has an event, which is renewed every few seconds at most (`paced`).

mod log;
mod paced;

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use kruise_admission::{BY_BUDGET, Refused};
use kruise_plan_kit::EventNote;
use kruise_runtime::{
    events::{EventSink, ObjectRef},
    metrics::{
        Metrics,
        objects::{Form, Series, Spec},
    },
};

use tokio::time::Instant;

pub use log::Log;
use paced::Paced;

kruise_api::reasons! {
    PREVENTED_DELETION = "PubPreventPodDeletion", Warning, ["PodUnavailableBudget"], "The budget refused to let pods be deleted, evicted or updated; renewed at most every ten seconds while it does.";
}

static NAMESPACES: Spec = Spec {
    name: "namespace_deletion_protection",
    help: "Refused deletions of protected namespaces",
    labels: &["name", "username"],
    form: Form::Counter,
};
static DEFINITIONS: Spec = Spec {
    name: "crd_deletion_protection",
    help: "Refused deletions of protected definitions",
    labels: &["name", "username"],
    form: Form::Counter,
};
static WORKLOADS: Spec = Spec {
    name: "workload_deletion_protection",
    help: "Refused deletions of protected workloads, Services and Ingresses",
    labels: &["kind_namespace_name", "username"],
    form: Form::Counter,
};

static DISRUPTIONS: Spec = Spec {
    name: "pod_unavailable_budget",
    help: "Requests that a PodUnavailableBudget refused, by the workload of the pod",
    labels: &["kind_namespace_name", "username"],
    form: Form::Counter,
};

/// The families.
pub static METRICS: [&Spec; 4] = [&NAMESPACES, &DEFINITIONS, &WORKLOADS, &DISRUPTIONS];

/// Source of the events.
pub const COMPONENT: &str = "pub-controller";

/// Series that are kept. Names of users and objects come from clients, so that there may be any number of them.
const MOST_SERIES: usize = 1_000;
/// Labels of all others.
const OTHERS: &str = "others";

/// Counts and logs refusals.
pub struct Refusals {
    namespaces: Series,
    definitions: Series,
    workloads: Series,
    disruptions: Series,
    /// Labels that have a series.
    known: Mutex<BTreeSet<(&'static str, String, String)>>,
    /// `None` if no guard is on.
    log: Option<Log>,
    /// `None` if there are no events.
    events: Option<EventSink>,
    /// Budgets that have had an event just now.
    paced: Paced,
}

impl Refusals {
    /// None yet.
    pub fn new(metrics: &Metrics, log: Option<Log>) -> Self {
        Self {
            namespaces: metrics.objects(&NAMESPACES),
            definitions: metrics.objects(&DEFINITIONS),
            workloads: metrics.objects(&WORKLOADS),
            disruptions: metrics.objects(&DISRUPTIONS),
            known: Mutex::default(),
            log,
            events: None,
            paced: Paced::default(),
        }
    }

    /// With an event on each budget that refuses.
    #[must_use]
    pub fn with_events(self, events: EventSink) -> Self {
        Self {
            events: Some(events),
            ..self
        }
    }

    /// Counts and logs a refusal.
    pub fn record(&self, refused: &Refused) {
        let Refused {
            kind,
            namespace,
            name,
            user,
            ..
        } = refused;
        let (series, spec, object) = match kind.as_str() {
            _ if refused.event == BY_BUDGET => (
                &self.disruptions,
                &DISRUPTIONS,
                format!("{kind}_{namespace}_{name}"),
            ),
            "Namespace" => (&self.namespaces, &NAMESPACES, name.clone()),
            "CustomResourceDefinition" => (&self.definitions, &DEFINITIONS, name.clone()),
            _ => (&self.workloads, &WORKLOADS, format!("{kind}_{namespace}_{name}")),
        };
        if self.has_series(spec.name, &object, user) {
            series.count(&[&object, user]);
        } else {
            series.count(&[OTHERS, OTHERS]);
        }
        if let Some(log) = &self.log {
            log.write(refused);
        }
        if let (Some(events), Some(budget)) = (&self.events, &refused.budget)
            && self.paced.is_due(&budget.uid, Instant::now())
        {
            let note = EventNote::new(&PREVENTED_DELETION, "openkruise pub prevents pod deletion");
            events.emit(ObjectRef::of_involved(budget), note);
        }
    }

    fn has_series(&self, family: &'static str, object: &str, user: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let labels = (family, object.to_owned(), user.to_owned());
        known.contains(&labels) || (known.len() < MOST_SERIES && known.insert(labels))
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    fn refused(kind: &str, namespace: &str, name: &str) -> Refused {
        Refused {
            event: "DeletionProtection",
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            user: "jane".to_owned(),
            budget: None,
        }
    }

    fn counted(all: &[Refused]) -> String {
        let mut registry = Registry::default();
        let refusals = Refusals::new(&Metrics::register(&mut registry, &METRICS), None);
        for one in all {
            refusals.record(one);
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn each_refusal_is_counted_by_object_and_user() {
        let text = counted(&[
            refused("Namespace", "", "shop"),
            refused("CustomResourceDefinition", "", "widgets.example.com"),
            refused("Deployment", "shop", "web"),
            refused("Deployment", "shop", "web"),
            refused("Service", "shop", "web"),
        ]);
        for line in [
            "namespace_deletion_protection{name=\"shop\",username=\"jane\"} 1",
            "crd_deletion_protection{name=\"widgets.example.com\",username=\"jane\"} 1",
            "workload_deletion_protection{kind_namespace_name=\"Deployment_shop_web\",username=\"jane\"} 2",
            "workload_deletion_protection{kind_namespace_name=\"Service_shop_web\",username=\"jane\"} 1",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_refusal_by_a_budget_is_counted_for_the_workload_of_the_pod() {
        let by_budget = Refused {
            event: BY_BUDGET,
            ..refused("ReplicaSet", "shop", "web-5f")
        };
        let text = counted(&[by_budget.clone(), by_budget]);
        let line =
            "pod_unavailable_budget{kind_namespace_name=\"ReplicaSet_shop_web-5f\",username=\"jane\"} 2";
        assert!(text.lines().any(|have| have == line), "{text}");
        assert!(!text.contains("workload_deletion_protection{"), "{text}");
    }

    #[test]
    fn the_number_of_series_is_limited_and_no_refusal_is_lost() {
        let many: Vec<Refused> = (0..MOST_SERIES + 5)
            .map(|number| refused("Namespace", "", &format!("n{number}")))
            .collect();
        let text = counted(&many);
        let series = text
            .lines()
            .filter(|line| line.starts_with("namespace_deletion_protection{"));
        assert_eq!(series.count(), MOST_SERIES + 1);
        let others = "namespace_deletion_protection{name=\"others\",username=\"others\"} 5";
        assert!(text.lines().any(|have| have == others), "{text}");
    }
}
