use super::super::{DesiredCondition, Endpoint, defaulted, webhooks};
use super::*;

fn conditional() -> ConditionalWebhook {
    ConditionalWebhook {
        name: "more".into(),
        path: "/pods".into(),
        condition: "needed".into(),
        in_place: false,
    }
}

/// A configuration with one webhook for pods that has these match conditions.
fn installed(conditions: &Value) -> Value {
    json!({"metadata": {"resourceVersion": "7", "annotations": {}}, "webhooks": [{
        "name": "pods", "clientConfig": {"service": {"namespace": "ns", "name": "svc", "path": "/pods"}},
        "timeoutSeconds": 7, "matchConditions": conditions,
    }]})
}

fn narrow() -> Value {
    installed(&json!([{"name": "c", "expression": "x"}]))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// Widens for what only conditions with this text hold of; a wider one is `key`, the widest `true`.
fn widen_for(current: &Value, text: &str, now: Timestamp) -> Widen {
    widen_by(&conditional(), current, text, now)
}

fn widen_by(conditional: &ConditionalWebhook, current: &Value, text: &str, now: Timestamp) -> Widen {
    let expressions = [text, "key", "true"].map(str::to_owned);
    let covers = |condition: &str| ["key", "true", text].iter().any(|one| condition.contains(one));
    let object = Stored {
        name: text.to_owned(),
        uid: "u".to_owned(),
        generation: 1,
        ..Stored::default()
    };
    let wanted = Wanted {
        expressions: &expressions,
        is_within: &covers,
        object: &object,
    };
    widen(current, conditional, &wanted, now)
}

/// The configuration after a merge patch.
fn patched(current: &Value, patch: &Value) -> Value {
    assert_eq!(
        patch["metadata"]["resourceVersion"],
        current["metadata"]["resourceVersion"]
    );
    let mut after = current.clone();
    if let Some(webhooks) = patch.get("webhooks") {
        after["webhooks"] = defaulted(webhooks.clone());
    }
    let annotations = patch["metadata"]["annotations"].as_object().into_iter().flatten();
    for (name, value) in annotations {
        after["metadata"]["annotations"][name] = value.clone();
    }
    after
}

fn written(current: &Value, text: &str, now: Timestamp) -> Value {
    match widen_for(current, text, now) {
        Widen::Write(patch, LEARNT) => patched(current, &patch),
        other => panic!("{other:?}"),
    }
}

/// The configuration after the leader has reconciled it, if there was something to write.
fn reconciled(current: &Value, desired: &DesiredCondition, now: Timestamp) -> Option<Value> {
    let endpoint = Endpoint::Service {
        namespace: "ns".into(),
        name: "svc".into(),
    };
    let conditional = conditional();
    let patch = webhooks(
        current,
        b"ca",
        &endpoint,
        |_| true,
        &[(&conditional, desired, now)],
    );
    Some(patched(current, &patch.unwrap().patch?))
}

fn condition(configuration: &Value) -> Option<&str> {
    let webhooks = configuration["webhooks"].as_array().unwrap().iter();
    let mut found = webhooks.filter(|one| one["name"] == "more");
    found.next()?["matchConditions"][0]["expression"].as_str()
}

fn derived(expression: &str) -> DesiredCondition {
    DesiredCondition::Expression(expression.to_owned())
}

#[test]
fn a_condition_is_widened_and_the_leader_keeps_that_until_it_expires() {
    let first = written(&narrow(), "web", at(0));
    assert_eq!(condition(&first), Some("(web)"));
    assert_eq!(first["webhooks"][0]["name"], "more");
    assert_eq!(first["webhooks"][0]["timeoutSeconds"], 7);
    assert_eq!(
        first["webhooks"][0]["clientConfig"],
        first["webhooks"][1]["clientConfig"]
    );
    // A leader whose cache has nothing yet, and one whose cache has another object.
    let absent = reconciled(&first, &DesiredCondition::Absent, at(59)).unwrap();
    assert_eq!(condition(&absent), Some("(web)"));
    let other = reconciled(&first, &derived("db"), at(59)).unwrap();
    assert_eq!(condition(&other), Some("(db) || (web)"));
    assert_eq!(
        reconciled(&other, &derived("db"), at(59)),
        None,
        "nothing is left to write"
    );
    assert_eq!(
        reconciled(&other, &DesiredCondition::Unmanaged, at(99)),
        None,
        "no leader"
    );
    let after = reconciled(&other, &derived("db"), at(60)).unwrap();
    assert_eq!(condition(&after), Some("db"));
    assert_eq!(after["metadata"]["annotations"][WIDENED_CONDITIONS], Value::Null);
    assert_eq!(reconciled(&after, &derived("db"), at(60)), None);
    let gone = reconciled(&absent, &DesiredCondition::Absent, at(60)).unwrap();
    assert_eq!(condition(&gone), None);
}

#[test]
fn a_replica_adds_to_what_is_registered_and_takes_nothing_away() {
    let led = reconciled(&narrow(), &derived("db"), at(0)).unwrap();
    let first = written(&led, "web", at(0));
    assert_eq!(condition(&first), Some("(db) || (web)"));
    // The first has expired, and no leader was there to take it away.
    let second = written(&first, "mail", at(100));
    assert_eq!(condition(&second), Some("(db) || (web) || (mail)"));
    assert_eq!(widened(&second).len(), 2);
    let replaced = {
        let mut replaced = second.clone();
        replaced["webhooks"][0]["matchConditions"][0]["expression"] = json!("theirs");
        replaced
    };
    assert_eq!(
        condition(&written(&replaced, "log", at(100))),
        Some("(theirs) || (log)")
    );
}

#[test]
fn what_is_covered_is_not_written_and_a_fresh_widening_is_waited_for() {
    let led = reconciled(&narrow(), &derived("web"), at(0)).unwrap();
    assert_eq!(widen_for(&led, "web", at(0)), Widen::Wait(Duration::ZERO));
    let fresh = written(&narrow(), "web", at(100));
    for (now, wait) in [(100_000, 1_000), (104_900, 1_000), (105_100, 0), (130_000, 0)] {
        let now = Timestamp::from_millisecond(now).unwrap();
        let expected = Widen::Wait(Duration::from_millis(wait));
        assert_eq!(widen_for(&fresh, "web", now), expected, "{now}");
    }
}

#[test]
fn a_widening_that_is_about_to_expire_is_renewed_without_a_wait() {
    let first = written(&narrow(), "web", at(0));
    let Widen::Write(patch, Duration::ZERO) = widen_for(&first, "web", at(31)) else {
        panic!("{:?}", widen_for(&first, "web", at(31)));
    };
    assert_eq!(patch.get("webhooks"), None);
    let renewed = patched(&first, &patch);
    assert_eq!(widened(&renewed)[0].until, at(91));
    let later = reconciled(&renewed, &DesiredCondition::Absent, at(90)).unwrap();
    assert_eq!(condition(&later), Some("(web)"));
    // One that has expired may be taken away at any moment: it is written anew.
    assert_eq!(condition(&written(&first, "web", at(60))), Some("(web) || (web)"));
}

#[test]
fn with_many_widenings_the_next_one_is_wider() {
    let mut current = narrow();
    for index in 0..MANY[0] {
        current = written(&current, &format!("w{index}"), at(0));
    }
    current = written(&current, "another", at(0));
    assert!(condition(&current).unwrap().ends_with("(w3) || (key)"));
    assert_eq!(
        widen_for(&current, "yet another", at(6)),
        Widen::Wait(Duration::ZERO)
    );
    // The wider one is not renewed: what replaces it is as narrow as it can be once the others have expired.
    let Widen::Write(patch, Duration::ZERO) = widen_for(&current, "yet another", at(40)) else {
        panic!("{:?}", widen_for(&current, "yet another", at(40)));
    };
    let untils = |current: &Value| widened(current).iter().map(|one| one.until).max();
    assert_eq!(untils(&patched(&current, &patch)), Some(at(100)));
    let wider = |one: &&Widened| one.expression == "key";
    assert_eq!(
        widened(&current).iter().find(wider).map(|one| one.until),
        Some(at(60))
    );
    let later = widened(&patched(&current, &patch));
    assert_eq!(later.iter().find(wider).map(|one| one.until), Some(at(60)));
    // Of a condition that is too long the widest takes the place.
    let long = written(&narrow(), &"x".repeat(LENGTH), at(0));
    assert_eq!(condition(&long), Some("(true)"));
}

#[test]
fn a_webhook_that_is_called_for_everything_or_not_registered_needs_no_widening() {
    for conditions in [Value::Null, json!([])] {
        assert_eq!(
            widen_for(&installed(&conditions), "web", at(0)),
            Widen::Wait(Duration::ZERO)
        );
    }
    let mut other = narrow();
    other["webhooks"][0]["clientConfig"]["service"]["path"] = json!("/others");
    assert_eq!(widen_for(&other, "web", at(0)), Widen::Wait(Duration::ZERO));
}

/// A configuration with a webhook that is registered only for what needs it, and another one of its path.
fn with_one_in_place(registered: bool) -> Value {
    let client = json!({"service": {"namespace": "ns", "name": "svc", "path": "/pods"}, "caBundle": "Y2E="});
    let entry = |name: &str| {
        json!({"name": name, "clientConfig": client, "timeoutSeconds": 7,
        "matchConditions": [{"name": "needed", "expression": "true"}]})
    };
    let mut template = json!([entry("pods"), entry("more")]);
    for webhook in template.as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = Value::Null;
    }
    let mut webhooks = vec![entry("pods")];
    if registered {
        let mut more = entry("more");
        more["matchConditions"][0]["expression"] = json!("known");
        webhooks.push(more);
    }
    json!({"metadata": {"resourceVersion": "7", "annotations": {"template": template.to_string()}},
        "webhooks": webhooks})
}

#[test]
fn a_webhook_in_place_is_widened_and_registered_if_it_was_not() {
    let in_place = ConditionalWebhook {
        in_place: true,
        ..conditional()
    };
    let widened = |current: &Value| match widen_by(&in_place, current, "web", at(0)) {
        Widen::Write(patch, LEARNT) => patched(current, &patch),
        other => panic!("{other:?}"),
    };
    let more = widened(&with_one_in_place(true));
    assert_eq!(condition(&more), Some("(known) || (web)"));
    let anew = widened(&with_one_in_place(false));
    assert_eq!(condition(&anew), Some("(web)"));
    let webhook = &anew["webhooks"][1];
    assert_eq!(
        (&webhook["name"], &webhook["timeoutSeconds"]),
        (&json!("more"), &json!(7))
    );
    assert_eq!(webhook["clientConfig"], anew["webhooks"][0]["clientConfig"]);
    // What is printed is called for everything until somebody knows better.
    let mut printed = with_one_in_place(true);
    printed["webhooks"][1]["matchConditions"][0]["expression"] = json!("true");
    assert_eq!(
        widen_by(&in_place, &printed, "web", at(0)),
        Widen::Wait(Duration::ZERO)
    );
    // It has no handler, so that it is in no template that is served.
    let mut unserved = with_one_in_place(false);
    unserved["webhooks"] = json!([]);
    assert_eq!(
        widen_by(&in_place, &unserved, "web", at(0)),
        Widen::Wait(Duration::ZERO)
    );
}
