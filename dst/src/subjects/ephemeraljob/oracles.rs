//! Oracles of EphemeralJobs, written from their specification.

use super::start::JOBS;
use crate::rules::prelude::*;

/// What judges the EphemeralJob of a scenario.
pub struct EphemeralJobOracles;

impl Oracles for EphemeralJobOracles {
    fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        added(write, mirror).or_else(|| reported(write, mirror))
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        // One with a short time to live may be gone.
        let Some(job) = mirror.only(JOBS) else {
            return Ok(());
        };
        wrong!(job.is_going() => "the job is still being deleted");
        let (spec, status) = (job.spec(), job.status());
        if job.is_completed() {
            return ended(spec, status);
        }
        if spec["paused"] == true {
            return expect("status.phase", status["phase"].as_str(), Some("Paused"));
        }
        wrong!(some pod in counted(mirror).next()
            => "the job has not ended, and pod {} is at {:?}", pod.name, container(pod, &job.uid));
        wrong!(!spec["activeDeadlineSeconds"].is_null() => "its deadline is to come");
        expect("status.phase", status["phase"].as_str(), Some("Waiting"))?;
        expect("status.match", status["match"].as_i64(), Some(0))
    }

    /// Each pod without the container gets it, and its start and its end are reported.
    fn writes_to_come(&self, mirror: &Mirror) -> Option<usize> {
        let Some(job) = mirror.of(JOBS).now().find(|job| !job.is_completed()) else {
            return Some(0);
        };
        let pods = counted(mirror).filter(|pod| container(pod, &job.uid) == Added::None);
        Some(pods.count() * 2)
    }
}

/// What an ended job reports.
fn ended(spec: &Value, status: &Value) -> Result<(), String> {
    wrong!(spec["ttlSecondsAfterFinished"].as_i64().is_some_and(|ttl| ttl < 100)
        => "it is to be deleted after its time to live");
    let conditions: Vec<&str> = items(&status["conditions"])
        .map(|one| text(&one["type"]))
        .collect();
    let phase = text(&status["phase"]);
    let kind = if phase == "Succeeded" {
        "JobSucceeded"
    } else {
        "JobFailed"
    };
    wrong!(!conditions.contains(&kind) => "{phase}, and its conditions are {conditions:?}");
    let is_late = conditions.contains(&"JobFailed") && number(&status["failed"]) == 0;
    wrong!(is_late && spec["activeDeadlineSeconds"].is_null()
        => "it has failed, without a failed pod and without a deadline");
    Ok(())
}

/// *"A pod gets the container once, while the job runs and has a free place, and no more pods than it wants."*
fn added(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "pods" {
        return None;
    }
    never!(write, "a job writes ephemeral containers only",
        write.method != Method::Patch || write.subresource != "ephemeralcontainers" => "it is none");
    let [before, after] = write.pod(mirror)?;
    let uid = new_container(before, after)?;
    never!(write, "a pod gets the container once",
        containers(after, uid).len() > 1 => "it has another one of {uid}");
    let jobs = write.sees(mirror, JOBS, uid);
    never!(write, "an ended job adds nothing", jobs.is(Object::is_completed) => "it had ended");
    never!(write, "a paused job adds nothing", jobs.is(|job| job.spec()["paused"] == true) => "it was paused");
    let most = |member: &str, default: i64| {
        let versions = jobs.versions.iter();
        let values = versions.map(|job| job.spec()[member].as_i64().unwrap_or(default));
        values.max().unwrap_or(i64::MAX)
    };
    let surely = |is: &dyn Fn(Added) -> bool| {
        let pods = write.sees_all(mirror, PODS);
        let others = pods.filter(|pod| !pod.may_be(|pod| pod.uid == before.uid));
        let counts = |pod: &Object| pod.is_active() && is_selected(pod) && is(container(pod, uid));
        others.filter(|pod| pod.is(counts)).count() as i64
    };
    let (parallelism, replicas) = (most("parallelism", 1), most("replicas", i64::MAX));
    let busy = surely(&|container| container == Added::Open);
    never!(write, "pods at a time", busy >= parallelism => "{busy} others ran it, of {parallelism}");
    let have = surely(&|container| container != Added::None);
    never!(write, "pods of a job", have >= replicas => "{have} others have it, of {replicas}");
    None
}

/// *"An end is final, and comes when each pod has its result. Status reports what was."*
fn reported(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let change = write.change(mirror, JOBS).filter(|_| write.reports(JOBS))?;
    let (before, new) = (change.before(), change.after);
    let end = |job: &Object| ["phase", "completionTime"].map(|part| job.status()[part].clone());
    never!(write, "an end is final",
        before.is_some_and(|before| before.is_completed() && end(before) != end(new)) => "{:?}", end(new));
    let count = |name: &str| number(&new.status()[name]);
    let (matches, done) = (count("match"), count("succeeded") + count("failed"));
    let open = count("running") + count("waiting");
    let ever = mirror.of(PODS).objects.len() as i64;
    never!(write, "status reports what was",
        matches > ever || done + open > matches => "{done} and {open} of {matches} pods, and there were {ever}");
    never!(write, "a job whose pods have their results ends",
        matches > 0 && done == matches && !new.is_completed() => "{:?}", end(new));
    never!(write, "a job with a failed pod has failed",
        new.status()["phase"] == "Succeeded" && count("failed") > 0 => "{:?}", end(new));
    None
}

/// Does the job select the pod?
pub fn is_selected(pod: &Object) -> bool {
    pod.label("app") == "cart"
}

/// The pods that a job counts, as they are now.
fn counted(mirror: &Mirror) -> impl Iterator<Item = &Arc<Object>> {
    let pods = mirror.of(PODS).now();
    pods.filter(|pod| is_selected(pod) && pod.is_active())
}

/// The uid of the job that an ephemeral container is of.
fn job_of(container: &Value) -> &str {
    let id = named(&container["env"], "KRUISE_EJOB_ID");
    id.map_or("", |id| text(&id["value"]))
}

/// The uid of the job whose container came to a pod.
fn new_container<'o>(before: &Object, after: &'o Object) -> Option<&'o str> {
    let had = list(&before.spec()["ephemeralContainers"]);
    let new = items(&after.spec()["ephemeralContainers"]).find(|one| !had.contains(one))?;
    Some(job_of(new)).filter(|uid| !uid.is_empty())
}

/// The ephemeral containers of a pod that a job with this uid added.
fn containers<'o>(pod: &'o Object, uid: &str) -> Vec<&'o Value> {
    let all = items(&pod.spec()["ephemeralContainers"]);
    all.filter(|one| job_of(one) == uid).collect()
}

/// The container of a job in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    None,
    /// It has not ended.
    Open,
    /// It has ended with this code.
    Ended(i64),
}

/// What became of the container of a job in a pod.
fn container(pod: &Object, uid: &str) -> Added {
    let own = containers(pod, uid);
    let Some(own) = own.first() else {
        return Added::None;
    };
    let status = named(&pod.status()["ephemeralContainerStatuses"], &own["name"]);
    let code = status.and_then(|status| status["state"]["terminated"]["exitCode"].as_i64());
    code.map_or(Added::Open, Added::Ended)
}
