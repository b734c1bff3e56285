//! Whatever is asked of a runtime and goes wrong with it, each call is answered once, and in the end all is well.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::nodes::Timings;
use crate::nodes::runtime::{ContainerState, Exec, Trouble};

const IMAGES: [&str; 3] = ["main:1", "main:2", "docker.io/library/other"];

/// What somebody does.
#[derive(Clone, Debug)]
enum Deed {
    Create(usize),
    Image(usize, usize),
    Delete(usize),
    Pull(usize),
    Stop(usize, u64),
    Exec(usize, u64),
    Cancel(usize),
    Fault(Fault),
    Registry(Option<Trouble>),
    Wait(u64),
}

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => Just(Fault::Away),
        4 => Just(Fault::Back),
        1 => (0..2000_u64).prop_map(|millis| Fault::Slow(Duration::from_millis(millis))),
        1 => prop_oneof![Just(0), Just(u64::MAX)].prop_map(Fault::DiskTaken),
        2 => (0..3_usize).prop_map(|image| Fault::ImageCollected(IMAGES[image].to_owned())),
    ]
}

fn troubles() -> impl Strategy<Value = Option<Trouble>> {
    prop_oneof![
        4 => Just(None),
        1 => Just(Some(Trouble::Down)),
        1 => Just(Some(Trouble::Hangs)),
        1 => any::<u8>().prop_map(|percent| Some(Trouble::BreaksAfter(percent))),
    ]
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let one = prop_oneof![
        3 => (0..2_usize).prop_map(Deed::Create),
        2 => (0..2_usize, 0..3_usize).prop_map(|(pod, image)| Deed::Image(pod, image)),
        1 => (0..2_usize).prop_map(Deed::Delete),
        4 => (0..3_usize).prop_map(Deed::Pull),
        4 => (0..4_usize, 0..3_u64).prop_map(|(at, grace)| Deed::Stop(at, grace)),
        2 => (0..4_usize, 0..3_u64).prop_map(|(at, timeout)| Deed::Exec(at, timeout)),
        1 => (0..9_usize).prop_map(Deed::Cancel),
        2 => faults().prop_map(Deed::Fault),
        1 => troubles().prop_map(Deed::Registry),
        6 => (0..4000_u64).prop_map(Deed::Wait),
    ];
    proptest::collection::vec(one, 1..40)
}

/// A world, and the calls that were made.
struct Run {
    play: Play,
    calls: Vec<CallId>,
    /// How often each was answered.
    answers: BTreeMap<CallId, usize>,
    /// Ids of containers that were seen.
    containers: Vec<String>,
}

impl Run {
    fn call(&mut self, call: Call) {
        let id = self.play.call(call);
        self.calls.push(id);
    }

    fn drain(&mut self) {
        for (id, result) in self.play.0.runtime_answers() {
            *self.answers.entry(id).or_default() += 1;
            if let Ok(Answer::Containers(all)) = result {
                self.containers = all.into_iter().map(|one| one.id).collect();
            }
        }
    }

    fn request(&mut self, method: crate::Method, path: &str, body: Option<&Value>) {
        let request = crate::Request::new(method, path, body);
        let request = match method {
            crate::Method::Patch => request.content_type("application/strategic-merge-patch+json"),
            _ => request,
        };
        self.play.0.handle(&request);
    }

    fn perform(&mut self, deed: &Deed) {
        let path = |pod: usize| format!("{PODS}/p{pod}");
        match deed {
            Deed::Create(pod) => {
                let container = json!({"name": "main", "image": IMAGES[0]});
                let body =
                    json!({"metadata": {"name": format!("p{pod}")}, "spec": {"containers": [container]}});
                self.request(crate::Method::Post, PODS, Some(&body));
            }
            Deed::Image(pod, image) => {
                let body = json!({"spec": {"containers": [{"name": "main", "image": IMAGES[*image]}]}});
                self.request(crate::Method::Patch, &path(*pod), Some(&body));
            }
            Deed::Delete(pod) => self.request(crate::Method::Delete, &path(*pod), None),
            Deed::Pull(image) => self.call(pull(IMAGES[*image])),
            Deed::Stop(at, grace) => {
                let container = self.containers.get(*at).cloned().unwrap_or_default();
                let grace = Duration::from_secs(*grace);
                self.call(Call::StopContainer { container, grace });
            }
            Deed::Exec(at, timeout) => self.call(Call::ExecSync(Exec {
                container: self.containers.get(*at).cloned().unwrap_or_default(),
                command: vec!["sleep".into(), "2".into()],
                timeout: Duration::from_secs(*timeout),
            })),
            Deed::Cancel(at) => {
                if let Some(id) = self.calls.get(*at) {
                    self.play.0.cancel_runtime_call(*id);
                }
            }
            Deed::Fault(fault) => {
                self.play.0.inject_runtime_fault("n1", fault.clone());
            }
            Deed::Registry(trouble) => {
                let set = |all: &mut crate::runtime::Registries| all.registry("docker.io").trouble = *trouble;
                self.play.0.change_registries(set);
            }
            Deed::Wait(millis) => self.play.pass(Duration::from_millis(*millis)),
        }
        self.call(Call::ListContainers(BTreeMap::new()));
        self.drain();
    }

    /// Puts everything right, and waits for what follows.
    fn recover(&mut self) {
        for fault in [Fault::Back, Fault::Slow(Duration::ZERO), Fault::DiskTaken(0)] {
            self.perform(&Deed::Fault(fault));
        }
        self.perform(&Deed::Registry(None));
        self.play.rest();
        for id in self.calls.clone() {
            // pulls of registries that hung
            self.play.0.cancel_runtime_call(id);
        }
        self.drain();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Each call is answered once; in the end pods run what they should, and the runtime has exactly these containers.
    #[test]
    fn each_call_is_answered_once_and_all_is_well_in_the_end(deeds in deeds()) {
        let options = Options { timings: Timings::fast(), ..Options::default() };
        let mut run = Run {
            play: with(&options),
            calls: Vec::new(),
            answers: BTreeMap::new(),
            containers: Vec::new(),
        };
        for deed in &deeds {
            run.perform(deed);
        }
        run.recover();
        let once: BTreeMap<CallId, usize> = run.calls.iter().map(|id| (*id, 1)).collect();
        prop_assert_eq!(&run.answers, &once);
        let all = run.play.containers();
        let mut running: Vec<&str> = all
            .iter()
            .filter(|one| one.state == ContainerState::Running)
            .map(|one| one.id.as_str())
            .collect();
        let mut shown = Vec::new();
        for name in ["p0", "p1"] {
            let Some(pod) = run.play.get(&format!("{PODS}/{name}")) else { continue };
            prop_assert!(is_ready(&pod), "{}", pod);
            let status = &pod["status"]["containerStatuses"][0];
            prop_assert_eq!(&status["image"], &pod["spec"]["containers"][0]["image"]);
            shown.push(run.play.running(name));
        }
        running.sort_unstable();
        shown.sort_unstable();
        prop_assert_eq!(running, shown);
        let images = run.play.images();
        let used: u64 = images.iter().map(|image| image.bytes).sum();
        let Ok(Answer::ImageFsInfo(disk)) = run.play.ask(Call::ImageFsInfo) else { panic!("it answers") };
        prop_assert_eq!(disk.used_bytes, used);
        prop_assert_eq!(disk.free_bytes, disk.size_bytes - used);
    }
}
