//! The webhooks of a manager: one table, from which everything derives that has to agree.
//!
//! A row is a path, what is reviewed there, the function that reviews it, and how long that may take. The routes of a
//! manager and the printed configurations ([`crate::manifests`]) are both made of [`webhooks`], so that an API server
//! calls no path that is not served.
//!
//! The webhooks of a kind ([`KindWebhooks`]) are declared beside the kind, and named in its registration. Callers
//! pass those of all kinds in.

use std::time::Duration;

use crate::deletion::kinds::{self as protection, LABEL_PATH, LABEL_WEBHOOK, ProtectedKind};
use crate::disruption::{self, Requests};
use crate::kinds::KindWebhooks;
use crate::lookup::Lookups;
pub use crate::protocol::Phase;
use crate::{Options, Outcome, Request, pod};

/// Path of the pod webhook.
pub const MUTATE_POD: &str = "/mutate-pod";

/// What is reviewed.
#[derive(Clone, Copy)]
pub enum Subject {
    /// New pods.
    Pods,
    /// What makes pods unavailable.
    Disruptions(Requests),
    /// Objects of a kind.
    Kind(&'static KindWebhooks),
    /// Deletions of a kind that is not ours.
    Deletions(&'static ProtectedKind),
    /// The label that protects such a kind from deletion.
    ProtectionLabel,
}

/// How long a review may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// Seconds that the API server waits.
    pub server_seconds: u8,
    /// For all that is looked up for one review.
    pub lookups: Duration,
    /// For what is written before the response is sent.
    pub writes: Duration,
}

/// A pod waits.
const POD: TimeLimit = TimeLimit {
    server_seconds: 10,
    lookups: Duration::from_millis(300),
    writes: Duration::from_secs(5),
};

/// Whoever deletes or evicts a pod waits.
const DISRUPTION: TimeLimit = TimeLimit {
    server_seconds: 10,
    lookups: Duration::from_millis(300),
    writes: Duration::from_secs(4),
};

/// The author of an object waits.
const OBJECT: TimeLimit = TimeLimit {
    server_seconds: 30,
    lookups: Duration::from_secs(10),
    writes: Duration::from_secs(10),
};

/// Warns, and looks nothing up.
const LABEL: TimeLimit = TimeLimit {
    server_seconds: 2,
    lookups: Duration::from_secs(1),
    writes: Duration::ZERO,
};

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Webhook {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Which configuration it is in.
    pub phase: Phase,
    /// What is reviewed.
    pub subject: Subject,
}

/// The table, with the webhooks of these kinds.
pub fn webhooks(kinds: &[&'static KindWebhooks]) -> impl Iterator<Item = Webhook> {
    let pods = Webhook {
        name: "mpod.kb.io",
        phase: Phase::Mutating,
        subject: Subject::Pods,
    };
    let of_kinds = kinds.iter().copied().flat_map(|kind| {
        let phases = [
            (Phase::Mutating, kind.mutating),
            (Phase::Validating, kind.validating),
        ];
        let registered = phases
            .into_iter()
            .filter_map(|(phase, name)| Some((phase, name?)));
        registered.map(|(phase, name)| Webhook {
            name,
            phase,
            subject: Subject::Kind(kind),
        })
    });
    let validating = |name, subject| Webhook {
        name,
        phase: Phase::Validating,
        subject,
    };
    let of_deletions = protection::KINDS
        .iter()
        .map(move |kind| validating(kind.webhook, Subject::Deletions(kind)));
    let of_disruptions = [
        validating(disruption::PODS, Subject::Disruptions(Requests::OfPods)),
        validating(disruption::EVICTIONS, Subject::Disruptions(Requests::Evictions)),
    ];
    let of_label = validating(LABEL_WEBHOOK, Subject::ProtectionLabel);
    std::iter::once(pods)
        .chain(of_kinds)
        .chain(of_disruptions)
        .chain(of_deletions)
        .chain(std::iter::once(of_label))
}

impl Webhook {
    /// The path that is registered.
    pub fn path(&self) -> String {
        match self.subject {
            Subject::Pods => MUTATE_POD.to_owned(),
            Subject::Disruptions(_) => disruption::PATH.to_owned(),
            Subject::Kind(kind) => kind.path(self.verb()),
            Subject::Deletions(kind) => kind.path.to_owned(),
            Subject::ProtectionLabel => LABEL_PATH.to_owned(),
        }
    }

    /// Every path that is served: the registered one, and the one with a version that older charts registered.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = vec![self.path()];
        if let Subject::Kind(kind) = self.subject {
            paths.push(kind.older_path(self.verb()));
        }
        paths
    }

    /// How long a review may take.
    pub fn time_limit(&self) -> TimeLimit {
        match self.subject {
            Subject::Pods => POD,
            Subject::Disruptions(_) => DISRUPTION,
            Subject::Kind(_) | Subject::Deletions(_) => OBJECT,
            Subject::ProtectionLabel => LABEL,
        }
    }

    /// Reviews a request. `ended` is called after each step of the pod webhook with its name and what came of it.
    pub fn review(
        &self,
        request: &Request,
        options: Options,
        lookups: &Lookups,
        ended: &mut dyn FnMut(&'static str, &'static str),
    ) -> Outcome {
        match (self.subject, self.phase) {
            (Subject::Pods, _) => pod::review_timed(request, options, lookups, ended),
            (Subject::Disruptions(_), _) => disruption::review(request, options, lookups),
            (Subject::Deletions(kind), _) => kind.review(request, options, lookups),
            (Subject::ProtectionLabel, _) => protection::review_label(request, options),
            (Subject::Kind(kind), Phase::Mutating) => kind.mutate(request, options, lookups),
            (Subject::Kind(kind), Phase::Validating) => kind.validate(request, options, lookups),
        }
    }

    /// Has it something to do with requests of this operation? Otherwise it is not registered for them, so that nothing
    /// depends on it.
    pub fn is_needed(&self, operation: &str, options: Options) -> bool {
        match self.subject {
            Subject::Pods | Subject::Kind(_) => true,
            Subject::Disruptions(_) => match operation {
                "UPDATE" => options.budgets.updates,
                "CREATE" | "DELETE" => options.budgets.deletions || options.workload_spread,
                _ => options.has_budgets() || options.workload_spread,
            },
            Subject::Deletions(_) | Subject::ProtectionLabel => options.deletion_protection,
        }
    }

    /// Is it about pods: feature gate `PodWebhook`?
    pub fn is_of_pods(&self) -> bool {
        matches!(self.subject, Subject::Pods | Subject::Disruptions(_))
    }

    fn verb(&self) -> &'static str {
        match self.phase {
            Phase::Mutating => "mutate",
            Phase::Validating => "validate",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::ALL;

    #[test]
    fn every_kind_has_a_row_but_the_one_that_only_the_system_writes() {
        let rows: BTreeSet<&str> = ALL.iter().map(|one| one.kind.kind).collect();
        let kinds = kruise_api::kinds::ALL.into_iter().map(|kind| kind.kind);
        let expected: BTreeSet<&str> = kinds.filter(|kind| *kind != "NodePodProbe").collect();
        assert_eq!(rows, expected);
        assert_eq!(rows.len(), ALL.len());
    }

    #[test]
    fn no_name_and_no_path_is_taken_twice() {
        let mut names = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for webhook in webhooks(ALL) {
            assert!(names.insert(webhook.name), "{}", webhook.name);
            // Upstream has two entries for one path.
            if webhook.name == disruption::EVICTIONS {
                assert!(paths.contains(&webhook.path()));
                continue;
            }
            for path in webhook.paths().into_iter().collect::<BTreeSet<_>>() {
                assert!(paths.insert(path.clone()), "{path}");
            }
        }
        assert_eq!(names.len(), 1 + 11 + 16 + 2 + 7 + 1, "{names:?}");
    }
}
