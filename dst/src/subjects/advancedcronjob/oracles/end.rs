//! What an AdvancedCronJob must be once it is paused and all is calm.

use super::super::start::{CRON_JOBS, JOBS};
use super::known::{activation, ended, last};
use crate::rules::prelude::*;

pub(super) fn unfinished(mirror: &Mirror) -> Result<(), String> {
    let cron = mirror.of(CRON_JOBS).now().next();
    let cron = cron.ok_or("there is no AdvancedCronJob")?;
    let value = cron.value();
    expect("it is paused", value["spec"]["paused"].as_bool(), Some(true))?;
    let jobs = mirror.of(JOBS);
    let own = || jobs.now().filter(|job| *job.owner() == *cron.uid);
    wrong!(some job in own().find(|job| ended(job).is_none()) => "{} has not ended", job.name);
    let active = value["status"]["active"].as_array().map_or(0, Vec::len);
    expect("jobs in status.active", active, 0)?;
    expect("status.type", value["status"]["type"].as_str(), Some("Job"))?;
    for (end, limit) in [
        ("Complete", "successfulJobsHistoryLimit"),
        ("Failed", "failedJobsHistoryLimit"),
    ] {
        let limit = value["spec"][limit].as_i64().unwrap_or(i64::MAX);
        let kept = own().filter(|job| ended(job) == Some(end)).count() as i64;
        wrong!(kept > limit => "{kept} jobs {end}, and {limit} are to be kept");
    }
    let newest = own().filter_map(|job| activation(job)).max();
    wrong!(newest > last(cron) => "{newest:?} had a job and is not recorded");
    Ok(())
}
