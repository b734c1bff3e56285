//! Requests over HTTP that do what kubectl does for `get -o json`, `create` and `patch`.
//!
//! Tests wait by reading again and again, and build what they look at. A kubectl costs a fifth of a second of a
//! processor, nearly all of it for its own start; a connection that stays open costs next to nothing. So one
//! kubectl reads the kubeconfig, and from then on each of these is a request.
//!
//! The answer is kubectl's: resources are found by the names that the server's discovery gives them, items of a
//! list have their `apiVersion` and `kind`, nothing has `managedFields`, and an error is worded as kubectl words
//! it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use go_compat::json::to_go_json;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use ureq::http::Method;
use ureq::http::request::Builder;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use crate::discovery::{Resource, find, versions};
use crate::{reads, wait};

/// How the requests are called in the audit log.
const AGENT: &str = "kruise-e2e";
/// Longest time of a request.
const LIMIT: Duration = Duration::from_mins(1);
/// How often a request is sent that the server is too busy for, as kubectl does.
const ATTEMPTS: usize = 10;
/// Largest answer, in bytes.
const LARGEST: u64 = 1 << 30;

/// One for each kubeconfig.
static CONNECTIONS: Mutex<BTreeMap<Version, Arc<Connection>>> = Mutex::new(BTreeMap::new());

/// A file as it was written at one time: what is written later may name certificates that are others by then.
type Version = (PathBuf, SystemTime);

/// Connections to one API server as one user.
pub(crate) struct Connection {
    agent: ureq::Agent,
    /// URL without a slash at its end.
    server: String,
    /// `Authorization`.
    authorization: Option<String>,
    /// Where objects are that name no namespace.
    namespace: String,
    /// What the server had when it was asked last.
    resources: Mutex<Arc<Vec<Resource>>>,
}

/// What is sent to the server.
struct Request {
    method: Method,
    path: String,
    /// Values that are empty are left out.
    query: Vec<(&'static str, String)>,
    /// With its type, as Go writes it. The data of a ControllerRevision is stored byte by byte, and may not change:
    /// the server, which writes it so with each patch, would refuse every patch of one that came with other bytes.
    body: Option<(&'static str, String)>,
}

/// Status of HTTP and body.
struct Answer {
    status: u16,
    body: Value,
}

impl Connection {
    /// The one for a kubeconfig, which `view` returns as JSON with all files in it. It is called for a new one only.
    pub(crate) fn of(kubeconfig: &Path, view: impl FnOnce() -> Result<String>) -> Result<Arc<Self>> {
        let written = std::fs::metadata(kubeconfig).and_then(|file| file.modified());
        let written = written.with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let version = (kubeconfig.to_path_buf(), written);
        let connections = || CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = connections().get(&version) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(Self::new(&serde_json::from_str(&view()?)?)?);
        Ok(Arc::clone(connections().entry(version).or_insert(connection)))
    }

    /// From a kubeconfig with one cluster and one user, whose certificates are in it.
    fn new(config: &Value) -> Result<Self> {
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str);
        let pem = |pointer: &str| -> Result<Option<Vec<u8>>> {
            Ok(text(pointer).map(|data| BASE64.decode(data)).transpose()?)
        };
        let server = text("/clusters/0/cluster/server").context("the kubeconfig has no server")?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        if let Some(authority) = pem("/clusters/0/cluster/certificate-authority-data")? {
            let authority = Certificate::from_pem(&authority)?;
            tls = tls.root_certs(RootCerts::new_with_certs(&[authority]));
        }
        let user = ["certificate", "key"].map(|part| pem(&format!("/users/0/user/client-{part}-data")));
        if let [Ok(Some(certificate)), Ok(Some(key))] = user {
            let certificate = Certificate::from_pem(&certificate)?;
            let key = PrivateKey::from_pem(&key)?;
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&[certificate], key)));
        }
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT))
            .proxy(None)
            .user_agent(AGENT)
            .accept("application/json")
            .tls_config(tls.build())
            .build()
            .new_agent();
        Ok(Self {
            agent,
            server: server.trim_end_matches('/').into(),
            authorization: text("/users/0/user/token").map(|token| format!("Bearer {token}")),
            namespace: text("/contexts/0/context/namespace").unwrap_or("default").into(),
            resources: Mutex::default(),
        })
    }

    /// `kubectl get RESOURCE NAME -o json`.
    pub(crate) fn object(&self, namespace: Option<&str>, resource: &str, name: &str) -> Result<Value> {
        let path = |found: &Resource| self.path(found, namespace, name);
        noted(self.to_resource(resource, |found| Request::get(path(found)))).map(shown)
    }

    /// `kubectl get RESOURCE -l SELECTOR -o json`, only the items.
    pub(crate) fn items(
        &self,
        namespace: Option<&str>,
        resource: &str,
        selector: &str,
    ) -> Result<Vec<Value>> {
        let list = noted(self.to_resource(resource, |found| Request {
            query: vec![("labelSelector", selector.to_owned())],
            ..Request::get(self.path(found, namespace, ""))
        }))?;
        items(list).with_context(|| format!("the answer for {resource} is no list"))
    }

    /// `kubectl create -f - -o json`: an object that names no namespace goes to this one.
    pub(crate) fn create(&self, namespace: Option<&str>, object: &Value) -> Result<Value> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let version = text("/apiVersion").context("an object without apiVersion")?;
        let kind = text("/kind").context("an object without kind")?;
        let namespace = text("/metadata/namespace").or(namespace);
        let what = || format!(r#"no matches for kind "{kind}" in version "{version}""#);
        let created = self.to(what, |known| {
            let found = known.iter().find(|resource| resource.is_of(version, kind))?;
            Some(Request {
                method: Method::POST,
                path: self.path(found, namespace, ""),
                query: writing("kubectl-create", STRICT),
                body: Some(("application/json", to_go_json(object))),
            })
        });
        created.map(shown)
    }

    /// `kubectl patch RESOURCE NAME --type=merge -p PATCH`.
    pub(crate) fn merge_patch(
        &self,
        namespace: Option<&str>,
        resource: &str,
        name: &str,
        patch: &Value,
        fields: &str,
    ) -> Result<Value> {
        self.to_resource(resource, |found| Request {
            method: Method::PATCH,
            path: self.path(found, namespace, name),
            query: writing("kubectl-patch", fields),
            body: Some(("application/merge-patch+json", to_go_json(patch))),
        })
    }

    /// The answer to any request: status of HTTP and body, whether it was accepted or not.
    pub(crate) fn raw(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, &Value)>,
    ) -> Result<(u16, Value)> {
        let body = body.map(|(kind, value)| (kind, to_go_json(value)));
        let answer = self.answer(&Request {
            method,
            body,
            ..Request::get(path.to_owned())
        })?;
        Ok((answer.status, answer.body))
    }

    /// Path of an object, or of all if `name` is empty.
    fn path(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> String {
        let path = resource.path(namespace.unwrap_or(&self.namespace));
        match name {
            "" => path,
            name => format!("{path}/{name}"),
        }
    }

    /// The answer to a request to the resource of this name.
    fn to_resource(&self, resource: &str, request: impl Fn(&Resource) -> Request) -> Result<Value> {
        let what = || format!(r#"error: the server doesn't have a resource type "{resource}""#);
        self.to(what, |known| find(known, resource).map(&request))
    }

    /// The answer to a request that depends on what the server has; `what` is the error if it has nothing for it.
    fn to(
        &self,
        what: impl Fn() -> String,
        request: impl Fn(&[Resource]) -> Option<Request>,
    ) -> Result<Value> {
        let known = Arc::clone(&self.resources.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(request) = request(&known) {
            let answer = self.answer(&request)?;
            if !answer.is_unknown_path() {
                return answer.into_object();
            }
        }
        // A definition may have come or changed since.
        let known = Arc::new(self.discover()?);
        *self.resources.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&known);
        self.answer(&request(&known).with_context(what)?)?.into_object()
    }

    /// All resources, those of preferred groups and versions first.
    fn discover(&self) -> Result<Vec<Resource>> {
        let groups = self.answer(&Request::get("/apis".into()))?.into_object()?;
        let mut resources = Vec::new();
        for path in versions(groups)? {
            let answer = self.answer(&Request::get(path.clone()))?;
            // A version may have gone meanwhile, and one whose server is away has no resources.
            if answer.status == 200 {
                resources.extend(Resource::all_of(&path, answer.body)?);
            }
        }
        Ok(resources)
    }

    /// The answer to a request, which is sent again while the server is too busy.
    fn answer(&self, request: &Request) -> Result<Answer> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match self.send(request) {
                Ok((Answer { status: 429, .. }, pause)) if left > 0 => wait::observe_for(pause),
                // The server closed a connection that was open for the next request. What writes may have arrived.
                Err(ureq::Error::Io(error)) if left > 0 && request.body.is_none() && is_closed(&error) => (),
                Ok((answer, _)) => return Ok(answer),
                Err(error) => bail!("{} {}{}: {error}", request.method, self.server, request.path),
            }
        }
    }

    /// An answer, and how long to wait if it is 429.
    fn send(&self, request: &Request) -> Result<(Answer, Duration), ureq::Error> {
        let mut uri = format!("{}{}", self.server, request.path);
        let query = request.query.iter().filter(|(_, value)| !value.is_empty());
        for (number, (name, value)) in query.enumerate() {
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
            uri.extend([if number == 0 { "?" } else { "&" }, name, "="]);
            uri.extend(value);
        }
        let mut sent = Builder::new().method(request.method.clone()).uri(uri);
        if let Some(authorization) = &self.authorization {
            sent = sent.header("Authorization", authorization);
        }
        let (kind, body) = request.body.clone().unwrap_or_default();
        let mut answer = if request.body.is_some() {
            self.agent.run(sent.header("Content-Type", kind).body(body)?)?
        } else {
            self.agent.run(sent.body(())?)?
        };
        let seconds = answer.headers().get("Retry-After");
        let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
        let text = answer.body_mut().with_config().limit(LARGEST).read_to_vec()?;
        // What is no JSON is an error's text.
        let body = serde_json::from_slice(&text)
            .unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&text).trim()}));
        let status = answer.status().as_u16();
        Ok((Answer { status, body }, Duration::from_secs(seconds.unwrap_or(1))))
    }
}

impl Request {
    fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            query: Vec::new(),
            body: None,
        }
    }
}

/// The query of a request that writes as this command does.
fn writing(manager: &str, fields: &str) -> Vec<(&'static str, String)> {
    vec![
        ("fieldManager", manager.into()),
        ("fieldValidation", fields.into()),
    ]
}

/// Fields that the server does not know are refused.
pub(crate) const STRICT: &str = "Strict";
/// They are dropped, as in what programs store that know more or less fields than the definition.
pub(crate) const DROPPED: &str = "Ignore";

impl Answer {
    /// The server knows no such resource, which is not the same as having no such object.
    fn is_unknown_path(&self) -> bool {
        self.status == 404 && self.body.pointer("/details/name").is_none()
    }

    /// The object, or the error as kubectl words it.
    fn into_object(self) -> Result<Value> {
        if matches!(self.status, 200 | 201) {
            return Ok(self.body);
        }
        let part = |name: &str| {
            self.body
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let reason = Some(part("reason")).filter(|reason| !reason.is_empty());
        let reason = reason.unwrap_or_else(|| self.status.to_string());
        bail!("Error from server ({reason}): {}", part("message"))
    }
}

/// What was read, after it is noted: of a list its items only, because the version of a list changes with any
/// object of the cluster.
fn noted(answer: Result<Value>) -> Result<Value> {
    match &answer {
        Ok(object) => reads::note(object.get("items").unwrap_or(object)),
        Err(error) => reads::note(&format!("{error:#}")),
    }
    answer
}

/// Did the other side end the connection before it answered?
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

/// The items of a list as kubectl shows them; `None` if it is no list.
fn items(mut list: Value) -> Option<Vec<Value>> {
    let version = list.get("apiVersion")?.clone();
    let kind = list.get("kind")?.as_str()?.strip_suffix("List")?.to_owned();
    let Value::Array(mut items) = list.get_mut("items")?.take() else {
        return None;
    };
    for item in &mut items {
        let item_of = item.as_object_mut()?;
        item_of.entry("apiVersion").or_insert_with(|| version.clone());
        item_of.entry("kind").or_insert_with(|| json!(kind));
    }
    Some(items.into_iter().map(shown).collect())
}

/// Without what kubectl shows only if it is asked to.
fn shown(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_list_have_their_kind_and_no_managed_fields() {
        let list = json!({
            "apiVersion": "v1", "kind": "PodList",
            "items": [{"metadata": {"name": "a", "managedFields": [{}]}}],
        });
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        assert_eq!(items(list), Some(vec![pod]));
        let none = json!({"apiVersion": "v1", "kind": "PodList", "items": []});
        assert_eq!(items(none), Some(vec![]));
        assert_eq!(items(json!({"kind": "Pod"})), None);
    }

    #[test]
    fn an_object_that_changed_is_read_as_another_and_a_list_by_its_items_only() {
        let read = |answer: Result<Value>| reads::during(|| noted(answer)).1;
        let pod = |version: &str| json!({"metadata": {"name": "a", "resourceVersion": version}});
        let list =
            |version: &str, pod: Value| json!({"metadata": {"resourceVersion": version}, "items": [pod]});
        assert_eq!(read(Ok(pod("1"))), read(Ok(pod("1"))));
        assert_ne!(read(Ok(pod("1"))), read(Ok(pod("2"))));
        assert_eq!(read(Ok(list("5", pod("1")))), read(Ok(list("6", pod("1")))));
        assert_ne!(read(Ok(list("5", pod("1")))), read(Ok(list("5", pod("2")))));
        let refused = || anyhow::anyhow!("connection refused");
        assert_eq!(read(Err(refused())), read(Err(refused())));
        assert_ne!(read(Err(refused())), read(Ok(pod("1"))));
    }

    #[test]
    fn errors_read_as_those_of_kubectl_and_a_missing_object_is_no_unknown_path() {
        let missing = || Answer {
            status: 404,
            body: json!({
                "kind": "Status", "reason": "NotFound", "message": r#"pods "a" not found"#,
                "details": {"name": "a", "kind": "pods"},
            }),
        };
        assert!(!missing().is_unknown_path());
        let error = missing().into_object().unwrap_err().to_string();
        assert_eq!(error, r#"Error from server (NotFound): pods "a" not found"#);
        let answer = |status, text: &str| Answer {
            status,
            body: json!({"message": text}),
        };
        assert!(answer(404, "404 page not found").is_unknown_path());
        let error = answer(503, "starting").into_object().unwrap_err().to_string();
        assert_eq!(error, "Error from server (503): starting");
    }
}
