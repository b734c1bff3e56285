//! The agents of nodes: whether the policy that limits each to its node works on this server, and is about those
//! that run.

use kruise_api::path::segment;
use kruise_frame::json::text;
use kruise_install::manifests::{
    agent::NAME,
    policy::{self, KubeVersion, OF_AGENTS},
};
use kruise_runtime::ApiError;
use serde_json::Value;

use super::{Check, Finding, cluster::Cluster};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// What was read.
struct Found {
    version: KubeVersion,
    daemon: Option<Value>,
    policy: Option<Value>,
}

/// Reads the version of the server, the DaemonSet in this namespace, and the policy.
pub(super) async fn check(cluster: &Cluster, namespace: &str) -> Check {
    match read(cluster, namespace).await {
        Ok(found) => found.judge(namespace),
        Err(why) => {
            let finding = Finding::unknown(format!("DaemonSet {NAME}"), format!("not compared: {why}"));
            Check::new("agents", "not known", vec![finding])
        }
    }
}

async fn read(cluster: &Cluster, namespace: &str) -> Result<Found, String> {
    let plain = |error: ApiError| error.to_string();
    let version: Option<Value> = cluster.object("/version").await.map_err(plain)?;
    let version = version.unwrap_or_default();
    let version: KubeVersion = text(&version, "/gitVersion").parse()?;
    let daemon = format!(
        "/apis/apps/v1/namespaces/{}/daemonsets/{NAME}",
        segment(namespace)
    );
    // A server without policies does not know the path.
    let policy = format!("{POLICIES}/{OF_AGENTS}");
    Ok(Found {
        version,
        daemon: cluster.object(&daemon).await.map_err(plain)?,
        policy: cluster.object(&policy).await.map_err(plain)?,
    })
}

impl Found {
    fn judge(&self, namespace: &str) -> Check {
        let Some(daemon) = &self.daemon else {
            return Check::new("agents", "no daemon runs on nodes".to_owned(), Vec::new());
        };
        let about = format!("DaemonSet {namespace}/{NAME}");
        let mut findings = Vec::new();
        let version = self.version;
        if version < KubeVersion::WITH_NODES_IN_TOKENS {
            let text = format!(
                "Kubernetes {version} may issue tokens that do not name their node: agents are not limited to their nodes"
            );
            let action =
                format!("print the manifests with --kube-version={version}; the chart sees the version");
            findings.push(Finding::note(&about, text).advising(action));
        }
        let account = text(daemon, "/spec/template/spec/serviceAccountName");
        if account != NAME {
            let text = format!(
                "its account is {account:?}, and the policy is about {NAME}: agents are not limited to their nodes"
            );
            findings.push(Finding::note(&about, text));
        }
        let expected = policy::of_agents(namespace);
        let is_ours = |stored: &Value| {
            let conditions = "/spec/matchConditions/0/expression";
            expected.first().and_then(|ours| ours.pointer(conditions)) == stored.pointer(conditions)
        };
        if self.policy.as_ref().is_some_and(|stored| !is_ours(stored)) {
            let text = format!("is not about the agents in {namespace}, which it does not limit");
            let finding = Finding::note(format!("ValidatingAdmissionPolicy {OF_AGENTS}"), text);
            findings.push(finding.advising("apply that of the new manifests"));
        }
        let summary = match (findings.is_empty(), &self.policy) {
            (true, Some(_)) => "each is limited to its node",
            (true, None) => "each is limited to its node afterwards",
            (false, _) => "not limited to their nodes",
        };
        Check::new("agents", summary.to_owned(), findings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(version: &str, account: &str, policy_of: Option<&str>) -> (String, Vec<String>) {
        let found = Found {
            version: version.parse().unwrap(),
            daemon: Some(json!({"spec": {"template": {"spec": {"serviceAccountName": account}}}})),
            policy: policy_of.map(|namespace| policy::of_agents(namespace).remove(0)),
        };
        let check = found.judge("kruise-system");
        let texts = check.findings.iter().map(|finding| finding.text.clone());
        (check.summary.clone(), texts.collect())
    }

    #[test]
    fn agents_that_the_policy_would_not_limit_are_named() {
        for (version, account, policy_of, summary, finding) in [
            (
                "v1.34.2",
                NAME,
                None,
                "each is limited to its node afterwards",
                None,
            ),
            (
                "v1.34.2",
                NAME,
                Some("kruise-system"),
                "each is limited to its node",
                None,
            ),
            (
                "v1.31.4+k3s1",
                NAME,
                None,
                "not limited to their nodes",
                Some("Kubernetes 1.31 may issue tokens"),
            ),
            (
                "v1.34.2",
                "other",
                None,
                "not limited to their nodes",
                Some("its account is \"other\""),
            ),
            (
                "v1.34.2",
                NAME,
                Some("elsewhere"),
                "not limited to their nodes",
                Some("is not about the agents in"),
            ),
        ] {
            let (found, texts) = texts(version, account, policy_of);
            assert_eq!(found, summary, "{version} {account} {policy_of:?}");
            assert_eq!(texts.len(), usize::from(finding.is_some()), "{texts:?}");
            assert!(finding.is_none_or(|part| texts[0].contains(part)), "{texts:?}");
        }
        let none = Found {
            version: KubeVersion::WITH_POLICIES,
            daemon: None,
            policy: None,
        };
        assert!(none.judge("kruise-system").findings.is_empty());
    }
}
