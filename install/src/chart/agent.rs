//! The node agent in the chart: its DaemonSet, its account and its rights, as `kruise manifests --agent` prints them.
//!
//! It exists with the feature gate `KruiseDaemon`, if managers watch all namespaces and one of its kinds is wanted.
//! It has the names of OpenKruise's node daemon, and replaces it when a release of OpenKruise's chart is upgraded.

use kruise_api::names::AGENT_NAMESPACE;
use kruise_api::{containerrecreaterequest, nodeimage, nodepodprobe};
use serde_json::{Value, json};

use super::gates::terms;
use super::kinds::one_is_wanted;
use super::objects::{IMAGE, NAMESPACE, Templated, WATCHED, number, port, value, wanted_policy};
use super::rights::{annotated, of_account};
use super::yaml::{action, each, optional, put, when};
use crate::manifests::agent::{self, Agent};
use crate::manifests::policy::{self, KubeVersion};
use crate::manifests::rbac;

const PLUGINS: &str = ".Values.daemon.credentialProvider.enable";
const AWS: &str =
    "and .Values.daemon.credentialProvider.enable .Values.daemon.credentialProvider.awsCredentialsDir";

/// The expression that holds if nodes have agents.
pub(super) fn is_installed() -> String {
    let kinds = [
        &nodeimage::KIND,
        &nodepodprobe::KIND,
        &containerrecreaterequest::KIND,
    ];
    let kinds = kinds.map(|kind| kind.plural).into();
    let wanted = one_is_wanted(&kinds).unwrap_or_default();
    format!("and (index $gates `KruiseDaemon`) (not {WATCHED}) {wanted}")
}

/// The DaemonSet, the account, the rights, and the policy that limits them.
pub(super) fn objects() -> Vec<Templated> {
    let mut account = rbac::account(agent::NAME, NAMESPACE);
    annotated(&mut account);
    let mut objects = vec![Templated::always(account)];
    for role in agent::roles() {
        let rules = role
            .rules
            .iter()
            .map(|needed| (terms(&needed.conditions), needed.rule.clone()));
        objects.extend(of_account(&role, agent::NAME, rules.collect()));
    }
    objects.push(Templated::always(daemon_set()));
    let is_wanted = wanted_policy("daemon.ownNodePolicy", KubeVersion::WITH_NODES_IN_TOKENS);
    let policy = policy::of_agents(NAMESPACE).into_iter();
    objects.extend(policy.map(|object| Templated::with(&is_wanted, object)));
    for one in &mut objects {
        let own = one.condition.take().map(|own| format!(" ({own})"));
        one.condition = Some(is_installed() + &own.unwrap_or_default());
    }
    objects
}

fn daemon_set() -> Value {
    let mut object = agent::daemon_set(&Agent {
        namespace: NAMESPACE,
        image: IMAGE,
        more_arguments: arguments(),
        log_level: "{{ .Values.daemon.log.level }}",
        port: port("daemon.port"),
        more_variables: vec![
            when(
                AWS,
                vec![
                    json!({"name": "AWS_SHARED_CREDENTIALS_FILE", "value": "/aws/credentials"}),
                    json!({"name": "AWS_CONFIG_FILE", "value": "/aws/config"}),
                ],
            ),
            each(".Values.daemon.extraEnvs", vec![action("toJson .")]),
        ],
        more_mounts: vec![
            when(
                PLUGINS,
                vec![
                    mount("credential-provider-plugin-config", "/credential-provider-config"),
                    mount("credential-provider-plugin", "/credential-provider-plugin"),
                ],
            ),
            when(AWS, vec![mount("aws-credentials-dir", "/aws")]),
        ],
        more_volumes: vec![
            when(
                PLUGINS,
                vec![
                    json!({"name": "credential-provider-plugin-config",
                        "configMap": {"name": value("daemon.credentialProvider.configmap")}}),
                    folder("credential-provider-plugin", "daemon.credentialProvider.hostPath"),
                ],
            ),
            when(
                AWS,
                vec![folder(
                    "aws-credentials-dir",
                    "daemon.credentialProvider.awsCredentialsDir",
                )],
            ),
        ],
        socket_folder: value("daemon.socketLocation"),
        affinity: value("daemon.affinity"),
        resources: value("daemon.resources"),
    });
    let pod = "/spec/template/spec";
    let selector = "merge (dict `kubernetes.io/os` `linux`) .Values.daemon.nodeSelector | toJson";
    put(&mut object, pod, "nodeSelector", action(selector));
    let secrets = optional(".Values.imagePullSecrets", "imagePullSecrets");
    put(&mut object, pod, &secrets, value("imagePullSecrets"));
    put(
        &mut object,
        "/spec/template/spec/containers/0",
        "imagePullPolicy",
        number("manager.image.pullPolicy"),
    );
    object
}

fn arguments() -> Vec<Value> {
    vec![
        when(
            ".Values.featureGates",
            vec![json!("--feature-gates={{ .Values.featureGates }}")],
        ),
        when(
            ".Values.daemon.socketFile",
            vec![json!("--socket-file={{ .Values.daemon.socketFile }}")],
        ),
        when(
            PLUGINS,
            vec![
                json!("--plugin-config-file=/credential-provider-config/CredentialProviderPlugin.yaml"),
                json!("--plugin-bin-dir=/credential-provider-plugin"),
            ],
        ),
    ]
}

fn mount(volume: &str, path: &str) -> Value {
    json!({"name": volume, "mountPath": path, "readOnly": true})
}

/// A volume that is a folder of the node.
fn folder(volume: &str, path: &str) -> Value {
    json!({"name": volume, "hostPath": {"path": value(path)}})
}

/// The template of the namespace of the copies of pull secrets. It exists if copies are made or read. Helm never
/// deletes it, because Secrets of others may be in it. If it exists and is of no release or of another one, it is
/// not part of this one.
pub(super) fn namespace_of_secrets() -> String {
    NAMESPACE_OF_SECRETS
        .replace("@AGENTS", AGENT_NAMESPACE)
        .replace("@INSTALLED", &is_installed())
}

const NAMESPACE_OF_SECRETS: &str = "\
{{- $namespace := .Values.installation.namespace }}
{{- $config := \"@AGENTS\" }}
{{- $isInstalled := @INSTALLED }}
{{- $isCopiedTo := and (index $gates `ImagePullJobGate`) (index $kinds `imagepulljobs`) (not .Values.installation.watchNamespace) }}
{{- $live := lookup \"v1\" \"Namespace\" \"\" $config }}
{{- $annotations := dict }}
{{- $labels := dict }}
{{- if $live }}
{{- $annotations = default dict $live.metadata.annotations }}
{{- $labels = omit (default dict $live.metadata.labels) \"kubernetes.io/metadata.name\" \"app.kubernetes.io/managed-by\" }}
{{- end }}
{{- $kept := merge (dict \"helm.sh/resource-policy\" \"keep\") (omit $annotations \"meta.helm.sh/release-name\" \"meta.helm.sh/release-namespace\") }}
{{- $isOurs := eq (default \"\" (get $annotations \"meta.helm.sh/release-name\")) .Release.Name }}
{{- if and (ne $namespace $config) (or $isInstalled $isCopiedTo $isOurs) (or $isOurs (not $live)) }}
---
apiVersion: v1
kind: Namespace
metadata:
  name: {{ $config }}
{{- if $labels }}
  labels: {{ toJson $labels }}
{{- end }}
  annotations: {{ toJson $kept }}
{{- end }}
";
