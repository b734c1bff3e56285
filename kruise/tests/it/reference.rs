//! docs/reference: kinds, what acts on them, flags, gates, metrics, events and commands, generated from the program.
//!
//! The files are generated and compared with those in the repository;
//! `UPDATE_EXPECT=1 cargo test -p kruise --test it reference` writes them.

mod features;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kruise_frame::gates::{self, Stage};
use kruise_manager::FLAGS;
use kruise_runtime::client::Observer as _;
use kruise_runtime::metrics::{Metrics, objects::Form};
use kruise_server::tls::Tls;
use kruise_server::webhook_controller::Progress;
use prometheus_client::registry::Registry;
use serde_json::Value;

const HEAD: &str = "<!-- Made by `UPDATE_EXPECT=1 cargo test -p kruise --test it reference`; changes belong into the \
                    sources. -->\n\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference")
}

/// Every file with its text.
fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut index = String::new();
    for definition in kruise_kinds::definitions("kruise-system") {
        let kind = text(&definition, "/spec/names/kind");
        let name = format!("{}.md", text(&definition, "/metadata/name"));
        let _ = writeln!(index, "- [{kind}]({name})");
        files.insert(name, HEAD.to_owned() + &of_kind(&definition));
    }
    let index = format!(
        "{HEAD}# Reference\n\n[Feature matrix](features.md): what acts on each kind. [Flags, gates, metrics and events of the manager](manager.md). [The commands of `kubectl kruise`](kubectl-kruise.md). The fields of each kind:\n\n{index}"
    );
    files.insert("README.md".to_owned(), index);
    files.insert("features.md".to_owned(), HEAD.to_owned() + &features::page());
    files.insert(
        "kubectl-kruise.md".to_owned(),
        HEAD.to_owned() + &kruise_cli::reference::page(),
    );
    files.insert("manager.md".to_owned(), HEAD.to_owned() + &of_manager());
    files
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn of_kind(definition: &Value) -> String {
    let names = &definition["spec"]["names"];
    let mut page = format!("# {}\n", text(names, "/kind"));
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let about = text(&versions[0], "/schema/openAPIV3Schema/description");
    let short: Vec<&str> = names["shortNames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let _ = writeln!(
        page,
        "\n{about}\n\n`{}`, {}{}\n",
        text(definition, "/metadata/name"),
        text(definition, "/spec/scope"),
        if short.is_empty() {
            String::new()
        } else {
            format!(", short name `{}`", short.join("`, `"))
        }
    );
    for version in versions.iter().rev() {
        let stored = if version["storage"] == true {
            ", which is stored"
        } else {
            ""
        };
        let _ = writeln!(
            page,
            "## {}{stored}\n\n| Field | Type | What |\n|---|---|---|",
            text(version, "/name")
        );
        for part in ["spec", "status"] {
            let schema = &version["schema"]["openAPIV3Schema"]["properties"][part];
            fields(&mut page, part, schema, "");
        }
        page.push('\n');
    }
    page.trim_end().to_owned() + "\n"
}

/// A row for a field, then those below it.
fn fields(page: &mut String, path: &str, schema: &Value, required: &str) {
    let help = text(schema, "/description")
        .replace('|', "\\|")
        .replace('\n', " ");
    let _ = writeln!(page, "| `{path}` | {}{required} | {help} |", type_of(schema));
    below(page, path, schema);
}

fn below(page: &mut String, path: &str, schema: &Value) {
    let must: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let required = if must.contains(&name.as_str()) {
            ", required"
        } else {
            ""
        };
        fields(page, &format!("{path}.{name}"), child, required);
    }
    if schema["items"].is_object() {
        below(page, &format!("{path}[]"), &schema["items"]);
    }
    if schema["additionalProperties"].is_object() {
        below(page, &format!("{path}.*"), &schema["additionalProperties"]);
    }
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "number or text".to_owned();
    }
    match (text(schema, "/type"), text(schema, "/format")) {
        ("array", _) => format!("list of {}", type_of(&schema["items"])),
        ("object", _) if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&schema["additionalProperties"]))
        }
        ("", _) => "anything".to_owned(),
        (_, "date-time") => "time".to_owned(),
        (kind, "") => kind.to_owned(),
        (_, format) => format.to_owned(),
    }
}

fn of_manager() -> String {
    let mut page = String::from("# The manager\n\n## Flags\n\n| Flag | Default | What |\n|---|---|---|\n");
    for flag in FLAGS.iter() {
        let default = if flag.default.is_empty() {
            String::new()
        } else {
            format!("`{}`", flag.default)
        };
        let _ = writeln!(page, "| `--{}` | {default} | {} |", flag.name, flag.help);
    }
    page.push_str("\n## Feature gates\n\nSet with `--feature-gates=Name=true,Other=false`. All gates of OpenKruise are accepted. A\ngate of a feature that is not built yet has no effect.\n\n| Gate | Default | Stage |\n|---|---|---|\n");
    for (name, default, stage) in gates::all() {
        let stage = match stage {
            Stage::Alpha => "alpha",
            Stage::Beta => "beta",
        };
        let _ = writeln!(
            page,
            "| `{name}` | {} | {stage} |",
            if default { "on" } else { "off" }
        );
    }
    for (title, metrics) in [
        ("Metrics of the controllers", metrics(controllers)),
        ("Metrics of webhooks and certificates", metrics(endpoints)),
    ] {
        let _ = write!(page, "\n## {title}\n\n| Metric | Type | What |\n|---|---|---|\n");
        for (name, kind, help) in metrics {
            let _ = writeln!(page, "| `{name}` | {kind} | {help} |");
        }
    }
    page.push_str("\n## Events\n\n| Reason | Type | On | When |\n|---|---|---|---|\n");
    for (reason, on) in kruise_manager::reasons() {
        let (name, kind) = (reason.name, reason.kind.as_str());
        let on: Vec<&str> = on.into_iter().collect();
        let on = on.join(", ");
        let _ = writeln!(page, "| `{name}` | {kind} | {on} | {} |", reason.when);
    }
    page
}

#[test]
fn every_reason_of_an_event_is_one_word_and_declared_once() {
    let all = kruise_manager::reasons();
    let names: BTreeSet<&str> = all.iter().map(|(reason, _)| reason.name).collect();
    assert_eq!(names.len(), all.len());
    // OpenKruise writes these as words, and clients match on them.
    let as_words = [
        "failed pod is found",
        "Successful create ImagePullJob",
        "Successful delete ImagePullJob",
        "Failed SpecifySubsetReplicas",
    ];
    for (reason, on) in all {
        let is_word = as_words.contains(&reason.name) || reason.name.chars().all(char::is_alphanumeric);
        assert!(
            is_word && reason.when.ends_with('.') && !on.is_empty(),
            "{reason:?}"
        );
    }
}

/// Metrics with labels are exposed only after the first count.
fn controllers(registry: &mut Registry) {
    let declared = kruise_manager::metrics();
    let metrics = Metrics::register(registry, &declared);
    metrics.competing("lease");
    for spec in declared {
        let series = metrics.objects(spec);
        let object = ["name", "name"];
        match spec.form {
            Form::Counter => series.count(&object),
            Form::Gauge => series.set(&object, 1),
        }
    }
    metrics.pods.review().ended("step", "unchanged");
    metrics.requested("GET", "host", "200");
    let observer = metrics.controller("controller", 1, None);
    observer.reconciled("success", Duration::ZERO);
    observer.queued(
        0,
        kube_queue::Counters::default(),
        kube_queue::Unfinished::default(),
    );
    observer.popped(Duration::ZERO);
}

fn endpoints(registry: &mut Registry) {
    Tls::default().register(registry);
    Progress::default().register(registry);
    let webhooks = kruise_server::metrics::Metrics::default();
    webhooks.register(registry);
    webhooks.begin("/a-path").answered(http::StatusCode::OK);
}

/// Name, type and help of every metric, as the endpoint exposes them.
fn metrics(counted: fn(&mut Registry)) -> Vec<(String, String, String)> {
    let mut registry = Registry::default();
    counted(&mut registry);
    let mut shown = String::new();
    prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
    let line = |kind: &str, name: &str| {
        let found = shown
            .lines()
            .find_map(|line| line.strip_prefix(&format!("# {kind} {name} ")));
        found.unwrap_or_default().trim_end_matches('.').to_owned()
    };
    let names = shown
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next());
    let mut metrics: Vec<_> = names
        .map(|name| {
            let kind = line("TYPE", name);
            let total = if kind == "counter" { "_total" } else { "" };
            (format!("{name}{total}"), kind, line("HELP", name))
        })
        .collect();
    metrics.sort();
    metrics.dedup();
    metrics
}

#[test]
fn the_reference_is_up_to_date() {
    let (folder, expected) = (folder(), files());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let _none_yet = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in &expected {
            std::fs::write(folder.join(name), text).unwrap();
        }
        return;
    }
    let kept: BTreeMap<String, String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                std::fs::read_to_string(entry.path()).unwrap(),
            )
        })
        .collect();
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&kept),
        names(&expected),
        "write it anew with UPDATE_EXPECT=1"
    );
    for (name, text) in &expected {
        assert!(
            kept[name] == *text,
            "docs/reference/{name} is out of date: write it anew with UPDATE_EXPECT=1"
        );
    }
}

#[test]
fn every_kind_flag_and_gate_is_described_in_the_reference() {
    let files = files();
    let clone_set = &files["clonesets.apps.kruise.io.md"];
    for text in [
        "| `spec.replicas` | int32 |",
        "## v1alpha1",
        "## v1beta1, which is stored",
        "short name `clone`",
    ] {
        assert!(clone_set.contains(text), "{text}");
    }
    let manager = &files["manager.md"];
    for text in [
        "| `--metrics-addr` | `:8080` |",
        "| `PodWebhook` | on | beta |",
        "`rest_client_requests_total`",
        "`controller_runtime_webhook_requests_total`",
        "`controller_runtime_webhook_latency_seconds`",
        "`certwatcher_read_certificate_errors_total`",
        "`webhook_controller_last_success_timestamp_seconds`",
        "| `FailedCreate` | Warning | AdvancedCronJob, BroadcastJob, CloneSet, DaemonSet, ImageListPullJob, StatefulSet |",
        "| `LeaderElection` | Normal | Lease |",
    ] {
        assert!(manager.contains(text), "{text}");
    }
}

#[test]
fn the_feature_matrix_says_what_acts_on_a_kind() {
    let page = features::page();
    let row = |name: &str| {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| [{name}](")));
        let cells = row
            .unwrap()
            .split(" | ")
            .skip(1)
            .map(|cell| cell.trim_end_matches(" |"));
        cells.collect::<Vec<_>>()
    };
    let yes = "yes";
    let (old, new) = ("`v1alpha1`", "`v1beta1`");
    assert_eq!(
        row("CloneSet"),
        [new, old, "namespace", "", "defaults, rules", yes, yes, yes, yes]
    );
    assert_eq!(
        row("NodePodProbe"),
        [
            old,
            "",
            "cluster",
            "`PodProbeMarkerGate` (on)",
            "",
            "",
            "",
            "",
            ""
        ]
    );
    let charges = "`podunavailablebudgets.policy.kruise.io/status` \
                   (`PodUnavailableBudgetDeleteGate` or `PodUnavailableBudgetUpdateGate`): patch";
    for text in [
        charges,
        "| `sidecarterminator-controller` | `SidecarTerminator` (off) |",
        "| `pod-readiness-controller` |  | `pods/status`: patch |",
        "| webhook `mpod.kb.io` | `PodWebhook` (on) |",
        "Deployment (`deployments`)",
    ] {
        assert!(page.contains(text), "{text}");
    }
}
