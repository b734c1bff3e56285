//! What a review has to know of other objects, and how it asks for it.
//!
//! A review is a pure function of its request and of [`Lookups`], the results so far. What is not among them it names
//! ([`Outcome::Missing`]), and is made again once the caller has looked it up: in a cache, by a request, in a file.
//! So a rule is written as if it could read the cluster.
//!
//! Objects of a kind of ours are looked up by [`Lookup::one`] and [`Lookup::all`], for which the kind implements
//! [`Stored`].
//!
//! # To add another lookup
//! Add a variant to [`Lookup`], say which [`LookupResult`] answers it, and read it with the accessor of that
//! result. The caches and the requests that answer lookups match on every variant: the compiler names them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kruise_api::{meta::StringMap, resource::ResourceId};
use kruise_plan_kit::workloads::{Ownership, Wanted, Workload};
use kruise_views::PodView;
use serde::Deserialize;
use serde_json::Value;

mod stored;

use self::stored::Untyped;
pub use self::stored::{Decoded, Stored, StoredKind, readable};
use crate::Response;
pub use crate::protocol::ObjectName;
use crate::protocol::{Counted, Dependants, Write};
use crate::refused::Refused;
use crate::widening::Widening;

/// Where [settings](Lookup::Setting) are, for messages.
pub(crate) const CONFIGURATION: &str = "ConfigMap kruise-configuration in the namespace of the manager (kruise-system unless it was installed elsewhere)";

/// What comes of a review.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is decided.
    Response(Response),
    /// It depends on these, and has to be made again with their results.
    Missing(Vec<Lookup>),
    /// It is decided, but the response must not be sent before webhooks are called for more requests.
    Widen(Vec<Widening>, Response),
    /// It is allowed once this is stored. If somebody else was faster, it has to be made again with the object as
    /// it is then.
    Write(Box<Write>),
    /// It depends on somebody else's write, and has to be made again after this time with new results of these lookups.
    Retry(Duration, Vec<Lookup>),
    /// It is refused, which is to be counted and logged.
    Refused(Box<Refused>, Response),
}

impl From<Response> for Outcome {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

/// Something to look up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// An object of a kind of ours: [`LookupResult::One`].
    One(StoredKind, ObjectName),
    /// All objects of a kind of ours in a namespace: [`LookupResult::All`].
    All(StoredKind, String),
    /// An object of ours as the server has it now: [`LookupResult::Object`].
    Live(ResourceId, ObjectName),
    /// Labels of the namespace of this name: [`LookupResult::Labels`].
    NamespaceLabels(String),
    /// Labels of the node of this name: [`LookupResult::Labels`].
    NodeLabels(String),
    /// Who owns a pod: [`LookupResult::Pod`].
    PodOwner {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
    /// A ControllerRevision in the manager's namespace: [`LookupResult::Object`].
    Revision(Revision),
    /// An entry of the ConfigMap of the manager's configuration: [`LookupResult::Text`].
    Setting(&'static str),
    /// The object, or the list of objects, at this path: [`LookupResult::Object`].
    Path(String),
    /// Whether an object could be created in the manager's namespace; nothing is stored: [`LookupResult::Accepted`] or
    /// [`LookupResult::Refused`].
    DryRunCreate {
        /// The resource, of the core group.
        plural: &'static str,
        /// The object as JSON, so that lookups have an order. Its namespace does not matter.
        object: String,
    },
    /// What the server finds wrong with a pod template; nothing is stored: [`LookupResult::Causes`].
    PodTemplate {
        /// The namespace of the object that has it; empty for one that is in none.
        namespace: String,
        /// The template as JSON, so that lookups have an order.
        template: String,
    },
    /// How many dependants an object has: [`LookupResult::Count`].
    Dependants(Dependants),
    /// A pod as a cache has it, or as the server has it if the cache lacks it: [`LookupResult::View`].
    Pod(ObjectName),
    /// A pod as the server has it now: [`LookupResult::View`].
    LivePod(ObjectName),
    /// The controller of a workload: [`LookupResult::Owner`].
    Owner {
        /// Its namespace.
        namespace: String,
        /// The workload.
        workload: Workload,
    },
    /// A workload as it is stored: [`LookupResult::Object`].
    Workload {
        /// Its namespace.
        namespace: String,
        /// The workload.
        workload: Workload,
    },
    /// `spec.replicas` of a workload, if that is known soon: [`LookupResult::Replicas`].
    Replicas {
        /// Its namespace.
        namespace: String,
        /// The workload.
        workload: Workload,
    },
    /// Whether anybody wants a pod to run: [`LookupResult::Wanted`]. Nobody does only if the API server has just said
    /// so.
    Wanted {
        /// Namespace of the pod.
        namespace: String,
        /// What the pod says of its owners.
        pod: Box<Ownership>,
        /// What else is believed.
        belief: Belief,
    },
    /// Whether a namespace is being deleted, if that is known soon: [`LookupResult::Ends`].
    NamespaceEnds(String),
    /// Whether the node of this name has an agent that does not read pods, as OpenKruise's: [`LookupResult::Has`].
    BlindAgent(String),
    /// The workloads that a new pod belongs to, from its controller upwards: [`LookupResult::Workloads`].
    Workloads {
        /// Namespace of the pod.
        namespace: String,
        /// Controller of the pod.
        controller: Workload,
    },
}

/// Which ControllerRevision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The one of this name.
    Named(String),
    /// The newest with these labels.
    Newest(Vec<(&'static str, String)>),
}

/// What a cache is believed of the owners of a pod, whose kind may have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Belief {
    /// That they want pods. Everything else is read.
    Wanting,
    /// The same. Owners without a cache are not read: they want pods.
    Uncached,
    /// That they want pods or none, and that they are being deleted. That they are gone is read.
    Scale,
}

/// What a lookup found.
#[derive(Clone, Debug)]
pub enum LookupResult {
    /// The object as stored, or the list.
    Object(Value),
    /// An object of a kind of ours, or why it cannot be read: made by [`LookupResult::one`].
    One(Untyped),
    /// The objects of a kind of ours that can be read, sorted by name; none where it is not served: made by
    /// [`LookupResult::all`].
    All(Untyped),
    /// Labels of the object.
    Labels(StringMap),
    /// What decides about a pod.
    Pod(Pod),
    /// The text of a setting.
    Text(String),
    /// So many, or why they cannot be counted.
    Count(Result<u64, String>),
    /// A pod.
    View(Arc<PodView>),
    /// The controller of a workload that exists; `None` if it has none, or cannot be read.
    Owner(Option<Workload>),
    /// The replicas; `None` if they are not known.
    Replicas(Option<i32>),
    /// Workloads.
    Workloads(Vec<Workload>),
    /// Whether a pod is wanted; never [`Wanted::NotYet`].
    Wanted(Wanted),
    /// It is being deleted, or not.
    Ends(bool),
    /// There is one.
    Has(bool),
    /// The object does not exist, or the setting is not there.
    NotFound,
    /// What is wrong with a pod template. Nothing if the server accepts it, and nothing without a verdict.
    Causes(Vec<Cause>),
    /// The server would store the object.
    Accepted,
    /// The server would not store the object.
    Refused(Refusal),
}

/// A pod that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// UID of its controller, if it has one.
    pub controller: Option<String>,
    /// It has a `deletionTimestamp`.
    pub deleting: bool,
}

/// One thing that a server finds wrong with a pod template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Cause {
    /// The field, from the template on, such as `spec.dnsPolicy`; empty if it is the template.
    #[serde(default)]
    pub field: String,
    /// What is wrong with it, in the server's words.
    #[serde(default)]
    pub message: String,
}

/// Why a server would not store an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// The server's message.
    pub message: String,
}

/// The results so far.
#[derive(Clone, Debug, Default)]
pub struct Lookups {
    results: BTreeMap<Lookup, LookupResult>,
    /// The results with what this review has to store, which is stored.
    stored: BTreeSet<Lookup>,
    /// The results that the API server has just given.
    live: BTreeSet<Lookup>,
}

impl FromIterator<(Lookup, LookupResult)> for Lookups {
    fn from_iter<T: IntoIterator<Item = (Lookup, LookupResult)>>(results: T) -> Self {
        Self {
            results: results.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl Lookups {
    /// Adds a result.
    pub fn insert(&mut self, lookup: Lookup, result: LookupResult) {
        self.stored.remove(&lookup);
        self.live.remove(&lookup);
        self.results.insert(lookup, result);
    }

    /// Adds a result that the API server has just given: it is not out of date.
    pub fn insert_live(&mut self, lookup: Lookup, result: LookupResult) {
        self.insert(lookup.clone(), result);
        self.live.insert(lookup);
    }

    /// Adds the object that this review wanted to be stored, as it is stored.
    pub fn insert_stored(&mut self, lookup: Lookup, result: LookupResult) {
        self.insert(lookup.clone(), result);
        self.stored.insert(lookup);
    }

    /// Is what this review has to store in this object stored?
    pub(crate) fn is_stored(&self, lookup: &Lookup) -> bool {
        self.stored.contains(lookup)
    }

    /// Is the result up to date?
    pub(crate) fn is_live(&self, lookup: &Lookup) -> bool {
        self.live.contains(lookup)
    }

    /// Forgets a result.
    pub fn remove(&mut self, lookup: &Lookup) {
        self.stored.remove(lookup);
        self.live.remove(lookup);
        self.results.remove(lookup);
    }

    /// Is there a result?
    pub fn contains(&self, lookup: &Lookup) -> bool {
        self.results.contains_key(lookup)
    }

    /// How many dependants there are.
    pub(crate) fn counted(&self, dependants: &Dependants) -> Counted {
        match self.results.get(&Lookup::Dependants(dependants.clone())) {
            Some(LookupResult::Count(Ok(number))) => Counted::Number(*number),
            Some(LookupResult::Count(Err(why))) => Counted::Failed(why.clone()),
            _ => Counted::Missing,
        }
    }

    /// A pod, live or not; `None` if it does not exist.
    pub(crate) fn pod(&self, lookup: Lookup) -> Result<Option<&Arc<PodView>>, Lookup> {
        self.read(lookup, |result| match result {
            LookupResult::View(pod) => Some(pod),
            _ => None,
        })
    }

    /// An object of a kind of ours, or why it cannot be read; `None` if it does not exist.
    pub(crate) fn one<T: Stored>(&self, name: ObjectName) -> Result<Option<&Decoded<T>>, Lookup> {
        self.read(Lookup::one::<T>(name), LookupResult::as_one::<T>)
    }

    /// All objects of a kind of ours in a namespace; `None` if they cannot be looked up.
    pub(crate) fn all<T: Stored>(&self, namespace: &str) -> Result<Option<&T::All>, Lookup> {
        self.read(Lookup::all::<T>(namespace), LookupResult::as_all::<T>)
    }

    /// The objects of a kind of ours in a namespace. None if they cannot be looked up.
    pub(crate) fn list<T: Stored<All = Vec<Arc<T>>>>(&self, namespace: &str) -> Result<&[Arc<T>], Lookup> {
        let all = self.all::<T>(namespace)?;
        Ok(all.map(Vec::as_slice).unwrap_or_default())
    }

    /// The controller of a workload, or nothing if it has none; `None` if the workload does not exist.
    pub(crate) fn owner(&self, lookup: Lookup) -> Result<Option<&[Workload]>, Lookup> {
        self.read(lookup, |result| match result {
            LookupResult::Owner(owner) => Some(owner.as_slice()),
            _ => None,
        })
    }

    /// The replicas of a workload; `None` if they are not known.
    pub(crate) fn replicas(&self, lookup: Lookup) -> Result<Option<i32>, Lookup> {
        let found = self.read(lookup, |result| match result {
            LookupResult::Replicas(replicas) => Some(*replicas),
            _ => None,
        })?;
        Ok(found.flatten())
    }

    /// A setting; `None` if it is not there.
    pub(crate) fn setting(&self, name: &'static str) -> Result<Option<&str>, Lookup> {
        self.read(Lookup::Setting(name), |result| match result {
            LookupResult::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// The workloads that a pod belongs to. None if they cannot be looked up.
    pub(crate) fn workloads(&self, lookup: Lookup) -> Result<&[Workload], Lookup> {
        let workloads = self.read(lookup, |result| match result {
            LookupResult::Workloads(workloads) => Some(workloads.as_slice()),
            _ => None,
        });
        workloads.map(Option::unwrap_or_default)
    }

    /// Whether a pod is wanted.
    pub(crate) fn wanted(&self, lookup: Lookup) -> Result<&Wanted, Lookup> {
        match self.results.get(&lookup) {
            Some(LookupResult::Wanted(wanted)) => Ok(wanted),
            _ => Err(lookup),
        }
    }

    /// Whether a namespace is being deleted.
    pub(crate) fn ends(&self, namespace: &str) -> Result<bool, Lookup> {
        let lookup = Lookup::NamespaceEnds(namespace.to_owned());
        match self.results.get(&lookup) {
            Some(LookupResult::Ends(ends)) => Ok(*ends),
            _ => Err(lookup),
        }
    }

    /// An object or list; `None` if it does not exist.
    pub(crate) fn object(&self, lookup: Lookup) -> Result<Option<&Value>, Lookup> {
        self.read(lookup, |result| match result {
            LookupResult::Object(object) => Some(object),
            _ => None,
        })
    }

    /// Labels of an object; `None` if it does not exist.
    pub(crate) fn labels(&self, lookup: Lookup) -> Result<Option<&StringMap>, Lookup> {
        self.read(lookup, |result| match result {
            LookupResult::Labels(labels) => Some(labels),
            _ => None,
        })
    }

    /// `None` if it does not exist. A result that does not fit the lookup is none: it is asked for again.
    fn read<'a, T>(
        &'a self,
        lookup: Lookup,
        read: impl FnOnce(&'a LookupResult) -> Option<T>,
    ) -> Result<Option<T>, Lookup> {
        match self.results.get(&lookup) {
            Some(LookupResult::NotFound) => Ok(None),
            result => result.and_then(read).map(Some).ok_or(lookup),
        }
    }
}

/// What a rule reads.
pub enum Read<T> {
    /// It is there.
    Found(T),
    /// It is known not to be there.
    NotFound,
    /// It has yet to be looked up.
    Missing,
}

impl<T> Read<T> {
    /// What is known to be there.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::NotFound | Self::Missing => None,
        }
    }
}

/// Reads results for rules that go on without those that are missing, and notes which are.
pub struct Reader<'a> {
    pub(crate) lookups: &'a Lookups,
    missing: Vec<Lookup>,
}

impl<'a> Reader<'a> {
    /// Nothing is missing yet.
    pub fn new(lookups: &'a Lookups) -> Self {
        Self {
            lookups,
            missing: Vec::new(),
        }
    }

    /// An object or list.
    pub fn object(&mut self, lookup: Lookup) -> Read<&'a Value> {
        let result = self.lookups.object(lookup);
        self.read(result)
    }

    /// Labels of an object.
    pub fn labels(&mut self, lookup: Lookup) -> Read<&'a StringMap> {
        let result = self.lookups.labels(lookup);
        self.read(result)
    }

    /// Is there one, of what is answered with [`LookupResult::Has`]? Not while that has yet to be looked up.
    pub fn has(&mut self, lookup: Lookup) -> bool {
        let result = self.lookups.read(lookup, |result| match result {
            LookupResult::Has(has) => Some(*has),
            _ => None,
        });
        matches!(self.read(result), Read::Found(true))
    }

    /// A pod.
    pub fn pod(&mut self, namespace: &str, name: &str) -> Read<&'a Pod> {
        let lookup = Lookup::PodOwner {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let result = self.lookups.read(lookup, |result| match result {
            LookupResult::Pod(pod) => Some(pod),
            _ => None,
        });
        self.read(result)
    }

    /// A setting.
    pub fn setting(&mut self, name: &'static str) -> Read<&'a str> {
        let result = self.lookups.setting(name);
        self.read(result)
    }

    /// Whether the server would store an object; `None` while that is missing.
    pub fn dry_run(&mut self, plural: &'static str, object: &Value) -> Option<Result<(), &'a Refusal>> {
        let lookup = Lookup::DryRunCreate {
            plural,
            object: object.to_string(),
        };
        let result = match self.lookups.results.get(&lookup) {
            Some(LookupResult::Accepted) => Ok(Ok(())),
            Some(LookupResult::Refused(refusal)) => Ok(Err(refusal)),
            _ => Err(lookup),
        };
        self.noted(result)
    }

    /// What the server finds wrong with a pod template of an object in this namespace; `None` while that is missing.
    pub fn causes(&mut self, namespace: &str, template: &Value) -> Option<&'a [Cause]> {
        let lookup = Lookup::PodTemplate {
            namespace: namespace.to_owned(),
            template: template.to_string(),
        };
        let result = self.lookups.read(lookup, |result| match result {
            LookupResult::Causes(causes) => Some(causes.as_slice()),
            _ => None,
        });
        self.noted(result).map(Option::unwrap_or_default)
    }

    /// Is everything there that was read?
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// The response, unless something is missing that it depends on.
    pub fn outcome(self, response: impl FnOnce() -> Response) -> Outcome {
        if self.missing.is_empty() {
            Outcome::Response(response())
        } else {
            Outcome::Missing(self.missing)
        }
    }

    fn read<T>(&mut self, result: Result<Option<T>, Lookup>) -> Read<T> {
        match self.noted(result) {
            Some(Some(found)) => Read::Found(found),
            Some(None) => Read::NotFound,
            None => Read::Missing,
        }
    }

    /// A result; `None` while it is missing.
    pub fn noted<T>(&mut self, result: Result<T, Lookup>) -> Option<T> {
        result
            .map_err(|lookup| {
                if !self.missing.contains(&lookup) {
                    self.missing.push(lookup);
                }
            })
            .ok()
    }
}
