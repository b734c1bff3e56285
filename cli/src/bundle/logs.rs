//! The last lines of the logs of managers and node agents, and the metrics of managers.

use kruise_api::path::segment;
use kruise_frame::json::{condition, text};
use serde_json::Value;

use super::{
    archive::{Archive, file_name},
    reader::Reader,
};

/// Label of the pods of an installation.
const LABEL: &str = "/metadata/labels/control-plane";

/// Programs of an installation: value of the label, container, folder, and pods at most.
const PROGRAMS: [(&str, &str, &str, usize); 2] = [
    ("controller-manager", "manager", "manager", 5),
    ("daemon", "daemon", "agents", 10),
];

/// Lines that are asked for, for each of these bytes of the limit.
const BYTES_OF_A_LINE: usize = 256;
/// So many times the limit is asked for: the server cuts the end of what it answers with, which is what matters.
const ROOM: usize = 16;

/// Adds logs of at most so many bytes each, and metrics. Returns the number of managers that are ready, and of all.
pub(super) async fn collect(
    reader: &mut Reader<'_>,
    archive: &mut Archive,
    namespace: &str,
    pods: &[Value],
    bytes: usize,
) -> anyhow::Result<(usize, usize)> {
    for (label, container, folder, most) in PROGRAMS {
        let mut of_program: Vec<&Value> = pods.iter().filter(|pod| text(pod, LABEL) == label).collect();
        // Those in trouble first.
        of_program.sort_by_key(|pod| (is_ready(pod), text(pod, "/metadata/name").to_owned()));
        if of_program.len() > most {
            reader.note(
                folder,
                format_args!("only the logs of {most} of {} pods are here", of_program.len()),
            );
        }
        for pod in of_program.into_iter().take(most) {
            let name = text(pod, "/metadata/name");
            let path = format!(
                "/api/v1/namespaces/{}/pods/{}/log",
                segment(namespace),
                segment(name)
            );
            let lines = (bytes / BYTES_OF_A_LINE).max(1);
            let room = bytes.saturating_mul(ROOM);
            let query = format!("container={container}&tailLines={lines}&limitBytes={room}");
            for (suffix, previous) in [("", ""), (".previous", "&previous=true")] {
                if !previous.is_empty() && restarts(pod, container) == 0 {
                    continue;
                }
                if let Some(log) = reader.text(&format!("{path}?{query}{previous}")).await {
                    let file = file_name(&format!("{name}{suffix}.log"));
                    if log.len() >= room {
                        reader.note(&file, "the lines are long: the newest ones are missing");
                    }
                    archive.text(&format!("logs/{folder}/{file}"), tail(&log, bytes))?;
                }
            }
        }
    }
    let managers: Vec<&Value> = pods
        .iter()
        .filter(|pod| text(pod, LABEL) == PROGRAMS[0].0)
        .collect();
    let ready: Vec<&&Value> = managers.iter().filter(|pod| is_ready(pod)).collect();
    for pod in ready.iter().take(PROGRAMS[0].3) {
        let name = text(pod, "/metadata/name");
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}:{}/proxy/metrics",
            segment(namespace),
            segment(name),
            metrics_port(pod)
        );
        if let Some(metrics) = reader.text(&path).await {
            archive.text(&format!("metrics/{}.txt", file_name(name)), &metrics)?;
        }
    }
    Ok((ready.len(), managers.len()))
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some()
}

fn restarts(pod: &Value, container: &str) -> u64 {
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let mut statuses = statuses.into_iter().flatten();
    let status = statuses.find(|one| text(one, "/name") == container);
    status
        .and_then(|one| one.get("restartCount")?.as_u64())
        .unwrap_or_default()
}

/// The port that is named so, or the default one.
fn metrics_port(pod: &Value) -> u64 {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let ports = containers
        .into_iter()
        .flatten()
        .filter_map(|one| one.get("ports")?.as_array());
    let mut ports = ports.flatten();
    let port = ports.find(|port| text(port, "/name") == "metrics");
    port.and_then(|port| port.get("containerPort")?.as_u64())
        .unwrap_or(8080)
}

/// The last bytes of a log, beginning with a whole line.
fn tail(log: &[u8], most: usize) -> &[u8] {
    let cut = log.len().saturating_sub(most);
    let (left_out, rest) = log.split_at(cut);
    if left_out.last().is_none_or(|last| *last == b'\n') {
        return rest;
    }
    let end = rest.iter().position(|byte| *byte == b'\n');
    end.and_then(|end| rest.get(end + 1..)).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line() {
        let log = b"one\ntwo\nthree\n";
        for (most, end) in [
            (100, "one\ntwo\nthree\n"),
            (14, "one\ntwo\nthree\n"),
            (10, "two\nthree\n"),
            (9, "three\n"),
            (6, "three\n"),
        ] {
            assert_eq!(tail(log, most), end.as_bytes(), "{most}");
        }
        assert_eq!(tail(b"without an end", 3), b"end");
        assert_eq!(tail(b"", 0), b"");
    }

    #[test]
    fn the_port_of_metrics_is_the_one_that_is_named_so() {
        let ports =
            json!([{"name": "health", "containerPort": 8000}, {"name": "metrics", "containerPort": 9090}]);
        assert_eq!(
            metrics_port(&json!({"spec": {"containers": [{"name": "manager", "ports": ports}]}})),
            9090
        );
        assert_eq!(metrics_port(&json!({})), 8080);
    }
}
