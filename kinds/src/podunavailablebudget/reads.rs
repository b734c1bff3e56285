//! Workloads that were read from the API server, because a cache is not believed that nobody wants their pods.

use std::{collections::BTreeMap, sync::Arc};

use crate::workloads::workload_of;
use kruise_plan_kit::{
    Memory, Need,
    workloads::{Known, Workload},
};
use kruise_views::WorkloadView;
use serde::Deserialize as _;
use serde_json::Value;

/// What the plans before this one asked to read of workloads.
pub(super) struct Reads(BTreeMap<Workload, Known>);

impl Reads {
    pub(super) fn of(memory: &Memory) -> Self {
        let read = memory.read.iter();
        let read = read.filter_map(|(need, object)| Some((of_need(need)?, known(object.as_ref()))));
        // What an earlier reconcile could not read is read again.
        let unread = memory.unread.keys().filter(|_| memory.has_read);
        let unread = unread.filter_map(|need| Some((of_need(need)?, Known::Unreadable)));
        Self(read.chain(unread).collect())
    }

    pub(super) fn known(&self, workload: &Workload) -> Option<Known> {
        self.0.get(workload).cloned()
    }

    /// Could one not be read? Its pods are kept until it can be.
    pub(super) fn have_failed(&self) -> bool {
        self.0.values().any(|known| *known == Known::Unreadable)
    }
}

fn of_need(need: &Need) -> Option<Workload> {
    match need {
        Need::Content(resource, _, name) => workload_of(*resource, name),
        Need::Full(..) | Need::Live(..) | Need::Trial(_) => None,
    }
}

fn known(object: Option<&Value>) -> Known {
    let Some(object) = object else {
        return Known::Gone;
    };
    let view = WorkloadView::deserialize(object);
    view.map_or(Known::Unreadable, |view| {
        Known::Found(Arc::new(WorkloadView {
            // The server fills it in.
            replicas: view.replicas.or(Some(1)),
            ..view
        }))
    })
}
