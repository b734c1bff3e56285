//! What kubelets write on the containers that they create.

use serde_json::Value;

use crate::RuntimeContainer;
use crate::hook::{self, Hook};

const HASH: &str = "io.kubernetes.container.hash";
const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
const PORTS: &str = "io.kubernetes.container.ports";
const TERMINATION_GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";
const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";

/// Grace period of a pod that does not say.
const DEFAULT_GRACE: u64 = 30;

/// Hash of its specification; 0 if it cannot be read.
pub(crate) fn hash(container: &RuntimeContainer) -> u64 {
    let text = container.annotations.get(HASH).unwrap_or_default();
    u64::from_str_radix(text, 16).unwrap_or_default()
}

/// Restarts before it; 0 if that cannot be read.
pub(crate) fn restart_count(container: &RuntimeContainer) -> i32 {
    let text = container.annotations.get(RESTART_COUNT).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Seconds that it may take to stop.
pub(crate) fn grace(container: &RuntimeContainer) -> u64 {
    let seconds = |key| container.annotations.get(key).and_then(|text| text.parse().ok());
    seconds(DELETION_GRACE)
        .or_else(|| seconds(TERMINATION_GRACE))
        .unwrap_or(DEFAULT_GRACE)
}

/// The preStop hook; none if there is none that does anything. `ip` is the address of the pod.
///
/// # Errors
/// Why it cannot be run, in plain words.
pub(crate) fn hook(container: &RuntimeContainer, ip: Option<&str>) -> Result<Option<Hook>, String> {
    let Some(text) = container.annotations.get(PRE_STOP) else {
        return Ok(None);
    };
    let handler: Value = serde_json::from_str(text).map_err(|error| format!("it cannot be read: {error}"))?;
    let ports = container.annotations.get(PORTS).unwrap_or_default();
    hook::hook(&handler, &serde_json::from_str(ports).unwrap_or_default(), ip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Handler;

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
    fn the_hook_of_a_kubelet_is_read_with_the_ports_beside_it() {
        let of = |hook: &str| {
            let ports = r#"[{"name":"web","containerPort":8080,"protocol":"TCP"}]"#;
            super::hook(&container(&[(PRE_STOP, hook), (PORTS, ports)]), Some("10.0.0.7"))
        };
        let connect = Handler::Tcp {
            host: "10.0.0.7".into(),
            port: 8080,
        };
        assert_eq!(
            of(r#"{"tcpSocket":{"port":"web"}}"#),
            Ok(Some(Hook::Run(connect)))
        );
        assert_eq!(of("{}"), Ok(None));
        for broken in ["", "[]", r#"{"httpGet":{"port":"db"}}"#] {
            assert!(of(broken).is_err(), "{broken}");
        }
        assert_eq!(super::hook(&container(&[]), None), Ok(None));
    }
}
