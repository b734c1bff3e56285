//! The network between one process and the API server.
//!
//! A request takes a while to arrive and its answer a while to come back; on both ways it can be lost. A manager that
//! gives up waiting does not stop its request. What a manager can know is kept track of, because that is what its
//! actions are judged by: see [`super::process::Process`].

use std::{io, sync::Arc, time::Duration};

use http_body_util::BodyExt;
use kruise_sim::{Method, Request, Response};
use kube_client::client::Body;
use tokio::sync::oneshot;

use super::{
    answer::{Answer, broken, refusal, whole},
    waiting::Waiting,
    watch,
};
use crate::engine::{
    cluster::{Cluster, State},
    process::{ProcessId, Sent, changes_claim, creates_pod},
    random::Random,
    report::Reply,
    scenario::{LastingFault, Loss},
    verdict::{Judged, Violation},
    write::Write,
};

/// As whom managers send requests.
const MANAGER: &str = "system:serviceaccount:kruise-system:kruise-manager";
/// As whom agents do.
const AGENT: &str = "system:serviceaccount:kruise-system:kruise-daemon";
/// As whom users do that run commands.
const PERSON: &str = "kubernetes-admin";

/// Managers wait this long for an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The connection of one process to the API server.
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
    /// The server carries out the request, and answers with this error.
    failed: Option<u16>,
}

/// A server that gives up on a request takes so long, at most, in milliseconds.
const GIVES_UP: u64 = 5_000;

impl Fate {
    fn draw(state: &mut State, process: ProcessId, request: &Request) -> Self {
        let mut random = state.random.clone();
        let mut fate = Self {
            out: ms(random.between(1, 4)),
            back: ms(random.between(1, 4)),
            lost: None,
            reply_lost: None,
            refused: None,
            failed: None,
        };
        let writes = request.method != Method::Get;
        for (left, fault) in state.faults.now() {
            let is_isolated = state.faults.isolates(process);
            let fired = fate.hit_by(fault, left, is_isolated, writes, request, &mut random);
            if let Some(fired) = fired {
                state.counters.fired(fired);
            }
        }
        if state.faults.failing > 0 && random.percent(state.faults.failing) {
            state.counters.fired(fate.fail(writes, &mut random));
        }
        state.random = random;
        fate
    }

    /// The request fails in one of the ways in which requests do; the name of it.
    fn fail(&mut self, writes: bool, random: &mut Random) -> &'static str {
        match random.between(0, 3) {
            0 => {
                self.refused = Some(500);
                "refused with 500"
            }
            1 => {
                self.refused = Some(429);
                "refused with 429"
            }
            2 => {
                let code = if writes && random.percent(50) {
                    &mut self.failed
                } else {
                    &mut self.refused
                };
                *code = Some(504);
                self.back += ms(random.between(0, GIVES_UP));
                "given up with 504"
            }
            _ => {
                self.reply_lost = Some(Loss::Broken);
                "lost reply"
            }
        }
    }

    /// What a fault does to a request; its name, if it has an effect.
    fn hit_by(
        &mut self,
        fault: &LastingFault,
        left: Duration,
        is_isolated: bool,
        writes: bool,
        request: &Request,
        random: &mut Random,
    ) -> Option<&'static str> {
        Some(match fault {
            LastingFault::LostReplies(percent, loss) if writes && random.percent(*percent) => {
                self.reply_lost = Some(*loss);
                "lost reply"
            }
            LastingFault::LostRequests(percent, loss) if random.percent(*percent) => {
                self.lost = Some(*loss);
                "lost request"
            }
            LastingFault::Refused(percent, code) if (*code != 409 || writes) && random.percent(*percent) => {
                self.refused = Some(*code);
                match code {
                    409 => "refused with 409",
                    429 => "refused with 429",
                    500 => "refused with 500",
                    _ => "refused with 503",
                }
            }
            LastingFault::Slow(most) => {
                self.out += ms(random.between(0, *most));
                self.back += ms(random.between(0, *most));
                "slow"
            }
            LastingFault::Isolated if is_isolated => {
                if request.path.contains("/leases") {
                    self.lost = Some(Loss::Silent);
                } else {
                    self.out += left;
                }
                "isolated leader"
            }
            _ => return None,
        })
    }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Carries a request there and its answer back.
async fn carry(
    cluster: Arc<Cluster>,
    process: ProcessId,
    request: http::Request<Body>,
) -> Result<http::Response<Answer>, io::Error> {
    let (agent, mut request) = read(process, request).await?;
    let altered = cluster.look(|state| {
        let leads = state.leader() == Some(process);
        let altering = state.altering.as_mut()?;
        Some(altering.alter(&agent, &mut request, &state.mirror, leads))
    });
    if let Some(altered) = altered {
        for (agent, mut beside) in altered.besides {
            beside.agent.clone_from(&agent);
            sender(process).clone_into(&mut beside.user);
            // Nobody waits for its answer.
            tokio::spawn(send(cluster.clone(), process, agent, beside));
        }
        tokio::time::sleep(altered.late).await;
        if altered.is_lost {
            return lost(Loss::Broken).await;
        }
    }
    send(cluster, process, agent, request).await
}

/// Sends a request, and waits for its answer.
async fn send(
    cluster: Arc<Cluster>,
    process: ProcessId,
    agent: String,
    request: Request,
) -> Result<http::Response<Answer>, io::Error> {
    let (fate, sent) = cluster.look(|state| {
        let fate = Fate::draw(state, process, &request);
        let sent = state
            .processes
            .get_mut(&process)
            .map(|of| of.sends(&agent, &request));
        if state.judged == Judged::Yes {
            state.notice_haste(process);
            state.notice_cost(process, &agent, &request);
            let is_judged = creates_pod(&request) || changes_claim(&request);
            if let Some(sent) = sent.as_ref().filter(|_| is_judged) {
                state.notice_sent(process, &agent, &request, sent);
            }
        }
        (fate, sent)
    });
    let Some(sent) = sent else {
        return std::future::pending().await;
    };
    let _waiting = Waiting::new(&cluster, process, &agent, &request, &sent);
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
    let reply = match fate.failed {
        Some(code) => Reply::Response(refusal(code)),
        None => reply,
    };
    if let Some(loss) = fate.reply_lost {
        return lost(loss).await;
    }
    // A process that died meanwhile receives nothing more.
    if cluster.look(|state| state.is_dead(process)) {
        return std::future::pending().await;
    }
    match reply {
        Reply::Response(response) => {
            cluster.look(|state| state.receives(process, agent, request, &response));
            Ok(whole(response))
        }
        Reply::Watch => watch::open(cluster, process, request, false),
        Reply::Expired => watch::open(cluster, process, request, true),
    }
}

async fn read(process: ProcessId, request: http::Request<Body>) -> Result<(String, Request), io::Error> {
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
        user: sender(process).into(),
        body: body.to_vec(),
    };
    Ok((agent, request))
}

/// As whom a process sends requests.
fn sender(process: ProcessId) -> &'static str {
    if process.is_command() {
        PERSON
    } else if process.is_agent() {
        AGENT
    } else {
        MANAGER
    }
}

/// The version of an object.
fn version_of_one(object: &[u8]) -> Option<u64> {
    let object: serde_json::Value = serde_json::from_slice(object).ok()?;
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// The version of a list. Its metadata is the last thing in its text, behind all its items.
fn version_of(list: &[u8]) -> Option<u64> {
    let text = str::from_utf8(list).ok()?;
    let (_, end) = text.rsplit_once("\"resourceVersion\":\"")?;
    end.split('"').next()?.parse().ok()
}

impl State {
    /// Pods are created by 1, 2, 4, 8: never more at once than have been created before, and one.
    fn notice_haste(&mut self, process: ProcessId) {
        let hasty = self
            .processes
            .get_mut(&process)
            .and_then(|process| process.hasty.take());
        if let Some((now, before)) = hasty {
            let what = format!("{process} creates {now} pods at once after {before}");
            let oracle = "slow start";
            self.found(Some(Violation { oracle, what }));
        }
    }

    fn notice_cost(&mut self, process: ProcessId, agent: &str, request: &Request) {
        let changes = self.mirror.changes();
        let verdict = self.costs.sends(process, agent, request, changes);
        self.found(verdict);
    }

    fn notice_sent(&mut self, process: ProcessId, agent: &str, request: &Request, sent: &Sent) {
        let marks = self.mirror.marks();
        let write = Write::new(process, agent, request, sent, marks, self.now(), self.judged);
        let verdict = self.judges.judge_sent(&write, &self.mirror);
        self.found(verdict);
    }

    /// A process received an answer.
    fn receives(&mut self, process: ProcessId, agent: &str, request: &Request, response: &Response) {
        let resource = self.mirror.resource_of(&request.path);
        let reads_all = process.is_command();
        let above = request.path.rsplit_once('/').filter(|_| reads_all);
        let of_one = above.and_then(|(above, _)| self.mirror.resource_of(above));
        let Some(process) = self.processes.get_mut(&process) else {
            return;
        };
        if response.code == 429 {
            process.waits_again(agent);
        }
        let is_read = request.method == Method::Get && response.code == 200;
        if is_read
            && (reads_all || request.query.contains("limit=500"))
            && let Some(of) = resource
        {
            process.learns(of, version_of(&response.body).unwrap_or(0));
        }
        if is_read && let Some(of) = of_one {
            process.learns_one(of, version_of_one(&response.body).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn a_list_has_the_version_that_follows_its_items() {
        let list = r#"{"items":[{"metadata":{"resourceVersion":"7"}}],"kind":"L","metadata":{"resourceVersion":"12"}}"#;
        assert_eq!(version_of(list.as_bytes()), Some(12));
        assert_eq!(version_of(br#"{"kind":"Status"}"#), None);
    }
}
