//! What an AdvancedCronJob must be once it is paused and all is calm.

use super::known::{activation, ended, last};
use crate::engine::oracles::Mirror;
use crate::subjects::advancedcronjob::start::{CRON_JOBS, JOBS};
use crate::subjects::settled::expect;

pub(super) fn unfinished(mirror: &Mirror) -> Result<(), String> {
    let cron = mirror.of(CRON_JOBS).now().next();
    let cron = cron.ok_or("there is no AdvancedCronJob")?;
    let value = cron.value();
    expect("it is paused", value["spec"]["paused"].as_bool(), Some(true))?;
    let jobs = mirror.of(JOBS);
    let own = || jobs.now().filter(|job| *job.owner() == *cron.uid);
    if let Some(job) = own().find(|job| ended(job).is_none()) {
        return Err(format!("{} has not ended", job.name));
    }
    let active = value["status"]["active"].as_array().map_or(0, Vec::len);
    expect("jobs in status.active", active, 0)?;
    expect("status.type", value["status"]["type"].as_str(), Some("Job"))?;
    for (end, limit) in [
        ("Complete", "successfulJobsHistoryLimit"),
        ("Failed", "failedJobsHistoryLimit"),
    ] {
        let limit = value["spec"][limit].as_i64().unwrap_or(i64::MAX);
        let kept = own().filter(|job| ended(job) == Some(end)).count() as i64;
        if kept > limit {
            return Err(format!("{kept} jobs {end}, and {limit} are to be kept"));
        }
    }
    let newest = own().filter_map(|job| activation(job)).max();
    if newest > last(cron) {
        return Err(format!("{newest:?} had a job and is not recorded"));
    }
    Ok(())
}
