//! `kruise manager --dry-run`: prints what would be written.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kruise_plan_kit::Plan;
use kruise_runtime::{events::ObjectRef, worker::DryRun};
use kube_cache::ObjectKey;

/// Prints each write once, until a plan without it.
#[derive(Default)]
pub(super) struct Printed {
    last: Mutex<BTreeMap<(&'static str, ObjectKey), BTreeSet<String>>>,
}

impl Printed {
    fn last(&self) -> MutexGuard<'_, BTreeMap<(&'static str, ObjectKey), BTreeSet<String>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines of a plan that the plan before it did not have.
    fn news(&self, controller: &'static str, key: &ObjectKey, plan: &Plan) -> Vec<String> {
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
        let lines: BTreeSet<String> = steps
            .map(|step| format!("{}: {}", step.write, step.reason))
            .collect();
        let mut last = self.last();
        let known = last.entry((controller, key.clone())).or_default();
        let news = lines.difference(known).cloned().collect();
        *known = lines;
        news
    }
}

impl DryRun for Printed {
    fn begins(&self, _: usize) {}

    fn planned(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, plan: &Plan) {
        let kind = about.map_or_else(String::new, |about| format!("{} ", about.kind));
        for line in self.news(controller, key, plan) {
            // A reader that went away has seen what it wanted.
            let _lost = writeln!(std::io::stdout(), "{kind}{key}: would {line}");
        }
    }

    /// The log has it.
    fn failed(&self, _: &'static str, _: &ObjectKey, _: Option<&ObjectRef>, _: &str) {}

    fn gone(&self, controller: &'static str, key: &ObjectKey) {
        self.last().remove(&(controller, key.clone()));
    }

    fn first_pass_ended(&self, _: &'static str) {}
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::{Intent, ObjectWrites, Phase, Precondition, ResourceId, Target, Write};

    use super::*;

    fn deletes(pods: &[&str]) -> Plan {
        let delete = |pod: &&str| {
            let write = Write::Delete {
                intent: Intent::DELETE_POD,
                target: Target {
                    resource: ResourceId::PODS,
                    namespace: "shop".into(),
                    name: (*pod).into(),
                },
                precondition: Precondition::Uid("u".into()),
            };
            ObjectWrites::alone(Phase::Pods, write, "too many")
        };
        Plan {
            writes: pods.iter().map(delete).collect(),
            ..Plan::default()
        }
    }

    #[test]
    fn a_line_is_printed_again_only_after_a_plan_without_it() {
        let (printed, key) = (Printed::default(), ObjectKey::new("shop", "web"));
        let news = |pods: &[&str]| printed.news("cloneset-controller", &key, &deletes(pods)).len();
        assert_eq!((news(&["a"]), news(&["a"]), news(&["a", "b"])), (1, 0, 1));
        assert_eq!((news(&[]), news(&["a"])), (0, 1));
        printed.gone("cloneset-controller", &key);
        assert_eq!(news(&["a"]), 1, "an object of the same name is another one");
    }
}
