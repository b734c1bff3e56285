//! The rights of the manager: those that it needs, and no others.

use std::collections::{BTreeMap, BTreeSet};

use kruise_admission::manifests::{MUTATING, VALIDATING};
use kruise_api::definition::Kind;
use kruise_api::names::AGENT_NAMESPACE;
use kruise_frame::{
    gates::{BUDGET_DELETIONS, BUDGET_UPDATES, DEFINITIONS_PROTECTION, DELETION_PROTECTION, Gates},
    profile::Profile,
    registration::{Area, Grant, Registration},
    settings::CONFIGURATION,
};
use kruise_kinds as controllers;
use kruise_plan_kit::ResourceId;
use serde_json::{Value, json};

use super::reach;

/// Name of the manager's service account.
pub const ACCOUNT: &str = "kruise-manager";

/// Name of the role with the rights in all namespaces.
pub const MANAGER: &str = "kruise-manager-role";

/// Name of the role with the rights in the namespace of node agents.
pub const COPIES: &str = "kruise-manager-copies-role";

/// The manager may write no certificates and configurations with this feature gate.
const EXTERNAL_CERTIFICATES: &str = "EnableExternalCerts";

/// A condition of a right: what must be so of a feature gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// It is on.
    On(&'static str),
    /// It is off.
    Off(&'static str),
    /// One of several is on.
    Any(&'static [&'static str]),
}

impl Gate {
    fn holds(self, gates: &Gates) -> bool {
        match self {
            Self::On(gate) => gates.on(gate),
            Self::Off(gate) => !gates.on(gate),
            Self::Any(any) => any.iter().any(|gate| gates.on(gate)),
        }
    }

    /// That one of these is on; `None` if there are none.
    fn of(any: &'static [&'static str]) -> Option<Self> {
        match any {
            [] => None,
            [gate] => Some(Self::On(gate)),
            _ => Some(Self::Any(any)),
        }
    }
}

/// Conditions that must all hold.
pub type Conditions = BTreeSet<Gate>;

/// A rule with the conditions under which it is needed.
#[derive(Clone, Debug)]
pub struct NeededRule {
    /// When it is needed.
    pub conditions: Conditions,
    /// The rule.
    pub rule: Value,
}

impl From<Value> for NeededRule {
    /// A rule that is always needed.
    fn from(rule: Value) -> Self {
        Self {
            conditions: Conditions::new(),
            rule,
        }
    }
}

impl NeededRule {
    /// A rule that is needed if this is so of a feature gate.
    pub fn with(gate: Gate, rule: Value) -> Self {
        Self {
            conditions: [gate].into(),
            rule,
        }
    }

    /// Whether it is needed with these feature gates.
    pub fn holds(&self, gates: &Gates) -> bool {
        self.conditions.iter().all(|condition| condition.holds(gates))
    }

    /// The same rule without the resources that a profile does not have; `None` if none is left.
    fn limited(mut self, profile: &Profile) -> Option<Self> {
        let group = self
            .rule
            .pointer("/apiGroups/0")
            .and_then(Value::as_str)?
            .to_owned();
        let resources = self.rule.get_mut("resources").and_then(Value::as_array_mut)?;
        resources.retain(|resource| {
            let plural = resource.as_str().and_then(|resource| resource.split('/').next());
            plural.is_some_and(|plural| profile.has(&group, plural))
        });
        let is_left = !resources.is_empty();
        is_left.then_some(self)
    }
}

/// Where a role grants something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'n> {
    /// In the whole cluster.
    Cluster,
    /// In a namespace.
    Namespace(&'n str),
}

/// A role with its binding.
pub struct Role<'n> {
    /// Name of the role.
    pub name: &'static str,
    /// Name of its binding.
    pub binding: &'static str,
    /// Where it grants its rights.
    pub place: Place<'n>,
    /// The rights.
    pub rules: Vec<NeededRule>,
}

/// The roles of a manager in a namespace, with these kinds.
pub fn roles<'n>(namespace: &'n str, profile: &Profile) -> Vec<Role<'n>> {
    vec![
        Role {
            name: MANAGER,
            binding: "kruise-manager-rolebinding",
            place: Place::Cluster,
            rules: cluster_rules(profile),
        },
        Role {
            name: "kruise-certs-role",
            binding: "kruise-certs-rolebinding",
            place: Place::Cluster,
            rules: certificate_rules(profile),
        },
        Role {
            name: "kruise-manager-own-role",
            binding: "kruise-manager-own-rolebinding",
            place: Place::Namespace(namespace),
            rules: rules_in(Area::Own, profile),
        },
        Role {
            name: COPIES,
            binding: "kruise-manager-copies-rolebinding",
            place: Place::Namespace(AGENT_NAMESPACE),
            rules: rules_in(Area::Agents, profile),
        },
        Role {
            name: "kruise-leader-election-role",
            binding: "kruise-leader-election-rolebinding",
            place: Place::Namespace(namespace),
            rules: lease_rules(),
        },
        Role {
            name: "kruise-webhook-role",
            binding: "kruise-webhook-rolebinding",
            place: Place::Namespace(namespace),
            rules: webhook_rules(),
        },
    ]
}

/// Service account, roles and bindings of a manager in a namespace, which may watch one namespace only.
pub fn objects(namespace: &str, gates: &Gates, profile: &Profile, watched: Option<&str>) -> Vec<Value> {
    let mut objects = vec![account(ACCOUNT, namespace)];
    let all = roles(namespace, profile);
    let roles = match watched {
        Some(watched) => reach::limited(all, watched),
        None => all,
    };
    for role in roles {
        let needed = role.rules.iter().filter(|one| one.holds(gates));
        let rules: Vec<Value> = needed.map(|one| one.rule.clone()).collect();
        if !rules.is_empty() {
            objects.extend(role_objects(&role, ACCOUNT, namespace, Value::Array(rules)));
        }
    }
    objects
}

/// Whether the manager copies pull secrets to the namespace of node agents.
pub fn makes_copies(gates: &Gates, profile: &Profile, watched: Option<&str>) -> bool {
    let rules = rules_in(Area::Agents, profile);
    watched.is_none() && rules.iter().any(|needed| needed.holds(gates))
}

/// A service account.
pub fn account(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

/// A role with these rules, and its binding to a service account in a namespace.
pub fn role_objects(role: &Role<'_>, account: &str, namespace: &str, rules: Value) -> [Value; 2] {
    let metadata = |name: &str| match role.place {
        Place::Cluster => json!({"name": name}),
        Place::Namespace(namespace) => json!({"name": name, "namespace": namespace}),
    };
    let kind = match role.place {
        Place::Cluster => "ClusterRole",
        Place::Namespace(_) => "Role",
    };
    [
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata(role.name),
               "rules": rules}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
            "metadata": metadata(role.binding),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role.name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
    ]
}

/// What secure metrics need: managers ask the API server who calls and what the caller may, and whoever reads
/// metrics is bound to the role `kruise-metrics-reader`.
pub fn of_secure_metrics(namespace: &str) -> Vec<Value> {
    let role = Role {
        name: "kruise-metrics-auth-role",
        binding: "kruise-metrics-auth-rolebinding",
        place: Place::Cluster,
        rules: Vec::new(),
    };
    let rules = json!([
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ]);
    let mut objects = role_objects(&role, ACCOUNT, namespace, rules).to_vec();
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "kruise-metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }));
    objects
}

/// The lease may have any name, as `--leader-election-id` says. Events say who leads.
fn lease_rules() -> Vec<NeededRule> {
    let leases = rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]);
    let events = rule("", &["events"], &["create", "patch"]);
    vec![leases.into(), events.into()]
}

/// The Secret of the certificates and no other one (a watch of one name is granted like a read of it), and the
/// ConfigMap with the settings of administrators. RBAC cannot limit a creation to a name.
fn webhook_rules() -> Vec<NeededRule> {
    let secret = |verbs| named(rule("", &["secrets"], verbs), &["kruise-webhook-certs"]);
    let is_ours = Gate::Off(EXTERNAL_CERTIFICATES);
    vec![
        NeededRule::with(is_ours, rule("", &["secrets"], &["create"])),
        NeededRule::with(is_ours, secret(&["update"])),
        NeededRule::from(secret(READ)),
        NeededRule::from(named(rule("", &["configmaps"], READ), &[CONFIGURATION])),
    ]
}

/// What is written about certificates: the CA in the webhook configurations and in the definitions.
fn certificate_rules(profile: &Profile) -> Vec<NeededRule> {
    let rules = registered(profile, &["patch"]).into_iter();
    let is_ours = Gate::Off(EXTERNAL_CERTIFICATES);
    rules.map(|rule| NeededRule::with(is_ours, rule)).collect()
}

/// Rules for the webhook configurations and the definitions.
fn registered(profile: &Profile, verbs: &[&str]) -> Vec<Value> {
    let webhooks = |plural, name| named(rule("admissionregistration.k8s.io", &[plural], verbs), &[name]);
    let names: Vec<String> = profile.of_kinds(kruise_kinds::kinds()).map(Kind::name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let definitions = rule("apiextensions.k8s.io", &["customresourcedefinitions"], verbs);
    vec![
        webhooks("mutatingwebhookconfigurations", MUTATING),
        webhooks("validatingwebhookconfigurations", VALIDATING),
        named(definitions, &names),
    ]
}

/// Groups whose resources may be counted before a protected definition is deleted.
pub const ANY_GROUP: &str = "*";

/// Kinds whose objects are about a workload.
const ABOUT_WORKLOADS: [(&str, &str); 3] = [
    ("policy.kruise.io", "podunavailablebudgets"),
    ("apps.kruise.io", "workloadspreads"),
    ("apps.kruise.io", "persistentpodstates"),
];

/// What controllers may do in the manager's namespace or that of node agents.
fn rules_in(area: Area, profile: &Profile) -> Vec<NeededRule> {
    let rules = granted_in(area, &controllers::of(profile));
    rules
        .into_iter()
        .filter_map(|needed| needed.limited(profile))
        .collect()
}

fn cluster_rules(profile: &Profile) -> Vec<NeededRule> {
    let rules = rules_of_all_kinds(profile).into_iter();
    rules.filter_map(|needed| needed.limited(profile)).collect()
}

/// The rules of a profile; some are for resources that it does not have.
fn rules_of_all_kinds(profile: &Profile) -> Vec<NeededRule> {
    let mut rules = needed_by(&controllers::of(profile));
    rules.push(NeededRule::from(rule("", &["events"], &["create", "patch"])));
    let about: Vec<_> = ABOUT_WORKLOADS
        .into_iter()
        .filter(|(group, plural)| profile.has(group, plural))
        .collect();
    if !about.is_empty() {
        // Webhooks read them when an object refers to them: other objects about a workload, and the workload itself.
        let others = about
            .iter()
            .map(|(group, plural)| rule(group, &[plural], &["list"]));
        let workloads = [
            rule(
                "apps",
                &["daemonsets", "deployments", "replicasets", "statefulsets"],
                &["get"],
            ),
            rule("", &["replicationcontrollers"], &["get"]),
            rule("batch", &["jobs"], &["get"]),
        ];
        rules.extend(others.chain(workloads).map(NeededRule::from));
    }
    rules.extend(registered(profile, READ).into_iter().map(NeededRule::from));
    rules.extend([
        NeededRule::with(
            Gate::On(DELETION_PROTECTION),
            rule("", &["persistentvolumeclaims", "pods"], &["list"]),
        ),
        // A definition that is protected may be of any resource.
        NeededRule::with(
            Gate::On(DEFINITIONS_PROTECTION),
            rule(ANY_GROUP, &["*"], &["list"]),
        ),
    ]);
    // Every replica charges budgets, whether it leads or not.
    let charges = [
        rule("", &["pods"], &["get"]),
        rule("policy.kruise.io", &["podunavailablebudgets"], READ),
        rule("policy.kruise.io", &["podunavailablebudgets/status"], &["patch"]),
    ];
    let budgets = Gate::Any(&[BUDGET_DELETIONS, BUDGET_UPDATES]);
    rules.extend(charges.map(|rule| NeededRule::with(budgets, rule)));
    rules
}

const READ: &[&str] = &["get", "list", "watch"];

/// Workloads with a cache.
const WORKLOADS: [ResourceId; 5] = [
    ResourceId::DEPLOYMENTS,
    ResourceId::REPLICA_SETS,
    ResourceId::APPS_STATEFULSETS,
    kruise_api::cloneset::RESOURCE,
    kruise_api::statefulset::RESOURCE,
];

/// Verbs by group and resource.
type Verbs = BTreeMap<(&'static str, String), BTreeSet<&'static str>>;

/// Rights by the conditions under which they are needed.
#[derive(Default)]
struct Rights(BTreeMap<Conditions, Verbs>);

impl Rights {
    fn allow(
        &mut self,
        conditions: Conditions,
        group: &'static str,
        resource: String,
        verbs: &[&'static str],
    ) {
        let of_conditions = self.0.entry(conditions).or_default();
        of_conditions.entry((group, resource)).or_default().extend(verbs);
    }

    fn grant(&mut self, registration: &Registration, grant: &Grant) {
        let ResourceId { group, plural } = grant.resource;
        let mut conditions = conditions_of(registration);
        conditions.extend(Gate::of(grant.gates));
        if grant.subresource.is_empty() {
            if grant.is_watched && grant.area != Area::Agents {
                self.allow(conditions.clone(), group, plural.to_owned(), READ);
            }
            self.allow(conditions, group, plural.to_owned(), grant.verbs);
        } else {
            self.allow(
                conditions,
                group,
                format!("{plural}/{}", grant.subresource),
                grant.verbs,
            );
        }
    }

    /// One rule for each resource and subresource.
    fn rules(self) -> Vec<NeededRule> {
        let of_conditions = self.0.into_iter().flat_map(|(conditions, verbs)| {
            verbs.into_iter().map(move |((group, resource), verbs)| {
                let verbs: Vec<&str> = verbs.into_iter().collect();
                NeededRule {
                    conditions: conditions.clone(),
                    rule: rule(group, &[&resource], &verbs),
                }
            })
        });
        of_conditions.collect()
    }
}

fn conditions_of(registration: &Registration) -> Conditions {
    Gate::of(registration.gates()).into_iter().collect()
}

/// The rights in these registrations in the manager's namespace or that of node agents.
fn granted_in(area: Area, registrations: &[&Registration]) -> Vec<NeededRule> {
    let mut rights = Rights::default();
    for registration in registrations {
        let grants = registration.grants.iter();
        for grant in grants.filter(|grant| grant.area == area) {
            rights.grant(registration, grant);
        }
    }
    rights.rules()
}

/// The rights in these registrations, except those in the manager's namespace and in that of node agents.
pub(super) fn needed_by(registrations: &[&Registration]) -> Vec<NeededRule> {
    let mut rights = Rights::default();
    for registration in registrations {
        let mut allow = |group, resource, verbs: &[&'static str]| {
            rights.allow(conditions_of(registration), group, resource, verbs);
        };
        if let Some(ResourceId { group, plural }) = registration.resource() {
            allow(group, plural.to_owned(), READ);
            allow(group, format!("{plural}/status"), &["patch"]);
            // Required by the admission plugin OwnerReferencesPermissionEnforcement.
            allow(group, format!("{plural}/finalizers"), &["update"]);
        }
        if registration.finds_workloads {
            for ResourceId { group, plural } in WORKLOADS {
                allow(group, plural.to_owned(), READ);
            }
            allow("", "replicationcontrollers".to_owned(), &["get"]);
            // Workloads of any kind say here how many pods they want.
            allow(ANY_GROUP, "*/scale".to_owned(), &["get"]);
        }
        for ResourceId { group, plural } in registration.watches {
            allow(group, (*plural).to_owned(), READ);
        }
        let grants = registration.grants.iter();
        for grant in grants.filter(|grant| matches!(grant.area, Area::Watched | Area::Cluster)) {
            rights.grant(registration, grant);
        }
    }
    rights.rules()
}

/// The rights in these registrations with these feature gates.
pub fn rules_of_controllers(registrations: &[&Registration], gates: &Gates) -> Vec<Value> {
    let apart = [Area::Own, Area::Agents].map(|area| granted_in(area, registrations));
    let needed = needed_by(registrations)
        .into_iter()
        .chain(apart.into_iter().flatten());
    let needed = needed.filter(|one| one.holds(gates));
    needed.map(|one| one.rule).collect()
}

/// The same rule for these objects only.
pub fn named(mut rule: Value, names: &[&str]) -> Value {
    if let Some(rule) = rule.as_object_mut() {
        rule.insert("resourceNames".into(), json!(names));
    }
    rule
}

/// A rule of a role.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::objects;
    use kruise_frame::gates::Gates;
    use kruise_frame::profile::Profile;

    /// Secrets are written only where copies of them are, and only by a manager of the whole cluster.
    #[test]
    fn secrets_of_users_are_read_and_only_their_copies_are_written() {
        let written = |gates: &str, watched: Option<&str>| -> Vec<String> {
            let gates = Gates::parse(gates, "").unwrap();
            let objects = objects("ns", &gates, &Profile::default(), watched);
            let has = |list: &Value, text: &str| list.as_array().unwrap().contains(&json!(text));
            let writes = |rule: &Value| {
                has(&rule["resources"], "secrets")
                    && rule["resourceNames"].is_null()
                    && (has(&rule["verbs"], "patch") || has(&rule["verbs"], "delete"))
            };
            let roles = objects.iter().filter(|object| {
                let mut rules = object["rules"].as_array().into_iter().flatten();
                rules.any(writes)
            });
            roles
                .map(|role| {
                    let text = |field: &str| role["metadata"][field].as_str().unwrap_or_default().to_owned();
                    format!(
                        "{} {}/{}",
                        role["kind"].as_str().unwrap(),
                        text("namespace"),
                        text("name")
                    )
                })
                .collect()
        };
        let on = "ImagePullJobGate=true";
        assert_eq!(
            written(on, None),
            ["Role kruise-daemon-config/kruise-manager-copies-role"]
        );
        assert!(written("", None).is_empty());
        assert!(written(on, Some("shop")).is_empty());
    }

    /// The rights in the whole cluster, as text.
    fn rules_with(gates: &str) -> String {
        let objects = objects("ns", &Gates::parse(gates, "").unwrap(), &Profile::default(), None);
        let role = objects
            .iter()
            .find(|object| object["metadata"]["name"] == "kruise-manager-role");
        role.unwrap()["rules"].to_string()
    }

    #[test]
    fn rights_for_a_gate_are_granted_only_with_the_gate() {
        let off = "PodUnavailableBudgetDeleteGate=false";
        let rules = rules_with(off);
        assert!(!rules.contains("podunavailablebudgets/status\""));
        let rules = rules_with("");
        assert!(rules.contains("podunavailablebudgets/status\""));
        for (gate, resource) in [
            (
                "PreDownloadImageForInPlaceUpdate=true",
                r#"["imagepulljobs"],"verbs":["create""#,
            ),
            ("ImagePullJobGate=true", r#"["secrets"]"#),
            ("StatefulSetAutoResizePVCGate=true", "storageclasses\""),
            (
                "ResourcesDeletionProtection=true,DeletionProtectionForCRDCascadingGate=true",
                "\"resources\":[\"*\"]",
            ),
        ] {
            for (gates, granted) in [("", false), (gate, true)] {
                assert_eq!(rules_with(gates).contains(resource), granted, "{gates}");
            }
        }
    }

    #[test]
    fn with_certificates_of_others_nothing_about_them_is_written() {
        let names = |gates: &str| -> Vec<String> {
            let objects = objects("ns", &Gates::parse(gates, "").unwrap(), &Profile::default(), None);
            let writes = objects.iter().filter(|object| {
                let rules = object["rules"].as_array().into_iter().flatten();
                let mut about = rules.filter(|rule| {
                    let rule = rule.to_string();
                    rule.contains("secrets")
                        || rule.contains("webhookconfigurations")
                        || rule.contains("definitions")
                });
                about.any(|rule| {
                    let verbs = rule["verbs"].as_array().unwrap();
                    verbs
                        .iter()
                        .any(|verb| ["create", "update", "patch"].contains(&verb.as_str().unwrap()))
                })
            });
            writes
                .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(""), ["kruise-certs-role", "kruise-webhook-role"]);
        assert!(names("EnableExternalCerts=true").is_empty());
    }
}
