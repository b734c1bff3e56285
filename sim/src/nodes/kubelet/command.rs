//! How the container of a job, or an ephemeral one, ends: its command is read for words that say it, because no process
//! runs.
//!
//! * `sleep N` runs for so many seconds, `sleep infinity` without end. Without it, a container runs as long as an init
//!   container.
//! * `exit N`, and the command `false`, end with that code.

use std::time::Duration;

use serde_json::Value;

use super::spec::RestartPolicy;

/// How a process ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// After this long; `None` for as long as a container that says nothing.
    pub(super) after: Option<Duration>,
    /// With this exit code.
    pub(super) code: i64,
}

/// How a main container of a pod ends; `None` if it does not. Pods of controllers of the kinds `jobs` do.
pub(super) fn ending(container: &Value, pod: &Value, jobs: &[&str]) -> Option<Ending> {
    if RestartPolicy::of(pod) == RestartPolicy::Always || !is_of_a_job(pod, jobs) {
        return None;
    }
    of(container)
}

/// How a container ends whose process comes to an end; `None` if its command says that it does not.
pub(super) fn of(container: &Value) -> Option<Ending> {
    let words = ["command", "args"].map(|list| container.get(list).and_then(Value::as_array));
    let words = words.into_iter().flatten().flatten().filter_map(Value::as_str);
    let text = words.collect::<Vec<_>>().join(" ");
    let separators = |c: char| c.is_whitespace() || ";&|()".contains(c);
    let words: Vec<&str> = text.split(separators).filter(|word| !word.is_empty()).collect();
    let after = |name: &str| {
        let mut pairs = words.windows(2).filter_map(|pair| match pair {
            [word, value] if *word == name => Some(*value),
            _ => None,
        });
        pairs.next()
    };
    let sleeps = after("sleep");
    if sleeps == Some("infinity") {
        return None;
    }
    let seconds = sleeps.and_then(|text| text.trim_end_matches('s').parse().ok());
    let code = after("exit").and_then(|code| code.parse().ok());
    let fails = words.last() == Some(&"false");
    Some(Ending {
        after: seconds.map(Duration::from_secs),
        code: code.unwrap_or(i64::from(fails)),
    })
}

fn is_of_a_job(pod: &Value, jobs: &[&str]) -> bool {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| {
        let kind = owner.get("kind").and_then(Value::as_str);
        owner.get("controller") == Some(&true.into()) && kind.is_some_and(|kind| jobs.contains(&kind))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::{Ending, ending};

    fn of(policy: &str, kind: &str, container: Value) -> Option<Ending> {
        let owners = json!([{"kind": kind, "name": "a", "controller": true}]);
        let pod = json!({"metadata": {"ownerReferences": owners}, "spec": {"restartPolicy": policy}});
        ending(&container, &pod, &["Job"])
    }

    #[test]
    fn a_command_says_how_the_container_of_a_job_ends() {
        let says = |command: Value| of("Never", "Job", json!({"command": command}));
        let after = |seconds: Option<u64>, code| {
            let after = seconds.map(Duration::from_secs);
            Some(Ending { after, code })
        };
        for (command, expected) in [
            (json!(null), after(None, 0)),
            (json!(["sleep", "5"]), after(Some(5), 0)),
            (
                json!(["sh", "-c", "echo a; sleep 20s && exit 3"]),
                after(Some(20), 3),
            ),
            (json!(["sh", "-c", "(sleep 1); exit 0"]), after(Some(1), 0)),
            (json!(["false"]), after(None, 1)),
            (json!(["/bin/report"]), after(None, 0)),
            (json!(["sleep", "infinity"]), None),
        ] {
            assert_eq!(says(command.clone()), expected, "{command}");
        }
        let args = json!({"command": ["sh", "-c"], "args": ["sleep 2"]});
        assert_eq!(of("OnFailure", "Job", args), after(Some(2), 0));
    }

    #[test]
    fn pods_of_others_and_pods_that_always_restart_do_not_end() {
        let sleeps = || json!({"command": ["sleep", "5"]});
        assert_eq!(of("Always", "Job", sleeps()), None);
        assert_eq!(of("Never", "BroadcastJob", sleeps()), None);
        assert_eq!(
            ending(&sleeps(), &json!({"spec": {"restartPolicy": "Never"}}), &["Job"]),
            None
        );
    }
}
