//! What the command must know of requests when it creates another one.

use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::REQUESTS;
use crate::subjects::containerrecreaterequest::request::{POD_UID, is_open, is_over};

/// All requests but one, when that was created.
pub struct Open<'m> {
    /// What is true.
    pub mirror: &'m Mirror,
    /// Which run created each request.
    pub created: &'m BTreeMap<Arc<str>, ProcessId>,
    /// The run.
    pub process: ProcessId,
    /// The request that it creates.
    pub request: &'m Object,
    /// It must know of all requests up to this version.
    pub floor: u64,
}

impl<'m> Open<'m> {
    /// The pod that the new request is for.
    pub fn pod(&self) -> &'m str {
        self.request.label(POD_UID)
    }

    /// Versions of each other request of a pod that may be the newest, as far as the run must know.
    fn of_pod(&self, pod: &str) -> impl Iterator<Item = (&'m Arc<str>, &'m [Arc<Object>])> {
        let log = self.mirror.of(REQUESTS);
        let others = log.objects.iter().filter(move |(uid, versions)| {
            let first = versions.first();
            **uid != self.request.uid && first.is_some_and(|first| first.label(POD_UID) == pod)
        });
        let known = others.filter(move |(uid, versions)| {
            let is_own = self.created.get(*uid) == Some(&self.process);
            is_own || versions.first().is_some_and(|first| first.version <= self.floor)
        });
        known.map(move |(uid, _)| (uid, log.window(uid, self.floor)))
    }

    /// Another request of a pod that must be open, as far as the run knows.
    pub fn certain(&self, pod: &str) -> Option<&'m Object> {
        let mut all = self.of_pod(pod);
        let is_certain = |versions: &&[Arc<Object>]| versions.iter().all(|one| !one.gone && is_open(one));
        let (_, versions) = all.find(|(_, versions)| is_certain(versions))?;
        versions.last().map(|one| &**one)
    }

    /// Requests that the run created before, with all their versions.
    pub fn own(&self) -> impl Iterator<Item = &'m Vec<Arc<Object>>> {
        let own = self
            .created
            .iter()
            .filter(move |(_, process)| **process == self.process);
        own.filter_map(move |(uid, _)| self.mirror.of(REQUESTS).objects.get(uid))
    }

    /// Must the run know that a request of its own has failed?
    pub fn has_failed(&self, request: &Object) -> bool {
        let versions = self.mirror.of(REQUESTS).window(&request.uid, self.floor);
        let is_known = versions.first().is_some_and(|first| first.version <= self.floor);
        is_known
            && versions
                .iter()
                .all(|one| !one.gone && is_over(one) && !has_succeeded(one))
    }

    /// The pod of a request.
    pub fn pod_of(request: &Object) -> &str {
        request.label(POD_UID)
    }
}

fn has_succeeded(request: &Object) -> bool {
    let status = &request.value()["status"];
    let mut states = items(&status["containerRecreateStates"]);
    let says_why = !text(&status["message"]).is_empty();
    !says_why && states.all(|state| state["phase"] == "Succeeded")
}
