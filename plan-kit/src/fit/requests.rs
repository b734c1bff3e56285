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
    let overhead = template.pointer("/spec/overhead").and_then(Value::as_object);
    let overhead = overhead.into_iter().flatten();
    let overhead = overhead.filter_map(|(name, value)| Some((Box::from(&**name), amount(value)?)));
    add(&mut most, overhead.collect());
    most.into_iter().filter(|(_, amount)| *amount > 0).collect()
}

/// What a container requests. A limit without a request is one, too.
fn of_container(container: &Value) -> Amounts {
    let mut all = Amounts::new();
    for list in ["limits", "requests"] {
        let amounts = container
            .pointer(&format!("/resources/{list}"))
            .and_then(Value::as_object);
        let amounts = amounts.into_iter().flatten();
        all.extend(amounts.filter_map(|(name, value)| Some((Box::from(&**name), amount(value)?))));
    }
    all
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
}
