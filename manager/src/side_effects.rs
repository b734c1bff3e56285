//! Side effects of reviews, by what came of the requests that they were for.
//!
//! Whoever reaches the port of the webhooks can send a review of a request that nobody makes. A review that charges
//! a budget, counts a pod or widens a condition has its effect before anybody can tell. Afterwards the cluster
//! tells: the pod goes, the object appears. An effect that nothing comes of within [`JUDGED`] is *vain*.
//!
//! # What it promises
//! - The pod of a vain charge, or of a slot that was freed in vain, causes none again for [`FIRST`].
//! - A peer has no effect in a namespace for a while, if more of its effects there were vain lately than were not, and
//!   that again and again: [`FIRST`] after the second time, and twice as long after each further one, up to
//!   [`LONGEST`].
//! - What creates is never held back, only counted: a quota that refuses a pod makes its effect vain, too, and an
//!   object may be gone before a cache shows it. Its effects are limited where they are made.
//! - A review that may have no effect is answered with "try again", and is not let pass without.
//! - What one namespace or one peer does is of no consequence for others. The memory is bounded.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_admission::{Operation, Request, widening::StoredSoon};
use kruise_kinds::webhook_caches::ReviewCache;
use kruise_runtime::metrics::PodMetrics;
use kube_cache::ObjectKey;
use tokio::time::{Instant, sleep};

/// How long a charge lasts at least, and caches may be behind.
const JUDGED: Duration = Duration::from_secs(30);
/// How often it is looked whether a request came meanwhile: what appears may soon be gone.
const LOOKS: u32 = 60;
/// The first pause.
const FIRST: Duration = Duration::from_mins(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_mins(10);
/// How long it is remembered what came of effects.
const REMEMBERED: Duration = Duration::from_mins(30);
/// Largest number of entries of each kind.
const MOST: usize = 10_000;

/// Who calls; `None` if that is not known.
pub(super) type Peer = Option<IpAddr>;

/// An effect that a review is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SideEffect {
    /// For the metric: `charge`, `count` or `widening`.
    pub(super) kind: &'static str,
    namespace: String,
    /// Name of the object.
    name: String,
    sign: Sign,
}

/// What shows that the request was one of the API server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// The pod goes, or has another version if one is given. An empty uid is any.
    PodChanges { uid: String, version: Option<String> },
    /// A pod of the name appears.
    PodAppears,
    /// The object is stored.
    Stored(Arc<StoredSoon>),
}

/// What caches have.
pub(super) trait Signs: Send + Sync {
    /// Did it show? `None` if no cache can tell.
    fn shows(&self, namespace: &str, name: &str, sign: &Sign) -> Option<bool>;
}

impl SideEffect {
    /// Of a request about a pod; `None` if the pod has no name yet.
    pub(super) fn of_pod(kind: &'static str, request: &Request) -> Option<Self> {
        let text = |pointer: &str| {
            let text = request.old_object.pointer(pointer).and_then(|one| one.as_str());
            text.unwrap_or_default().to_owned()
        };
        let sign = match request.operation {
            Operation::Create if request.sub_resource.is_empty() => Sign::PodAppears,
            Operation::Update => Sign::PodChanges {
                uid: text("/metadata/uid"),
                version: Some(text("/metadata/resourceVersion")),
            },
            _ => Sign::PodChanges {
                uid: text("/metadata/uid"),
                version: None,
            },
        };
        (!request.name.is_empty()).then(|| Self {
            kind,
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            sign,
        })
    }

    /// That a condition is widened for an object.
    pub(super) fn widening(object: &Arc<StoredSoon>) -> Self {
        Self {
            kind: "widening",
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            sign: Sign::Stored(object.clone()),
        }
    }

    fn creates(&self) -> bool {
        !matches!(self.sign, Sign::PodChanges { .. })
    }
}

impl Signs for ReviewCache {
    fn shows(&self, namespace: &str, name: &str, sign: &Sign) -> Option<bool> {
        if let Sign::Stored(object) = sign {
            return self.webhook_caches.has_stored(object);
        }
        self.pods.synced_version()?;
        let pod = self.pods.snapshot().get(&ObjectKey::new(namespace, name));
        Some(match (sign, pod) {
            (Sign::PodAppears, pod) => pod.is_some(),
            (Sign::PodChanges { uid, version }, Some(pod)) => {
                let is_other = !uid.is_empty() && **uid != *pod.uid;
                let is_newer = version
                    .as_ref()
                    .is_some_and(|version| **version != *pod.resource_version);
                is_other || is_newer || pod.deleting
            }
            (Sign::PodChanges { .. }, None) | (Sign::Stored(_), _) => true,
        })
    }
}

/// What came of effects. Cloning shares it.
#[derive(Clone)]
pub(super) struct SideEffects {
    signs: Arc<dyn Signs>,
    metrics: PodMetrics,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// Pods of vain effects, by namespace and name, and until when they cause none.
    held: BTreeMap<(String, String), Instant>,
    /// By peer and namespace.
    records: BTreeMap<(Peer, String), Record>,
    /// How many effects wait for their signs.
    open: usize,
}

/// What came of the effects of a peer in a namespace.
#[derive(Clone, Copy)]
struct Record {
    /// Those whose requests were real.
    real: u32,
    vain: u32,
    /// How often in a row it was found that most are vain.
    strikes: u32,
    /// The last time.
    struck: Option<Instant>,
    held_until: Instant,
    last: Instant,
}

impl Record {
    fn new(now: Instant) -> Self {
        Self {
            real: 0,
            vain: 0,
            strikes: 0,
            struck: None,
            held_until: now,
            last: now,
        }
    }

    /// An effect that began then was vain.
    fn is_vain(&mut self, began: Instant, now: Instant) {
        self.vain = self.vain.saturating_add(1);
        // Effects that began before the last time are of that time.
        if self.vain <= self.real || self.struck.is_some_and(|struck| began < struck) {
            return;
        }
        self.struck = Some(now);
        self.strikes = self.strikes.saturating_add(1);
        if let Some(doublings) = self.strikes.checked_sub(2) {
            let pause = FIRST.saturating_mul(1 << doublings.min(16)).min(LONGEST);
            self.held_until = now + pause;
        }
    }
}

impl SideEffects {
    /// Nothing has happened yet.
    pub(super) fn new(signs: Arc<dyn Signs>, metrics: PodMetrics) -> Self {
        Self {
            signs,
            metrics,
            known: Arc::default(),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// May a review of this peer have this effect now?
    ///
    /// # Errors
    /// How long it may not, in plain words.
    pub(super) fn may_have(&self, peer: Peer, effect: &SideEffect) -> Result<(), String> {
        if effect.creates() {
            return Ok(());
        }
        let now = Instant::now();
        let mut known = self.known();
        known.forget(now);
        let of_object = known.held.get(&key(effect)).copied();
        let record = known.records.get(&(peer, effect.namespace.clone()));
        let of_peer = record.map(|record| record.held_until);
        let left = |until: Instant| {
            let left = until.saturating_duration_since(now);
            (!left.is_zero()).then_some(left)
        };
        let why = match (of_object.and_then(left), of_peer.and_then(left)) {
            (Some(left), _) => {
                let name = &effect.name;
                (
                    left,
                    format!("a request for pod {name} was announced a moment ago and did not come"),
                )
            }
            (None, Some(left)) => (
                left,
                "most requests in this namespace that were announced from this address lately did not come"
                    .to_owned(),
            ),
            (None, None) => return Ok(()),
        };
        self.metrics.side_effect(effect.kind, "held");
        Err(format!("{}, which holds for {} s", why.1, why.0.as_secs() + 1))
    }

    /// A review of this peer had this effect. What comes of it is looked at in time.
    pub(super) fn has_had(&self, peer: Peer, effect: SideEffect) {
        {
            let mut known = self.known();
            if known.open >= MOST {
                return;
            }
            known.open += 1;
        }
        let (this, began) = (self.clone(), Instant::now());
        tokio::spawn(async move {
            let mut shows = None;
            for _ in 0..LOOKS {
                sleep(JUDGED / LOOKS).await;
                shows = this.signs.shows(&effect.namespace, &effect.name, &effect.sign);
                if shows == Some(true) {
                    break;
                }
            }
            this.judge(peer, &effect, began, shows);
        });
    }

    fn judge(&self, peer: Peer, effect: &SideEffect, began: Instant, shows: Option<bool>) {
        let now = Instant::now();
        let mut known = self.known();
        known.open = known.open.saturating_sub(1);
        let Some(is_real) = shows else {
            return;
        };
        self.metrics
            .side_effect(effect.kind, if is_real { "real" } else { "vain" });
        if effect.creates() {
            return;
        }
        let record = known
            .records
            .entry((peer, effect.namespace.clone()))
            .or_insert_with(|| Record::new(now));
        record.last = now;
        if is_real {
            record.real = record.real.saturating_add(1);
            return;
        }
        record.is_vain(began, now);
        known.held.insert(key(effect), now + FIRST);
    }
}

fn key(effect: &SideEffect) -> (String, String) {
    (effect.namespace.clone(), effect.name.clone())
}

impl Known {
    /// Forgets what is over, and the oldest of too many.
    fn forget(&mut self, now: Instant) {
        self.held.retain(|_, until| *until > now);
        self.records
            .retain(|_, record| now.saturating_duration_since(record.last) < REMEMBERED);
        while self.records.len() > MOST {
            let oldest = self.records.iter().min_by_key(|(_, record)| record.last);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.records.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use kruise_runtime::metrics::Metrics;
    use prometheus_client::registry::Registry;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    const STRANGER: Peer = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
    const SERVER: Peer = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));

    /// What shows of every request: the names of real ones begin with `real`.
    struct Names;

    impl Signs for Names {
        fn shows(&self, _: &str, object: &str, _: &Sign) -> Option<bool> {
            (object != "unknown").then(|| object.starts_with("real"))
        }
    }

    fn effects() -> SideEffects {
        let metrics = Metrics::register(&mut Registry::default(), &[]).pods;
        SideEffects::new(Arc::new(Names), metrics)
    }

    fn deletion(namespace: &str, name: &str) -> SideEffect {
        let review = json!({"operation": "DELETE", "namespace": namespace, "name": name, "kind": {"kind": "Pod"},
            "oldObject": {"metadata": {"uid": "u"}}});
        SideEffect::of_pod("charge", &Request::from_review(review).unwrap()).unwrap()
    }

    fn creation(name: &str) -> SideEffect {
        let review =
            json!({"operation": "CREATE", "namespace": "shop", "name": name, "kind": {"kind": "Pod"}});
        SideEffect::of_pod("count", &Request::from_review(review).unwrap()).unwrap()
    }

    /// Seconds until this effect may be had; 0 if it may, and then it is, and judged.
    async fn had(effects: &SideEffects, peer: Peer, effect: SideEffect) -> u64 {
        match effects.may_have(peer, &effect) {
            Ok(()) => {
                effects.has_had(peer, effect);
                sleep(JUDGED).await;
                tokio::task::yield_now().await;
                0
            }
            Err(why) => {
                let seconds = why.rsplit_once("for ").unwrap().1;
                seconds.trim_end_matches(" s").parse().unwrap()
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pod_of_a_vain_effect_waits_a_minute_and_another_one_does_not() {
        let effects = effects();
        assert_eq!(had(&effects, SERVER, deletion("shop", "a")).await, 0);
        assert_eq!(had(&effects, SERVER, deletion("shop", "a")).await, 61);
        assert_eq!(had(&effects, STRANGER, deletion("shop", "a")).await, 61);
        assert_eq!(had(&effects, SERVER, deletion("shop", "real-b")).await, 0);
        advance(Duration::from_secs(31)).await;
        assert_eq!(had(&effects, SERVER, deletion("shop", "a")).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_most_of_whose_effects_are_vain_waits_longer_each_time_and_others_do_not() {
        let effects = effects();
        let mut waits = Vec::new();
        for round in 0..13 {
            let effect = deletion("shop", &format!("pod-{round}"));
            let wait = had(&effects, STRANGER, effect.clone()).await;
            if wait > 0 {
                waits.push(wait - 1);
                assert_eq!(effects.may_have(SERVER, &effect), Ok(()));
                assert_eq!(effects.may_have(STRANGER, &deletion("other", "pod")), Ok(()));
                advance(Duration::from_secs(wait)).await;
            }
        }
        assert_eq!(waits, [60, 120, 240, 480, 600, 600]);
    }

    #[tokio::test(start_paused = true)]
    async fn real_effects_outweigh_vain_ones_and_what_nobody_can_tell_counts_for_nothing() {
        let effects = effects();
        for round in 0..6 {
            assert_eq!(
                had(&effects, SERVER, deletion("shop", &format!("real-{round}"))).await,
                0
            );
            assert_eq!(
                had(&effects, SERVER, deletion("shop", &format!("pod-{round}"))).await,
                0
            );
            assert_eq!(had(&effects, STRANGER, deletion("shop", "unknown")).await, 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_creates_is_never_held_back_and_holds_back_no_deletion() {
        let effects = effects();
        for round in 0..12 {
            let name = format!("pod-{}", round / 2);
            assert_eq!(had(&effects, SERVER, creation(&name)).await, 0);
        }
        assert_eq!(had(&effects, SERVER, deletion("shop", "pod-0")).await, 0);
    }
}
