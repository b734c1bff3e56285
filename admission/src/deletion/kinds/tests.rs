use serde_json::json;

use super::*;
use crate::deletion::dependants::Dependants;
use crate::lookup::LookupResult;
use crate::table::{Subject, webhooks};

const ON: Options = Options {
    deletion_protection: true,
    definitions_protection: true,
    ..Options::DEFAULT
};
const PREFIX: &str = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=";

fn object(label: &str) -> Value {
    json!({
        "metadata": {"name": "shop", "labels": {"policy.kruise.io/delete-protection": label}},
        "spec": {"replicas": 2, "group": "example.com", "names": {"plural": "widgets", "kind": "Widget"},
                 "versions": [{"name": "v1", "storage": true, "served": true}]},
    })
}

fn request(kind: &ProtectedKind, operation: &str, object: &Value, old: &Value) -> Request {
    let review = json!({
        "uid": "u", "kind": {"group": kind.group, "version": kind.versions[0], "kind": kind.kind},
        "name": "shop", "operation": operation, "userInfo": {"username": "jane"},
        "object": object, "oldObject": old,
    });
    Request::from_review(review).unwrap()
}

fn delete(kind: &ProtectedKind, label: &str) -> Request {
    request(kind, "DELETE", &Value::Null, &object(label))
}

fn kind(name: &str) -> &'static ProtectedKind {
    KINDS.iter().find(|kind| kind.kind == name).unwrap()
}

/// The refusal through the table of webhooks, if there are so many of everything.
fn refusal(
    kind: &ProtectedKind,
    request: &Request,
    options: Options,
    number: u64,
) -> Option<(String, Refused)> {
    let row = webhooks(crate::kinds::ALL)
        .find(|webhook| webhook.path() == kind.path)
        .unwrap();
    assert!(matches!(row.subject, Subject::Deletions(_)));
    let mut lookups = Lookups::default();
    for _ in 0..3 {
        match row.review(request, options, &lookups, &mut |_, _| {}) {
            Outcome::Missing(missing) => missing.into_iter().for_each(|lookup| {
                lookups.insert(lookup, LookupResult::Count(Ok(number)));
            }),
            Outcome::Refused(
                refused,
                Response::Deny {
                    code: 403,
                    reason: None,
                    message,
                },
            ) => {
                return Some((message, *refused));
            }
            Outcome::Response(response) => {
                assert_eq!(response, Response::ALLOW);
                return None;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("never decided")
}

#[test]
fn always_refuses_and_says_who_asked_for_what() {
    for kind in &KINDS {
        let (message, refused) = refusal(kind, &delete(kind, "Always"), ON, 0).unwrap();
        assert_eq!(message, format!("{PREFIX}Always"));
        let expected = Refused {
            event: "DeletionProtection",
            kind: kind.kind.to_owned(),
            namespace: String::new(),
            name: "shop".to_owned(),
            user: "jane".to_owned(),
            budget: None,
        };
        assert_eq!(refused, expected);
    }
}

#[test]
fn cascading_refuses_while_there_are_dependants() {
    for (name, because) in [
        ("Namespace", "active pods 3>0"),
        ("CustomResourceDefinition", "active CRs 3>0"),
        ("Deployment", "replicas 2>0"),
        ("ReplicaSet", "replicas 2>0"),
        ("StatefulSet", "replicas 2>0"),
    ] {
        let kind = kind(name);
        let (message, _) = refusal(kind, &delete(kind, "Cascading"), ON, 3).unwrap();
        assert_eq!(message, format!("{PREFIX}Cascading and {because}"));
    }
    for name in ["Namespace", "CustomResourceDefinition"] {
        assert_eq!(refusal(kind(name), &delete(kind(name), "Cascading"), ON, 0), None);
    }
    for name in ["Service", "Ingress"] {
        assert_eq!(refusal(kind(name), &delete(kind(name), "Cascading"), ON, 3), None);
    }
}

#[test]
fn without_the_gate_all_of_them_can_be_deleted() {
    for kind in &KINDS {
        for label in ["Always", "Cascading"] {
            assert_eq!(refusal(kind, &delete(kind, label), Options::DEFAULT, 3), None);
        }
    }
}

#[test]
fn what_is_being_deleted_already_and_other_operations_pass() {
    for kind in &KINDS {
        let mut going = object("Always");
        going["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        let stored = object("Always");
        for passes in [
            request(kind, "DELETE", &Value::Null, &going),
            request(kind, "DELETE", &Value::Null, &Value::Null),
            request(kind, "UPDATE", &stored, &stored),
            Request {
                sub_resource: "status".to_owned(),
                ..delete(kind, "Always")
            },
        ] {
            assert_eq!(refusal(kind, &passes, ON, 3), None);
        }
    }
}

#[test]
fn dependants_that_cannot_be_counted_are_a_refusal() {
    let (kind, options) = (kind("Namespace"), ON);
    let wanted = Lookup::Dependants(Dependants::ActivePods {
        namespace: "shop".to_owned(),
    });
    let lookups = Lookups::from_iter([(wanted, LookupResult::Count(Err("no rights".to_owned())))]);
    let outcome = kind.review(&delete(kind, "Cascading"), options, &lookups);
    let Outcome::Refused(
        _,
        Response::Deny {
            code: 403,
            reason: None,
            message,
        },
    ) = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        message,
        "forbidden by ResourcesProtectionDeletion for list pods error: no rights"
    );
}

#[test]
fn an_object_of_another_kind_is_refused_as_unreadable() {
    let deployment = delete(kind("Deployment"), "Always");
    let outcome = kind("Service").review(&deployment, ON, &Lookups::default());
    assert!(
        matches!(outcome, Outcome::Response(Response::Deny { code: 400, .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_new_value_without_effect_is_warned_of_and_stored() {
    let warned = |kind: &ProtectedKind, new: &Value, old: &Value, options| {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        match review_label(&request(kind, operation, new, old), options) {
            Outcome::Response(Response::Allow {
                patch: None,
                warnings,
            }) => warnings.len() == 1,
            other => panic!("{other:?}"),
        }
    };
    let none = Value::Null;
    for kind in &KINDS {
        assert!(warned(kind, &object("always"), &none, ON));
        assert!(warned(kind, &object("always"), &object("Always"), ON));
        assert!(!warned(kind, &object("always"), &object("always"), ON));
        assert!(!warned(kind, &object("Always"), &none, ON));
        assert!(!warned(kind, &object("always"), &none, Options::DEFAULT));
        let is_endpoint = kind.protected == Protected::Endpoint;
        assert_eq!(warned(kind, &object("Cascading"), &none, ON), is_endpoint);
    }
}
