//! `inject`: what has a pod, and what has none.

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::command::Folder;

const SETS: &str = "kind: SidecarSet\nmetadata: {name: logs}\nspec: {selector: {matchLabels: {app: web}}, \
                    containers: [{name: agent, image: 'agent:1'}]}\n";

fn deployment() -> Value {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "m:1"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}})
}

#[test]
fn the_pod_of_a_workload_gets_what_its_template_gets() {
    let folder = Folder::new();
    let sets = folder.file("sets.yaml", SETS);
    let service =
        json!({"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}});
    let file = folder.file("web.yaml", &format!("{}\n---\n{service}\n", deployment()));
    let ended = folder.kruise(&["inject", "-f", &file, "--with", &sets]);
    ended.assert(
        0,
        &[
            "# sidecarsets/logs: injected\n",
            "generateName: web-",
            "name: agent",
            "name: main",
        ],
    );
    let file = folder.file("service.yaml", &service.to_string());
    let ended = folder.kruise(&["inject", "-f", &file, "--with", &sets]);
    ended.assert_error(&format!(
        "in {file}: the Service web has no pod; give a Pod, or a workload such as a CloneSet or a Deployment"
    ));
}

#[test]
fn a_workload_of_the_cluster_is_read_by_its_name() {
    let server = ApiServer::start(|path| match path {
        "/apis/apps/v1/namespaces/shop/deployments/web" => Some((200, deployment())),
        path if path.ends_with("/sidecarsets") => Some((200, json!({"metadata": {}, "items": []}))),
        _ => None,
    });
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
    let ended = folder.kruise(&["inject", "deployment/web", &kubeconfig]);
    assert!(
        server
            .paths()
            .iter()
            .any(|path| path.ends_with("/deployments/web")),
        "{:?}",
        server.paths()
    );
    assert!(!ended.stderr.contains("has no pod"), "{}", ended.stderr);
    let ended = folder.kruise(&["inject", "deployment/wbe", &kubeconfig]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
}
