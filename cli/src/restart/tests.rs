//! The command as a whole, on a server that fails as it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::Mutex,
};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kruise_runtime::{Clock, client};
use kube_client::client::Body;
use serde_json::{Value, json};

use super::*;

const REQUESTS: &str = "containerrecreaterequests";

/// How the server fails.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// It does nothing, and answers with this code.
    Refused(u16),
    /// It does what it is asked, and the connection breaks.
    ReplyLost,
    /// It deletes the pod before it looks at the request for it.
    PodGone,
}

/// A CloneSet, its pods, and requests, each of which ends at the second list after its creation.
#[derive(Default)]
struct State {
    pods: Vec<&'static str>,
    requests: BTreeMap<String, Value>,
    /// Lists until the end of each request that is open.
    open: BTreeMap<String, u8>,
    most_open: usize,
    /// What becomes of the next requests whose method and path these are: method, part of the path, fault.
    faults: VecDeque<(Method, &'static str, Fault)>,
    away: bool,
    /// Nodes with an agent.
    agents: Vec<&'static str>,
    /// Does nobody take up requests?
    is_idle: bool,
}

/// With the clock that all its clients have.
#[derive(Clone)]
struct Api(Arc<Mutex<State>>, Clock);

impl Api {
    fn of(pods: &[&'static str], faults: &[(Method, &'static str, Fault)]) -> Self {
        let state = State {
            pods: pods.to_vec(),
            faults: faults.iter().cloned().collect(),
            agents: vec!["n1"],
            ..State::default()
        };
        Self(
            Arc::new(Mutex::new(state)),
            Clock::starting_at(Timestamp::UNIX_EPOCH),
        )
    }

    fn look<R>(&self, at: impl FnOnce(&mut State) -> R) -> R {
        at(&mut self.0.lock().unwrap())
    }

    async fn run(&self, options: &Options) -> anyhow::Result<String> {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, body) =
                    api.look(|state| state.answer(&head.method, &head.uri.to_string(), body))?;
                let response = Response::builder().status(code);
                Ok::<_, io::Error>(response.body(Body::from(body.to_string().into_bytes())).unwrap())
            }
        });
        let settings = client::Settings {
            user_agent: AGENT.into(),
            timeout: Duration::from_secs(30),
            rate: None,
            host: "here".into(),
            observer: None,
            clock: self.1,
        };
        let client = Client::new(kube_client::Client::new(service, "default"), settings);
        let workload = Workload {
            resource: crate::resources::named("clone")[0],
            namespace: "default".into(),
            name: "web".into(),
        };
        restart(&workload, options, &client, &|_| Ok(())).await
    }
}

impl State {
    fn answer(&mut self, method: &Method, path: &str, body: Value) -> io::Result<(u16, Value)> {
        let broken = || io::Error::from(io::ErrorKind::ConnectionReset);
        if self.away {
            return Err(broken());
        }
        let is_hit = |(of, part, _): &(Method, &str, Fault)| *of == *method && path.contains(part);
        let fault = self
            .faults
            .front()
            .filter(|fault| is_hit(fault))
            .map(|fault| fault.2);
        if fault.is_some() {
            self.faults.pop_front();
        }
        match fault {
            Some(Fault::Refused(code)) => return Ok((code, json!({"code": code}))),
            Some(Fault::PodGone) => {
                self.pods.retain(|pod| body["spec"]["podName"] != **pod);
                return Ok((422, json!({"message": "no found Pod"})));
            }
            Some(Fault::ReplyLost) | None => {}
        }
        let answer = self.reply(method, path, body);
        if fault.is_some() {
            Err(broken())
        } else {
            Ok(answer)
        }
    }

    fn reply(&mut self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        let absent = (404, json!({"reason": "NotFound", "code": 404}));
        if *method == Method::POST {
            let name = body["metadata"]["name"].as_str().unwrap().to_owned();
            if self.requests.contains_key(&name) {
                return (409, json!({"reason": "AlreadyExists", "code": 409}));
            }
            self.add(name, body.clone());
            return (201, body);
        }
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        if *method == Method::DELETE {
            let name = path.rsplit('/').next().unwrap_or_default();
            self.open.remove(name);
            return self
                .requests
                .remove(name)
                .map_or(absent, |request| (200, request));
        }
        match path.rsplit('/').next().unwrap_or_default() {
            "v1beta1" if path == "/apis/apps.kruise.io/v1beta1" => {
                let resources = ["clonesets", REQUESTS].map(|name| json!({"name": name}));
                (200, json!({"resources": resources}))
            }
            "web" => (200, set()),
            "pods" if path.contains("/kruise-system/") => {
                let agents = self.agents.iter().map(|node| {
                    json!({"metadata": {"name": node, "namespace": "kruise-system"}, "spec": {"nodeName": node},
                        "status": {"phase": "Running"}})
                });
                (200, json!({"items": agents.collect::<Vec<_>>()}))
            }
            "pods" => (
                200,
                json!({"items": self.pods.iter().map(|name| pod(name)).collect::<Vec<_>>()}),
            ),
            REQUESTS => {
                self.go_on();
                let open = self
                    .requests
                    .iter()
                    .filter(|(name, _)| self.open.contains_key(*name));
                (
                    200,
                    json!({"items": open.map(|(_, request)| request).collect::<Vec<_>>()}),
                )
            }
            name => self
                .requests
                .get(name)
                .map_or(absent, |request| (200, request.clone())),
        }
    }

    /// A request is created.
    fn add(&mut self, name: String, request: Value) {
        self.requests.insert(name.clone(), request);
        self.open.insert(name, 2);
        self.most_open = self.most_open.max(self.open.len());
    }

    fn go_on(&mut self) {
        if self.is_idle {
            return;
        }
        for (name, left) in &mut self.open {
            *left -= 1;
            if *left == 0
                && let Some(request) = self.requests.get_mut(name)
            {
                let state = json!({"name": "main", "phase": "Succeeded"});
                request["status"] = json!({"phase": "Completed", "containerRecreateStates": [state]});
            }
        }
        self.open.retain(|_, left| *left > 0);
    }
}

fn set() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"namespace": "default", "name": "web", "uid": "set"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}}})
}

fn pod(name: &str) -> Value {
    let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "set", "controller": true});
    let status =
        json!({"name": "main", "ready": true, "containerID": "containerd://a", "state": {"running": {}}});
    json!({"metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"),
            "labels": {"app": "web"}, "ownerReferences": [owner]},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "web:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [status]}})
}

fn options() -> Options {
    Options {
        containers: vec!["main".into()],
        ordered: false,
        unready_grace: None,
        timeout: 60,
        keep: 77,
        wait_for_server: 60,
        manager_namespace: "kruise-system".into(),
        any_agent: false,
    }
}

const DONE: &str = "CloneSet default/web: restarted\n";

#[tokio::test(start_paused = true)]
async fn errors_that_pass_and_lost_replies_end_nothing_and_each_pod_gets_one_request() {
    let faults = [
        (Method::GET, "/v1beta1", Fault::Refused(503)),
        (Method::GET, "/pods", Fault::Refused(500)),
        (Method::POST, REQUESTS, Fault::ReplyLost),
        (Method::POST, REQUESTS, Fault::Refused(504)),
        (Method::GET, REQUESTS, Fault::Refused(500)),
    ];
    let api = Api::of(&["web-0", "web-1"], &faults);
    assert_eq!(api.run(&options()).await.unwrap(), DONE);
    api.look(|state| {
        assert!(state.faults.is_empty(), "each has happened");
        let requests: Vec<&Value> = state.requests.values().collect();
        let of = |member: &str| {
            requests
                .iter()
                .map(|request| request["spec"][member].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("podName"), ["web-0", "web-1"]);
        assert_eq!(of("ttlSecondsAfterFinished"), [77, 77]);
        assert_eq!(state.most_open, 1);
    });
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_stays_away_ends_it_when_the_time_is_over() {
    let api = Api::of(&["web-0"], &[]);
    api.look(|state| state.away = true);
    let began = Instant::now();
    let error = api.run(&options()).await.unwrap_err();
    assert!(began.elapsed() > Duration::from_mins(1), "{error:#}");
    assert!(format!("{error:#}").contains("connection"), "{error:#}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_an_interrupted_run_left_keep_their_room_and_their_pods_come_after_them() {
    let api = Api::of(&["web-0", "web-1"], &[]);
    let (options, began) = (options(), Instant::now());
    {
        let interrupted = api.run(&options);
        tokio::select! {
            biased;
            _ = interrupted => panic!("it is interrupted before"),
            () = sleep(Duration::from_millis(1)) => {}
        }
    }
    assert_eq!(
        api.look(|state| state.open.len()),
        1,
        "after {:?}",
        began.elapsed()
    );
    // The names of requests differ by their time.
    sleep(Duration::from_millis(5)).await;
    assert_eq!(api.run(&options).await.unwrap(), DONE);
    api.look(|state| assert_eq!((state.requests.len(), state.most_open), (3, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_is_a_failure_only_if_its_pod_is_still_there() {
    let gone = Api::of(&["web-0", "web-1"], &[(Method::POST, REQUESTS, Fault::PodGone)]);
    // One pod is lacking then, and no other one may go out of service.
    let error = gone.run(&options()).await.unwrap_err();
    assert!(
        error.to_string().contains("pods that the workload lacks: 1"),
        "{error}"
    );
    let there = Api::of(
        &["web-0", "web-1"],
        &[(Method::POST, REQUESTS, Fault::Refused(422))],
    );
    let error = there.run(&options()).await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("pod web-0: its containers cannot be restarted"),
        "{said}"
    );
    assert!(said.ends_with("no further pod is restarted"), "{said}");
    assert!(there.look(|state| state.requests.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_takes_up_is_withdrawn_if_its_node_has_no_agent() {
    let idle = || {
        let api = Api::of(&["web-0", "web-1"], &[]);
        api.look(|state| state.is_idle = true);
        api
    };
    let api = idle();
    api.look(|state| state.agents.clear());
    let began = Instant::now();
    let error = api.run(&options()).await.unwrap_err().to_string();
    assert!(error.starts_with("no node agent runs on n1, and"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(api.look(|state| state.requests.is_empty()));
    // One that is there may be slow.
    let error = idle().run(&options()).await.unwrap_err().to_string();
    assert!(error.starts_with("nothing has changed for 60 s"), "{error}");
}
