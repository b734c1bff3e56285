//! Every call, with messages that protoc encoded.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cri::{Auth, Exec, Pull, State};

use super::golden;
use super::server::{Answer, Folder, Server};

/// A server that answers the message of this name, and a client.
fn answering(name: &str) -> (Folder, Server, cri::Client) {
    let folder = Folder::new();
    let server = Server::start(&folder, Answer::Message(golden::bytes(name)));
    let client = folder.client();
    (folder, server, client)
}

#[tokio::test]
async fn version_tells_the_runtime() {
    let (_folder, mut server, client) = answering("VersionResponse");
    let version = client.version().await.unwrap();
    assert_eq!(
        (version.name.as_str(), version.version.as_str()),
        ("containerd", "2.1.0")
    );
    assert_eq!(version.api_version, "v1");
    assert_eq!(
        server.called("RuntimeService/Version").await,
        golden::bytes("VersionRequest")
    );
    let headers = server.headers.lock().unwrap().clone();
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(headers["te"], "trailers");
    assert_eq!(headers["grpc-timeout"], "60000m");
}

#[tokio::test]
async fn images_have_ids_tags_digests_and_sizes() {
    let (_folder, mut server, client) = answering("ListImagesResponse");
    let images = client.images().await.unwrap();
    assert_eq!(server.called("ImageService/ListImages").await, b"");
    let [one, two] = images.as_slice() else {
        panic!("{images:?}")
    };
    assert_eq!(one.id, "sha256:1");
    assert_eq!(one.tags, ["reg.example/a:1", "reg.example/b:1"]);
    assert_eq!(one.digests, ["reg.example/a@sha256:1"]);
    assert_eq!((one.bytes, two.bytes), (1 << 41, 1 << 42));
    let tags = client
        .fold_images(0, |count, image| *count += image.tags.len())
        .await;
    assert_eq!(tags, Ok(4));
}

#[tokio::test]
async fn an_image_is_found_or_not() {
    let (_folder, mut server, client) = answering("ImageStatusResponse");
    let image = client.image("reg.example/a:1").await.unwrap().unwrap();
    assert_eq!(image.id, "sha256:1");
    assert_eq!(
        server.called("ImageService/ImageStatus").await,
        golden::bytes("ImageStatusRequest")
    );
    server.set(Answer::Message(Vec::new()));
    assert_eq!(client.image("reg.example/a:1").await, Ok(None));
    server.set(Answer::Status(5, "no such image"));
    assert_eq!(client.image("reg.example/a:1").await, Ok(None));
}

#[tokio::test]
async fn a_pull_sends_credentials_and_the_pod() {
    let (_folder, mut server, client) = answering("PullImageResponse");
    let one = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    for (auth, request) in [
        (
            Auth::Basic {
                username: "u",
                password: "p",
            },
            "PullImageRequest.basic",
        ),
        (Auth::Identity("i"), "PullImageRequest.identity"),
        (Auth::Registry("r"), "PullImageRequest.registry"),
    ] {
        let pull = Pull {
            image: "reg.example/a:1",
            auth: Some(auth),
            labels: one("l", "1"),
            annotations: one("a", "2"),
        };
        assert_eq!(
            client.pull(&pull, Duration::from_mins(1)).await.unwrap(),
            "sha256:1"
        );
        assert_eq!(
            server.called("ImageService/PullImage").await,
            golden::bytes(request),
            "{request}"
        );
    }
    // An anonymous one for no pod still has a pod.
    let pull = Pull {
        image: "a",
        ..Pull::default()
    };
    client.pull(&pull, Duration::from_mins(1)).await.unwrap();
    assert_eq!(
        server.called("ImageService/PullImage").await,
        b"\x0a\x03\x0a\x01a\x1a\x00"
    );
}

#[tokio::test]
async fn filesystems_of_images_and_containers_tell_what_is_used() {
    let (_folder, mut server, client) = answering("ImageFsInfoResponse");
    let all = client.filesystems().await.unwrap();
    assert_eq!(server.called("ImageService/ImageFsInfo").await, b"");
    let ([one, two], [containers]) = (all.images.as_slice(), all.containers.as_slice()) else {
        panic!("{all:?}")
    };
    assert_eq!(containers.mountpoint, Path::new("/containers"));
    assert_eq!(one.mountpoint, Path::new("/images"));
    assert_eq!((one.used_bytes, one.used_inodes), (5 << 30, Some(9)));
    assert_eq!(two.used_inodes, None);
}

#[tokio::test]
async fn containers_of_a_pod_are_listed() {
    let (_folder, mut server, client) = answering("ListContainersResponse");
    let all = client.containers_of_pod("u1").await.unwrap();
    assert_eq!(
        server.called("RuntimeService/ListContainers").await,
        golden::bytes("ListContainersRequest")
    );
    let [one, two] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        (one.id.as_str(), one.name.as_str(), one.attempt),
        ("c0", "main", 0)
    );
    assert_eq!((one.state, two.state), (State::Exited, State::Running));
    assert!(one.created < two.created);
    assert_eq!(one.labels[cri::labels::CONTAINER_NAME], "main");
    assert_eq!(two.annotations["io.kubernetes.container.restartCount"], "1");
}

#[tokio::test]
async fn a_container_has_times_an_end_and_annotations() {
    let (_folder, mut server, client) = answering("ContainerStatusResponse");
    let status = client.container("c1").await.unwrap();
    assert_eq!(
        server.called("RuntimeService/ContainerStatus").await,
        golden::bytes("ContainerStatusRequest")
    );
    let container = &status.container;
    assert_eq!(
        (container.id.as_str(), container.name.as_str(), container.attempt),
        ("c1", "main", 1)
    );
    assert_eq!((container.state, status.exit_code), (State::Exited, -9));
    assert_eq!(container.created.as_second(), 1_700_000_000);
    assert_eq!(status.started.unwrap().as_second(), 1_700_000_001);
    assert_eq!(status.finished.unwrap().as_second(), 1_700_000_002);
    assert_eq!(
        (status.image.as_str(), status.image_ref.as_str()),
        ("reg.example/a:1", "reg.example/a@sha256:1")
    );
    assert_eq!(
        (status.reason.as_str(), status.message.as_str()),
        ("OOMKilled", "out of memory")
    );
    assert_eq!(container.labels[cri::labels::POD_UID], "u1");
    assert_eq!(container.annotations["io.kubernetes.container.hash"], "c0ffee");
}

#[tokio::test]
async fn a_command_leaves_an_exit_code_and_the_beginning_of_its_output() {
    let (_folder, mut server, client) = answering("ExecSyncResponse");
    let command = ["echo".to_owned(), "two words".to_owned()];
    let mut exec = Exec {
        container: "c1",
        command: &command,
        timeout: Duration::from_millis(2001),
        output_bytes: 100,
    };
    let output = client.exec(&exec).await.unwrap();
    assert_eq!(
        server.called("RuntimeService/ExecSync").await,
        golden::bytes("ExecSyncRequest")
    );
    // The runtime's own three seconds, and a minute to answer.
    assert_eq!(server.headers.lock().unwrap()["grpc-timeout"], "63000m");
    assert_eq!(output.exit_code, 7);
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"out\xff"[..], &b"err"[..])
    );
    exec.output_bytes = 2;
    let output = client.exec(&exec).await.unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"ou"[..], &b"er"[..])
    );
}

#[tokio::test]
async fn a_container_is_stopped_with_its_grace() {
    let (_folder, mut server, client) = answering("VersionRequest");
    // What the answer holds is of no interest.
    client.stop("c1", Duration::from_secs(30)).await.unwrap();
    assert_eq!(
        server.called("RuntimeService/StopContainer").await,
        golden::bytes("StopContainerRequest")
    );
    assert_eq!(server.headers.lock().unwrap()["grpc-timeout"], "150000m");
    server.set(Answer::Message(Vec::new()));
    client.stop("c1", Duration::ZERO).await.unwrap();
}
