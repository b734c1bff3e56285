//! Lookups of reviews: in a cache first, then at the API server.
//!
//! The webhooks, `kruise inject` and tests review with a [`LookupSource`]. They differ in its [`Cache`] (the manager's
//! caches, files, none) and in whether there is a server. The caller limits the time: [`LookupSource::finish`] runs
//! until the review is decided or a request fails.

use std::{sync::Arc, time::Duration};

use kruise_admission::{
    Lookups, Outcome, Refused, Response,
    lookup::{Lookup, LookupResult, Pod, Refusal, Revision},
    protocol::Write,
    widening::Widening,
};
use kruise_api::{
    definition::{Kind, Scope},
    meta::ObjectMeta,
    names::agent::{LABEL as AGENT_LABEL, READS_PODS},
    path::segment,
    resource::ResourceId,
};
use kruise_plan_kit::workloads::{Aspect, Known, Workload};
use kruise_runtime::{ApiError, Client, metrics::PodMetrics};
use kruise_views::PodView;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{dependants, settings, templates::Judge, workloads::Reader};

/// Versions of our kinds, newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// Interval between checks whether the first lists are complete.
const POLL: Duration = Duration::from_millis(5);

/// Time limit for reading the owners of a new pod: a part of that of its review.
const OWNERS: Duration = Duration::from_millis(200);

/// Time limit for reading replicas, or whether a namespace ends, which are not known after it.
const SHORT: Duration = Duration::from_millis(100);

/// Results without a request.
pub trait Cache {
    /// The result of a lookup.
    fn get(&self, lookup: &Lookup) -> Cached;
}

/// The result of a lookup in a cache.
#[derive(Debug)]
pub enum Cached {
    /// The result; that there is no such object is one, too.
    Found(LookupResult),
    /// Not cached: the API server may have it.
    Absent,
    /// Not yet known: the first list is not complete.
    NotSynced,
}

/// A cache that is always empty.
pub struct NoCache;

impl Cache for NoCache {
    fn get(&self, _: &Lookup) -> Cached {
        Cached::Absent
    }
}

/// The API server, for lookups that are not cached.
pub struct Server {
    client: Client,
    /// Namespace of the manager, where its configuration and the revisions of kinds without namespaces are.
    namespace: String,
    /// For owners of pods. It knows the kinds that were looked up before.
    workloads: Reader,
    /// For pod templates.
    templates: Judge,
}

/// A cache, and a server for lookups that are not cached.
pub struct LookupSource<C> {
    /// The cache.
    pub cache: C,
    /// Without a server, an object that is not cached does not exist.
    pub server: Option<Server>,
}

/// The state of a review after lookups in the cache.
pub enum Progress {
    /// It is decided.
    Decided(Verdict),
    /// These lookups are not cached.
    Absent(Vec<Lookup>),
    /// The first lists of the cache are not complete.
    NotSynced,
    /// After this time, results of these lookups may be others.
    Retry(Duration, Vec<Lookup>),
}

/// What a review ended in.
pub struct Verdict {
    /// The answer.
    pub response: Response,
    /// What has to be done before the response is sent.
    pub effect: Option<Effect>,
    /// What is counted and logged.
    pub refused: Option<Box<Refused>>,
}

/// What has to be done before a response is sent.
pub enum Effect {
    /// Webhooks are to be called for more requests.
    Widen(Vec<Widening>),
    /// A status is to be stored.
    Write(Box<Write>),
}

impl From<Response> for Verdict {
    fn from(response: Response) -> Self {
        Self {
            response,
            effect: None,
            refused: None,
        }
    }
}

impl Verdict {
    /// The decision of a review; the outcome if there is none yet.
    pub fn of(outcome: Outcome) -> Result<Self, Undecided> {
        let with = |response: Response, effect| Self {
            effect: Some(effect),
            ..response.into()
        };
        match outcome {
            Outcome::Response(response) => Ok(response.into()),
            Outcome::Widen(widenings, response) => Ok(with(response, Effect::Widen(widenings))),
            Outcome::Write(write) => Ok(with(Response::ALLOW, Effect::Write(write))),
            Outcome::Refused(refused, response) => Ok(Self {
                refused: Some(refused),
                ..response.into()
            }),
            Outcome::Missing(missing) => Err(Undecided::Missing(missing)),
            Outcome::Retry(pause, lookups) => Err(Undecided::Retry(pause, lookups)),
        }
    }
}

/// Why a review is not decided yet.
pub enum Undecided {
    /// These lookups are missing.
    Missing(Vec<Lookup>),
    /// After this time, results of these lookups may be others.
    Retry(Duration, Vec<Lookup>),
}

/// A lookup that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot look up {lookup:?}")]
pub struct LookupError {
    lookup: Lookup,
    /// Why.
    #[source]
    pub source: ApiError,
}

impl<C: Cache> LookupSource<C> {
    /// Reviews with results from the cache, and adds them to `lookups`.
    pub fn advance(&self, review: &impl Fn(&Lookups) -> Outcome, lookups: &mut Lookups) -> Progress {
        loop {
            let missing = match Verdict::of(review(lookups)) {
                Ok(verdict) => return Progress::Decided(verdict),
                Err(Undecided::Missing(missing)) => missing,
                Err(Undecided::Retry(pause, lookups)) => return Progress::Retry(pause, lookups),
            };
            // A review that reports present lookups as missing would never end.
            if missing.iter().all(|lookup| lookups.contains(lookup)) {
                let denied =
                    Response::denied(500, "no decision can be made: what it needs is never all known");
                return Progress::Decided(denied.into());
            }
            let mut absent = Vec::new();
            for lookup in missing {
                match self.cache.get(&lookup) {
                    Cached::Found(result) => lookups.insert(lookup, result),
                    Cached::Absent => absent.push(lookup),
                    Cached::NotSynced => return Progress::NotSynced,
                }
            }
            if !absent.is_empty() {
                return Progress::Absent(absent);
            }
        }
    }

    /// Completes a review: sends a request for each lookup that is not cached, and waits for the first lists of the
    /// cache.
    pub async fn finish(
        &self,
        mut progress: Progress,
        review: &impl Fn(&Lookups) -> Outcome,
        lookups: &mut Lookups,
    ) -> Result<Verdict, LookupError> {
        loop {
            match progress {
                Progress::Decided(verdict) => return Ok(verdict),
                Progress::NotSynced => sleep(POLL).await,
                Progress::Retry(pause, outdated) => {
                    sleep(pause).await;
                    for lookup in &outdated {
                        lookups.remove(lookup);
                    }
                }
                Progress::Absent(absent) => {
                    for lookup in absent {
                        let result = match &self.server {
                            Some(server) => server.get(&lookup).await,
                            None => Ok(LookupResult::NotFound),
                        };
                        match result {
                            Ok(result) => lookups.insert(lookup, result),
                            Err(source) => return Err(LookupError { lookup, source }),
                        }
                    }
                }
            }
            progress = self.advance(review, lookups);
        }
    }
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Value>,
}

/// The metadata of an object of any kind.
#[derive(Deserialize)]
struct Metadata {
    metadata: ObjectMeta,
}

impl Server {
    /// Looks up with this client. `namespace` is that of the manager.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            workloads: Reader::new(client.clone(), namespace),
            templates: Judge::new(client.clone(), namespace),
            client,
            namespace: namespace.to_owned(),
        }
    }

    /// The same, and what becomes of pod templates is counted.
    #[must_use]
    pub fn measured(self, metrics: PodMetrics) -> Self {
        Self {
            templates: self.templates.measured(metrics),
            ..self
        }
    }

    /// `spec.replicas` of a workload; `None` if it is not soon known.
    async fn replicas(&self, namespace: &str, workload: &Workload) -> Option<i32> {
        let object = timeout(SHORT, self.workloads.object(namespace, workload)).await;
        let object: Value = object.ok()?.ok()??;
        object.pointer("/spec/replicas")?.as_i64()?.try_into().ok()
    }

    /// One request, or one for each version that may be served.
    async fn get(&self, lookup: &Lookup) -> Result<LookupResult, ApiError> {
        match lookup {
            Lookup::One(kind, name) => {
                let namespace = namespace_of(kind.kind(), &name.namespace);
                let resource = ResourceId::of(kind.kind());
                let object = newest_served(&self.client, resource, namespace, &name.name).await?;
                Ok(found(object, |object| kind.one(object)))
            }
            Lookup::All(kind, namespace) => match listed(&self.client, kind.kind(), namespace).await {
                Ok(objects) => Ok(kind.all(objects)),
                Err(error) => match kind.otherwise() {
                    Some(otherwise) => {
                        let kind = kind.kind().name();
                        tracing::warn!(kind, namespace, %error, "cannot be listed: {otherwise}");
                        Ok(LookupResult::NotFound)
                    }
                    None => Err(error),
                },
            },
            Lookup::Live(resource, name) => {
                let namespace = Some(name.namespace.as_str()).filter(|namespace| !namespace.is_empty());
                let object = newest_served(&self.client, *resource, namespace, &name.name).await?;
                Ok(found(object, LookupResult::Object))
            }
            Lookup::NamespaceLabels(name) => self.labels("namespaces", name).await,
            Lookup::NodeLabels(name) => self.labels("nodes", name).await,
            Lookup::PodOwner { namespace, name } => {
                let path = format!("/api/v1/namespaces/{}/pods/{}", segment(namespace), segment(name));
                let pod: Option<Metadata> = self.object(&path).await?;
                Ok(found(pod, |pod| LookupResult::Pod(owner(&pod.metadata))))
            }
            Lookup::Revision(wanted) => {
                let revision = revision(&self.client, &self.namespace, wanted).await?;
                Ok(found(revision, LookupResult::Object))
            }
            Lookup::Setting(name) => {
                let text = settings::read(&self.client, &self.namespace, name).await?;
                Ok(found(text, LookupResult::Text))
            }
            Lookup::Path(path) => Ok(found(self.object(path).await?, LookupResult::Object)),
            Lookup::Dependants(wanted) => {
                let number = dependants::count(&self.client, wanted).await;
                Ok(LookupResult::Count(number.map_err(|error| error.to_string())))
            }
            Lookup::PodTemplate { namespace, template } => {
                let causes = self.templates.causes(namespace, template).await;
                Ok(LookupResult::Causes(causes))
            }
            Lookup::DryRunCreate { plural, object } => self.dry_run(plural, object).await,
            Lookup::Pod(name) | Lookup::LivePod(name) => {
                let (namespace, name) = (segment(&name.namespace), segment(&name.name));
                let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
                let pod: Option<PodView> = self.object(&path).await?;
                Ok(found(pod, |pod| LookupResult::View(Arc::new(pod))))
            }
            Lookup::Owner { namespace, workload } => Ok(
                match self.workloads.read(namespace, workload, Aspect::Owner).await? {
                    Known::Found(view) => LookupResult::Owner(view.controller.as_deref().map(Workload::from)),
                    Known::Gone => LookupResult::NotFound,
                    Known::Unreadable | Known::NotYet => LookupResult::Owner(None),
                },
            ),
            Lookup::Workload { namespace, workload } => {
                let object = self.workloads.object(namespace, workload).await?;
                Ok(found(object, LookupResult::Object))
            }
            Lookup::Replicas { namespace, workload } => {
                Ok(LookupResult::Replicas(self.replicas(namespace, workload).await))
            }
            Lookup::Wanted { namespace, pod, .. } => {
                Ok(LookupResult::Wanted(self.workloads.wanted(namespace, pod).await?))
            }
            Lookup::NamespaceEnds(name) => Ok(LookupResult::Ends(self.is_ending(name).await)),
            Lookup::BlindAgent(node) => Ok(LookupResult::Has(self.has_blind_agent(node).await?)),
            Lookup::Workloads {
                namespace,
                controller,
            } => Ok(LookupResult::Workloads(self.owners(namespace, controller).await)),
        }
    }

    /// The workloads of a pod with this controller, as far as they are soon known.
    async fn owners(&self, namespace: &str, controller: &Workload) -> Vec<Workload> {
        let owners = self.workloads.owners(namespace, controller, &|_| None);
        // The controller itself is known from the pod.
        let owners = timeout(OWNERS, owners).await;
        owners.unwrap_or_else(|_| vec![controller.clone()])
    }

    /// Is a namespace being deleted? Not if that is not soon known.
    async fn is_ending(&self, name: &str) -> bool {
        let path = format!("/api/v1/namespaces/{}", segment(name));
        let namespace = timeout(SHORT, self.object::<Metadata>(&path)).await;
        let namespace = namespace.ok().and_then(Result::ok).flatten();
        namespace.is_some_and(|one| one.metadata.deletion_timestamp.is_some())
    }

    /// Has a node an agent that does not read pods?
    async fn has_blind_agent(&self, node: &str) -> Result<bool, ApiError> {
        let (namespace, [key, value]) = (segment(&self.namespace), AGENT_LABEL);
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods?labelSelector={key}%3D{value},%21{}&fieldSelector=spec.nodeName%3D{}&limit=1",
            segment(READS_PODS),
            segment(node),
        );
        let pods: Option<Value> = self.object(&path).await?;
        let pods = pods.as_ref().and_then(|list| list.get("items")?.as_array());
        Ok(pods.is_some_and(|pods| !pods.is_empty()))
    }

    async fn object<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ApiError> {
        existing(self.client.get(path).await)
    }

    async fn labels(&self, plural: &str, name: &str) -> Result<LookupResult, ApiError> {
        let path = format!("/api/v1/{plural}/{}", segment(name));
        let object: Option<Metadata> = self.object(&path).await?;
        Ok(found(object, |object| {
            LookupResult::Labels(object.metadata.labels)
        }))
    }

    /// Creates the object in the manager's namespace as a dry run. A refusal of the object is a result, and any other
    /// failure is an error.
    async fn dry_run(&self, plural: &str, object: &str) -> Result<LookupResult, ApiError> {
        let mut object: Value = serde_json::from_str(object).unwrap_or_default();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), self.namespace.as_str().into());
        }
        let path = format!("/api/v1/namespaces/{}/{plural}", segment(&self.namespace));
        let Err(error) = self.client.would_create(&path, &object).await else {
            return Ok(LookupResult::Accepted);
        };
        match error.status() {
            Some(status) if matches!(status.code, 400 | 403 | 409 | 413 | 422) => {
                Ok(LookupResult::Refused(Refusal {
                    code: status.code,
                    message: status.message.clone(),
                }))
            }
            _ => Err(error),
        }
    }
}

fn found<T>(object: Option<T>, result: impl FnOnce(T) -> LookupResult) -> LookupResult {
    object.map_or(LookupResult::NotFound, result)
}

fn owner(metadata: &ObjectMeta) -> Pod {
    Pod {
        controller: metadata.controller().map(|owner| owner.uid.clone()),
        deleting: metadata.deletion_timestamp.is_some(),
    }
}

/// An object of a kind of ours, in the newest served version.
async fn newest_served(
    client: &Client,
    resource: ResourceId,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Value>, ApiError> {
    for version in VERSIONS {
        let path = path_of_kind(resource, version, namespace);
        let path = format!("{path}/{}", segment(name));
        if let Some(found) = existing(client.get(&path).await)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// All objects of a kind of ours in a namespace, in the newest served version; none if the kind is not served.
async fn listed(client: &Client, kind: &Kind, namespace: &str) -> Result<Vec<Value>, ApiError> {
    for version in VERSIONS {
        let path = path_of_kind(ResourceId::of(kind), version, namespace_of(kind, namespace));
        if let Some(mut list) = existing(client.get::<List>(&path).await)? {
            // The items of a list do not say their version.
            for object in list.items.iter_mut().filter_map(Value::as_object_mut) {
                object.insert("apiVersion".into(), format!("{}/{version}", kind.group).into());
            }
            return Ok(list.items);
        }
    }
    Ok(Vec::new())
}

/// The namespace of the objects of a kind; `None` if they are in none, whatever a request says.
fn namespace_of<'n>(kind: &Kind, namespace: &'n str) -> Option<&'n str> {
    (kind.scope == Scope::Namespaced).then_some(namespace)
}

/// The path of a collection.
fn path_of_kind(resource: ResourceId, version: &str, namespace: Option<&str>) -> String {
    let ResourceId { group, plural } = resource;
    match namespace {
        None => format!("/apis/{group}/{version}/{plural}"),
        Some(namespace) => format!(
            "/apis/{group}/{version}/namespaces/{}/{plural}",
            segment(namespace)
        ),
    }
}

async fn revision(client: &Client, namespace: &str, wanted: &Revision) -> Result<Option<Value>, ApiError> {
    let path = path_of(namespace, wanted);
    match wanted {
        Revision::Named(_) => existing(client.get(&path).await),
        Revision::Newest(_) => {
            let list: List = client.get(&path).await?;
            Ok(newest(list.items))
        }
    }
}

/// Path of a revision, or of the list with it. Names and labels are escaped: they come from objects that may have
/// been stored before webhooks validated them.
fn path_of(namespace: &str, wanted: &Revision) -> String {
    let path = format!(
        "/apis/apps/v1/namespaces/{}/controllerrevisions",
        segment(namespace)
    );
    match wanted {
        Revision::Named(name) => format!("{path}/{}", segment(name)),
        Revision::Newest(labels) => {
            let labels: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            format!("{path}?labelSelector={}", segment(&labels.join(",")))
        }
    }
}

/// The revision with the highest number.
pub fn newest(revisions: Vec<Value>) -> Option<Value> {
    let number = |revision: &Value| {
        revision
            .get("revision")
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    revisions.into_iter().max_by_key(number)
}

fn existing<T>(result: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::workloads::Workload;
    use serde_json::json;

    use super::*;
    use crate::workloads::testing;

    #[test]
    fn names_and_labels_of_revisions_are_escaped_in_requests() {
        let named = Revision::Named("../x?y".into());
        assert_eq!(
            path_of("a/b", &named),
            "/apis/apps/v1/namespaces/a%2Fb/controllerrevisions/..%2Fx%3Fy"
        );
        let versioned = Revision::Newest(vec![("set", "s".into()), ("version", "1&limit=1".into())]);
        let path = path_of("ns", &versioned);
        assert!(path.ends_with("%3D1%26limit%3D1"), "{path}");
    }

    #[tokio::test]
    async fn the_kind_of_an_owner_is_looked_up_for_the_first_of_many_new_pods_only() {
        let answers = testing::games();
        // As servers say that there is no such object.
        let gone =
            json!({"reason": "NotFound", "code": 404, "message": "games.example.com \"one\" not found"});
        answers.set(testing::GAME, 404, gone);
        let server = Server::new(answers.client(), "kruise-system");
        let owners = Lookup::Workloads {
            namespace: "shop".into(),
            controller: Workload::new("example.com", "Game", "one"),
        };
        for requests in [4, 1, 1] {
            server.get(&owners).await.unwrap();
            assert_eq!(answers.asked("/apis").len(), requests);
        }
    }
}
