//! The world of a playground: an API with what `kruise manifests` prints, and nodes.

use anyhow::{Context, bail};
use jiff::Timestamp;
use kruise_install::manifests;
use kruise_sim::{Api, Config, Method, Options, Outcome, Request, Response, WebhookReply, World};
use serde_json::{Value, json};

/// Zones of the nodes.
pub(super) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// How a world begins.
pub(super) enum Origin {
    /// Nothing, with so many nodes.
    New { nodes: u16 },
    /// A server that has a past.
    Saved(Box<Api>),
}

/// A world in which everything is installed, with the manager's webhooks at a URL.
pub(super) fn world(origin: Origin, options: &Options, webhook_url: &str) -> anyhow::Result<World> {
    let mut world = bare(origin, options)?;
    install(&mut world, webhook_url)?;
    Ok(world)
}

/// How its API is: as kube-apiserver, it notes who sets which fields.
pub(super) fn config() -> Config {
    Config {
        managed_fields: true,
        ..Config::default()
    }
}

/// A world in which nothing is installed: of nodes alone, or as it was saved.
pub(super) fn bare(origin: Origin, options: &Options) -> anyhow::Result<World> {
    let nodes = match origin {
        Origin::New { nodes } => nodes,
        Origin::Saved(api) => {
            return World::over(*api, options, Config::default().seed, Timestamp::now()).context("--stages");
        }
    };
    let mut world = World::new(&config(), options, Timestamp::now()).context("--stages")?;
    for number in 1..=nodes {
        apply(&mut world, &node(number))?;
    }
    Ok(world)
}

/// Applies what `kruise manifests` prints for a manager outside the cluster.
fn install(world: &mut World, webhook_url: &str) -> anyhow::Result<()> {
    for object in manifests::of_a_manager_outside(webhook_url)? {
        apply(world, &object)?;
        // A definition is established and a namespace furnished before something is put into it.
        let now = world.now();
        world.advance(now);
    }
    Ok(())
}

fn node(number: u16) -> Value {
    let zone = ZONES
        .get(usize::from(number - 1) % ZONES.len())
        .copied()
        .unwrap_or_default();
    let name = format!("node-{number}");
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "playground", "topology.kubernetes.io/zone": zone}}})
}

/// Creates an object, or merges it into the one that is there.
fn apply(world: &mut World, object: &Value) -> anyhow::Result<()> {
    let (collection, name) = path_of(object);
    let response = send(world, &Request::new(Method::Post, &collection, Some(object)));
    if response.code != 409 {
        return accepted(&collection, &response);
    }
    let patch = Request::new(Method::Patch, &format!("{collection}/{name}"), Some(object))
        .content_type("application/merge-patch+json");
    accepted(&collection, &send(world, &patch))
}

fn accepted(path: &str, response: &Response) -> anyhow::Result<()> {
    if response.code >= 300 {
        bail!("{path} cannot be installed: {}", response.value());
    }
    Ok(())
}

fn send(world: &mut World, request: &Request) -> Response {
    let mut outcome = world.handle(request);
    loop {
        match outcome {
            Outcome::Respond(response) => return response,
            // Webhooks of a snapshot: they fail before the manager runs.
            Outcome::Call(call) => {
                let reply = WebhookReply::Failed("the playground is starting".to_owned());
                let Some(next) = world.resume(call.id, reply) else {
                    return Response::text(500, "a webhook has no request\n");
                };
                outcome = next;
            }
            Outcome::Watch(id) => {
                world.api().close_watch(id);
                return Response::text(400, "a watch is no answer\n");
            }
        }
    }
}

/// The path of an object's collection, and its name. The kinds of an installation have regular plurals.
fn path_of(object: &Value) -> (String, String) {
    let text = |pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let group = match text("/apiVersion") {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    let plural = format!("{}s", text("/kind").to_lowercase());
    let path = match text("/metadata/namespace") {
        "" => format!("{group}/{plural}"),
        namespace => format!("{group}/namespaces/{namespace}/{plural}"),
    };
    (path, text("/metadata/name").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://127.0.0.1:1";

    fn get(world: &mut World, path: &str) -> Value {
        send(world, &Request::new(Method::Get, path, None)).value()
    }

    #[test]
    fn everything_is_installed_and_nodes_come_up_in_all_zones() {
        let mut world = world(Origin::New { nodes: 4 }, &Options::default(), URL).unwrap();
        world.rest(world.now() + std::time::Duration::from_mins(1));
        let nodes = get(&mut world, "/api/v1/nodes");
        let zones: Vec<&str> = nodes["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| {
                node["metadata"]["labels"]["topology.kubernetes.io/zone"]
                    .as_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(zones, ["zone-a", "zone-b", "zone-c", "zone-a"]);
        assert_eq!(nodes["items"][0]["spec"]["taints"], Value::Null, "it is ready");
        let sets = get(&mut world, "/apis/apps.kruise.io/v1beta1/clonesets");
        assert_eq!(sets["kind"], "CloneSetList");
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let hooks = get(&mut world, path);
        let url = &hooks["items"][0]["webhooks"][0]["clientConfig"]["url"];
        assert!(url.as_str().unwrap().starts_with(URL), "{hooks}");
    }

    #[test]
    fn a_world_with_a_past_gets_the_new_address_of_the_webhooks_and_no_second_node() {
        let mut first = world(
            Origin::New { nodes: 1 },
            &Options::default(),
            "https://127.0.0.1:2",
        )
        .unwrap();
        let saved = Api::restore(&Config::default(), &first.api().snapshot()).unwrap();
        let mut second = world(Origin::Saved(Box::new(saved)), &Options::default(), URL).unwrap();
        assert_eq!(
            get(&mut second, "/api/v1/nodes")["items"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let text = get(&mut second, path).to_string();
        assert!(text.contains(URL) && !text.contains("127.0.0.1:2"), "{text}");
    }
}
