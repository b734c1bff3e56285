//! `kruise explain`: whose namespace it means, and which version of a kind.

use crate::api_server::ApiServer;
use crate::command::Folder;
use crate::start::old_definition;
use serde_json::json;

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

#[test]
fn whoever_asks_for_a_pod_is_told_to_name_its_workload() {
    let ended = Folder::new().kruise(&["explain", "pod/web-x7x7v"]);
    ended.assert(1, &["\"pod\" cannot be explained", "clone/NAME POD"]);
}
