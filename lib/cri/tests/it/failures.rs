//! What does not go well.

use std::time::Duration;

use cri::{Error, Exec, Limits, Pull};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::timeout;

use super::golden;
use super::server::{Answer, Event, Folder, Part, Server, framed, whole};

const SHORT: Duration = Duration::from_millis(50);

/// Limits of a client that does not wait, for calls that are never answered.
fn impatient() -> Limits {
    Limits {
        containers: SHORT,
        images: SHORT,
        stop: SHORT,
        ..Limits::default()
    }
}

fn pull() -> Pull<'static> {
    Pull {
        image: "reg.example/a:1",
        ..Pull::default()
    }
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_unavailable_and_named() {
    let folder = Folder::new();
    let error = folder.client().version().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let text = error.to_string();
    let socket = format!("unix://{}", folder.socket().display());
    assert!(text.contains(&socket) && text.contains("No such file"), "{text}");
}

#[tokio::test]
async fn a_client_reconnects_when_the_runtime_comes_back() {
    let folder = Folder::new();
    let client = folder.client();
    let version = || Answer::Message(golden::bytes("VersionResponse"));
    assert!(client.version().await.is_err());
    for _ in 0..3 {
        let server = Server::start(&folder, version());
        client.version().await.unwrap();
        server.vanish().await;
        let error = client.version().await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
    // A file without anybody behind it.
    drop(UnixListener::bind(folder.socket()).unwrap());
    let error = client.version().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    std::fs::remove_file(folder.socket()).unwrap();
    let _server = Server::start(&folder, version());
    client.version().await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_connection_is_noticed_without_a_call_each_time_and_not_before() {
    let folder = Folder::new();
    let client = folder.client();
    let mut connection = client.connection();
    for _ in 0..2 {
        let server = Server::start(&folder, Answer::Message(golden::bytes("VersionResponse")));
        client.version().await.unwrap();
        assert!(timeout(SHORT, connection.ended()).await.is_err(), "it is open");
        server.vanish().await;
        timeout(Duration::from_mins(1), connection.ended()).await.unwrap();
    }
    assert!(client.version().await.is_err());
    assert!(
        timeout(SHORT, connection.ended()).await.is_err(),
        "there was none"
    );
    assert!(
        timeout(SHORT, client.connection().ended()).await.is_err(),
        "those that ended before do not count"
    );
}

#[tokio::test]
async fn a_runtime_that_vanishes_during_a_call_is_unavailable() {
    let folder = Folder::new();
    let client = folder.client();
    let hanging = vec![Part::Data(framed(b"ab")[..3].to_vec()), Part::Hang];
    for answer in [Answer::Never, Answer::Frames(hanging)] {
        let mut server = Server::start(&folder, answer);
        let running = tokio::spawn({
            let client = client.clone();
            async move { client.pull(&pull(), Duration::from_mins(1)).await }
        });
        server.called("ImageService/PullImage").await;
        server.vanish().await;
        let error = running.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn every_call_has_a_time_limit() {
    let folder = Folder::new();
    let server = Server::start(&folder, Answer::Never);
    let client = folder.limited(impatient());
    let command = ["true".to_owned()];
    let exec = Exec {
        container: "c",
        command: &command,
        timeout: SHORT,
        output_bytes: 1,
    };
    let errors = [
        client.version().await.unwrap_err(),
        client.images().await.unwrap_err(),
        client.image("a").await.unwrap_err(),
        client.filesystems().await.unwrap_err(),
        client.pull(&pull(), SHORT).await.unwrap_err(),
        client.containers_of_pod("u").await.unwrap_err(),
        client.container("c").await.unwrap_err(),
        client.exec(&exec).await.unwrap_err(),
        client.stop("c", Duration::ZERO).await.unwrap_err(),
    ];
    for error in &errors {
        assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    }
    // The connection is not to blame.
    server.set(Answer::Message(golden::bytes("VersionResponse")));
    folder.client().version().await.unwrap();
}

#[tokio::test]
async fn a_call_that_times_out_is_cancelled_in_the_runtime() {
    let folder = Folder::new();
    let mut server = Server::start(&folder, Answer::Never);
    let client = folder.client();
    // On a slow machine the call is over before it gets there.
    let mut limit = SHORT;
    while server.events.try_recv().is_err() {
        limit *= 2;
        let error = client.pull(&pull(), limit).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    }
    assert_eq!(server.events.recv().await, Some(Event::Cancelled));
}

#[tokio::test]
async fn an_answer_that_stops_half_way_times_out() {
    let folder = Folder::new();
    let hanging = vec![Part::Data(framed(b"ab")[..6].to_vec()), Part::Hang];
    let _server = Server::start(&folder, Answer::Frames(hanging));
    let error = folder.limited(impatient()).images().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
}

#[tokio::test]
async fn a_dropped_pull_is_cancelled_in_the_runtime() {
    let folder = Folder::new();
    let mut server = Server::start(&folder, Answer::Never);
    let client = folder.client();
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.pull(&pull(), Duration::from_mins(10)).await }
    });
    server.called("ImageService/PullImage").await;
    running.abort();
    assert_eq!(server.events.recv().await, Some(Event::Cancelled));
    // Other calls share the connection and go on.
    server.set(Answer::Message(golden::bytes("VersionResponse")));
    client.version().await.unwrap();
}

#[tokio::test]
async fn errors_of_the_runtime_keep_its_text() {
    let folder = Folder::new();
    let server = Server::start(&folder, Answer::Never);
    let client = folder.client();
    for (code, text, error) in [
        (4, "took%20too%20long", Error::TimedOut("took too long".into())),
        (
            5,
            "no such container",
            Error::NotFound("no such container".into()),
        ),
        (
            12,
            "unknown service",
            Error::Unimplemented("unknown service".into()),
        ),
        (14, "restarting", Error::Unavailable("restarting".into())),
        (
            2,
            "disk full",
            Error::Other {
                code: 2,
                message: "disk full".into(),
            },
        ),
    ] {
        server.set(Answer::Status(code, text));
        assert_eq!(client.container("c").await.unwrap_err(), error);
        assert_eq!(
            client.pull(&pull(), Duration::from_mins(1)).await.unwrap_err(),
            error
        );
    }
    server.set(Answer::Status(2, "pull access denied, repository does not exist"));
    let error = client.pull(&pull(), Duration::from_mins(1)).await.unwrap_err();
    assert!(matches!(error, Error::CredentialsRefused(_)), "{error:?}");
}

#[tokio::test]
async fn malformed_answers_are_errors() {
    let folder = Folder::new();
    let server = Server::start(&folder, Answer::Never);
    let client = folder.client();
    let ok = || Part::Trailers(vec![("grpc-status", "0")]);
    let data = |bytes: &[u8]| Part::Data(bytes.to_vec());
    for (what, parts) in [
        ("nothing", vec![]),
        ("no message", vec![ok()]),
        ("no status", vec![data(&framed(b""))]),
        ("half a header", vec![data(b"\0\0"), ok()]),
        ("half a message", vec![data(&framed(b"ab")[..6]), ok()]),
        ("two messages", vec![data(&framed(b"")), data(&framed(b"")), ok()]),
        ("compressed", vec![data(b"\x01\0\0\0\0"), ok()]),
        ("no protobuf", vec![data(&framed(b"\xff\xff")), ok()]),
        ("no text", whole(b"\x0a\x01\xff")),
        ("a field that is cut", whole(b"\x0a\x7fa")),
        ("a field of another type", whole(b"\x08\x01")),
        ("a group", whole(b"\x0b\x0c")),
        (
            "a status that is no number",
            vec![data(&framed(b"")), Part::Trailers(vec![("grpc-status", "ok")])],
        ),
    ] {
        server.set(Answer::Frames(parts.clone()));
        for error in [
            client.images().await.map(drop),
            client.image("a").await.map(drop),
            client.containers_of_pod("u").await.map(drop),
            client.container("c").await.map(drop),
        ] {
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Malformed(_)), "{what}: {error:?}");
        }
    }
    server.set(Answer::Status(0, ""));
    assert!(matches!(client.image("a").await, Err(Error::Malformed(_))));
    // Whole, but without what every runtime sends.
    server.set(Answer::Message(Vec::new()));
    assert!(matches!(client.version().await, Err(Error::Malformed(_))));
    assert!(matches!(client.container("c").await, Err(Error::Malformed(_))));
    assert_eq!(client.images().await, Ok(Vec::new()));
}

/// Details are for machines; some gRPC libraries expect that they are well-formed.
#[tokio::test]
async fn malformed_details_of_an_error_are_nothing_to_us() {
    let folder = Folder::new();
    let trailers = vec![
        ("grpc-status", "2"),
        ("grpc-message", "a"),
        ("grpc-status-details-bin", "%%%"),
    ];
    let _server = Server::start(&folder, Answer::Frames(vec![Part::Trailers(trailers)]));
    let error = folder.client().container("c").await.unwrap_err();
    assert_eq!(
        error,
        Error::Other {
            code: 2,
            message: "a".into()
        }
    );
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_too_large_and_read_no_further() {
    let folder = Folder::new();
    let limits = Limits {
        message_bytes: 1000,
        containers: Duration::from_mins(1),
        images: Duration::from_mins(1),
        ..Limits::default()
    };
    let fitting = {
        // A field that nobody knows, with 996 bytes.
        let mut bytes = vec![0xfa, 0x01, 0xe4, 0x07];
        bytes.resize(1000, b'a');
        bytes
    };
    let mut server = Server::start(&folder, Answer::Message(fitting.clone()));
    let client = folder.limited(limits);
    assert_eq!(client.images().await, Ok(Vec::new()));
    assert_eq!(client.image("a").await, Ok(None));
    let large = [&fitting[..], b"a"].concat();
    let text = "the answer is too large: 1001 bytes, 1000 are the limit";
    server.set(Answer::Message(large.clone()));
    assert_eq!(client.images().await.unwrap_err().to_string(), text);
    assert_eq!(client.image("a").await.unwrap_err().to_string(), text);
    while server.events.try_recv().is_ok() {}
    // The rest does not have to come.
    server.set(Answer::Frames(vec![
        Part::Data(framed(&large)[..5].to_vec()),
        Part::Hang,
    ]));
    assert_eq!(client.images().await.unwrap_err().to_string(), text);
    server.called("ImageService/ListImages").await;
    assert_eq!(server.events.recv().await, Some(Event::Cancelled));
}

#[tokio::test]
async fn another_protocol_at_the_socket_is_malformed_or_unavailable() {
    for greeting in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "",
    ] {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.socket()).unwrap();
        let server = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                // The client may be gone already.
                let _gone = stream.write_all(greeting.as_bytes()).await;
            }
        });
        let error = folder.client().version().await.unwrap_err();
        assert!(
            matches!(error, Error::Malformed(_) | Error::Unavailable(_)),
            "{greeting:?}: {error:?}"
        );
        server.abort();
    }
}

#[tokio::test]
async fn calls_at_the_same_time_share_a_connection() {
    let folder = Folder::new();
    let mut server = Server::start(&folder, Answer::Never);
    let client = folder.client();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.pull(&pull(), Duration::from_mins(1)).await }
    });
    server.called("ImageService/PullImage").await;
    server.set(Answer::Message(golden::bytes("VersionResponse")));
    let calls = (0..50).map(|_| client.version());
    let versions = futures::future::join_all(calls).await;
    assert!(versions.iter().all(Result::is_ok));
    assert!(!waiting.is_finished());
    waiting.abort();
}
