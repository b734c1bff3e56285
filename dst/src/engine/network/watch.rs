//! Watches. The server decides whether one may be opened at all; what it shows then comes from the one log of what is
//! true, as late as the scenario says, so that a change is printed once for all watches of
//! managers. A watch of an agent shows what its selector selects.

use std::{io, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use kruise_sim::Request;
use serde_json::json;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::answer::{Answer, broken, refusal, whole};
use crate::engine::{
    cluster::{Cluster, State},
    mirror,
    process::ProcessId,
    resource::Resource,
    scenario::LastingFault,
    selector::Selector,
    verdict::Violation,
};

/// How often a watch on which nothing happens sends a bookmark.
const BOOKMARK: Duration = Duration::from_mins(1);

/// An open watch of a process.
struct Open {
    cluster: Arc<Cluster>,
    process: ProcessId,
    of: Resource,
    shows: Shows,
    /// Changes of the log that were shown.
    shown: usize,
    news: Arc<Notify>,
    cuts: u64,
    until: Instant,
    is_over: bool,
}

/// Which objects a watch shows.
#[derive(Clone, Debug)]
enum Shows {
    All,
    /// Those with one of the labels by which managers select objects.
    Marked,
    /// Those of an agent.
    Of(Selector),
}

impl Shows {
    fn of(process: ProcessId, request: &Request) -> Self {
        if process.is_agent() {
            Self::Of(Selector::of(&request.query))
        } else if mirror::is_for_selected(request) {
            Self::Marked
        } else {
            Self::All
        }
    }

    /// The only name of the objects that it shows, if it shows those of one.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Of(selector) => selector.name(),
            Self::All | Self::Marked => None,
        }
    }
}

/// The answer to a request for a watch that the server has accepted.
pub(super) fn open(
    cluster: &Arc<Cluster>,
    process: ProcessId,
    request: &Request,
    expired: bool,
) -> Result<http::Response<Answer>, io::Error> {
    let query = |name: &str| {
        let mut pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let of = cluster.look(|state| {
        let of = state.mirror.resource_of(&request.path);
        if of.is_none() && state.violation.is_none() {
            state.violation = Some(unserved(process, request));
        }
        of
    });
    let of = of.ok_or_else(|| io::Error::other("nothing is recorded that this watch could show"))?;
    // As a server without streamed lists: what the log holds has no initial events.
    if request.query.contains("sendInitialEvents=true") {
        return Ok(whole(refusal(422)));
    }
    let version = query("resourceVersion").unwrap_or(0);
    let lasts = Duration::from_secs(query("timeoutSeconds").unwrap_or(300));
    let (news, shows) = (Arc::new(Notify::new()), Shows::of(process, request));
    cluster.look(|state| state.watching.entry(of).add(shows.name(), &news));
    let open = Open {
        cluster: cluster.clone(),
        process,
        of,
        shows,
        shown: cluster.look(|state| state.mirror.of(of).after(version)),
        cuts: cluster.look(|state| state.cuts.of(of)),
        news,
        until: Instant::now() + lasts,
        is_over: false,
    };
    let frames = stream::unfold((open, expired), |(mut open, expired)| async move {
        let next = if expired {
            Some(Ok(open.expire()))
        } else {
            open.next().await
        };
        next.map(|next| (next.map(Frame::data), (open, false)))
    });
    Ok(http::Response::new(StreamBody::new(frames).boxed_unsync()))
}

/// A watch of what is not recorded would fail for ever, and what its process never learns would be judged.
fn unserved(process: ProcessId, request: &Request) -> Violation {
    Violation {
        oracle: "every watch is served",
        what: format!(
            "{process} watches {}, which `Subjects::resources` does not name",
            request.path
        ),
    }
}

impl Open {
    /// The next lines, the end, or a cut.
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        if self.is_over {
            return None;
        }
        loop {
            if self.cluster.look(|state| state.is_dead(self.process)) {
                return std::future::pending().await;
            }
            let late = self
                .cluster
                .look(|state| state.is_late(self.process, self.of, &self.shows, self.shown));
            let wait = late
                .unwrap_or(BOOKMARK)
                .min(self.until.saturating_duration_since(Instant::now()));
            if late.is_some() {
                sleep(wait).await;
                if !self.is_cut() {
                    let lines = self
                        .cluster
                        .look(|state| state.shows(self.process, self.of, &self.shows, &mut self.shown));
                    return Some(Ok(lines));
                }
            }
            if self.is_cut() {
                self.is_over = true;
                self.cluster.look(|state| state.counters.fired("cut watch"));
                return Some(Err(broken()));
            }
            if tokio::time::timeout(wait, self.news.notified()).await.is_err() {
                if Instant::now() >= self.until {
                    return None;
                }
                return Some(Ok(self
                    .cluster
                    .look(|state| state.bookmark(self.process, self.of))));
            }
        }
    }

    fn is_cut(&self) -> bool {
        self.cluster.look(|state| state.cuts.of(self.of)) != self.cuts
    }

    /// The API server has forgotten the version asked for.
    fn expire(&mut self) -> Bytes {
        self.is_over = true;
        self.cluster.look(|state| state.counters.fired("410"));
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
            "message": "too old resource version"});
        format!("{}\n", json!({"type": "ERROR", "object": status})).into()
    }
}

impl State {
    /// How late the changes are that a watch has not shown yet; `None` without any.
    fn is_late(&mut self, process: ProcessId, of: Resource, shows: &Shows, shown: usize) -> Option<Duration> {
        let log = self.mirror.of(of);
        log.changes_from(shown, shows.name()).next()?;
        let stale = self.faults.find(|fault| match fault {
            LastingFault::Stale(late, most) if late == of.plural => Some(*most),
            _ => None,
        });
        if let Some(left) = self.faults.isolated_for(process) {
            return Some(left);
        }
        let usual = self.random.between(1, 15);
        Some(match stale {
            Some(most) => {
                self.counters.fired("stale cache");
                Duration::from_millis(self.random.between(most / 2, most).max(usual))
            }
            None => Duration::from_millis(usual),
        })
    }

    fn shows(&mut self, process: ProcessId, of: Resource, shows: &Shows, shown: &mut usize) -> Bytes {
        let log = self.mirror.of(of);
        let changes: Vec<_> = log.changes_from(*shown, shows.name()).collect();
        *shown = log.changes.len();
        let version = changes.last().map_or(0, |change| change.version);
        let lines = match (shows, changes.as_slice()) {
            (Shows::All, [only]) => only.line.clone(),
            (_, several) => several
                .iter()
                .filter_map(|change| match shows {
                    Shows::All => Some(change.line.clone()),
                    Shows::Marked => change.is_selected.then(|| change.line.clone()),
                    Shows::Of(selector) => log.line(change, selector),
                })
                .fold(BytesMut::new(), |mut all, line| {
                    all.extend_from_slice(&line);
                    all
                })
                .freeze(),
        };
        if let Some(process) = self.processes.get_mut(&process) {
            process.learns(of, version);
        }
        lines
    }

    fn bookmark(&mut self, process: ProcessId, of: Resource) -> Bytes {
        let version = self.world.api().revision();
        if let Some(process) = self.processes.get_mut(&process) {
            process.learns(of, version);
        }
        let object = json!({"kind": of.kind, "apiVersion": of.api_version(),
            "metadata": {"resourceVersion": version.to_string()}});
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into()
    }
}
