//! Deletion protection of kinds that are not ours: namespaces, definitions, workloads of Kubernetes, services,
//! ingresses.
//!
//! | Kind | `Cascading` refuses while |
//! |---|---|
//! | Namespace | it has an active pod, or a bound claim that is not being deleted |
//! | CustomResourceDefinition | it has an object that is not being deleted |
//! | Deployment, ReplicaSet, StatefulSet | `spec.replicas` is above 0 |
//! | Service, Ingress | never: only `Always` protects them |

use kruise_api::names::DELETE_PROTECTION;
use serde_json::Value;

use super::{Protection, denied, protection};
use crate::Response;
use crate::json::{items, present, text};
pub use crate::protocol::{Counted, Dependants};

/// A kind that can be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protected {
    /// Namespace.
    Namespace,
    /// CustomResourceDefinition.
    Definition,
    /// A workload of Kubernetes.
    Workload,
    /// A Service or an Ingress.
    Endpoint,
}

/// Feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `ResourcesDeletionProtection`.
    pub protection: bool,
    /// `DeletionProtectionForCRDCascadingGate`: objects of a definition are counted.
    pub definitions: bool,
}

/// The outcome of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be deleted.
    Allow,
    /// It may not.
    Deny(Response),
    /// These have to be counted first.
    Missing(Dependants),
}

/// Whether a stored object may be deleted.
pub fn decide(
    kind: Protected,
    stored: &Value,
    gates: Gates,
    count: impl Fn(&Dependants) -> Counted,
) -> Verdict {
    match protection(stored).filter(|_| gates.protection) {
        None => Verdict::Allow,
        Some(Protection::Always) => Verdict::Deny(denied("Always")),
        Some(Protection::Cascading) => cascading(kind, stored, gates, &count),
    }
}

fn cascading(
    kind: Protected,
    stored: &Value,
    gates: Gates,
    count: &dyn Fn(&Dependants) -> Counted,
) -> Verdict {
    match kind {
        Protected::Namespace => namespace(stored, count),
        Protected::Definition if !gates.definitions => Verdict::Deny(Response::denied(
            403,
            format!(
                "feature-gate DeletionProtectionForCRDCascadingGate is not enabled, and {DELETE_PROTECTION}=Cascading \
                 needs it"
            ),
        )),
        Protected::Definition => definition(stored, count),
        Protected::Workload => match super::replicas(stored) {
            Some(replicas @ 1..) => refused(&format!("replicas {replicas}>0")),
            _ => Verdict::Allow,
        },
        Protected::Endpoint => Verdict::Allow,
    }
}

fn namespace(stored: &Value, count: &dyn Fn(&Dependants) -> Counted) -> Verdict {
    let namespace = text(stored.get("metadata").unwrap_or(&Value::Null), "name").to_owned();
    let pods = Dependants::ActivePods {
        namespace: namespace.clone(),
    };
    let claims = Dependants::BoundClaims { namespace };
    for (dependants, what, list) in [
        (pods, "active pods", "list pods error"),
        (claims, "\"Bound\" status pvc", "list pvc error"),
    ] {
        match count(&dependants) {
            Counted::Number(0) => {}
            Counted::Number(number) => return refused(&format!("{what} {number}>0")),
            Counted::Failed(error) => return failed(format!("{list}: {error}")),
            Counted::Missing => return Verdict::Missing(dependants),
        }
    }
    Verdict::Allow
}

fn definition(stored: &Value, count: &dyn Fn(&Dependants) -> Counted) -> Verdict {
    let spec = stored.get("spec").unwrap_or(&Value::Null);
    let names = spec.get("names").unwrap_or(&Value::Null);
    let is = |version: &Value, what: &str| version.get(what).and_then(Value::as_bool) == Some(true);
    let versions = items(spec, "versions");
    let served = || versions.iter().filter(|version| is(version, "served"));
    // What is stored can be listed in any version that is served.
    let stored_version = served().find(|version| is(version, "storage"));
    let version = stored_version.or_else(|| served().next());
    let (group, kind) = (text(spec, "group"), text(names, "kind"));
    let version = version.map_or_else(|| text(spec, "version"), |version| text(version, "name"));
    let dependants = Dependants::Objects {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: text(names, "plural").to_owned(),
        kind: kind.to_owned(),
    };
    match count(&dependants) {
        Counted::Number(0) => Verdict::Allow,
        Counted::Number(number) => refused(&format!("active CRs {number}>0")),
        Counted::Failed(error) => {
            let message = format!("failed to list CRs of {group}/{version}, Kind={kind}: {error}");
            Verdict::Deny(Response::denied(403, message))
        }
        Counted::Missing => Verdict::Missing(dependants),
    }
}

fn refused(why: &str) -> Verdict {
    Verdict::Deny(denied(&format!("Cascading and {why}")))
}

fn failed(why: String) -> Verdict {
    let message = format!("forbidden by ResourcesProtectionDeletion for {why}");
    Verdict::Deny(Response::denied(403, message))
}

/// What the author of a new or changed object is warned of: a value that protects nothing. What is stored already
/// is not repeated.
pub fn warning(kind: Protected, new: &Value, old: Option<&Value>) -> Option<String> {
    let value = |object: &Value| {
        let labels = object.pointer("/metadata/labels")?;
        Some(present(labels, DELETE_PROTECTION)?.as_str()?.to_owned())
    };
    let wanted = value(new).filter(|wanted| old.and_then(value).as_ref() != Some(wanted))?;
    match (kind, wanted.as_str()) {
        (Protected::Endpoint, "Cascading") => Some(format!(
            "{DELETE_PROTECTION}=Cascading does not protect this kind: use Always"
        )),
        (_, "Always" | "Cascading") => None,
        (_, other) => Some(format!(
            "{DELETE_PROTECTION}={other:?} protects nothing: use Always or Cascading"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ON: Gates = Gates {
        protection: true,
        definitions: true,
    };
    const KINDS: [Protected; 4] = [
        Protected::Namespace,
        Protected::Definition,
        Protected::Workload,
        Protected::Endpoint,
    ];

    fn object(label: &str) -> Value {
        json!({
            "metadata": {"name": "shop", "labels": {DELETE_PROTECTION: label}},
            "spec": {"replicas": 2, "group": "example.com", "names": {"plural": "widgets", "kind": "Widget"},
                     "versions": [{"name": "v2", "served": true}, {"name": "v1", "served": true, "storage": true}]},
        })
    }

    fn message(verdict: &Verdict) -> &str {
        match verdict {
            Verdict::Deny(Response::Deny {
                code: 403,
                reason: None,
                message,
            }) => message,
            other => panic!("{other:?}"),
        }
    }

    /// The verdict if there is so much of everything.
    fn with(kind: Protected, label: &str, number: u64) -> Verdict {
        decide(kind, &object(label), ON, |_| Counted::Number(number))
    }

    #[test]
    fn always_refuses_whatever_there_is_and_other_values_protect_nothing() {
        for kind in KINDS {
            let always = with(kind, "Always", 0);
            let expected =
                "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always";
            assert_eq!(message(&always), expected);
            for other in ["always", "", "true"] {
                assert_eq!(with(kind, other, 9), Verdict::Allow, "{other}");
            }
        }
    }

    #[test]
    fn a_gate_that_is_off_or_a_deletion_that_has_begun_refuses_nothing() {
        for kind in KINDS {
            let off = Gates {
                protection: false,
                definitions: false,
            };
            assert_eq!(
                decide(kind, &object("Always"), off, |_| Counted::Missing),
                Verdict::Allow
            );
            let mut going = object("Always");
            going["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
            assert_eq!(decide(kind, &going, ON, |_| Counted::Missing), Verdict::Allow);
        }
    }

    #[test]
    fn a_namespace_stays_while_it_has_active_pods_and_then_while_it_has_bound_claims() {
        let verdict = |pods: u64, claims: u64| {
            decide(
                Protected::Namespace,
                &object("Cascading"),
                ON,
                |what| match what {
                    Dependants::ActivePods { namespace } if namespace == "shop" => Counted::Number(pods),
                    Dependants::BoundClaims { namespace } if namespace == "shop" => Counted::Number(claims),
                    other => panic!("{other:?}"),
                },
            )
        };
        let prefix =
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and ";
        assert_eq!(message(&verdict(3, 1)), format!("{prefix}active pods 3>0"));
        assert_eq!(
            message(&verdict(0, 1)),
            format!("{prefix}\"Bound\" status pvc 1>0")
        );
        assert_eq!(verdict(0, 0), Verdict::Allow);
    }

    #[test]
    fn a_definition_stays_while_it_has_objects_of_its_stored_version() {
        let verdict = decide(Protected::Definition, &object("Cascading"), ON, |what| {
            let expected = Dependants::Objects {
                group: "example.com".into(),
                version: "v1".into(),
                plural: "widgets".into(),
                kind: "Widget".into(),
            };
            assert_eq!(*what, expected);
            Counted::Number(1)
        });
        assert_eq!(
            message(&verdict),
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and active CRs 1>0"
        );
        assert_eq!(with(Protected::Definition, "Cascading", 0), Verdict::Allow);
        let gate_off = Gates {
            definitions: false,
            ..ON
        };
        let verdict = decide(Protected::Definition, &object("Cascading"), gate_off, |_| {
            Counted::Number(0)
        });
        let gate = "feature-gate DeletionProtectionForCRDCascadingGate is not enabled";
        assert!(message(&verdict).starts_with(gate));
    }

    #[test]
    fn workloads_stay_while_they_have_replicas_and_endpoints_do_not() {
        assert_eq!(
            message(&with(Protected::Workload, "Cascading", 0)),
            "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and replicas 2>0"
        );
        let mut scaled = object("Cascading");
        for replicas in [json!(0), Value::Null] {
            scaled["spec"]["replicas"] = replicas;
            assert_eq!(
                decide(Protected::Workload, &scaled, ON, |_| Counted::Missing),
                Verdict::Allow
            );
        }
        assert_eq!(with(Protected::Endpoint, "Cascading", 9), Verdict::Allow);
    }

    #[test]
    fn what_cannot_be_listed_keeps_the_object_and_what_is_not_counted_is_asked_for() {
        let fails = |kind| decide(kind, &object("Cascading"), ON, |_| Counted::Failed("no".into()));
        assert_eq!(
            message(&fails(Protected::Namespace)),
            "forbidden by ResourcesProtectionDeletion for list pods error: no"
        );
        assert_eq!(
            message(&fails(Protected::Definition)),
            "failed to list CRs of example.com/v1, Kind=Widget: no"
        );
        let no_claims = decide(
            Protected::Namespace,
            &object("Cascading"),
            ON,
            |what| match what {
                Dependants::ActivePods { .. } => Counted::Number(0),
                _ => Counted::Failed("no".into()),
            },
        );
        assert_eq!(
            message(&no_claims),
            "forbidden by ResourcesProtectionDeletion for list pvc error: no"
        );
        let missing = decide(Protected::Namespace, &object("Cascading"), ON, |_| {
            Counted::Missing
        });
        let pods = Dependants::ActivePods {
            namespace: "shop".into(),
        };
        assert_eq!(missing, Verdict::Missing(pods));
    }

    #[test]
    fn values_that_protect_nothing_are_warned_of_once() {
        let warned = |kind, label| warning(kind, &object(label), None).is_some();
        assert!(warned(Protected::Endpoint, "Cascading"));
        for kind in KINDS {
            assert!(warned(kind, "always") && !warned(kind, "Always"));
            assert_eq!(warned(kind, "Cascading"), kind == Protected::Endpoint);
            assert_eq!(warning(kind, &object("always"), Some(&object("always"))), None);
            assert_eq!(warning(kind, &json!({"metadata": {}}), None), None);
        }
        assert!(warning(Protected::Endpoint, &object("Cascading"), Some(&object("Always"))).is_some());
    }
}
