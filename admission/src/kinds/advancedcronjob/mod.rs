//! AdvancedCronJobs.
//!
//! | Field | Rule |
//! |---|---|
//! | `metadata.name` | letters, digits and dashes |
//! | `schedule` | a cron schedule |
//! | `timeZone` | known; not beside one in the schedule |
//! | `startingDeadlineSeconds`, limits of history | not negative |
//! | `template` | one of three |
//! | `….jobTemplate`, `broadcastJobTemplate` | could become pods; stay |
//! | `….imageListPullJobTemplate` | as an ImageListPullJob; ends, within a day, and is kept for the history |
//! | `concurrencyPolicy` | known; not `Allow` for pulls of images |

mod templates;

use go_compat::schedule::{self, Schedule};
use jiff::tz::TimeZone;
use kube_schema::validate::Errors;
use serde_json::Value;

use self::templates::IMAGES;
use super::{KindWebhooks, Scope, judged, parts};
use crate::json::{fill, made, member, present, text};
use crate::workload::{self, not_negative};

/// The webhooks of the kind.
pub static WEBHOOKS: KindWebhooks = KindWebhooks {
    mutating: Some("madvancedcronjob.kb.io"),
    validating: Some("vadvancedcronjob.kb.io"),
    newest: true,
    parts: &[
        parts::part("spec.template.jobTemplate", "batch/v1.JobTemplateSpec"),
        parts::pod_template("spec.template.broadcastJobTemplate.spec.template"),
    ],
    defaults,
    rules,
    changes: templates::changes,
    templates: |object| {
        let pods = templates::OF_PODS.into_iter();
        pods.filter_map(|path| judged::at(object, path)).collect()
    },
    advice,
    ..KindWebhooks::of(&kruise_api::advancedcronjob::KIND)
};

fn defaults(object: &mut Value, scope: &Scope<'_>) {
    templates::complete(object, scope);
    let Some(spec) = made(object, "spec") else {
        return;
    };
    let pulls = spec
        .get("template")
        .and_then(|template| member(template, IMAGES))
        .is_some();
    fill(spec, "concurrencyPolicy", if pulls { "Replace" } else { "Allow" });
    fill(spec, "paused", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
}

fn rules(errors: &mut Errors, object: &Value, scope: &Scope<'_>) {
    workload::plain_metadata(errors, object);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    times(errors, spec);
    for name in [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        not_negative(errors, spec, name, format!("spec.{name}"));
    }
    let policy = text(spec, "concurrencyPolicy");
    let template = spec.get("template").unwrap_or(&Value::Null);
    let pulls = member(template, IMAGES).is_some();
    let policies: &'static [&'static str] = if pulls {
        &["Forbid", "Replace"]
    } else {
        &["Allow", "Forbid", "Replace"]
    };
    errors.one_of("spec.concurrencyPolicy", policy, policies);
    templates::check(errors, template, scope.options);
}

/// What OpenKruise accepts, and an author hardly means.
fn advice(object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let mut texts = templates::advice(object, scope);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let given = text(spec, "schedule");
    let never = given.parse::<Schedule>();
    if never.is_ok_and(|schedule| schedule.next(scope.now, &TimeZone::UTC).is_none()) {
        texts.push(format!(
            "spec.schedule: {given:?} names no time in the next five years, so nothing is ever started"
        ));
    }
    texts
}

fn times(errors: &mut Errors, spec: &Value) {
    let text_of = |name| text(spec, name);
    let given = text_of("schedule");
    if given.is_empty() {
        errors.required("spec.schedule", "");
    } else if let Err(error) = given.parse::<Schedule>() {
        errors.invalid("spec.schedule", given, &error.to_string());
    }
    if present(spec, "timeZone").is_none() {
        return;
    }
    let (path, zone) = ("spec.timeZone", text_of("timeZone"));
    if given.contains("TZ") {
        errors.invalid(path, zone, "cannot be set beside a TZ or CRON_TZ in the schedule");
    }
    if zone.is_empty() {
        errors.invalid(path, zone, "must be nil or non-empty string");
    } else if zone.eq_ignore_ascii_case("Local") {
        errors.invalid(
            path,
            zone,
            "must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    } else if !schedule::is_time_zone(zone) {
        errors.invalid(path, zone, "unknown time zone");
    }
}

#[cfg(test)]
mod tests;
