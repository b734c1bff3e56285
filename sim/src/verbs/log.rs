//! The log of a container, as far as its pod's status has it: no process runs, so there is no other output.
//!
//! Each line is a fact from the status: the image, since when it runs, how often it was restarted, how the last run
//! ended. `previous`, `tailLines`, `limitBytes`, `timestamps` and the choice of a container work; `follow` ends at
//! once, because nothing will follow.

use serde_json::Value;

use super::found::find;
use crate::api::{Api, Call};
use crate::status::Failure;
use crate::validation::text;
use crate::webhook::Stop;
use crate::wire::{Method, Response};

/// The log, if the call is for one.
pub(crate) fn log(api: &Api, call: &Call<'_>) -> Result<Option<Response>, Stop> {
    let has_log = call.resource.has(crate::registry::Subresource::Log);
    if !has_log || call.target.subresource != "log" || call.request.method != Method::Get {
        return Ok(None);
    }
    let count = |name: &str| -> Result<usize, Failure> {
        let given = call
            .query
            .number(name)?
            .and_then(|count| usize::try_from(count).ok());
        Ok(given.unwrap_or(usize::MAX))
    };
    let (tail_lines, limit) = (count("tailLines")?, count("limitBytes")?);
    let pod = call.read(find(api, call)?)?;
    let container = choose(call, &pod)?;
    let is_unscheduled = pod.pointer("/spec/nodeName").is_none();
    let lines = if is_unscheduled {
        Vec::new()
    } else {
        lines(call, &pod, &container)?
    };
    let mut out = String::new();
    for (time, line) in tail(&lines, tail_lines) {
        if call.query.flag("timestamps") {
            out.push_str(time);
            out.push(' ');
        }
        out.push_str(line);
        out.push('\n');
    }
    let mut bytes = out.into_bytes();
    bytes.truncate(limit);
    let mut response = Response::text(200, "");
    response.body = bytes;
    response.content_type = "text/plain";
    Ok(Some(response))
}

fn tail(lines: &[(String, String)], wanted: usize) -> &[(String, String)] {
    let from = lines.len().saturating_sub(wanted);
    lines.get(from..).unwrap_or_default()
}

/// The names of a pod's containers.
fn names(pod: &Value) -> Vec<&str> {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let all = lists
        .iter()
        .filter_map(|list| pod.pointer(&format!("/spec/{list}"))?.as_array());
    all.flatten().map(|one| text(one, "name")).collect()
}

fn choose(call: &Call<'_>, pod: &Value) -> Result<String, Failure> {
    let (all, wanted, name) = (names(pod), call.query.text("container"), &call.target.name);
    if wanted.is_empty() {
        let main = pod.pointer("/spec/containers").and_then(Value::as_array);
        return match main.map(Vec::as_slice) {
            Some([only]) if all.len() == 1 => Ok(text(only, "name").to_owned()),
            _ => Err(Failure::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                all.join(" ")
            ))),
        };
    }
    if all.contains(&wanted) {
        return Ok(wanted.to_owned());
    }
    Err(Failure::bad_request(format!(
        "container {wanted} is not valid for pod {name}"
    )))
}

/// The lines of a container with their times.
fn lines(call: &Call<'_>, pod: &Value, container: &str) -> Result<Vec<(String, String)>, Failure> {
    let lists = ["containerStatuses", "initContainerStatuses"];
    let mut statuses = lists
        .iter()
        .filter_map(|list| pod.pointer(&format!("/status/{list}"))?.as_array())
        .flatten();
    let status = statuses
        .find(|one| text(one, "name") == container)
        .unwrap_or(&Value::Null);
    let name = &call.target.name;
    let last = status.pointer("/lastState/terminated");
    if call.query.flag("previous") {
        let absent = || {
            Failure::bad_request(format!(
                "previous terminated container {container:?} in pod {name:?} not found"
            ))
        };
        return Ok(run(status, last.ok_or_else(absent)?, container));
    }
    let state = |kind: &str| status.pointer(&format!("/state/{kind}"));
    if let Some(run) = state("running").or_else(|| state("terminated")) {
        return Ok(self::run(status, run, container));
    }
    if let Some(last) = last {
        return Ok(run(status, last, container));
    }
    let reason = state("waiting").map_or("ContainerCreating", |waiting| text(waiting, "reason"));
    Err(Failure::bad_request(format!(
        "container {container:?} in pod {name:?} is waiting to start: {reason}"
    )))
}

/// What is known of one run, which may have ended.
fn run(status: &Value, run: &Value, container: &str) -> Vec<(String, String)> {
    let started = text(run, "startedAt");
    let restarts = status
        .get("restartCount")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let line = |time: &str, text: String| (time.to_owned(), text);
    let mut out = vec![
        line(
            started,
            format!("container {container} is simulated: these lines are its status"),
        ),
        line(started, format!("image {}", text(status, "image"))),
        line(started, format!("started at {started}, restarts {restarts}")),
    ];
    let finished = text(run, "finishedAt");
    if !finished.is_empty() {
        let code = run.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        let reason = text(run, "reason");
        out.push(line(
            finished,
            format!("ended at {finished} with exit code {code} ({reason})"),
        ));
    }
    out
}
