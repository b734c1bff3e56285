//! Programs written with the usual client libraries, against the API on a socket.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube_client::core::WatchEvent;
use kube_client::{Api, Client, Config, Error};
use serde_json::json;

use crate::socket;

fn config_map(name: &str) -> ConfigMap {
    let value = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"k": name}});
    serde_json::from_value(value).unwrap()
}

fn value_of(map: &ConfigMap) -> &str {
    map.data
        .as_ref()
        .and_then(|data| data.get("k"))
        .map_or("", String::as_str)
}

fn code(error: Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

#[test]
fn a_kube_rs_program_lists_watches_and_patches() {
    let (runtime, address) = socket::serve();
    let uri = format!("http://{address}").parse().unwrap();
    runtime.block_on(async {
        let client = Client::try_from(Config::new(uri)).unwrap();
        let limit = Duration::from_mins(3);
        tokio::time::timeout(limit, program(client))
            .await
            .expect("it ends");
    });
}

/// What the next event of a watch shows, which must be a change.
fn modified(event: Option<Result<WatchEvent<ConfigMap>, Error>>) -> String {
    match event {
        Some(Ok(WatchEvent::Modified(map))) => value_of(&map).to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn program(client: Client) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    for name in ["a", "b", "c"] {
        let made = api
            .create(&PostParams::default(), &config_map(name))
            .await
            .unwrap();
        assert!(made.metadata.uid.is_some());
    }
    let twice = api.create(&PostParams::default(), &config_map("a")).await;
    assert_eq!(code(twice.unwrap_err()), 409);

    let first = api
        .list(&ListParams::default().labels("app=web").limit(2))
        .await
        .unwrap();
    let token = first.metadata.continue_.expect("another page");
    let rest = api
        .list(
            &ListParams::default()
                .labels("app=web")
                .limit(2)
                .continue_token(&token),
        )
        .await
        .unwrap();
    assert_eq!((first.items.len(), rest.items.len()), (2, 1));

    let watch = api
        .watch(&WatchParams::default(), &rest.metadata.resource_version.unwrap())
        .await
        .unwrap();
    pin_mut!(watch);
    let patches = [
        (Patch::Merge(json!({"data": {"k": "merged"}})), "merged"),
        (Patch::Strategic(json!({"data": {"k": "strategic"}})), "strategic"),
    ];
    for (patch, expected) in patches {
        let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
        assert_eq!(value_of(&patched), expected);
        assert_eq!(modified(watch.next().await), expected);
    }
    let patch = json!([{"op": "replace", "path": "/data/k", "value": "json"}]).to_string();
    let request = http::Request::patch(format!("{}/a", api.resource_url()))
        .header("content-type", "application/json-patch+json")
        .body(patch.into_bytes());
    let patched: ConfigMap = client.request(request.unwrap()).await.unwrap();
    assert_eq!(value_of(&patched), "json");
    assert_eq!(modified(watch.next().await), "json");

    let stale = api.get("b").await.unwrap();
    let mut newer = stale.clone();
    newer.data = None;
    api.replace("b", &PostParams::default(), &newer).await.unwrap();
    let refused = api.replace("b", &PostParams::default(), &stale).await;
    assert_eq!(code(refused.unwrap_err()), 409);

    api.delete("c", &DeleteParams::foreground()).await.unwrap();
    let streamed = api
        .watch(&WatchParams::default().initial_events(), "0")
        .await
        .unwrap();
    pin_mut!(streamed);
    let mut names = Vec::new();
    loop {
        match streamed.next().await {
            Some(Ok(WatchEvent::Added(map))) => names.extend(map.metadata.name),
            Some(Ok(WatchEvent::Bookmark(mark))) => {
                assert_eq!(mark.metadata.annotations["k8s.io/initial-events-end"], "true");
                break;
            }
            // what goes while the list is streamed
            Some(Ok(WatchEvent::Modified(_) | WatchEvent::Deleted(_))) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(
        names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()),
        "{names:?}"
    );
}

/// A command of Go on the program.
fn go(arguments: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/client-go");
    let mut command = Command::new("go");
    command.args(arguments).current_dir(folder).output().unwrap()
}

#[test]
#[ignore = "needs Go and modules from the network: cargo test -p kruise-sim -- --ignored"]
fn a_client_go_program_lists_watches_patches_and_conflicts() {
    let program = std::env::temp_dir().join(format!("kruise-sim-client-go-{}", std::process::id()));
    let output = program.to_str().unwrap();
    let built = go(&["build", "-o", output, "."]);
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "it does not build: {errors}");
    let (_runtime, address) = socket::serve();
    let output = Command::new(&program)
        .arg(format!("http://{address}"))
        .env("KUBE_FEATURE_WatchListClient", "true")
        .output()
        .unwrap();
    let _gone = std::fs::remove_file(&program);
    let (said, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}{errors}");
    for text in [
        "the informer saw delete b b",
        "a stale update conflicts",
        "a metadata client lists",
    ] {
        assert!(said.contains(text), "{text} is missing:\n{said}{errors}");
    }
    // streamed lists are in use, and did not fall back
    assert!(!errors.contains("falling back"), "{errors}");
}
