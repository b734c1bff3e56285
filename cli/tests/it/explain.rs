//! `explain`: which objects it means, and which version of a kind.

use serde_json::{Value, json};

use crate::api_server::{ApiServer, clonesets};
use crate::command::Folder;

/// A cluster that serves CloneSets as `v1alpha1` only.
pub(crate) fn old_definition(path: &str) -> Option<(u16, Value)> {
    (path == "/apis/apps.kruise.io/v1alpha1").then(clonesets)
}

#[test]
fn explain_follows_the_namespace_of_the_context_unless_a_flag_names_another() {
    for (flags, namespace) in [(&[][..], "shop"), (&["--namespace", "other"], "other")] {
        let server = ApiServer::start(old_definition);
        let folder = Folder::new();
        let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
        let ended = folder.kruise(&[&["explain", "clone/web", &kubeconfig], flags].concat());
        ended.assert(1, &[&format!("cannot read CloneSet {namespace}/web")]);
        let path = format!("/apis/apps.kruise.io/v1alpha1/namespaces/{namespace}/clonesets/web");
        assert!(server.paths().contains(&path), "{:?}", server.paths());
    }
}

#[test]
fn each_kind_is_read_in_the_version_that_is_served_of_it() {
    for (target, kind, path) in [
        ("clone/web", "CloneSet", "v1alpha1/namespaces/shop/clonesets/web"),
        (
            "asts/web",
            "StatefulSet",
            "v1beta1/namespaces/shop/statefulsets/web",
        ),
    ] {
        let server = ApiServer::start(|path| match path {
            "/apis/apps.kruise.io/v1beta1" => {
                let statefulsets =
                    json!({"name": "statefulsets", "namespaced": true, "kind": "StatefulSet", "verbs": []});
                Some((
                    200,
                    json!({"kind": "APIResourceList", "resources": [statefulsets]}),
                ))
            }
            path => old_definition(path),
        });
        let folder = Folder::new();
        let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
        let ended = folder.kruise(&["explain", target, &kubeconfig]);
        ended.assert(1, &[&format!("cannot read {kind} shop/web")]);
        let path = format!("/apis/apps.kruise.io/{path}");
        assert!(server.paths().contains(&path), "{:?}", server.paths());
    }
}

/// A Deployment, a pod of a CloneSet, and a budget for the pods of the Deployment.
fn shop(path: &str) -> Option<(u16, Value)> {
    let owner = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "controller": true});
    let object = match path
        .strip_prefix("/api/v1/namespaces/shop/")
        .or(path.strip_prefix("/apis/"))?
    {
        "apps.kruise.io/v1beta1" => return Some(clonesets()),
        "policy.kruise.io/v1beta1" => {
            json!({"kind": "APIResourceList", "resources": [{"name": "podunavailablebudgets", "verbs": []}]})
        }
        "apps.kruise.io/v1beta1/namespaces/shop/clonesets" => {
            json!({"metadata": {}, "items": [{"metadata": {"name": "web", "namespace": "shop"}}]})
        }
        "pods/web-0" => json!({"kind": "Pod", "metadata": {"name": "web-0", "ownerReferences": [owner]}}),
        "apps/v1/namespaces/shop/deployments/api" => {
            json!({"kind": "Deployment", "metadata": {"name": "api"},
                "spec": {"template": {"metadata": {"labels": {"app": "api"}}}}})
        }
        "apps/v1/namespaces/shop/deployments/lonely" => {
            json!({"kind": "Deployment", "metadata": {"name": "lonely"}, "spec": {"template": {}}})
        }
        "policy.kruise.io/v1beta1/namespaces/shop/podunavailablebudgets" => {
            let spec = json!({"selector": {"matchLabels": {"app": "api"}}});
            json!({"metadata": {}, "items": [{"metadata": {"name": "guard", "namespace": "shop"}, "spec": spec}]})
        }
        _ => return None,
    };
    Some((200, object))
}

#[test]
fn a_pod_leads_to_what_owns_it_and_a_deployment_to_what_guards_its_pods() {
    let server = ApiServer::start(shop);
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
    let ended = folder.kruise(&["explain", "pod/web-0", &kubeconfig]);
    ended.assert(1, &["cannot read CloneSet shop/web"]);
    let ended = folder.kruise(&["explain", "deployment/api", &kubeconfig]);
    ended.assert(1, &["cannot read PodUnavailableBudget shop/guard"]);
    folder
        .kruise(&["explain", "deployment/lonely", &kubeconfig])
        .assert(
            0,
            &["deployments/lonely in namespace shop is not of Kruise, and no PodUnavailableBudget, "],
        );
}

#[test]
fn a_name_that_is_almost_right_is_answered_with_the_right_one() {
    let server = ApiServer::start(shop);
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
    let ended = folder.kruise(&["explain", "clone/wbe", &kubeconfig]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.ends_with("; did you mean web?\n"),
        "{}",
        ended.stderr
    );
    let ended = folder.kruise(&["explain", "clonset/web", &kubeconfig]);
    ended.assert_error("there is no resource type clonset; did you mean cloneset?");
}

#[test]
fn all_objects_of_a_type_are_those_of_the_namespace_or_of_all() {
    let server = ApiServer::start(shop);
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
    folder
        .kruise(&["explain", "clone", &kubeconfig])
        .assert(1, &["cannot read CloneSet shop/web"]);
    folder.kruise(&["explain", "clone", "-A", &kubeconfig]);
    let paths = server.paths();
    for path in ["namespaces/shop/clonesets", "clonesets"] {
        assert!(
            paths.contains(&format!("/apis/apps.kruise.io/v1beta1/{path}")),
            "{paths:?}"
        );
    }
}
