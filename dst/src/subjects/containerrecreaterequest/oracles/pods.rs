//! *"Of a pod only the condition is written that takes it out of service, and it stays out of service while its request runs."*

use kruise_sim::Method;

use super::known::{FINALIZER, has_ended, keys};
use crate::engine::oracles::{Mirror, Violation, Write};
use crate::subjects::containerrecreaterequest::start::REQUESTS;

/// Judges writes of pods.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    let violation = |oracle, what: String| {
        let what = format!("{} wrote {}: {what}", write.process, write.name);
        Some(Violation { oracle, what })
    };
    let is_status = write.method == Method::Patch && write.subresource == "status";
    let members = write.body["status"].as_object();
    if !is_status || members.is_none_or(|members| !members.keys().eq(["conditions"])) {
        let what = format!("{:?} /{}", write.method, write.subresource);
        return violation("requests write conditions of pods only", what);
    }
    let [before, after] = write.pod(mirror)?;
    let (had, has) = (keys(before), keys(after));
    let request = |key: &String| {
        let name = key.strip_prefix("default/")?;
        let mut all = mirror.of(REQUESTS).objects.values();
        let versions = all.find(|versions| versions.last().is_some_and(|last| *last.name == *name))?;
        versions.last()
    };
    for key in had.iter().filter(|key| !has.contains(key)) {
        let running = request(key).filter(|one| !one.gone && !one.is_going() && !has_ended(one));
        if running.is_some() {
            return violation("a pod is out of service while its request runs", key.clone());
        }
    }
    for key in has.iter().filter(|key| !had.contains(key)) {
        let held = request(key).filter(|one| {
            let finalizers = one.value()["metadata"]["finalizers"].as_array();
            finalizers.into_iter().flatten().any(|one| one == FINALIZER)
        });
        if held.is_none() {
            return violation("a request with a key is held back", key.clone());
        }
    }
    None
}
