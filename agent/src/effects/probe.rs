//! Probes: a command in the container, or a request or a connection to its pod.

use std::collections::BTreeMap;
use std::time::Duration;

use cri::{Container, Error, Exec, State, labels};
use http::Uri;
use jiff::Timestamp;
use kruise_agent_core::{
    ContainerId, Failure, Handler, Life, ProbeResult, ProbeRun, ProbedContainer, ProbedContainers,
};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::failure::{NO_RUNTIME, failure};
use super::get::{Answer, Target};
use crate::detect::Runtime;
use crate::runtime::Client;

/// How probes call themselves.
const AGENT: &str = "kube-probe";
/// How much of what a container answers is read.
const ANSWER: usize = 10 << 10;
/// Requests after the first one that redirects may lead to.
const REDIRECTS: usize = 10;
/// What the runtime may take to end a command that is out of time.
const END: Duration = Duration::from_secs(2);

/// The newest container of each name in the pods, of all runtimes; with its start if it runs and that is not known.
pub(super) async fn containers(
    runtimes: &[Runtime],
    wanted: &ProbedContainers,
) -> Result<Vec<ProbedContainer>, Failure> {
    if runtimes.is_empty() {
        return Err(Failure::Unavailable(NO_RUNTIME.into()));
    }
    let mut all = Vec::new();
    for runtime in runtimes {
        let mut listed = Vec::new();
        let is_wanted = |one: &ProbedContainer| wanted.pods.contains(&one.pod);
        let mut add = |one| listed.extend(narrow(&runtime.name, one).filter(is_wanted));
        let passed = runtime.client.containers(&[], &mut add).await;
        passed.map_err(|error| failure(&error))?;
        let mut found = newest(listed);
        for container in &mut found {
            if container.life == Life::Running && !wanted.known.contains(&container.container) {
                match runtime.client.container(&container.container.id).await {
                    Ok(status) => container.started = status.started,
                    // It has ended since it was listed.
                    Err(Error::NotFound(_)) => container.life = Life::Ended,
                    // One that cannot be read does not keep the others from being probed. Its start is not known.
                    Err(error) => {
                        if let problem @ Failure::Unavailable(_) = failure(&error) {
                            return Err(problem);
                        }
                    }
                }
            }
        }
        all.append(&mut found);
    }
    Ok(newest(all))
}

fn narrow(runtime: &str, mut container: Container) -> Option<ProbedContainer> {
    let pod = container.labels.remove(labels::POD_UID)?;
    Some(ProbedContainer {
        pod: pod.into(),
        name: container.name.into(),
        container: ContainerId {
            runtime: runtime.into(),
            id: container.id.into(),
        },
        created: container.created,
        started: None,
        life: match container.state {
            State::Created | State::Unknown => Life::Created,
            State::Running => Life::Running,
            State::Exited => Life::Ended,
        },
    })
}

/// The newest one of each pod and name.
fn newest(all: Vec<ProbedContainer>) -> Vec<ProbedContainer> {
    let mut newest: BTreeMap<(Box<str>, Box<str>), ProbedContainer> = BTreeMap::new();
    let rank = |one: &ProbedContainer| -> (Timestamp, ContainerId) { (one.created, one.container.clone()) };
    for one in all {
        let key = (one.pod.clone(), one.name.clone());
        if newest.get(&key).is_none_or(|known| rank(known) < rank(&one)) {
            newest.insert(key, one);
        }
    }
    newest.into_values().collect()
}

/// Runs a probe. A command needs the client of its runtime.
pub(super) async fn run(client: Option<Client>, run: ProbeRun) -> ProbeResult {
    let limit = run.timeout;
    let late = || format!("it did not end within {} s", limit.as_secs_f32());
    let result = match run.handler {
        Handler::Exec(command) => return exec(client, &run.container.id, &command, limit).await,
        Handler::Http {
            scheme,
            host,
            port,
            path,
            headers,
        } => {
            let first = Request {
                is_tls: &*scheme == "https",
                port,
                path: path.into(),
                headers: headers.into(),
            };
            timeout(limit, get(&host, first)).await
        }
        Handler::Tcp { host, port } => {
            let connected = async {
                let connected = TcpStream::connect((&*host, port)).await;
                connected
                    .map(|_| String::new())
                    .map_err(|error| error.to_string())
            };
            timeout(limit, connected).await
        }
    };
    match result.unwrap_or_else(|_| Err(late())) {
        Ok(answer) => ProbeResult::Succeeded(answer.into()),
        Err(problem) => ProbeResult::Failed(problem.into()),
    }
}

async fn exec(client: Option<Client>, id: &str, command: &[Box<str>], limit: Duration) -> ProbeResult {
    let Some(client) = client else {
        return ProbeResult::NotRun(Failure::Unavailable(NO_RUNTIME.into()));
    };
    let command: Vec<String> = command.iter().map(ToString::to_string).collect();
    let exec = Exec {
        container: id,
        command: &command,
        timeout: limit,
        output_bytes: ANSWER,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into();
    match timeout(limit.saturating_add(END), client.exec(&exec)).await {
        Ok(Ok(output)) if output.exit_code == 0 => ProbeResult::Succeeded(text(&output.stdout)),
        Ok(Ok(output)) => ProbeResult::Failed(text(&output.stderr)),
        Ok(Err(Error::TimedOut(_))) | Err(_) => {
            let message = format!("the command did not end within {} s", limit.as_secs_f32());
            ProbeResult::Failed(message.into())
        }
        Ok(Err(error)) => ProbeResult::NotRun(failure(&error)),
    }
}

/// A request to the pod.
struct Request {
    is_tls: bool,
    port: u16,
    path: String,
    headers: Vec<(Box<str>, Box<str>)>,
}

/// Requests a page; follows redirects on the same host. One to another host ends it, and counts as success.
async fn get(host: &str, mut request: Request) -> Result<String, String> {
    for _ in 0..=REDIRECTS {
        let target = Target {
            is_tls: request.is_tls,
            host,
            port: request.port,
        };
        let answer = target.get(&request.path, &request.headers, AGENT, ANSWER).await?;
        match redirected(host, &request, &answer) {
            Some(next) => request = next,
            None => return judge(&answer),
        }
    }
    Err(format!("it redirects more than {REDIRECTS} times"))
}

fn judge(answer: &Answer) -> Result<String, String> {
    if (200..400).contains(&answer.code) {
        Ok(String::from_utf8_lossy(&answer.body).into())
    } else {
        // Tools match on it.
        Err(format!("HTTP probe failed with statuscode: {}", answer.code))
    }
}

/// The request that a response asks for instead, if it goes to the same host.
fn redirected(host: &str, before: &Request, answer: &Answer) -> Option<Request> {
    if !matches!(answer.code, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.location.as_deref()?;
    let scheme = if before.is_tls { "https:" } else { "http:" };
    let absolute = if location.starts_with("//") {
        Some(format!("{scheme}{location}"))
    } else {
        location.contains("://").then(|| location.to_owned())
    };
    if let Some(absolute) = absolute {
        let uri: Uri = absolute.parse().ok()?;
        let is_tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let there = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        return there.eq_ignore_ascii_case(host).then(|| Request {
            is_tls,
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            headers: before
                .headers
                .iter()
                .filter(|(name, _)| !name.eq_ignore_ascii_case("host"))
                .cloned()
                .collect(),
        });
    }
    let page = before.path.split(['?', '#']).next().unwrap_or_default();
    let path = if location.starts_with('/') {
        location.to_owned()
    } else if location.starts_with('?') {
        format!("{page}{location}")
    } else {
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{location}")
    };
    let path = path.split('#').next().unwrap_or_default().to_owned();
    Some(Request {
        path,
        headers: before.headers.clone(),
        ..*before
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A pod that gives these responses, one to each connection; and what it was asked.
    async fn pod(responses: &[&str]) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let responses: Vec<String> = responses
            .iter()
            .map(|text| text.replace("PORT", &port.to_string()))
            .collect();
        let server = tokio::spawn(async move {
            let mut asked = Vec::new();
            for response in responses {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = String::new();
                while !text.ends_with("\r\n\r\n") {
                    text.push(char::from(stream.read_u8().await.unwrap()));
                }
                asked.push(text);
                stream.write_all(response.as_bytes()).await.unwrap();
            }
            asked
        });
        (port, server)
    }

    fn probe(handler: Handler) -> ProbeRun {
        ProbeRun {
            run: kruise_agent_core::RunId(1),
            container: ContainerId {
                runtime: "containerd".into(),
                id: "c".into(),
            },
            handler,
            timeout: Duration::from_secs(30),
        }
    }

    fn http(port: u16, headers: &[(&str, &str)]) -> Handler {
        Handler::Http {
            scheme: "http".into(),
            host: "127.0.0.1".into(),
            port,
            path: "/a/b?c".into(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
        }
    }

    async fn asked(responses: &[&str], headers: &[(&str, &str)]) -> (ProbeResult, Vec<String>) {
        let (port, server) = pod(responses).await;
        let result = run(None, probe(http(port, headers))).await;
        (result, server.await.unwrap())
    }

    fn succeeded(answer: &str) -> ProbeResult {
        ProbeResult::Succeeded(answer.into())
    }

    #[tokio::test]
    async fn s5_8_3_responses_up_to_399_succeed_with_their_body_and_others_fail_with_their_code() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let (result, asked_for) = asked(&[ok], &[("X-A", "1"), ("Host", "pod.example")]).await;
        assert_eq!(result, succeeded("hello"));
        for line in [
            "GET /a/b?c HTTP/1.1",
            "x-a: 1",
            "host: pod.example",
            "user-agent: kube-probe",
            "accept: */*",
        ] {
            assert!(
                asked_for[0].lines().any(|one| one == line),
                "{line}\n{}",
                asked_for[0]
            );
        }
        let (result, _) = asked(&["HTTP/1.1 304 Same\r\n\r\n"], &[]).await;
        assert_eq!(result, succeeded(""));
        for code in [400, 404, 500] {
            let response = format!("HTTP/1.1 {code} No\r\nContent-Length: 2\r\n\r\nno");
            let (result, _) = asked(&[&response], &[]).await;
            let message = format!("HTTP probe failed with statuscode: {code}");
            assert_eq!(result, ProbeResult::Failed(message.into()));
        }
    }

    #[tokio::test]
    async fn a_long_body_is_read_in_part_and_headers_may_be_left_out() {
        let long = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n{}",
            "x".repeat(ANSWER)
        );
        let (result, asked_for) = asked(&[&long], &[("User-Agent", ""), ("Accept", "text/plain")]).await;
        assert_eq!(result, succeeded(&"x".repeat(ANSWER)));
        assert!(!asked_for[0].contains("user-agent"), "{}", asked_for[0]);
        assert!(asked_for[0].contains("accept: text/plain"), "{}", asked_for[0]);
    }

    #[tokio::test]
    async fn redirects_are_followed_on_the_same_host_only() {
        let to = |location: &str| {
            format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
        };
        let end = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
        for (location, path) in [
            ("/x?y#z", "/x?y"),
            ("x", "/a/x"),
            ("?z", "/a/b?z"),
            ("http://127.0.0.1:PORT/x", "/x"),
            ("//127.0.0.1:PORT", "/"),
        ] {
            let (result, asked_for) = asked(&[&to(location), end], &[]).await;
            assert_eq!(
                result,
                ProbeResult::Failed("HTTP probe failed with statuscode: 500".into())
            );
            assert!(
                asked_for[1].starts_with(&format!("GET {path} ")),
                "{location}: {}",
                asked_for[1]
            );
        }
        for location in ["http://elsewhere.example/", "ftp://127.0.0.1/", "http://"] {
            let (result, _) = asked(&[&to(location)], &[]).await;
            assert_eq!(result, succeeded(""), "{location}");
        }
        let circle = to("/");
        let (result, _) = asked(&[&*circle; REDIRECTS + 1], &[]).await;
        assert_eq!(
            result,
            ProbeResult::Failed("it redirects more than 10 times".into())
        );
    }

    #[tokio::test]
    async fn s5_8_3_a_connection_succeeds_if_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = || {
            let host = "127.0.0.1".into();
            probe(Handler::Tcp { host, port })
        };
        assert_eq!(run(None, connect()).await, succeeded(""));
        drop(listener);
        for handler in [connect(), probe(http(port, &[]))] {
            let ProbeResult::Failed(message) = run(None, handler).await else {
                panic!("nobody listens");
            };
            assert!(message.contains("refused"), "{message}");
        }
    }

    #[tokio::test]
    async fn a_probe_that_takes_too_long_has_failed_and_a_command_without_a_runtime_was_not_run() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let mut late = probe(http(port, &[]));
        late.timeout = Duration::from_millis(20);
        let message = "it did not end within 0.02 s".into();
        assert_eq!(run(None, late).await, ProbeResult::Failed(message));
        let exec = probe(Handler::Exec(["true".into()].into()));
        let not_run = ProbeResult::NotRun(Failure::Unavailable(NO_RUNTIME.into()));
        assert_eq!(run(None, exec).await, not_run);
    }
}
