//! The network between one manager process and the API server.
//!
//! A request takes a while to arrive and its answer a while to come back; on both ways it can be lost. A manager that
//! gives up waiting does not stop its request. What a manager can know is kept track of, because that is what its
//! actions are judged by: see [`Process::floors`].

mod process;
mod watch;

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kruise_sim::{Method, Request, Response};
use kube_client::client::Body;
use serde_json::json;
use tokio::{sync::oneshot, time::Instant};

use crate::{
    cluster::{Cluster, Reply, State},
    history::{Loss, Trouble, Watched},
    oracle::{Violation, Write},
    play::Judged,
    random::Random,
};

pub use process::{Floors, Process, ProcessId, Sent};

/// Body of an answer.
type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// Managers wait this long for an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The way of one process to the API server.
pub fn client(cluster: &Arc<Cluster>, process: ProcessId) -> kube_client::Client {
    let cluster = cluster.clone();
    let service =
        tower::service_fn(move |request: http::Request<Body>| carry(cluster.clone(), process, request));
    kube_client::Client::new(service, "default")
}

/// What becomes of a request.
struct Fate {
    out: Duration,
    back: Duration,
    lost: Option<Loss>,
    reply_lost: Option<Loss>,
    refused: Option<u16>,
}

impl Fate {
    fn draw(state: &mut State, process: ProcessId, request: &Request) -> Self {
        let mut random = state.random.clone();
        let mut fate = Self {
            out: ms(random.between(1, 4)),
            back: ms(random.between(1, 4)),
            lost: None,
            reply_lost: None,
            refused: None,
        };
        let writes = request.method != Method::Get;
        let now = Instant::now();
        let troubles: Vec<_> = state
            .troubles
            .iter()
            .filter(|(until, _)| *until > now)
            .cloned()
            .collect();
        for (until, trouble) in troubles {
            fate.meets(
                state,
                &trouble,
                until - now,
                writes,
                process,
                request,
                &mut random,
            );
        }
        state.random = random;
        fate
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `draw`")]
    fn meets(
        &mut self,
        state: &mut State,
        trouble: &Trouble,
        left: Duration,
        writes: bool,
        process: ProcessId,
        request: &Request,
        random: &mut Random,
    ) {
        let fired = match trouble {
            Trouble::LostReplies(percent, loss) if writes && random.percent(*percent) => {
                self.reply_lost = Some(*loss);
                "lost reply"
            }
            Trouble::LostRequests(percent, loss) if random.percent(*percent) => {
                self.lost = Some(*loss);
                "lost request"
            }
            Trouble::Refused(percent, code) if (*code != 409 || writes) && random.percent(*percent) => {
                self.refused = Some(*code);
                match code {
                    409 => "refused with 409",
                    429 => "refused with 429",
                    500 => "refused with 500",
                    _ => "refused with 503",
                }
            }
            Trouble::Slow(most) => {
                self.out += ms(random.between(0, *most));
                self.back += ms(random.between(0, *most));
                "slow"
            }
            Trouble::Isolated if state.isolated == Some(process) => {
                if request.path.contains("/leases") {
                    self.lost = Some(Loss::Silent);
                } else {
                    self.out += left;
                }
                "isolated leader"
            }
            _ => return,
        };
        state.counters.fired(fired);
    }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset")
}

/// Carries a request there and its answer back.
async fn carry(
    cluster: Arc<Cluster>,
    process: ProcessId,
    request: http::Request<Body>,
) -> Result<http::Response<Answer>, io::Error> {
    let (agent, request) = read(request).await?;
    let (fate, sent) = cluster.look(|state| {
        let fate = Fate::draw(state, process, &request);
        let sent = state
            .processes
            .get_mut(&process)
            .map(|of| of.sends(&agent, &request));
        if state.judged == Judged::Yes {
            state.notice_haste(process);
            if let Some(sent) = sent.as_ref().filter(|_| process::creates_pod(&request)) {
                state.notice_name(process, &agent, &request, sent);
            }
        }
        (fate, sent)
    });
    let Some(sent) = sent else {
        return std::future::pending().await;
    };
    let _waiting = process::Waiting::new(&cluster, process, &agent, &request, &sent);
    if fate.out + fate.back < PATIENCE {
        return journey(&cluster, process, &agent, &request, &fate, &sent).await;
    }
    // The request outlives the patience of who sent it.
    let (reply, replied) = oneshot::channel();
    let (cluster, agent, sent) = (cluster.clone(), agent.clone(), sent.clone());
    tokio::spawn(async move {
        let result = journey(&cluster, process, &agent, &request, &fate, &sent).await;
        // Nobody may be waiting any more.
        let _ = reply.send(result);
    });
    match replied.await {
        Ok(result) => result,
        Err(_) => Err(broken()),
    }
}

async fn lost(loss: Loss) -> Result<http::Response<Answer>, io::Error> {
    match loss {
        Loss::Broken => Err(broken()),
        Loss::Silent => std::future::pending().await,
    }
}

async fn journey(
    cluster: &Arc<Cluster>,
    process: ProcessId,
    agent: &str,
    request: &Request,
    fate: &Fate,
    sent: &Arc<Sent>,
) -> Result<http::Response<Answer>, io::Error> {
    tokio::time::sleep(fate.out).await;
    if let Some(loss) = fate.lost {
        return lost(loss).await;
    }
    if cluster.look(|state| state.is_dead(process)) {
        return std::future::pending().await;
    }
    let reply = match fate.refused {
        Some(code) => Reply::Response(refusal(code)),
        None => cluster.arrive(process, agent, request, sent).await,
    };
    tokio::time::sleep(fate.back).await;
    if let Some(loss) = fate.reply_lost {
        return lost(loss).await;
    }
    // A process that died meanwhile hears nothing more.
    if cluster.look(|state| state.is_dead(process)) {
        return std::future::pending().await;
    }
    match reply {
        Reply::Response(response) => {
            cluster.look(|state| state.hears(process, agent, request, &response));
            Ok(whole(response))
        }
        Reply::Watch => watch::open(cluster, process, request, false),
        Reply::Expired => watch::open(cluster, process, request, true),
    }
}

async fn read(request: http::Request<Body>) -> Result<(String, Request), io::Error> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let agent = header("user-agent");
    let request = Request {
        method: Method::parse(parts.method.as_str()).ok_or_else(|| io::Error::other("method"))?,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: header("content-type"),
        accept: header("accept"),
        agent: agent.clone(),
        user: "system:serviceaccount:kruise-system:kruise-manager".into(),
        body: body.to_vec(),
    };
    Ok((agent, request))
}

fn refusal(code: u16) -> Response {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "ServiceUnavailable",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": "refused by the scenario",
    });
    Response::json(code, &body)
}

fn whole(response: Response) -> http::Response<Answer> {
    let code = response.code;
    let body = Full::new(Bytes::from(response.body)).map_err(|never| match never {});
    let mut out = http::Response::new(body.boxed_unsync());
    *out.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    if code == 429 {
        out.headers_mut()
            .insert("retry-after", http::HeaderValue::from_static("1"));
    }
    out
}

/// The version of a list. Its metadata is the last thing in its text, behind all its items.
fn version_of(list: &[u8]) -> Option<u64> {
    let text = str::from_utf8(list).ok()?;
    let (_, end) = text.rsplit_once("\"resourceVersion\":\"")?;
    end.split('"').next()?.parse().ok()
}

impl State {
    /// Is this process off the network?
    pub fn is_dead(&self, process: ProcessId) -> bool {
        self.processes.get(&process).is_none_or(Process::is_dead)
    }

    /// Pods are created by 1, 2, 4, 8: never more at once than have been created before, and one.
    fn notice_haste(&mut self, process: ProcessId) {
        let hasty = self
            .processes
            .get_mut(&process)
            .and_then(|process| process.hasty.take());
        if let (Some((now, before)), None) = (hasty, &self.violation) {
            let what = format!("{process} creates {now} pods at once after {before}");
            self.violation = Some(Violation {
                oracle: "slow start",
                what,
            });
        }
    }

    fn notice_name(&mut self, process: ProcessId, agent: &str, request: &Request, sent: &Sent) {
        let marks = self.mirror.marks();
        let write = Write::new(process, agent, request, sent, marks, self.now(), self.judged);
        let verdict = self.oracles.judge_name(&write, &self.mirror);
        self.violation = self.violation.take().or(verdict);
    }

    /// A process has an answer in hand.
    fn hears(&mut self, process: ProcessId, agent: &str, request: &Request, response: &Response) {
        let Some(process) = self.processes.get_mut(&process) else {
            return;
        };
        if response.code == 429 {
            process.waits_again(agent);
        }
        let is_list = request.method == Method::Get && response.code == 200;
        if is_list
            && request.query.contains("limit=500")
            && let Some(of) = Watched::of_path(&request.path)
        {
            process.learns(of, version_of(&response.body).unwrap_or(0));
        }
    }
}

impl Sent {
    /// Has the sender given up?
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn a_list_has_the_version_that_stands_behind_its_items() {
        let list = r#"{"items":[{"metadata":{"resourceVersion":"7"}}],"kind":"L","metadata":{"resourceVersion":"12"}}"#;
        assert_eq!(version_of(list.as_bytes()), Some(12));
        assert_eq!(version_of(br#"{"kind":"Status"}"#), None);
    }
}
