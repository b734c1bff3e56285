//! AdvancedCronJobs above the Jobs of Kubernetes.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario};

/// How often what must hold all the time is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// An AdvancedCronJob whose jobs run until somebody ends their pods.
fn cron_job(name: &str, schedule: &Value) -> Value {
    let mut spec = json!({
        "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1,
        "template": {"jobTemplate": {
            "metadata": {"labels": {"of": name}, "annotations": {"note": "copied"}},
            "spec": {"backoffLimit": 0, "template": {
                "metadata": {"labels": {"of": name}},
                "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "main", "image": "example/report:1", "command": ["sleep", "infinity"]}]}}},
        }},
    });
    let members = spec.as_object_mut().unwrap();
    members.extend(schedule.as_object().unwrap().clone());
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "metadata": {"name": name}, "spec": spec})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}"))
}

fn jobs(scenario: &Scenario, name: &str) -> Vec<Value> {
    scenario
        .kubectl
        .list("jobs.batch", &format!("of={name}"))
        .unwrap()
}

fn ended(job: &Value) -> Option<&'static str> {
    let conditions = job["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    ["Complete", "Failed"].into_iter().find(|kind| {
        conditions
            .iter()
            .any(|one| one["type"] == *kind && one["status"] == "True")
    })
}

/// Jobs that have not ended and are not being deleted.
fn running(scenario: &Scenario, name: &str) -> Vec<Value> {
    let mut jobs = jobs(scenario, name);
    jobs.retain(|job| ended(job).is_none() && job["metadata"]["deletionTimestamp"].is_null());
    jobs
}

/// Ends the pods of a job, as their nodes would.
fn end(scenario: &Scenario, job: &str, phase: &str) {
    let selector = format!("batch.kubernetes.io/job-name={job}");
    let mut pods = Vec::new();
    wait::until_true("the pod of the job", LIMIT, || {
        pods = scenario.kubectl.list("pods", &selector)?;
        Ok(!pods.is_empty())
    })
    .unwrap();
    for pod in pods {
        let patch = json!({"status": {"phase": phase}});
        let name = text(&pod["metadata"]["name"]);
        scenario.kubectl.patch_status("pod", name, &patch).unwrap();
    }
}

fn patch(scenario: &Scenario, name: &str, spec: &Value) {
    let patch = json!({"spec": spec});
    scenario.kubectl.patch("advancedcronjobs", name, &patch).unwrap();
}

fn until_running(scenario: &Scenario, name: &str, what: &str, is: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut seen = Vec::new();
    // One of the schedules has a job each minute.
    wait::until_true(what, wait::QUIET, || {
        seen = running(scenario, name);
        Ok(is(&seen))
    })
    .unwrap();
    seen
}

/// Looks all the time: no more than one job runs.
fn one_at_a_time(scenario: &Scenario, name: &str, time: Duration) -> BTreeSet<String> {
    let begun = Instant::now();
    let mut seen = BTreeSet::new();
    while begun.elapsed() < time {
        let running = running(scenario, name);
        assert!(running.len() <= 1, "{running:?}");
        seen.extend(
            running
                .iter()
                .map(|job| text(&job["metadata"]["name"]).to_owned()),
        );
        wait::observe_for(LOOK);
    }
    seen
}

fn reasons(scenario: &Scenario, name: &str) -> BTreeSet<String> {
    let events = scenario.kubectl.list("events", "").unwrap();
    let own = events
        .iter()
        .filter(|event| event["involvedObject"]["name"] == *name);
    own.map(|event| text(&event["reason"]).to_owned()).collect()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_schedule_creates_jobs_and_keeps_its_policy_and_its_history() {
    let scenario = scenario("schedules");
    let zoned = json!({"schedule": "* * * * *", "timeZone": "Asia/Tokyo"});
    scenario.kubectl.create(&cron_job("minutely", &zoned)).unwrap();
    let quick = json!({"schedule": "@every 3s", "concurrencyPolicy": "Allow"});
    let cron = scenario.kubectl.create(&cron_job("tick", &quick)).unwrap();

    let side_by_side = until_running(&scenario, "tick", "two jobs", |jobs| jobs.len() >= 2);
    for job in &side_by_side {
        let metadata = &job["metadata"];
        let annotations = &metadata["annotations"];
        let activation: Timestamp = text(&annotations["apps.kruise.io/scheduled-at"]).parse().unwrap();
        assert_eq!(metadata["name"], format!("tick-{}", activation.as_second()));
        assert_eq!(annotations["note"], "copied");
        let owner = &metadata["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["uid"], &owner["controller"]),
            (&json!("AdvancedCronJob"), &cron["metadata"]["uid"], &json!(true))
        );
    }
    wait::until_true("the status", LIMIT, || {
        let status = scenario.kubectl.get("advancedcronjobs", "tick")?["status"].take();
        let active = status["active"].as_array().map_or(0, Vec::len);
        Ok(status["type"] == "Job" && active >= 2 && status["lastScheduleTime"].is_string())
    })
    .unwrap();
    assert!(explained(&scenario, &["acj/tick", "-n", "schedules"]).contains("the next activation is"));

    // Jobs that ended are forgotten but for the newest, of each kind of end.
    patch(&scenario, "tick", &json!({"concurrencyPolicy": "Forbid"}));
    let all = running(&scenario, "tick");
    for (index, job) in all.iter().enumerate() {
        let phase = if index == 0 { "Failed" } else { "Succeeded" };
        end(&scenario, text(&job["metadata"]["name"]), phase);
    }
    let next = until_running(&scenario, "tick", "a job after those", |jobs| {
        jobs.len() == 1
            && !all
                .iter()
                .any(|old| old["metadata"]["uid"] == jobs[0]["metadata"]["uid"])
    });
    let seen = one_at_a_time(&scenario, "tick", Duration::from_secs(8));
    assert_eq!(seen.len(), 1, "it waits: {seen:?}");
    assert!(reasons(&scenario, "tick").contains("JobAlreadyActive"));
    for phase in ["Succeeded", "Failed", "Succeeded", "Succeeded"] {
        let job = until_running(&scenario, "tick", "the next job", |jobs| jobs.len() == 1);
        let name = text(&job[0]["metadata"]["name"]).to_owned();
        end(&scenario, &name, phase);
        until_running(&scenario, "tick", "the job after it", |jobs| {
            jobs.len() == 1 && jobs[0]["metadata"]["name"] != *name
        });
    }
    wait::until_true("the history is trimmed", LIMIT, || {
        let jobs = jobs(&scenario, "tick");
        let count = |kind| jobs.iter().filter(|job| ended(job) == Some(kind)).count();
        Ok((count("Complete"), count("Failed")) == (2, 1))
    })
    .unwrap();

    patch(&scenario, "tick", &json!({"concurrencyPolicy": "Replace"}));
    let seen = one_at_a_time(&scenario, "tick", Duration::from_secs(10));
    assert!(seen.len() >= 3, "they follow each other: {seen:?}");
    assert!(!seen.contains(text(&next[0]["metadata"]["name"])));

    patch(&scenario, "tick", &json!({"paused": true}));
    let running = |name| until_running(&scenario, name, "a job", |jobs| !jobs.is_empty());
    let before = running("tick");
    wait::observe_for(Duration::from_secs(7));
    assert_eq!(
        running("tick")[0]["metadata"]["uid"],
        before[0]["metadata"]["uid"]
    );
    let said = reasons(&scenario, "tick");
    for reason in ["SuccessfulCreate", "SuccessfulDelete", "SawCompletedJob"] {
        assert!(said.contains(reason), "{reason}: {said:?}");
    }

    let minutely = running("minutely");
    for job in minutely {
        let second = text(&job["metadata"]["name"]).strip_prefix("minutely-").unwrap();
        assert_eq!(second.parse::<i64>().unwrap() % 60, 0);
    }
    scenario
        .kubectl
        .run(&["delete", "acj", "tick", "minutely"])
        .unwrap();
    wait::until_true("jobs go with their schedule", LIMIT, || {
        Ok(jobs(&scenario, "tick").is_empty() && jobs(&scenario, "minutely").is_empty())
    })
    .unwrap();
}
