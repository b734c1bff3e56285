//! `kruise crds`: prints the definitions of all kinds, or compares those of a cluster with them.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use kruise_api::path::DEFINITIONS;
use kruise_api::{
    convert::{NEWER, OLDER},
    definition::Moved,
    drift::{self, Advice, Difference},
};
use kruise_frame::command;
use kruise_plan_kit::ResourceId;
use kruise_runtime::{Client, client::Source};
use serde_json::Value;

use crate::manifests::{self, rbac};

/// The command that installs the definitions of this build.
const APPLY: &str = "kruise crds | kubectl apply -f -";

/// What to do with the definitions.
#[derive(Args, Debug)]
pub struct Options {
    /// Compare the cluster's definitions with these instead: exit code 0 if they are alike, 1 if not, 2 if that
    /// cannot be told.
    #[arg(long)]
    check: bool,
    /// Namespace of the manager, which converts between versions.
    #[arg(long, default_value = manifests::NAMESPACE)]
    namespace: String,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long, requires = "check")]
    kubeconfig: Option<PathBuf>,
}

/// The result.
pub struct Found {
    /// Text for standard output.
    pub text: String,
    /// True if a definition differs or is not installed.
    pub differs: bool,
}

/// Prints the definitions, or compares those of the cluster with them.
pub fn run(options: &Options) -> anyhow::Result<Found> {
    let ours = manifests::definitions(&options.namespace);
    if !options.check {
        let text = manifests::yaml(&ours)?;
        return Ok(Found { text, differs: false });
    }
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (pairs, role) = runtime.block_on(read_cluster(&source, ours))?;
    let (mut text, mut alike, mut missing) = (String::new(), 0_usize, 0_usize);
    for (ours, theirs) in &pairs {
        let name = name(ours);
        match theirs {
            None => {
                missing += 1;
                let _ = writeln!(text, "{name}: is not installed\n  install it: {APPLY}");
            }
            Some(theirs) => {
                let differences = drift::compare(ours, theirs);
                alike += usize::from(differences.is_empty());
                text.push_str(&differences_text(name, &differences));
                if let Some(line) = served_first(theirs) {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
    }
    let different = pairs.len() - alike - missing;
    let _ = writeln!(
        text,
        "{} definitions: {alike} alike, {different} different, {missing} not installed",
        pairs.len()
    );
    if role.as_ref().is_some_and(|role| !may_try_templates(role)) {
        let _ = writeln!(
            text,
            "ClusterRole {}: lacks the right to create podtemplates, so webhooks check fewer rules of pod templates; apply the \
             roles of this build: kruise manifests",
            rbac::MANAGER
        );
    }
    Ok(Found {
        text,
        differs: alike < pairs.len(),
    })
}

/// Does a role let managers have the API server judge pod templates?
fn may_try_templates(role: &Value) -> bool {
    let rules = role.get("rules").and_then(Value::as_array);
    let grants = |rule: &Value| {
        let has = |list: &str, wanted: &str| {
            let list = rule.get(list).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str)
                .any(|one| one == wanted || one == "*")
        };
        has("apiGroups", "") && has("resources", ResourceId::POD_TEMPLATES.plural) && has("verbs", "create")
    };
    rules.is_some_and(|rules| rules.iter().any(grants))
}

/// Each of our definitions with the cluster's, and the managers' role if it can be read.
async fn read_cluster(
    source: &Source,
    ours: Vec<Value>,
) -> anyhow::Result<(Vec<(Value, Option<Value>)>, Option<Value>)> {
    let client = command::connect("crds", source, Duration::from_secs(30)).await?;
    let mut pairs = Vec::with_capacity(ours.len());
    for ours in ours {
        let theirs = theirs(&client, name(&ours)).await?;
        pairs.push((ours, theirs));
    }
    let role = format!(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/{}",
        rbac::MANAGER
    );
    // A manager of one namespace has no such role, and whoever asks may not be allowed to read it.
    Ok((pairs, client.get(&role).await.ok()))
}

async fn theirs(client: &Client, name: &str) -> anyhow::Result<Option<Value>> {
    let path = format!("{DEFINITIONS}/{name}");
    match client.get(&path).await {
        Ok(definition) => Ok(Some(definition)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read the definition {name}")),
    }
}

/// The name of a definition; empty if it has none.
pub fn name(definition: &Value) -> &str {
    let name = definition.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// What changes for clients that name no version once ours replaces this definition, which does not serve the newer
/// version yet: the API server offers that first, and drops fields that only the older one has.
pub fn served_first(theirs: &Value) -> Option<String> {
    let kind = kruise_kinds::kinds()
        .iter()
        .copied()
        .find(|kind| kind.name() == name(theirs))?;
    let versions = theirs.pointer("/spec/versions").and_then(Value::as_array);
    let serves = |version: &&Value| {
        let of = |member: &str| version.get(member).cloned().unwrap_or_default();
        of("name") == NEWER && of("served") == Value::Bool(true)
    };
    if versions.into_iter().flatten().any(|version| serves(&version)) {
        return None;
    }
    let moved = kind.moved();
    // What has another place is lost by mistake, and shows what to write instead.
    let has_place = moved.iter().find(|one| one.newer.is_some());
    let Moved { older, newer } = has_place.or(moved.first())?;
    let place = match newer {
        Some(newer) => format!("now {newer}"),
        None => format!("{NEWER} has no place for it"),
    };
    let (number, plural, group) = (moved.len(), kind.plural, kind.group);
    Some(format!(
        "{NEWER} is then served first: kubectl patch, edit and scripts that name no version write it, and the API server drops \
         {number} fields of {OLDER} with a warning only, such as {older} ({place}); write {plural}.{OLDER}.{group} in commands, \
         or the new fields"
    ))
}

/// The differences with advice; empty if there are none.
fn differences_text(name: &str, differences: &[Difference]) -> String {
    let what_to_do = match drift::advice(differences) {
        Advice::Nothing => return String::new(),
        Advice::Apply => format!("take ours: {APPLY}"),
        Advice::Newer => {
            "leave it, it knows more than this build; if that is used by nobody, take ours: ".to_owned()
                + APPLY
        }
        Advice::Migrate => format!(
            "first rewrite what is stored, with a manager that knows that version: kruise migrate storage {name} --to \
             VERSION; then take ours: {APPLY}"
        ),
        Advice::Recreate => format!(
            "a server does not change this: only deleting the definition helps, which deletes all its objects: kubectl \
             delete crd {name}"
        ),
    };
    let mut text = format!("{name}: {} differences\n", differences.len());
    for Difference { path, text: what, .. } in differences {
        let _ = writeln!(text, "  {path}: {what}");
    }
    let _ = writeln!(text, "  {what_to_do}");
    text
}

#[cfg(test)]
mod tests {
    use kruise_api::drift::Effect;
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_that_name_no_version_are_named_what_they_would_lose() {
        let theirs = |name: &str, versions: &[&str]| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|name| json!({"name": name, "served": true}))
                .collect();
            json!({"metadata": {"name": name}, "spec": {"versions": versions}})
        };
        let clone = "clonesets.apps.kruise.io";
        let text = served_first(&theirs(clone, &["v1alpha1"])).unwrap();
        assert!(
            text.contains("spec.updateStrategy.") && text.contains("clonesets.v1alpha1.apps.kruise.io"),
            "{text}"
        );
        assert_eq!(served_first(&theirs(clone, &["v1alpha1", "v1beta1"])), None);
        // nothing has another place
        assert_eq!(
            served_first(&theirs("imagepulljobs.apps.kruise.io", &["v1alpha1"])),
            None
        );
        assert_eq!(served_first(&theirs("games.example.com", &["v1"])), None);
    }

    fn text_of(effects: &[Effect]) -> String {
        let differences: Vec<Difference> = effects
            .iter()
            .map(|effect| Difference {
                effect: *effect,
                path: "v1 spec.a".to_owned(),
                text: "what".to_owned(),
            })
            .collect();
        differences_text("a.b", &differences)
    }

    #[test]
    fn the_role_of_openkruise_lacks_a_right_that_ours_has() {
        let gates = kruise_frame::gates::Gates::parse("", "").unwrap();
        let ours = rbac::objects("ns", &gates, &kruise_frame::profile::Profile::default(), None);
        let role = ours
            .iter()
            .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == rbac::MANAGER);
        assert!(may_try_templates(role.unwrap()));
        let rule = |verb: &str| serde_json::json!({"apiGroups": [""], "resources": ["pods", "podtemplates"], "verbs": [verb]});
        assert!(!may_try_templates(&serde_json::json!({"rules": [rule("get")]})));
        assert!(may_try_templates(
            &serde_json::json!({"rules": [rule("get"), rule("*")]})
        ));
        assert!(!may_try_templates(&serde_json::json!({})));
    }

    #[test]
    fn the_most_severe_difference_selects_the_advice() {
        assert_eq!(text_of(&[]), "");
        let advice = text_of(&[Effect::Shows, Effect::Lacks]);
        let lines: Vec<&str> = advice.lines().collect();
        assert_eq!(
            lines,
            [
                "a.b: 2 differences",
                "  v1 spec.a: what",
                "  v1 spec.a: what",
                "  take ours: kruise crds | kubectl apply -f -"
            ]
        );
        assert!(text_of(&[Effect::Lacks, Effect::Loses]).contains("leave it"));
        assert!(text_of(&[Effect::Stored, Effect::Loses]).contains("kruise migrate storage a.b"));
        assert!(text_of(&[Effect::Fixed, Effect::Stored]).contains("kubectl delete crd a.b"));
    }
}
