//! The one template, of one of four kinds. What a CloneSet of the template must satisfy is left to its own webhook.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::meta::LabelSelector;
use kube_schema::defaults;
use kube_schema::patch::strategic;
use kube_schema::table::Table;
use kube_schema::validate::{self, Errors};
use serde::Deserialize as _;
use serde_json::Value;

use super::judged::{self, Template};
use super::{Scope, alike, topology};
use crate::json::{items, member, present, text};
use crate::{Options, workload};

const STATEFUL_SET: &str = "statefulSetTemplate";
const ADVANCED: &str = "advancedStatefulSetTemplate";
const DEPLOYMENT: &str = "deploymentTemplate";
const ALL: [&str; 4] = [STATEFUL_SET, ADVANCED, "cloneSetTemplate", DEPLOYMENT];

/// Where those are that become pods.
pub(super) const OF_PODS: [&str; 4] = [
    "spec.template.statefulSetTemplate.spec.template",
    "spec.template.advancedStatefulSetTemplate.spec.template",
    "spec.template.cloneSetTemplate.spec.template",
    "spec.template.deploymentTemplate.spec.template",
];

/// What may change of a template that stays of its kind.
const OF_STATEFUL_SET: &[&str] = &[
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "ordinals",
];
const OF_ADVANCED: &[&str] = &["template", "updateStrategy", "replicas"];

/// Fills in the pods and claims of a StatefulSet; the other kinds' own webhooks fill in theirs.
pub(super) fn complete(object: &mut Value, scope: &Scope<'_>) {
    if !scope.complete_template(object, "/spec/template/statefulSetTemplate/spec/template") {
        return;
    }
    let claims = object
        .pointer_mut("/spec/template/statefulSetTemplate/spec/volumeClaimTemplates")
        .and_then(Value::as_array_mut);
    claims.into_iter().flatten().for_each(defaults::claim);
}

/// The template of the pods, and as subsets patch it. A patch that does not fit is left to the controller, which
/// reports it.
pub(super) fn of_pods(object: &Value) -> Vec<Template> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let table = Table::builtin();
    // A pod template has the members of a pod that a patch is for.
    let of_pod = table.find("core/v1.Pod");
    let mut all = Vec::new();
    for template in OF_PODS.iter().filter_map(|path| judged::at(object, path)) {
        let subsets = topology::subsets(spec).iter().enumerate();
        let patched = subsets.filter_map(|(index, subset)| {
            let patch = member(subset, "patch")?;
            let content = strategic(table, of_pod?, template.content.clone(), patch.clone()).ok()?;
            let path = format!("spec.topology.subsets[{index}].patch");
            Some(template.at(path, text(subset, "name"), content))
        });
        let patched: Vec<Template> = patched.collect();
        all.push(template);
        all.extend(patched);
    }
    all
}

/// Exactly one template, and what is in it. `selector` is that of the whole, if it is good.
pub(super) fn check(errors: &mut Errors, spec: &Value, selector: Option<&LabelSelector>, options: Options) {
    let template = spec.get("template").unwrap_or(&Value::Null);
    let given = ALL.iter().filter(|name| present(template, name).is_some());
    match given.count() {
        0 => errors.required("spec.template", "one of its members must say what is made"),
        1 => {}
        _ => errors.invalid("spec.template", Value::Null, "only one of its members may be set"),
    }
    for kind in [STATEFUL_SET, ADVANCED, DEPLOYMENT] {
        if let Some(template) = member(template, kind) {
            one(errors, template, kind, selector, options);
        }
    }
}

fn one(
    errors: &mut Errors,
    template: &Value,
    kind: &str,
    selector: Option<&LabelSelector>,
    options: Options,
) {
    let path = format!("spec.template.{kind}");
    selected(errors, template, selector, &format!("{path}.metadata.labels"));
    let (spec, path) = (
        template.get("spec").unwrap_or(&Value::Null),
        format!("{path}.spec"),
    );
    if let Some(replicas) = present(spec, "replicas") {
        let detail = "must not be set: the topology decides";
        errors.invalid(format!("{path}.replicas"), replicas.clone(), detail);
    }
    let pods = spec.get("template").unwrap_or(&Value::Null);
    let claims = items(spec, "volumeClaimTemplates");
    let pods_path = format!("{path}.template");
    workload::template(errors, pods, claims, &pods_path, options);
    selected(errors, pods, selector, &format!("{pods_path}.metadata.labels"));
    if kind != DEPLOYMENT {
        stateful(errors, spec, claims, &path);
    }
    if kind != ADVANCED {
        let pod = pods.get("spec").unwrap_or(&Value::Null);
        let policy = text(pod, "restartPolicy");
        errors.one_of(format!("{pods_path}.spec.restartPolicy"), policy, &["Always"]);
        if present(pod, "activeDeadlineSeconds").is_some() {
            errors.forbidden(
                format!("{pods_path}.spec.activeDeadlineSeconds"),
                "its pods run until they are deleted",
            );
        }
    }
    if kind == STATEFUL_SET {
        let policy = text(spec, "podManagementPolicy");
        errors.one_of(
            format!("{path}.podManagementPolicy"),
            policy,
            &["OrderedReady", "Parallel"],
        );
        let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
        let strategies = &["RollingUpdate", "OnDelete"];
        errors.one_of(
            format!("{path}.updateStrategy.type"),
            text(strategy, "type"),
            strategies,
        );
    }
    workload::not_negative(errors, spec, "minReadySeconds", format!("{path}.minReadySeconds"));
}

fn stateful(errors: &mut Errors, spec: &Value, claims: &[Value], path: &str) {
    errors
        .0
        .extend(validate::claims(claims, &format!("{path}.volumeClaimTemplates")));
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    if let (Some(partition), "RollingUpdate") = (
        strategy.pointer("/rollingUpdate/partition"),
        text(strategy, "type"),
    ) && !partition.is_null()
    {
        let path = format!("{path}.updateStrategy.rollingUpdate.partition");
        errors.invalid(
            path,
            partition.clone(),
            "must not be set: spec.updateStrategy decides",
        );
    }
}

/// Labels that the selector of the whole matches.
fn selected(errors: &mut Errors, of: &Value, selector: Option<&LabelSelector>, path: &str) {
    let labels = of.pointer("/metadata/labels").unwrap_or(&Value::Null);
    // Go reads an explicit null in a map of texts as the empty text.
    let typed: BTreeMap<String, Option<String>> = BTreeMap::deserialize(labels).unwrap_or_default();
    let value_of = |key: &str| Some(typed.get(key)?.as_deref().unwrap_or_default());
    if selector.is_some_and(|selector| !selector.matches_by(value_of)) {
        errors.invalid(
            path,
            labels.clone(),
            "`selector` does not match template `labels`",
        );
    }
}

/// What may not change while the template stays of its kind.
pub(super) fn changes(errors: &mut Errors, new: &Value, old: &Value) {
    for (kind, free) in [(STATEFUL_SET, OF_STATEFUL_SET), (ADVANCED, OF_ADVANCED)] {
        let spec = |of: &Value| of.pointer(&format!("/template/{kind}/spec")).cloned();
        let (Some(mut new), Some(mut old)) = (spec(new), spec(old)) else {
            continue;
        };
        for spec in [&mut new, &mut old] {
            // an older version may have stored them without defaults
            let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
            claims.into_iter().flatten().for_each(defaults::claim);
        }
        let fields = |of: &Value| {
            of.as_object()
                .map(|all| all.keys().cloned().collect())
                .unwrap_or_default()
        };
        let (mut names, more): (BTreeSet<String>, BTreeSet<String>) = (fields(&new), fields(&old));
        names.extend(more);
        for name in names.iter().filter(|name| !free.contains(&name.as_str())) {
            if !alike(new.get(name), old.get(name)) {
                let path = format!("spec.template.{kind}.spec.{name}");
                errors.forbidden(path, &format!("only {} may change", free.join(", ")));
            }
        }
    }
}
