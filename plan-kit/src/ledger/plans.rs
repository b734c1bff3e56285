//! What a plan charges to budgets.
//!
//! A plan asks before it takes a pod out of service, and leaves out the pods that it may not take. All pods that it
//! charges to one budget are in one write of that budget's status ([`Charges::write`]), which comes before the
//! pods: the first write of a pod is often one of its status, which no webhook sees. Where the budget was written
//! meanwhile, the charge fails, the pods are left alone, and the next plan asks again.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use jiff::Timestamp;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_views::PodView;
use serde_json::Value;

use super::{Account, Decision, Free, Gates, Operation, Refusal, Workload, budget_of, is_available};
use crate::{
    Intent, ResourceId,
    injected::is_injected,
    plan::{ObjectWrites, Phase, Plan},
    write::{Part, Patch, Precondition, Target, Write},
};

/// A budget, or why it cannot be read; `None` if there is none of that name.
pub type Found<'a> = Option<Result<&'a PodUnavailableBudget, &'a str>>;

/// Where budgets are found.
pub trait FindBudget {
    /// Finds a budget by its namespace and name. Asked only for pods that are about to become unavailable.
    fn find(&self, namespace: &str, name: &str) -> Found<'_>;
}

/// There are none.
struct Nowhere;

impl FindBudget for Nowhere {
    fn find(&self, _: &str, _: &str) -> Found<'_> {
        None
    }
}

/// The budgets that the pods of a snapshot may name.
#[derive(Clone, Copy)]
pub struct Budgets<'a> {
    /// Feature gates.
    pub gates: Gates,
    /// Where they are found.
    pub all: &'a dyn FindBudget,
}

impl Budgets<'static> {
    /// There are no budgets.
    pub const NONE: Self = Self {
        gates: Gates {
            deletions: false,
            updates: false,
            resizes_apart: false,
        },
        all: &Nowhere,
    };
}

/// What a rollout asks before it takes pods out of service.
pub trait Ask {
    /// Asks the budget of a pod, and charges it if that is needed. The outcome for a pod that was charged stays the
    /// same.
    ///
    /// # Errors
    /// Why the pod must stay available, in plain words.
    fn ask(&self, pod: &PodView, operation: Operation) -> Result<(), String>;

    /// How many pods which budgets keep, in words; empty if none.
    fn held(&self) -> String;
}

/// The accounts of the budgets that one plan has asked.
pub struct Charges<'a> {
    budgets: Budgets<'a>,
    /// The workload of the plan, and how many pods it is to have.
    workload: Option<(Workload, i32)>,
    /// Nobody wants its pods.
    is_unwanted: bool,
    now: Timestamp,
    asked: RefCell<BTreeMap<Key, Asked<'a>>>,
}

/// Namespace and name of a budget.
type Key = (String, String);

struct Asked<'a> {
    /// Or why the budget cannot be read.
    account: Result<Account<'a>, &'a str>,
    /// Names of the pods that are charged to it.
    charged: BTreeSet<String>,
    /// Names of the pods that it keeps.
    held: BTreeSet<String>,
}

impl<'a> Charges<'a> {
    /// Nothing is charged yet.
    pub fn new(budgets: Budgets<'a>, now: Timestamp) -> Self {
        Self {
            budgets,
            workload: None,
            is_unwanted: false,
            now,
            asked: RefCell::default(),
        }
    }

    /// A budget for this workload expects this many pods of it from now on, though it may have counted before that was
    /// specified. A budget that selects pods by labels expects those of several workloads: it is asked as it was
    /// counted.
    #[must_use]
    pub fn of_workload(self, workload: Workload, replicas: i32) -> Self {
        Self {
            workload: Some((workload, replicas)),
            ..self
        }
    }

    /// The workload wants no pods, and belongs to no other that may. Budgets of other workloads, too, let its pods go.
    #[must_use]
    pub fn unwanted(self, is_unwanted: bool) -> Self {
        Self { is_unwanted, ..self }
    }

    fn open(&self, found: Result<&'a PodUnavailableBudget, &'a str>) -> Asked<'a> {
        let account = found.map(|budget| {
            let mut account = Account::of(budget);
            if let Some((workload, replicas)) = &self.workload
                && account.is_counted()
                && let Some(target) = &budget.spec.target_ref
                && target.names(&workload.group, &workload.kind, &workload.name)
            {
                account.expect(*replicas);
            }
            account
        });
        Asked {
            account,
            charged: BTreeSet::new(),
            held: BTreeSet::new(),
        }
    }

    /// Adds the charges to a plan whose other writes are decided. Writes of charged pods come after the charge.
    pub fn write(&self, plan: &mut Plan) {
        for ((namespace, name), asked) in &*self.asked.borrow() {
            let Ok(account) = &asked.account else {
                continue;
            };
            let Some(patch) = account.patch().filter(|_| !asked.charged.is_empty()) else {
                continue;
            };
            let budget = Target {
                resource: kruise_api::podunavailablebudget::RESOURCE,
                namespace: namespace.clone(),
                name: name.clone(),
            };
            let is_charged = |target: &Target| {
                let is_pod = target.resource == ResourceId::PODS && target.namespace == *namespace;
                is_pod && asked.charged.contains(&target.name)
            };
            for object in &mut plan.writes {
                let mut targets = object.steps.iter().map(|step| step.write.target());
                if targets.any(is_charged) {
                    object.after = Some(Box::new(budget.clone()));
                }
            }
            plan.writes
                .push(charge(account, budget, patch, asked.charged.len()));
        }
    }
}

impl Ask for Charges<'_> {
    fn ask(&self, pod: &PodView, operation: Operation) -> Result<(), String> {
        let is_limited = self.budgets.gates.limit(operation) && !is_injected("BudgetUnasked");
        let Some(name) = budget_of(pod).filter(|_| is_limited) else {
            return Ok(());
        };
        let mut asked = self.asked.borrow_mut();
        let key = (pod.namespace.to_string(), name.to_owned());
        if !asked.contains_key(&key)
            && let Some(found) = self.budgets.all.find(&key.0, &key.1)
        {
            asked.insert(key.clone(), self.open(found));
        }
        asked.get_mut(&key).map_or(Ok(()), |asked| {
            if self.is_unwanted && asked.is_of_labels() {
                return Ok(());
            }
            asked.decide(name, pod, (operation, self.budgets.gates), self.now)
        })
    }

    fn held(&self) -> String {
        let mut text = String::new();
        for ((_, name), asked) in &*self.asked.borrow() {
            let count = asked.held.len();
            if count > 0 {
                let comma = if text.is_empty() { "" } else { ", " };
                let _ = write!(text, "{comma}{count} held by PodUnavailableBudget {name}");
            }
        }
        text
    }
}

impl Asked<'_> {
    /// Does the budget select pods, of whatever workloads?
    fn is_of_labels(&self) -> bool {
        let account = self.account.as_ref();
        account.is_ok_and(|account| account.budget().spec.target_ref.is_none())
    }

    fn decide(
        &mut self,
        name: &str,
        pod: &PodView,
        (operation, gates): (Operation, Gates),
        now: Timestamp,
    ) -> Result<(), String> {
        let outcome = match &mut self.account {
            Err(_) if !is_available(pod, now) => Ok(false),
            Err(error) => Err(format!("cannot be read: {error}")),
            Ok(account) => match account.ask(pod, operation, gates, now) {
                Decision::Free(Free::Off) if !account.is_counted() => {
                    Err("has not counted its pods yet".to_owned())
                }
                // The stored numbers still keep the pod: those of the replicas that are specified now go first.
                Decision::Free(Free::Off) => Ok(is_off_since(account)),
                Decision::Free(_) | Decision::Recorded => Ok(false),
                Decision::Renewed | Decision::Charged => Ok(true),
                Decision::Refused(Refusal::Exhausted) => {
                    Err("lets no more pods become unavailable now".to_owned())
                }
                Decision::Refused(Refusal::TooManyEntries) => {
                    Err("has as many entries as it may have".to_owned())
                }
            },
        };
        match outcome {
            Ok(is_charged) => {
                if is_charged {
                    self.charged.insert(pod.name.to_string());
                }
                Ok(())
            }
            Err(why) => {
                self.held.insert(pod.name.to_string());
                Err(format!("held: PodUnavailableBudget {name} {why}"))
            }
        }
    }
}

/// Is the budget off because of replicas that it has not counted for?
fn is_off_since(account: &Account<'_>) -> bool {
    let (before, now) = (&account.budget().status, account.status());
    before.desired_available != now.desired_available || before.total_replicas != now.total_replicas
}

/// The one write of a budget: right for the version that was asked, and for no other.
fn charge(account: &Account<'_>, target: Target, patch: Value, pods: usize) -> ObjectWrites {
    let metadata = &account.budget().metadata;
    let write = Write::Patch {
        intent: Intent::CHARGE_BUDGET,
        target,
        part: Part::Status,
        patch: Patch::Merge(patch),
        precondition: Precondition::UidAndVersion(metadata.uid.clone(), metadata.resource_version.clone()),
    };
    let reason = match pods {
        1 => "1 pod is about to become unavailable".to_owned(),
        _ => format!("{pods} pods are about to become unavailable"),
    };
    ObjectWrites::alone(Phase::Budgets, write, reason)
}
