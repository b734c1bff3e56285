//! Random histories: namespaces come, go and change, users edit and delete copies and put objects in the way, in
//! any order with the controller. Foreign objects are never touched; when everybody is quiet, exactly the selected
//! namespaces have what is distributed, and nothing more is written.

use std::collections::BTreeMap;

use kruise_plan_kit::{Explain, ResourceId};
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::world::World;

const NAMESPACES: [&str; 6] = ["a", "b", "c", "d", "kube-system", "sandbox"];
const TEAMS: [&str; 2] = ["web", "db"];

#[derive(Clone, Debug)]
enum Step {
    /// A namespace comes, or gets another team.
    Namespace(Index, Index),
    /// A namespace goes with what is in it.
    Remove(Index),
    /// A user changes the data of what has the copy's name.
    Edit(Index),
    /// A user labels it.
    Label(Index),
    /// A user deletes it.
    Delete(Index),
    /// A user puts an object of that name there.
    Foreign(Index),
    /// A user takes the owner references away.
    Disown(Index),
    /// What is distributed changes.
    Data(u8),
    /// Targets: all, or a team.
    Targets(Option<Index>),
    /// The controller runs.
    Plan,
    /// The manager restarts.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<Index>;
    let step = prop_oneof![
        3 => (index(), index()).prop_map(|(name, team)| Step::Namespace(name, team)),
        1 => index().prop_map(Step::Remove),
        2 => index().prop_map(Step::Edit),
        1 => index().prop_map(Step::Label),
        1 => index().prop_map(Step::Delete),
        1 => index().prop_map(Step::Foreign),
        1 => index().prop_map(Step::Disown),
        1 => (0_u8..3).prop_map(Step::Data),
        1 => proptest::option::of(index()).prop_map(Step::Targets),
        5 => Just(Step::Plan),
        1 => Just(Step::Restart),
    ];
    vec(step, 1..60)
}

fn data(number: u8) -> Value {
    let token = ["YQ==", "Yg==", "Yw=="][usize::from(number)];
    json!({"token": token})
}

fn targets(team: Option<&str>) -> Value {
    let excluded = json!({"list": [{"name": "sandbox"}]});
    match team {
        None => json!({"allNamespaces": true, "excludedNamespaces": excluded, "namespaceSelector": null}),
        Some(team) => {
            json!({"allNamespaces": false, "excludedNamespaces": excluded,
                "namespaceSelector": {"matchLabels": {"team": team}}})
        }
    }
}

/// What a user may have made, by namespace.
type Foreign = BTreeMap<String, Value>;

fn happen(world: &mut World, step: &Step, foreign: &mut Foreign) {
    let name = |index: &Index| *index.get(&NAMESPACES);
    let exists = |world: &World, namespace: &str| !world.copy(namespace).is_null();
    match step {
        Step::Namespace(index, team) => {
            let team = team.get(&TEAMS);
            world.namespace(name(index), team);
        }
        Step::Remove(index) => {
            world.remove_namespace(name(index));
            foreign.remove(name(index));
        }
        Step::Edit(index) | Step::Label(index) if exists(world, name(index)) => {
            let change = match step {
                Step::Edit(_) => json!({"data": {"token": "eA==", "more": "eA=="}}),
                _ => json!({"metadata": {"labels": {"mine": "1"}}}),
            };
            world.edit(ResourceId::SECRETS, name(index), "reg", &change);
            if foreign.contains_key(name(index)) {
                foreign.insert(name(index).into(), world.copy(name(index)).clone());
            }
        }
        Step::Delete(index) if exists(world, name(index)) => {
            world.delete(ResourceId::SECRETS, name(index), "reg");
            foreign.remove(name(index));
        }
        Step::Foreign(index) => {
            let is_there = world.get(ResourceId::NAMESPACES, "", name(index)).is_some();
            if is_there && !exists(world, name(index)) {
                world.put(
                    ResourceId::SECRETS,
                    json!({"kind": "Secret", "metadata": {"name": "reg", "namespace": name(index)},
                        "type": "mine", "data": {"token": "bQ=="}}),
                );
                foreign.insert(name(index).into(), world.copy(name(index)).clone());
            }
        }
        Step::Disown(index) if exists(world, name(index)) => {
            let change = json!({"metadata": {"ownerReferences": null}});
            world.edit(ResourceId::SECRETS, name(index), "reg", &change);
            foreign.insert(name(index).into(), world.copy(name(index)).clone());
        }
        Step::Data(number) => world.change("pull", &json!({"spec": {"resource": {"data": data(*number)}}})),
        Step::Targets(team) => {
            let team = team.as_ref().map(|team| *team.get(&TEAMS));
            world.change("pull", &json!({"spec": {"targets": targets(team)}}));
        }
        Step::Plan => {
            let plan = world.plan("pull", Explain::No);
            world.execute("pull", plan);
        }
        Step::Restart => world.restart(),
        Step::Edit(_) | Step::Label(_) | Step::Delete(_) | Step::Disown(_) => {}
    }
}

fn assert_foreign(world: &World, foreign: &Foreign) {
    for (namespace, object) in foreign {
        assert_eq!(world.copy(namespace), object, "of {namespace}");
    }
}

/// Is the namespace to have a copy, by the specification?
fn is_selected(spec: &Value, namespace: &Value) -> bool {
    let name = namespace["metadata"]["name"].as_str().unwrap();
    if name == "kube-system" || name == "sandbox" {
        return false;
    }
    let team = &spec["targets"]["namespaceSelector"]["matchLabels"]["team"];
    spec["targets"]["allNamespaces"] == true
        || (!team.is_null() && namespace["metadata"]["labels"]["team"] == *team)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn foreign_objects_are_never_touched_and_all_comes_to_rest(steps in steps()) {
        let mut world = World::new(&["a web", "b db", "kube-system web"]);
        world.distribute("pull", &json!({"data": data(0)}), &targets(None));
        let mut foreign = Foreign::new();
        for step in &steps {
            happen(&mut world, step, &mut foreign);
            assert_foreign(&world, &foreign);
        }
        world.settle();
        assert_foreign(&world, &foreign);
        let spec = world.get(kruise_api::resourcedistribution::RESOURCE, "", "pull").unwrap()["spec"].clone();
        let mut conflicts = 0;
        let mut desired = 0;
        for name in NAMESPACES {
            let Some(namespace) = world.get(ResourceId::NAMESPACES, "", name) else {
                prop_assert!(world.copy(name).is_null());
                continue;
            };
            let selected = is_selected(&spec, namespace);
            desired += usize::from(selected);
            if foreign.contains_key(name) {
                conflicts += usize::from(selected);
            } else if selected {
                prop_assert_eq!(&world.copy(name)["data"], &spec["resource"]["data"], "in {}", name);
            } else {
                prop_assert!(world.copy(name).is_null(), "{} keeps a copy", name);
            }
        }
        let succeeded = desired - conflicts;
        let counts = format!("{desired} {succeeded} {conflicts}");
        prop_assert!(world.report("pull").starts_with(&counts));
        let (written, reports) = (world.written.len(), world.reports);
        world.restart();
        world.settle();
        prop_assert_eq!((written, reports), (world.written.len(), world.reports), "no write at rest");
    }
}
