//! What managers and agents request while nothing changes.
//!
//! Nothing that they can read changes by itself. So a component may send a few requests for an object at once, and
//! whatever keeps failing it may repeat, less and less often. A loop that repeats a request at the same short
//! interval breaks that, and so does one that has no interval at all.

use std::{collections::BTreeMap, time::Duration};

use kruise_sim::{Method, Request};
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    process::{ProcessId, component},
    verdict::Violation,
};

/// Requests of a component for one object since the last change, beside those that its time allows, once users and
/// faults have ended.
const CALM: u32 = 12;
/// And before that: what fails because of a fault is read and tried again.
const BUSY: u32 = 40;
/// Time that allows one more.
const EACH: Duration = Duration::from_secs(10);

/// Requests since the last change of anything that managers watch.
#[derive(Debug)]
pub struct Costs {
    since: Instant,
    changes: usize,
    is_calm: bool,
    sent: BTreeMap<(ProcessId, String, String), u32>,
    dearest: Dearest,
}

/// The object that cost most while nothing changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dearest {
    /// Requests beside those that time allowed.
    pub at_once: u32,
    /// What was requested.
    pub what: String,
}

/// What names a new object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    generate_name: String,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            changes: 0,
            is_calm: false,
            sent: BTreeMap::new(),
            dearest: Dearest::default(),
        }
    }
}

impl Costs {
    /// From now on users and faults do nothing, or something again.
    pub fn set_calm(&mut self, is_calm: bool) {
        self.is_calm = is_calm;
        self.since = Instant::now();
        self.sent.clear();
        self.dearest = Dearest::default();
    }

    /// A process sends a request, after so many changes of all that managers watch.
    pub fn sends(
        &mut self,
        process: ProcessId,
        agent: &str,
        request: &Request,
        changes: usize,
    ) -> Option<Violation> {
        if self.changes != changes {
            self.changes = changes;
            self.since = Instant::now();
            self.sent.clear();
        }
        let component = component(agent);
        // A webhook reads as often as users ask. Events of many objects share one, and have limits of their own.
        let is_free = matches!(component, "leader-election" | "webhook") || request.path.contains("/events");
        if process.is_command() || is_free {
            return None;
        }
        let object = object(request);
        let sent = self
            .sent
            .entry((process, component.to_owned(), object.clone()))
            .or_default();
        *sent += 1;
        let passed = self.since.elapsed();
        let allowed = passed.as_secs() / EACH.as_secs();
        let at_once = u64::from(*sent).saturating_sub(allowed) as u32;
        if at_once <= self.dearest.at_once {
            return None;
        }
        let what =
            format!("{process} {component}: {sent} requests for {object} in {passed:?} without a change");
        self.dearest = Dearest {
            at_once,
            what: what.clone(),
        };
        let allowed = if self.is_calm { CALM } else { BUSY };
        (at_once > allowed).then_some(Violation { oracle: "cost", what })
    }

    /// The object that cost most.
    pub fn dearest(&self) -> &Dearest {
        &self.dearest
    }
}

/// The object of a request, or the collection.
fn object(request: &Request) -> String {
    let path = request.path.as_str();
    if request.method == Method::Post {
        let Named { metadata } = serde_json::from_slice(&request.body).unwrap_or_default();
        return format!("{path}/{}{}", metadata.name, metadata.generate_name);
    }
    let subresources = ["/status", "/scale", "/resize", "/ephemeralcontainers"];
    let of_object = subresources.iter().find_map(|of| path.strip_suffix(of));
    of_object.unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &str = "/api/v1/namespaces/default/pods";

    /// The second in which the cost of a request that is repeated at this interval is too high, if that is soon.
    fn found(is_calm: bool, interval: impl Fn(u32) -> Duration) -> Option<u64> {
        let mut time = tokio::runtime::Builder::new_current_thread();
        let time = time.enable_time().start_paused(true).build().unwrap();
        time.block_on(async {
            let begun = Instant::now();
            let mut costs = Costs::default();
            costs.set_calm(is_calm);
            let request = Request::new(Method::Get, &format!("{PATH}/p1"), None);
            for number in 0.. {
                let agent = "kruise-manager/x-controller";
                if costs.sends(ProcessId(1), agent, &request, 1).is_some() {
                    return Some(begun.elapsed().as_secs());
                }
                if begun.elapsed() > Duration::from_hours(1) {
                    return None;
                }
                tokio::time::sleep(interval(number)).await;
            }
            None
        })
    }

    #[test]
    fn a_loop_is_found_and_a_request_that_is_repeated_ever_later_is_not() {
        let seconds = Duration::from_secs;
        for is_calm in [false, true] {
            assert_eq!(found(is_calm, |_| Duration::ZERO), Some(0));
            assert_eq!(found(is_calm, |number| seconds(1 << number.min(8))), None);
        }
        // A read and a write every ten seconds.
        assert_eq!(found(true, |_| seconds(5)), Some(115));
        assert_eq!(found(false, |_| seconds(5)), Some(395));
    }

    #[test]
    fn a_change_begins_anew_and_other_objects_are_counted_apart() {
        let mut time = tokio::runtime::Builder::new_current_thread();
        let time = time.enable_time().start_paused(true).build().unwrap();
        time.block_on(async {
            let mut costs = Costs::default();
            let mut send = |name: &str, changes| {
                let body = json!({"metadata": {"name": name}});
                let request = Request::new(Method::Post, PATH, Some(&body));
                costs.sends(ProcessId(1), "kruise-manager/x-controller", &request, changes)
            };
            for changes in 0..100 {
                for name in ["a", "b", "c"] {
                    assert!((0..BUSY).all(|_| send(name, changes).is_none()));
                }
            }
            assert_eq!(send("b", 99).unwrap().oracle, "cost");
        });
    }

    #[test]
    fn a_subresource_is_of_its_object() {
        let path = format!("{PATH}/p1");
        for of in ["", "/status", "/resize"] {
            let request = Request::new(Method::Patch, &format!("{path}{of}"), None);
            assert_eq!(object(&request), path);
        }
    }
}
