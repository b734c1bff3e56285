//! Hundreds of SidecarSets in one match condition: the server takes it, the right pods come to us and no others.

use kruise_e2e::kubectl::{Kubectl, documents};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, Stopped, scenario_alone, text, until_narrow};

/// Of the scenario's namespace, of the label that the sets select by, and on the sets.
const NAME: &str = "sidecar-scope";
/// Sets whose selectors fit into a condition word for word, beside what other tests have there.
const MANY: usize = 260;
/// Sets of which only the keys of labels fit.
const TOO_MANY: usize = 360;
/// Longest condition.
const LENGTH: usize = 32 * 1024;

/// Sets by number: each is for pods with its own value of one label; those with even numbers in one namespace only.
struct Sets<'a>(&'a Scenario);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        // The scenario may have failed already.
        let selector = format!("scope={NAME}");
        let delete = ["delete", "sidecarsets", "-l", &selector, "--wait=false"];
        let _ = self.0.kubectl.run(&delete);
    }
}

/// Long enough for some more sets than fit to be enough.
fn value(number: usize) -> String {
    format!("value-{number:03}-of-a-label-as-long-as")
}

impl Sets<'_> {
    fn make(&self, numbers: std::ops::Range<usize>) {
        let sets: Vec<Value> = numbers
            .map(|number| {
                let mut set = json!({
                    "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
                    "metadata": {"name": format!("{NAME}-{number:03}"), "labels": {"scope": NAME}},
                    "spec": {
                        "selector": {"matchLabels": {NAME: value(number)}},
                        "updateStrategy": {"type": "NotUpdate"},
                        "containers": [{"name": format!("agent-{number:03}"), "image": "agent:1"}],
                    },
                });
                if number % 2 == 0 {
                    set["spec"]["namespaceSelector"] =
                        json!({"matchLabels": {"kubernetes.io/metadata.name": NAME}});
                }
                set
            })
            .collect();
        let create = ["create", "-f", "-"];
        self.0.kubectl.run_with_input(&create, &documents(&sets)).unwrap();
    }

    /// Waits until the condition that the server has stored satisfies this.
    fn until_condition(&self, what: &str, holds: impl Fn(&str) -> bool) {
        wait::until_true(&format!("the condition {what}"), wait::QUIET, || {
            let name = "kruise-mutating-webhook-configuration";
            let stored = self.0.kubectl.get("mutatingwebhookconfigurations", name)?;
            let entries = stored["webhooks"].as_array().into_iter().flatten();
            let mut of_sets = entries.filter(|entry| entry["name"] == "mpod-sidecars.kb.io");
            let condition = of_sets
                .next()
                .map(|entry| text(entry, "/matchConditions/0/expression"));
            Ok(condition.is_some_and(|condition| condition.len() <= LENGTH && holds(&condition)))
        })
        .unwrap();
    }

    /// Waits until sets with these numbers are injected into their pods.
    fn until_injected(&self, numbers: &[usize]) {
        for &number in numbers {
            let agent = format!("agent-{number:03}");
            wait::until_true(&format!("{agent} is injected"), LIMIT, || {
                Ok(containers(&self.0.kubectl, Some(&value(number)))? == [&agent, "main"])
            })
            .unwrap();
        }
    }
}

/// Names of the containers of a new pod with this value of the label, as the server would store it.
fn containers(kubectl: &Kubectl, value: Option<&str>) -> anyhow::Result<Vec<String>> {
    let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let made: Value = serde_json::from_str(&kubectl.run_with_input(&dry_run, &pod(value).to_string())?)?;
    let containers = made["spec"]["containers"].as_array().into_iter().flatten();
    Ok(containers.map(|one| text(one, "/name")).collect())
}

fn pod(value: Option<&str>) -> Value {
    let labels = value.map_or_else(|| json!({"other": "label"}), |value| json!({NAME: value}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}})
}

/// Waits until a new pod with this value is refused, because nobody answers for its sidecars.
fn until_refused(kubectl: &Kubectl, value: &str) {
    let dry_run = ["create", "--dry-run=server", "-f", "-"];
    wait::until_true(
        &format!("a pod with {value} waits for a manager"),
        wait::QUIET,
        || {
            let (_, error) = kubectl.attempt(&dry_run, &pod(Some(value)).to_string())?;
            Ok(error.contains("mpod-sidecars.kb.io"))
        },
    )
    .unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn hundreds_of_sidecarsets_are_distinguished_by_the_server_and_more_by_their_keys() {
    let scenario = scenario_alone(NAME);
    let kubectl = &scenario.kubectl;
    let elsewhere = kubectl.in_namespace("default");
    let plain = || ["main".to_owned()];
    let sets = Sets(&scenario);

    sets.make(0..MANY);
    sets.until_condition("names each set", |condition| {
        condition.matches("'value-").count() == MANY
    });
    sets.until_injected(&[0, 1, MANY / 2, MANY - 2, MANY - 1]);
    assert_eq!(containers(&elsewhere, Some(&value(0))).unwrap(), plain());
    assert_eq!(
        containers(&elsewhere, Some(&value(1))).unwrap(),
        ["agent-001", "main"]
    );
    until_narrow(kubectl);
    let stopped = Stopped::shared(kubectl.kubeconfig());
    until_refused(kubectl, &value(MANY - 1));
    until_refused(&elsewhere, &value(MANY - 1));
    // No webhook matches these.
    let (first, unknown) = (value(0), value(999));
    for (kubectl, value) in [
        (kubectl, Some(&*unknown)),
        (kubectl, None),
        (&elsewhere, Some(&*first)),
    ] {
        assert_eq!(containers(kubectl, value).unwrap(), plain(), "{value:?}");
    }
    drop(stopped);

    sets.make(MANY..TOO_MANY);
    sets.until_condition("names only the key", |condition| {
        condition.contains(NAME) && !condition.contains("'value-")
    });
    sets.until_injected(&[0, TOO_MANY - 2, TOO_MANY - 1]);
    for kubectl in [kubectl, &elsewhere] {
        assert_eq!(containers(kubectl, Some(&value(999))).unwrap(), plain());
    }
    until_narrow(kubectl);
    let _stopped = Stopped::shared(kubectl.kubeconfig());
    // Asked about although no set is for it: wider, never wrong.
    until_refused(kubectl, &value(999));
    assert_eq!(containers(kubectl, None).unwrap(), plain());
}
