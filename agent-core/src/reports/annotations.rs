//! What kubelets write on the containers that they create.

use serde::Deserialize;
use serde_json::Value;

use crate::{PreStop, RuntimeContainer};

const HASH: &str = "io.kubernetes.container.hash";
const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
const PORTS: &str = "io.kubernetes.container.ports";
const TERMINATION_GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";
const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";

/// Grace period of a pod that does not say.
const DEFAULT_GRACE: u64 = 30;

/// Hash of its specification; 0 if it cannot be read.
pub(super) fn hash(container: &RuntimeContainer) -> u64 {
    let text = container.annotations.get(HASH).unwrap_or_default();
    u64::from_str_radix(text, 16).unwrap_or_default()
}

/// Restarts before it; 0 if that cannot be read.
pub(super) fn restart_count(container: &RuntimeContainer) -> i32 {
    let text = container.annotations.get(RESTART_COUNT).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Seconds that it may take to stop.
pub(super) fn grace(container: &RuntimeContainer) -> u64 {
    let seconds = |key| container.annotations.get(key).and_then(|text| text.parse().ok());
    seconds(DELETION_GRACE)
        .or_else(|| seconds(TERMINATION_GRACE))
        .unwrap_or(DEFAULT_GRACE)
}

/// What is to be done before a container is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Run(PreStop),
    /// Wait so many seconds.
    Sleep(u64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handler {
    exec: Option<Exec>,
    http_get: Option<HttpGet>,
    sleep: Option<Sleep>,
}

#[derive(Deserialize)]
struct Exec {
    #[serde(default)]
    command: Option<Vec<Box<str>>>,
}

#[derive(Deserialize)]
struct Sleep {
    seconds: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct HttpGet {
    path: Box<str>,
    port: Value,
    host: Box<str>,
    scheme: Box<str>,
    http_headers: Option<Vec<Header>>,
}

#[derive(Deserialize)]
struct Header {
    name: Box<str>,
    value: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Port {
    #[serde(default)]
    name: Box<str>,
    container_port: u16,
}

/// The preStop hook; none if there is none that does anything. `ip` is the address of the pod.
///
/// # Errors
/// Why it cannot be run, in plain words.
pub(super) fn hook(container: &RuntimeContainer, ip: Option<&str>) -> Result<Option<Hook>, String> {
    let Some(text) = container.annotations.get(PRE_STOP) else {
        return Ok(None);
    };
    let handler: Handler =
        serde_json::from_str(text).map_err(|error| format!("it cannot be read: {error}"))?;
    if let Some(exec) = handler.exec {
        let command = exec.command.unwrap_or_default();
        return Ok((!command.is_empty()).then(|| Hook::Run(PreStop::Exec(command.into()))));
    }
    if let Some(sleep) = handler.sleep {
        return Ok(u64::try_from(sleep.seconds)
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Hook::Sleep));
    }
    let Some(get) = handler.http_get else {
        return Ok(None);
    };
    let port = port(&get.port, container).ok_or_else(|| format!("its port {} is not known", get.port))?;
    let host = match &*get.host {
        "" => ip.ok_or("its pod has no address")?,
        host => host,
    };
    let headers = get.http_headers.unwrap_or_default().into_iter();
    Ok(Some(Hook::Run(PreStop::Http {
        scheme: match &*get.scheme {
            "" => "http".into(),
            scheme => scheme.to_ascii_lowercase().into(),
        },
        host: host.into(),
        port,
        path: get.path,
        headers: headers.map(|header| (header.name, header.value)).collect(),
    })))
}

/// A number, or the name of a port of the container.
fn port(port: &Value, container: &RuntimeContainer) -> Option<u16> {
    if let Some(number) = port.as_u64() {
        return u16::try_from(number).ok();
    }
    let name = port.as_str()?;
    let ports = container.annotations.get(PORTS).unwrap_or("[]");
    let ports: Vec<Port> = serde_json::from_str(ports).unwrap_or_default();
    let named = ports.iter().find(|port| *port.name == *name);
    named
        .map(|port| port.container_port)
        .or_else(|| name.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(annotations: &[(&str, &str)]) -> RuntimeContainer {
        RuntimeContainer {
            annotations: annotations.iter().copied().collect(),
            ..RuntimeContainer::default()
        }
    }

    #[test]
    fn numbers_of_a_kubelet_are_read_and_garbage_is_nothing() {
        let known = container(&[(HASH, "19fd3b7c"), (RESTART_COUNT, "3"), (TERMINATION_GRACE, "7")]);
        assert_eq!(
            (hash(&known), restart_count(&known), grace(&known)),
            (436_026_236, 3, 7)
        );
        let garbage = container(&[(HASH, "xyz"), (RESTART_COUNT, "-"), (TERMINATION_GRACE, "-1")]);
        assert_eq!(
            (hash(&garbage), restart_count(&garbage), grace(&garbage)),
            (0, 0, 30)
        );
        let deleted = container(&[(DELETION_GRACE, "0"), (TERMINATION_GRACE, "7")]);
        assert_eq!(grace(&deleted), 0);
    }

    #[test]
    fn hooks_of_each_kind_are_read() {
        let of = |hook: &str| {
            let ports = r#"[{"name":"web","containerPort":8080,"protocol":"TCP"}]"#;
            super::hook(&container(&[(PRE_STOP, hook), (PORTS, ports)]), Some("10.0.0.7"))
        };
        assert_eq!(
            of(r#"{"exec":{"command":["sh","-c","true"]}}"#),
            Ok(Some(Hook::Run(PreStop::Exec(
                ["sh", "-c", "true"].map(Into::into).into()
            ))))
        );
        assert_eq!(of(r#"{"sleep":{"seconds":5}}"#), Ok(Some(Hook::Sleep(5))));
        let get = |host: &str, port, scheme: &str| {
            Ok(Some(Hook::Run(PreStop::Http {
                scheme: scheme.into(),
                host: host.into(),
                port,
                path: "/bye".into(),
                headers: Box::default(),
            })))
        };
        assert_eq!(
            of(r#"{"httpGet":{"path":"/bye","port":"web","scheme":"HTTPS"}}"#),
            get("10.0.0.7", 8080, "https")
        );
        assert_eq!(
            of(r#"{"httpGet":{"path":"/bye","port":80,"host":"a.b"}}"#),
            get("a.b", 80, "http")
        );
        for nothing in [
            "{}",
            r#"{"exec":{}}"#,
            r#"{"sleep":{"seconds":0}}"#,
            r#"{"tcpSocket":{"port":1}}"#,
        ] {
            assert_eq!(of(nothing), Ok(None), "{nothing}");
        }
        for broken in [
            "",
            "[]",
            r#"{"httpGet":{"port":"db"}}"#,
            r#"{"httpGet":{"port":70000}}"#,
        ] {
            assert!(of(broken).is_err(), "{broken}");
        }
        let without_address = container(&[(PRE_STOP, r#"{"httpGet":{"port":1}}"#)]);
        assert!(super::hook(&without_address, None).is_err());
    }
}
