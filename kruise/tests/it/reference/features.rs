//! The feature matrix: what acts on each kind, from the definitions, the registrations and the table of webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kruise_admission::kinds::KindWebhooks;
use kruise_admission::table::{Subject, webhooks};
use kruise_api::definition::{Kind, Scope};
use kruise_frame::{
    gates,
    registration::{Grant, Registration},
};
use kruise_kinds as controllers;
use kruise_plan_kit::ResourceId;

/// The page.
pub(super) fn page() -> String {
    let mut page = "# Feature matrix\n\nWhat acts on each kind. *Off* means that you have to turn the feature gate on.\n\n".to_owned();
    kinds(&mut page);
    pods(&mut page);
    protected(&mut page);
    writes(&mut page);
    page
}

fn kinds(page: &mut String) {
    page.push_str(
        "## Kinds\n\n\
         - **Stored as**: the version in the API server's storage. It is converted to and from the others that are served.\n\
         - **Needs the gate**: without it no controller acts on objects of the kind.\n\
         - **Webhooks**: new and changed objects are completed (*defaults*) and checked (*rules*).\n\
         - **Protected**: the label `policy.kruise.io/delete-protection` counts.\n\
         - **Scale**: it has the subresource that `kubectl scale` and autoscalers use.\n\
         - **Asks budgets**: it makes pods unavailable only if their PodUnavailableBudgets allow it.\n\
         - **Explained**: `kubectl kruise explain` takes it.\n\n\
         | Kind | Stored as | Also served | Where | Needs the gate | Webhooks | Protected | Scale | Asks budgets | Explained |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for kind in kruise_kinds::kinds().iter().copied() {
        let registration = registration(kind);
        let webhooks = webhooks_of(kind);
        let versions = (kind.versions)();
        let (stored, served): (Vec<_>, Vec<_>) = versions.iter().partition(|version| version.storage);
        let names = |versions: Vec<&kruise_api::definition::Version>| {
            let names = versions.into_iter().map(|version| format!("`{}`", version.name));
            names.collect::<Vec<_>>().join(", ")
        };
        let place = match kind.scope {
            Scope::Namespaced => "namespace",
            Scope::Cluster => "cluster",
        };
        let cells = [
            format!("[{}]({}.{}.md)", kind.kind, kind.plural, kind.group),
            names(stored),
            names(served),
            place.to_owned(),
            registration.map(|one| gates_of(one.gates())).unwrap_or_default(),
            webhooks.map(steps).unwrap_or_default(),
            yes(webhooks.is_some_and(|one| one.deletions)),
            yes(versions.iter().any(|version| version.scale)),
            yes(registration.is_some_and(asks_budgets)),
            yes(registration.is_some_and(|one| one.explain.is_some())),
        ];
        row(page, &cells);
    }
}

/// Controllers whose objects are pods, and the webhooks for requests that concern pods.
fn pods(page: &mut String) {
    page.push_str(
        "\n## Pods\n\nThese act on pods of any workload.\n\n| What | Needs the gate |\n|---|---|\n",
    );
    for registration in controllers::ALL.iter().copied().filter(|one| one.kind.is_none()) {
        let cells = [format!("`{}`", registration.name), gates_of(registration.gates())];
        row(page, &cells);
    }
    for webhook in webhooks(kruise_kinds::webhooks()).filter(kruise_admission::table::Webhook::is_of_pods) {
        let cells = [format!("webhook `{}`", webhook.name), gates_of(&["PodWebhook"])];
        row(page, &cells);
    }
}

/// The kinds of Kubernetes that can be protected.
fn protected(page: &mut String) {
    let kinds = webhooks(kruise_kinds::webhooks()).filter_map(|webhook| match webhook.subject {
        Subject::Deletions(kind) => Some(format!("{} (`{}`)", kind.kind, kind.plural)),
        _ => None,
    });
    let kinds: Vec<_> = kinds.collect();
    let _ = write!(
        page,
        "\n## Kinds of Kubernetes\n\nThe label `policy.kruise.io/delete-protection` protects these, too: {}. Needs the gate: {}.\n",
        kinds.join(", "),
        gates_of(&["ResourcesDeletionProtection"])
    );
}

/// What each controller may write.
fn writes(page: &mut String) {
    page.push_str(
        "\n## What the controllers write\n\nThe rights of each controller, beside those to read, to emit events, and to write \
         the status of its kind. A right with a gate in brackets is granted only with the gate.\n\n\
         | Controller | Kind | Writes |\n|---|---|---|\n",
    );
    for registration in controllers::ALL.iter().copied() {
        let mut rights: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for grant in registration.grants {
            let verbs = grant.verbs.iter().copied().filter(|verb| !is_read(verb));
            let verbs: Vec<_> = verbs.collect();
            if !verbs.is_empty() {
                rights.entry(name(grant)).or_default().extend(verbs);
            }
        }
        let rights = rights.into_iter().map(|(name, verbs)| {
            let verbs: Vec<_> = verbs.into_iter().collect();
            format!("{name}: {}", verbs.join(", "))
        });
        let cells = [
            format!("`{}`", registration.name),
            registration.kind.map_or("", |kind| kind.kind).to_owned(),
            rights.collect::<Vec<_>>().join("; "),
        ];
        row(page, &cells);
    }
}

fn row(page: &mut String, cells: &[String]) {
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "" }.to_owned()
}

fn is_read(verb: &str) -> bool {
    ["get", "list", "watch"].contains(&verb)
}

/// The resource of a right, with its subresource and the gates.
fn name(grant: &Grant) -> String {
    let ResourceId { group, plural } = grant.resource;
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if grant.subresource.is_empty() { "" } else { "/" };
    let gates = grant.gates.iter().map(|gate| format!("`{gate}`"));
    let gates = gates.collect::<Vec<_>>().join(" or ");
    let gates = if gates.is_empty() {
        gates
    } else {
        format!(" ({gates})")
    };
    format!("`{plural}{dot}{group}{slash}{}`{gates}", grant.subresource)
}

fn registration(kind: &Kind) -> Option<&'static Registration> {
    let is_it = |other: &Kind| other.kind == kind.kind && other.group == kind.group;
    controllers::ALL
        .iter()
        .copied()
        .find(|registration| registration.kind.is_some_and(is_it))
}

fn webhooks_of(kind: &Kind) -> Option<&'static KindWebhooks> {
    webhooks(kruise_kinds::webhooks()).find_map(|webhook| match webhook.subject {
        Subject::Kind(one) if one.kind.kind == kind.kind && one.kind.group == kind.group => Some(one),
        _ => None,
    })
}

/// Without a validating webhook the mutating one refuses, too.
fn steps(webhooks: &KindWebhooks) -> String {
    let defaults = webhooks.mutating.map(|_| "defaults");
    defaults
        .into_iter()
        .chain(["rules"])
        .collect::<Vec<_>>()
        .join(", ")
}

/// Its own status is not what a budget's controller asks.
fn asks_budgets(registration: &Registration) -> bool {
    let budgets = kruise_api::podunavailablebudget::RESOURCE;
    let charges =
        |grant: &Grant| grant.resource == budgets && grant.subresource == "status" && !grant.verbs.is_empty();
    registration.resource() != Some(budgets) && registration.grants.iter().any(charges)
}

/// Gates, any of which is enough, with their defaults.
fn gates_of(names: &[&str]) -> String {
    let default = |name: &str| {
        let gate = gates::all().find(|(known, ..)| *known == name);
        let (_, is_on, _) = gate.unwrap_or_else(|| panic!("{name} is no feature gate"));
        if is_on { "on" } else { "off" }
    };
    let gates = names.iter().map(|name| format!("`{name}` ({})", default(name)));
    gates.collect::<Vec<_>>().join(" or ")
}
