//! ContainerRecreateRequests: containers of a running pod are stopped, and the kubelet starts them anew.
//!
//! Requests for one pod run one after the other (`turn`). A request that runs waits until its pod is out of
//! service, if it is to be; then its pod is read for the hooks, and its containers are looked at. What is to be
//! reported and stopped then is decided by `decide`.
//!
//! What is about to be stopped is stored first, under the version of the request that was decided about: a request
//! that has been ended meanwhile stops nothing. The status is written by merge patches of what has changed.

mod decide;
mod request;
mod status;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{Call, earlier};
use crate::request::{PodHooks, RequestView};
use crate::runtime::Runtime;
use crate::stop::Stops;
use crate::{ContainerId, Failure, RuntimeContainer, WriteError};

use request::Request;

/// From one look at the containers of a running request to the next, if nothing is heard of it.
const LOOK: Duration = Duration::from_secs(10);
/// Requests whose containers are being stopped at a time.
const STOPS: usize = 32;

/// The half of an agent that is about ContainerRecreateRequests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recreates {
    /// By UID.
    requests: BTreeMap<Box<str>, Request>,
}

impl Recreates {
    /// A request was listed, created or changed.
    pub(crate) fn request(&mut self, view: &Arc<RequestView>, call: &mut Call<'_>) {
        if view.node != call.config.node {
            return self.request_deleted(&view.uid);
        }
        let request = self
            .requests
            .entry(view.uid.clone())
            .or_insert_with(|| Request::new(view, call.now));
        request.observe(view, call.now);
    }

    /// A request is gone, or no longer active.
    pub(crate) fn request_deleted(&mut self, uid: &str) {
        self.requests.remove(uid);
    }

    pub(crate) fn pod_read(
        &mut self,
        uid: &str,
        result: Result<Option<PodHooks>, Box<str>>,
        call: &mut Call<'_>,
    ) {
        if let Some(request) = self.requests.get_mut(uid) {
            request.pod_read(result, call);
        }
    }

    pub(crate) fn inspected(
        &mut self,
        uid: &str,
        result: Result<Vec<RuntimeContainer>, Failure>,
        runtime: &mut Runtime,
        stops: &mut Stops,
        call: &mut Call<'_>,
    ) {
        let problem = runtime.answered(&result, call);
        let others = self.requests.iter().filter(|(other, _)| &***other != uid);
        let busy = others.filter(|(_, request)| request.is_stopping()).count();
        let Some(request) = self.requests.get_mut(uid) else {
            return;
        };
        match result {
            Ok(containers) => request.decide(&containers, busy < STOPS, runtime, stops, call),
            Err(_) => request.not_inspected(&problem.unwrap_or_default(), call),
        }
    }

    pub(crate) fn written(
        &mut self,
        uid: &str,
        result: Result<Box<str>, WriteError>,
        stops: &mut Stops,
        call: &mut Call<'_>,
    ) {
        if let Some(request) = self.requests.get_mut(uid) {
            request.written(result, stops, call);
        }
    }

    /// A container was stopped, or could not be.
    pub(crate) fn container_stopped(
        &mut self,
        container: &ContainerId,
        result: &Result<(), Failure>,
        now: Timestamp,
    ) {
        for request in self.requests.values_mut() {
            request.container_stopped(container, result, now);
        }
    }

    /// Does what is due, one request of each pod at a time.
    pub(crate) fn advance(&mut self, runtime: &Runtime, call: &mut Call<'_>) {
        for request in self.requests.values_mut() {
            request.rest();
        }
        for (uid, turn) in turn::turns(self.requests.values().map(Request::candidate)) {
            if let Some(request) = self.requests.get_mut(&uid) {
                request.advance(turn, runtime, call);
            }
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.requests
            .values()
            .map(Request::next_timer)
            .fold(None, earlier)
    }
}
