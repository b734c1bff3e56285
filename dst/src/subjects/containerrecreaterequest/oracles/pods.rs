//! *"Of a pod only the condition is written that takes it out of service, and it stays out of service while its request runs."*

use super::super::start::REQUESTS;
use super::known::{has_ended, is_held, keys};
use crate::rules::prelude::*;

/// Judges writes of pods.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    let is_status = write.method == Method::Patch && write.subresource == "status";
    let members = write.body["status"].as_object();
    never!(write, "requests write conditions of pods only",
        !is_status || members.is_none_or(|members| !members.keys().eq(["conditions"])) => "{}", write.body);
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
        never!(write, "a pod is out of service while its request runs", running.is_some() => "{}", key);
    }
    for key in has.iter().filter(|key| !had.contains(key)) {
        let held = request(key).filter(|one| is_held(one));
        never!(write, "a request with a key is held back", held.is_none() => "{}", key);
    }
    None
}
