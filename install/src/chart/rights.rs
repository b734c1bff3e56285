//! The rights of the managers, with the conditions under which each is needed: feature gates, wanted kinds, and
//! whether one namespace is watched.

use kruise_frame::profile::Profile;
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::gates::{all_of, terms};
use super::kinds::{Kinds, Needs, is_wanted, one_is_wanted};
use super::objects::{NAMESPACE, SECURE, Templated, WATCHED, value};
use super::yaml::{optional, put, when};
use crate::manifests::{
    aggregate_roles,
    rbac::{self, ANY_GROUP, COPIES, NeededRule, Place, Role},
    reach,
};

/// A rule with the expressions that must hold.
pub(super) type Conditional = (BTreeSet<String>, Value);

/// Service account, roles and their bindings.
pub(super) fn objects() -> Vec<Templated> {
    let mut account = rbac::account(rbac::ACCOUNT, NAMESPACE);
    annotated(&mut account);
    let mut objects = vec![Templated::always(account)];
    let mut needs = Needs::by_role();
    for role in rbac::roles(NAMESPACE, &Profile::default()) {
        let needs = needs.remove(role.name).unwrap_or_default();
        let rules = role.rules.iter().flat_map(|needed| conditional(&needs, needed));
        let mut rules: Vec<Conditional> = rules.collect();
        if role.name == COPIES {
            for (terms, _) in &mut rules {
                terms.insert(everywhere());
            }
        }
        if role.place != Place::Cluster {
            objects.extend(of_role(&role, rules));
            continue;
        }
        let (inside, outside): (Vec<Conditional>, Vec<Conditional>) = rules
            .into_iter()
            .partition(|(_, rule)| reach::is_in_namespaces(rule));
        let in_all = inside.iter().cloned().map(|(mut terms, rule)| {
            terms.insert(everywhere());
            (terms, rule)
        });
        objects.extend(of_role(&role, outside.into_iter().chain(in_all).collect()));
        objects.extend(in_watched(&role, &format!("{{{{ {WATCHED} }}}}"), inside));
    }
    let events = reach::of_events();
    let rules = events
        .rules
        .iter()
        .map(|needed| (BTreeSet::new(), needed.rule.clone()));
    objects.extend(in_watched(&events, "default", rules.collect()));
    objects.extend(aggregated());
    let of_metrics = rbac::of_secure_metrics(NAMESPACE).into_iter();
    objects.extend(of_metrics.map(|object| Templated::with(SECURE, object)));
    objects
}

/// Adds the annotations that a value gives to service accounts.
pub(super) fn annotated(account: &mut Value) {
    let annotations = optional(".Values.serviceAccount.annotations", "annotations");
    put(
        account,
        "/metadata",
        &annotations,
        value("serviceAccount.annotations"),
    );
}

/// The rule in parts that have the same conditions.
fn conditional(needs: &Needs, needed: &NeededRule) -> Vec<Conditional> {
    let parts = needs.split(&needed.conditions, &needed.rule).into_iter();
    let with_gates = parts.map(|(mut of_kinds, rule)| {
        of_kinds.extend(terms(&needed.conditions));
        (of_kinds, limited(rule))
    });
    with_gates.collect()
}

/// The expression that holds if all namespaces are watched.
fn everywhere() -> String {
    format!("(not {WATCHED})")
}

/// What a role grants in a namespace, if one is watched.
fn in_watched(role: &Role<'_>, namespace: &str, rules: Vec<Conditional>) -> Vec<Templated> {
    let role = Role {
        name: role.name,
        binding: role.binding,
        place: Place::Namespace(namespace),
        rules: Vec::new(),
    };
    let rules = rules.into_iter().map(|(mut terms, rule)| {
        terms.insert(WATCHED.to_owned());
        (terms, rule)
    });
    of_role(&role, rules.collect())
}

/// A role of the managers, which exists if one of its rules does.
fn of_role(role: &Role<'_>, rules: Vec<Conditional>) -> Vec<Templated> {
    of_account(role, rbac::ACCOUNT, rules)
}

/// A role of a service account, which exists if one of its rules does.
pub(super) fn of_account(role: &Role<'_>, account: &str, rules: Vec<Conditional>) -> Vec<Templated> {
    let common = rules.iter().map(|(terms, _)| terms.clone());
    let Some(common) = common.reduce(|one, other| one.intersection(&other).cloned().collect()) else {
        return Vec::new();
    };
    let mut listed: Vec<Value> = Vec::new();
    let mut same: Option<(BTreeSet<String>, Vec<Value>)> = None;
    for (terms, rule) in rules {
        let own: BTreeSet<String> = terms.difference(&common).cloned().collect();
        match &mut same {
            Some((of, items)) if *of == own => items.push(rule),
            _ => {
                listed.extend(same.take().into_iter().flat_map(under));
                same = Some((own, vec![rule]));
            }
        }
    }
    listed.extend(same.into_iter().flat_map(under));
    let objects = rbac::role_objects(role, account, NAMESPACE, Value::Array(listed));
    let objects = objects.into_iter().map(|object| Templated {
        condition: all_of(&common),
        object,
    });
    objects.collect()
}

fn under((terms, rules): (BTreeSet<String>, Vec<Value>)) -> Vec<Value> {
    match all_of(&terms) {
        Some(condition) => vec![when(&condition, rules)],
        None => rules,
    }
}

/// A rule for all resources of any group is for the groups that a value names.
fn limited(mut rule: Value) -> Value {
    let is_of_any = rule.get("apiGroups") == Some(&json!([ANY_GROUP]));
    if is_of_any && rule.get("resources") == Some(&json!(["*"])) {
        put(&mut rule, "", "apiGroups", value("installation.roleListGroups"));
    }
    rule
}

/// The roles of users, with the rules of the wanted kinds.
fn aggregated() -> Vec<Templated> {
    let mut aggregated = Vec::new();
    for role in aggregate_roles(&Profile::default()) {
        let mut of_role = Kinds::new();
        let mut rules = Vec::new();
        for kind in kruise_kinds::kinds().iter().copied() {
            let own = aggregate_roles(&Profile::of([kind])).into_iter();
            let own = own.filter(|own| own.get("metadata") == role.get("metadata"));
            let own = own.filter_map(|own| own.get("rules")?.as_array().cloned());
            let own: Vec<Value> = own.flatten().collect();
            if !own.is_empty() {
                of_role.insert(kind.plural);
                rules.push(when(&is_wanted(kind.plural), own));
            }
        }
        let mut role = role;
        put(&mut role, "", "rules", Value::Array(rules));
        aggregated.push(Templated {
            condition: one_is_wanted(&of_role),
            object: role,
        });
    }
    aggregated
}
