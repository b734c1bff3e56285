//! `kruise chart`: a Helm chart that installs what `kruise manifests` prints.
//!
//! Both are made from the same functions, and so from the registrations of the controllers. In a template, values and
//! conditions are in the place of options.
//!
//! | module | what |
//! |---|---|
//! | [`values`] | the values: file, schema, notes, reference |
//! | [`gates`], [`kinds`] | the feature gates and the wanted kinds in a template |
//! | [`objects`] | namespace, managers, definitions, webhooks |
//! | [`rights`] | rights |
//! | [`agent`] | the node agent |
//! | [`hook`] | the check before the release is uninstalled |
//! | [`observed`] | metrics, alerts, network policy |
//! | [`dashboards`] | dashboards |
//! | [`yaml`] | objects as text with actions |

mod agent;
mod dashboards;
mod gates;
mod hook;
mod kinds;
mod objects;
mod observed;
mod rights;
mod values;
mod yaml;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use kruise_api::names::DATA_OF_THE_MANAGER;
use kruise_kinds::kinds as all_kinds;

use crate::manifests::NO_IMAGE;
use objects::Templated;

pub use values::{ChartValue, Effect};

/// Where the chart is written.
#[derive(Args, Debug)]
pub struct Options {
    /// Folder of the chart. Files of an older chart in it are replaced.
    #[arg(long)]
    dir: PathBuf,
}

/// Writes the chart and returns a line about it.
pub fn run(options: &Options) -> anyhow::Result<String> {
    for (name, text) in files() {
        let path = options.dir.join(&name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(format!("{}\n", options.dir.display()))
}

/// The files of the chart by their paths.
pub fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut put = |name: &str, text: String| files.insert(name.to_owned(), text);
    put("Chart.yaml", CHART.replace("@VERSION", env!("CARGO_PKG_VERSION")));
    put("values.yaml", values::file());
    put("values.schema.json", format!("{:#}\n", values::schema()));
    put(
        "templates/_helpers.tpl",
        HELPERS.to_owned() + &gates::helper() + "\n" + &kinds::helper(),
    );
    put(
        "templates/NOTES.txt",
        NOTES.replace("@VALUES\n", &values::notes()),
    );
    put("templates/checks.yaml", checks());
    put(
        "templates/certificates.yaml",
        gates::READ.to_owned() + &SECRET.replace("@KEY", DATA_OF_THE_MANAGER),
    );
    put(
        "templates/secrets-of-agents.yaml",
        gates::READ.to_owned() + kinds::READ + &agent::namespace_of_secrets(),
    );
    put("templates/dashboards.yaml", dashboards::template());
    for (name, text) in dashboards::ALL {
        put(&format!("dashboards/{name}.json"), text.to_owned());
    }
    for (name, objects) in templates() {
        put(&format!("templates/{name}.yaml"), template(&objects));
    }
    files
}

/// The table of values, for the documentation.
pub fn table() -> String {
    values::table()
}

/// Kind, name and condition of every object that has no template of its own text.
pub fn objects_by_kind() -> Vec<(String, String, Option<String>, serde_json::Value)> {
    let all = templates().into_iter().flat_map(|(_, objects)| objects);
    let named = all.map(|one| {
        let text = |pointer: &str| {
            let found = one.object.pointer(pointer).and_then(serde_json::Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        (
            text("/kind"),
            text("/metadata/name"),
            one.condition,
            one.object.clone(),
        )
    });
    named.collect()
}

/// The templates that are made of objects, by their names.
fn templates() -> Vec<(String, Vec<Templated>)> {
    let mut templates = vec![
        ("namespace".to_owned(), objects::namespace()),
        ("manager".to_owned(), objects::manager()),
        ("rights".to_owned(), rights::objects()),
        ("agent".to_owned(), agent::objects()),
        ("webhooks".to_owned(), objects::configurations()),
        ("uninstall".to_owned(), hook::objects()),
        ("observed".to_owned(), observed::objects()),
    ];
    let definitions = all_kinds().iter().map(|kind| {
        (
            format!("definitions/{}", kind.name()),
            vec![objects::definition(kind)],
        )
    });
    templates.extend(definitions);
    templates
}

fn template(objects: &[Templated]) -> String {
    let documents = objects
        .iter()
        .map(|one| yaml::document(one.condition.as_deref(), &one.object));
    let text: String = documents.collect();
    let read = [("$gates", gates::READ), ("$kinds", kinds::READ)];
    let needed = read.iter().filter(|(name, _)| text.contains(name));
    let read: String = needed.map(|(_, read)| *read).collect();
    read + &text
}

/// The names of the definitions, as a list of a template.
fn checks() -> String {
    let names: Vec<String> = all_kinds()
        .iter()
        .map(|kind| format!("`{}`", kind.name()))
        .collect();
    let checks = CHECKS
        .replace("@DEFINITIONS", &names.join(" "))
        .replace("@NO_IMAGE", &NO_IMAGE.replace('\n', "\\n"))
        .replace("@HELP", IMAGE_VALUES);
    gates::READ.to_owned() + kinds::READ + &checks
}

const CHART: &str = "\
apiVersion: v2
name: kruise
description: Workloads for Kubernetes that update pods without recreating them
type: application
version: @VERSION
appVersion: @VERSION
kubeVersion: \">=1.28.0-0\"
";

const HELPERS: &str = "\
{{/* The image of the manager. */}}
{{- define \"kruise.image\" }}
{{- $image := .Values.manager.image }}{{ $image.repository }}:{{ $image.tag }}
{{- end }}

{{/* The image of the check before the release is uninstalled. */}}
{{- define \"kruise.hookImage\" }}
{{- $image := .Values.helmHooks.image }}
{{- if has $image.repository (list \"\" \"openkruise/kruise-helm-hook\") }}{{ include \"kruise.image\" . }}
{{- else }}{{ $image.repository }}:{{ $image.tag }}{{ end }}
{{- end }}

";

/// How an image is given.
const IMAGE_VALUES: &str =
    "  --set manager.image.repository=registry.example.com/kruise --set manager.image.tag=dev";

const CHECKS: &str = "\
{{/* What would go wrong later is refused here. */}}
{{- $image := .Values.manager.image }}
{{- if regexMatch \"(^|/)openkruise/kruise-manager$\" $image.repository }}
{{- fail (printf \"manager.image.repository: %s is an image of OpenKruise, which this chart does not run. Its own image is needed:\\n@HELP\" $image.repository) }}
{{- end }}
{{- if not (and $image.repository $image.tag) }}
{{- fail \"manager.image: @NO_IMAGE\\n@HELP\" }}
{{- end }}
{{- range $name := list @DEFINITIONS }}
{{- if not (and $.Values.crds.managed (index $kinds (first (splitList \".\" $name)))) }}
{{- $live := lookup \"apiextensions.k8s.io/v1\" \"CustomResourceDefinition\" \"\" $name }}
{{- if $live }}
{{- $annotations := default dict $live.metadata.annotations }}
{{- if and (eq (default \"\" (get $annotations \"meta.helm.sh/release-name\")) $.Release.Name) (ne (default \"\" (get $annotations \"helm.sh/resource-policy\")) \"keep\") }}
{{- fail (printf \"crds.managed, installation.only: Helm would delete %s with all its objects; first run: kubectl annotate crd %s helm.sh/resource-policy=keep\" $name $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
";

/// The data of a Secret that a release of this chart created is never in a template. A Secret of OpenKruise's chart
/// has its data in the release, and would lose it with the next one if it were not repeated.
const SECRET: &str = "\
{{- if not (index $gates `EnableExternalCerts`) }}
{{- $live := lookup \"v1\" \"Secret\" .Values.installation.namespace \"kruise-webhook-certs\" }}
{{- $isRepeated := false }}
{{- if $live }}
{{- $isRepeated = not (hasKey (default dict $live.metadata.annotations) \"@KEY\") }}
{{- end }}
---
apiVersion: v1
kind: Secret
type: Opaque
metadata:
  name: kruise-webhook-certs
  namespace: \"{{ .Values.installation.namespace }}\"
{{- if not $isRepeated }}
  annotations:
    @KEY: \"true\"
{{- else if $live.data }}
data: {{ toJson $live.data }}
{{- end }}
{{- end }}
";

const NOTES: &str = "\
Kruise {{ .Chart.AppVersion }} is installed in the namespace {{ .Values.installation.namespace }}.

The managers are ready when this ends:
  kubectl --namespace {{ .Values.installation.namespace }} rollout status deployment/kruise-controller-manager
@VALUES
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_a_template_reads_exists_and_every_value_that_has_an_effect_is_read() {
        let files = files();
        let templates = files.iter().filter(|(name, _)| name.starts_with("templates/"));
        let text: String = templates.map(|(_, text)| text.as_str()).collect();
        let all = values::all();
        for read in text.split(".Values.").skip(1) {
            let end = read.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
            let path = read.split_at(end.unwrap_or(read.len())).0.trim_end_matches('.');
            let is_known =
                |value: &ChartValue| value.path == path || value.path.starts_with(&format!("{path}."));
            assert!(all.iter().any(is_known), "{path}");
        }
        for value in all.iter().filter(|value| value.effect == Effect::Used) {
            let (parent, last) = value.path.rsplit_once('.').unwrap_or(("", value.path));
            let by_parent =
                text.contains(&format!(".Values.{parent} }}}}")) && text.contains(&format!("$image.{last}"));
            assert!(
                text.contains(&format!(".Values.{}", value.path)) || by_parent,
                "{}",
                value.path
            );
        }
    }

    #[test]
    fn no_text_of_an_object_is_taken_for_an_action() {
        for kind in kruise_kinds::kinds().iter().copied() {
            let text = kind.manifest("ns").to_string();
            assert!(!text.contains("{{"), "{}", kind.kind);
        }
        for configuration in
            kruise_admission::manifests::configurations(kruise_kinds::webhooks(), "ns", false)
        {
            assert!(!configuration.to_string().contains("{{"));
        }
    }

    #[test]
    fn conditions_open_and_close_in_pairs() {
        for (name, text) in files() {
            if !name.starts_with("templates/") {
                continue;
            }
            let count = |words: &[&str]| -> usize {
                words
                    .iter()
                    .map(|word| text.matches(&format!("{{{{- {word}")).count())
                    .sum()
            };
            let ends = text.matches("{{- end }}").count() + text.matches("{{ end }}").count();
            assert_eq!(count(&["if ", "range ", "define "]), ends, "{name}");
        }
    }
}
