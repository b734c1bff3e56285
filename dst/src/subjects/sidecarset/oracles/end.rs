//! Where the sets must be once nobody changes or breaks anything any more.

use super::super::start::SIDECARSETS;
use super::view::Spec;
use super::{revisions, view};
use crate::rules::prelude::*;
use crate::rules::settled::observed;
use crate::rules::template::same_template;

/// What is not yet as it must be.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    let mut sets = mirror.of(SIDECARSETS).now();
    sets.try_for_each(|set| settled(set, mirror))
}

/// A SidecarSet and its pods are as its specification says.
fn settled(set: &Object, mirror: &Mirror) -> Result<(), String> {
    let spec = Spec(set);
    let name = &set.name;
    let namespace = mirror.of(NAMESPACES).named("default");
    let looks = namespace.is_some_and(|namespace| !spec.shuns(namespace));
    let pods = mirror.of(PODS).now().map(|pod| &**pod);
    let pods: Vec<&Object> = pods.filter(|pod| looks && spec.counts(pod)).collect();
    if spec.upgrades() {
        upgraded(spec, &pods)?;
    }
    status(spec, &pods)?;
    history(set, &pods, mirror).map_err(|what| format!("{name}: {what}"))
}

fn upgraded(spec: Spec<'_>, pods: &[&Object]) -> Result<(), String> {
    let name = &spec.0.name;
    for pod in pods.iter().filter(|pod| spec.is_updated(pod)) {
        wrong!(!spec.runs(pod) => "pod {} does not run the sidecars of {name}", pod.name);
        for sidecar in spec.sidecars() {
            let works = view::working(pod, sidecar.name);
            for container in sidecar.containers() {
                let wanted = if sidecar.empty.is_none() || works == container.as_str() {
                    Some(sidecar.image)
                } else {
                    sidecar.empty
                };
                let image = view::image(pod, &container);
                wrong!(image != wanted => "pod {}: {container} has {image:?}, not {wanted:?}", pod.name);
            }
        }
    }
    let old: Vec<&&Object> = pods.iter().filter(|pod| !spec.is_updated(pod)).collect();
    let may_go = |pod: &&&&Object| spec.selects(pod) && spec.can_follow(pod);
    let waiting = old.iter().filter(may_go).count();
    let elsewhere = old.len() - waiting;
    let kept = (spec.partition(pods.len() as i64) as usize).saturating_sub(elsewhere);
    let out = pods.iter().filter(|pod| spec.is_out(pod)).count() as i64;
    // Pods that somebody else keeps unavailable count for ever, and then those that are available wait.
    let is_full = out >= spec.max_unavailable(pods.len() as i64);
    wrong!(waiting > kept && !is_full => "{waiting} pods wait for {name}, of which {kept} are to be kept");
    for pod in pods {
        let condition = pod.condition("SidecarSetUpgradable");
        let shown = condition.and_then(|one| serde_json::from_str::<Value>(one["message"].as_str()?).ok());
        let shown = shown.unwrap_or_default()[&**name].clone();
        let is_stranded = !spec.is_updated(pod) && spec.selects(pod) && !spec.can_follow(pod);
        let is_told = shown == false;
        wrong!(is_told != is_stranded && (is_stranded || spec.is_updated(pod))
            => "condition of pod {} shows {shown} for {name}, stranded: {is_stranded}", pod.name);
    }
    Ok(())
}

fn status(spec: Spec<'_>, pods: &[&Object]) -> Result<(), String> {
    let set = spec.0;
    let ready = |pod: &&&Object| spec.runs(pod) && spec.is_ready(pod);
    let updated: Vec<&&Object> = pods.iter().filter(|pod| spec.is_updated(pod)).collect();
    let (all, new) = (pods.len() as i64, updated.len() as i64);
    let all_ready = pods.iter().filter(ready).count() as i64;
    observed(set)?;
    let updated_ready = updated.iter().filter(|pod| ready(pod)).count() as i64;
    counts!(set.status() => "matchedPods": all, "readyPods": all_ready, "updatedPods": new,
        "updatedReadyPods": updated_ready)
}

/// The newest revision is that of the specification, status names it, and no more are kept than need be.
fn history(set: &Object, pods: &[&Object], mirror: &Mirror) -> Result<(), String> {
    let name = &*set.name;
    let own = mirror.owned(REVISIONS, set);
    let mut revisions: Vec<_> = own.filter(|one| one.label(revisions::SET) == name).collect();
    revisions.sort_by_key(|one| one.value()["revision"].as_i64());
    let newest = revisions.last().ok_or("there is no revision")?;
    wrong!(set.status()["latestRevision"] != *newest.name
        => "status.latestRevision is not {}", newest.name);
    let (stored, wanted) = (&newest.value()["data"]["spec"], set.spec());
    wrong!(!same_template(&stored["containers"], &wanted["containers"])
        => "{} is not the specification", newest.name);
    let limit = set.spec()["revisionHistoryLimit"].as_u64().unwrap_or(10).max(1) as usize;
    let pinned = &set.spec()["injectionStrategy"]["revision"]["revisionName"];
    let is_used =
        |one: &Object| *pinned == *one.name || pods.iter().any(|pod| view::revision(pod, name) == *one.name);
    let idle = revisions.iter().rev().skip(1).filter(|one| !is_used(one)).count();
    wrong!(revisions.len() > limit && idle > 0
        => "{} revisions are kept, and {limit} may be", revisions.len());
    Ok(())
}
