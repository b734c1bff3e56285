//! What a pod requests of a node, as the scheduler adds it up.

use std::collections::BTreeMap;

use kruise_views::amount;
use serde_json::Value;

type Amounts = BTreeMap<Box<str>, i64>;

/// What pods of the template request, by resource, in thousandths; sorted, without what is nothing.
pub(super) fn of(template: &Value) -> Vec<(Box<str>, i64)> {
    let list = |member: &str| {
        let list = template
            .pointer(&format!("/spec/{member}"))
            .and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let mut running = Amounts::new();
    let mut most = Amounts::new();
    for init in list("initContainers") {
        let own = of_container(init);
        // A sidecar runs on beside all that follow; any other runs beside the sidecars before it, and ends.
        if init.get("restartPolicy") == Some(&Value::from("Always")) {
            add(&mut running, own);
            raise(&mut most, &running);
        } else {
            let mut beside = running.clone();
            add(&mut beside, own);
            raise(&mut most, &beside);
        }
    }
    for container in list("containers") {
        add(&mut running, of_container(container));
    }
    raise(&mut most, &running);
    of_pod(template, &mut most);
    add(&mut most, amounts(template.pointer("/spec/overhead")));
    most.into_iter().filter(|(_, amount)| *amount > 0).collect()
}

/// What a container requests. A limit without a request is one, too.
fn of_container(container: &Value) -> Amounts {
    let mut all = amounts(container.pointer("/resources/limits"));
    all.extend(amounts(container.pointer("/resources/requests")));
    all
}

/// Replaces what containers request by what the pod as a whole requests, which is for CPU, memory and huge pages
/// only. A limit of the pod without a request is one, too; of CPU and memory only if no container requests any.
fn of_pod(template: &Value, all: &mut Amounts) {
    let of_whole = |name: &str| matches!(name, "cpu" | "memory") || is_huge_page(name);
    for (name, amount) in amounts(template.pointer("/spec/resources/limits")) {
        if of_whole(&name) && (is_huge_page(&name) || !all.contains_key(&name)) {
            all.insert(name, amount);
        }
    }
    for (name, amount) in amounts(template.pointer("/spec/resources/requests")) {
        if of_whole(&name) {
            all.insert(name, amount);
        }
    }
}

fn is_huge_page(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

/// The amounts of a list of resources. One that cannot be read is left out.
fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.filter_map(|(name, value)| Some((Box::from(&**name), amount(value)?)))
        .collect()
}

fn add(sum: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let have = sum.entry(name).or_insert(0);
        *have = have.saturating_add(amount);
    }
}

fn raise(most: &mut Amounts, to: &Amounts) {
    for (name, amount) in to {
        let have = most.entry(name.clone()).or_insert(0);
        *have = (*have).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_add_up_and_init_containers_run_before_them() {
        let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let template = json!({"spec": {
            "initContainers": [
                {"name": "a", "resources": requests("1")},
                {"name": "side", "restartPolicy": "Always", "resources": requests("200m")},
                {"name": "b", "resources": requests("3")},
            ],
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "0"}, "limits": {"cpu": "9", "gpu": "2"}}},
                {"name": "d", "resources": requests("500m")},
            ],
            "overhead": {"cpu": "100m"},
        }});
        assert_eq!(of(&template), [("cpu".into(), 3300), ("gpu".into(), 2000)]);
        assert_eq!(of(&json!({})), []);
    }

    #[test]
    fn what_the_pod_requests_as_a_whole_counts_before_what_its_containers_do() {
        let of = |resources: serde_json::Value| {
            let own = json!({"requests": {"cpu": "1", "gpu": "1", "hugepages-2Mi": "2"}});
            of(&json!({"spec": {
                "containers": [{"name": "a", "resources": own}, {"name": "b", "resources": own}],
                "overhead": {"cpu": "100m"}, "resources": resources,
            }}))
        };
        let amounts = |cpu, memory, pages| {
            let all = [
                ("cpu", cpu),
                ("gpu", 2000),
                ("hugepages-2Mi", pages),
                ("memory", memory),
            ];
            let some = all.into_iter().filter(|(_, amount)| *amount > 0);
            some.map(|(name, amount)| (name.into(), amount))
                .collect::<Vec<(Box<str>, i64)>>()
        };
        assert_eq!(of(json!({})), amounts(2100, 0, 4000));
        let requests = json!({"cpu": "1500m", "gpu": "9", "hugepages-2Mi": "3"});
        assert_eq!(of(json!({"requests": requests})), amounts(1600, 0, 3000));
        assert_eq!(of(json!({"requests": {"cpu": "5"}})), amounts(5100, 0, 4000));
        // Limits are requests where there are none.
        let limits = json!({"cpu": "9", "memory": "7", "hugepages-2Mi": "8", "gpu": "9"});
        assert_eq!(of(json!({"limits": limits})), amounts(2100, 7000, 8000));
        let requests = json!({"memory": "1", "hugepages-2Mi": "3"});
        assert_eq!(
            of(json!({"limits": limits, "requests": requests})),
            amounts(2100, 1000, 3000)
        );
    }
}
