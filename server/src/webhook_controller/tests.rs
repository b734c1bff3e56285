use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex},
};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use kruise_api::names::WIDENED_CONDITIONS;

use super::*;
use crate::issue::issue;

mod side_by_side;

const CRD: &str = "things.example.org";
static PAIR: LazyLock<Pair> = LazyLock::new(|| issue("svc.ns.svc", Timestamp::now()).unwrap().pair());
static RIVAL: LazyLock<Value> =
    LazyLock::new(|| issue("svc.ns.svc", Timestamp::now()).unwrap().secret_data());

/// An API server with optimistic concurrency, and another writer that writes just before us when the test says so.
#[derive(Default)]
struct Memory {
    objects: Mutex<BTreeMap<String, Value>>,
    /// What the other writer stores, by object, at the next write to it.
    other_writer: Mutex<BTreeMap<String, Value>>,
    writes: Mutex<Vec<String>>,
}

fn merge(into: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(&name);
        } else {
            merge(&mut into[name], value);
        }
    }
}

impl Memory {
    fn get(&self, name: &str) -> Result<Value, ApiError> {
        self.objects
            .lock()
            .unwrap()
            .get(name)
            .cloned()
            .ok_or(ApiError::NotFound)
    }

    fn put(&self, name: &str, mut object: Value) {
        let mut objects = self.objects.lock().unwrap();
        let version = objects
            .get(name)
            .map(|old| old["metadata"]["resourceVersion"].clone());
        let version = version
            .and_then(|version| version.as_str()?.parse().ok())
            .unwrap_or(0);
        object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        objects.insert(name.to_owned(), object);
    }

    fn write(
        &self,
        name: &str,
        change: impl FnOnce(Option<Value>) -> Result<Value, ApiError>,
    ) -> Result<(), ApiError> {
        self.writes.lock().unwrap().push(name.to_owned());
        if let Some(object) = self.other_writer.lock().unwrap().remove(name) {
            self.put(name, object);
        }
        let changed = change(self.get(name).ok())?;
        self.put(name, changed);
        Ok(())
    }

    fn patch(&self, name: &str, patch: Value) -> Result<(), ApiError> {
        self.write(name, |old| {
            let mut object = old.ok_or(ApiError::NotFound)?;
            same_version(&object, &patch)?;
            merge(&mut object, patch);
            Ok(object)
        })
    }

    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }
}

fn same_version(old: &Value, new: &Value) -> Result<(), ApiError> {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    (version(old) == version(new))
        .then_some(())
        .ok_or(ApiError::Conflict)
}

impl Api for Arc<Memory> {
    async fn get_secret(&self, namespace: &str, name: &str) -> Result<Value, ApiError> {
        assert_eq!(namespace, "ns");
        self.get(name)
    }

    async fn create_secret(&self, secret: Value) -> Result<(), ApiError> {
        assert_eq!(secret["metadata"]["namespace"], "ns");
        let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
        self.write(&name, |old| old.map_or(Ok(secret), |_| Err(ApiError::Conflict)))
    }

    async fn replace_secret(&self, secret: Value) -> Result<(), ApiError> {
        let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
        self.write(&name, |old| {
            same_version(&old.ok_or(ApiError::NotFound)?, &secret)?;
            Ok(secret)
        })
    }

    async fn get_configuration(&self, phase: Phase, name: &str) -> Result<Value, ApiError> {
        assert_eq!(phase, Phase::Mutating);
        self.get(name)
    }

    async fn patch_configuration(&self, _: Phase, name: &str, patch: Value) -> Result<(), ApiError> {
        self.patch(name, patch)
    }

    async fn get_crd(&self, name: &str) -> Result<Value, ApiError> {
        self.get(name)
    }

    async fn patch_crd(&self, name: &str, patch: Value) -> Result<(), ApiError> {
        self.patch(name, patch)
    }
}

fn configuration() -> Value {
    let entry = |name: &str, path: &str| {
        let service = json!({"namespace": "a", "name": "b", "port": 443, "path": path});
        json!({
            "name": name, "clientConfig": {"service": service}, "failurePolicy": "Fail", "timeoutSeconds": 10,
            "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        })
    };
    json!({"metadata": {"name": "hooks"}, "webhooks": [entry("one", "/one"), entry("two", "/two")]})
}

/// What an installer leaves behind: no Secret, a configuration, one convertible CRD.
fn installed() -> Arc<Memory> {
    let memory = Memory::default();
    memory.put("hooks", configuration());
    memory.put(
        CRD,
        json!({"metadata": {"name": CRD}, "spec": {"conversion": {"strategy": "Webhook"}}}),
    );
    Arc::new(memory)
}

/// Settings whose directory is removed with them.
struct Scratch(Settings, std::path::PathBuf);

impl std::ops::Deref for Scratch {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.1);
    }
}

fn settings(test: &str, source: Source) -> Scratch {
    let directory =
        std::env::temp_dir().join(format!("kruise-server-controller-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let settings = Settings {
        namespace: "ns".into(),
        secret: "certs".into(),
        configurations: vec![(Phase::Mutating, "hooks".into())],
        crds: vec![CRD.into(), "absent.example.org".into()],
        endpoint: Endpoint::Service {
            namespace: "ns".into(),
            name: "svc".into(),
        },
        lead: Duration::from_hours(24),
        source,
        cert_dir: CertDir::new(&directory),
        served: Arc::new(|call| call.path == "/one"),
        conditionals: Vec::new(),
    };
    Scratch(settings, directory)
}

#[tokio::test]
async fn the_first_reconcile_writes_everything_and_the_second_writes_nothing() {
    let api = installed();
    let settings = settings("first", Source::Secret);
    let now = Timestamp::now();
    let first = reconcile(&api, &settings, None, now).await.unwrap();
    assert_eq!(api.writes(), ["certs", "hooks", CRD]);
    assert_eq!(first.dropped, ["two"]);
    let bundle = STANDARD.encode(&first.pair.ca_pem);
    let hooks = api.get("hooks").unwrap();
    assert_eq!(hooks["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(hooks["webhooks"][0]["clientConfig"]["caBundle"], bundle.as_str());
    let client = api.get(CRD).unwrap()["spec"]["conversion"]["webhook"]["clientConfig"].clone();
    assert_eq!(client["caBundle"], bundle.as_str());
    let written = settings.cert_dir.read().unwrap();
    assert_eq!(written.cert, Some(first.pair.cert_pem.clone()));
    assert_eq!(written.ca_key, None);
    assert_eq!(reconcile(&api, &settings, None, now).await.unwrap(), first);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_secret_created_by_another_replica_meanwhile_is_the_one_that_counts() {
    let api = installed();
    let theirs = json!({"metadata": {"name": "certs"}, "data": *RIVAL});
    api.other_writer.lock().unwrap().insert("certs".into(), theirs);
    let outcome = reconcile(&api, &settings("create", Source::Secret), None, Timestamp::now())
        .await
        .unwrap();
    let cert = RIVAL["tls.crt"].as_str().unwrap();
    assert_eq!(outcome.pair.cert_pem, STANDARD.decode(cert).unwrap());
    assert_eq!(
        api.writes(),
        ["certs", "hooks", CRD],
        "the failed creation is not repeated"
    );
}

#[tokio::test]
async fn an_empty_secret_filled_by_another_replica_meanwhile_is_not_overwritten() {
    let api = installed();
    api.put("certs", json!({"metadata": {"name": "certs"}, "type": "Opaque"}));
    let theirs = json!({"metadata": {"name": "certs"}, "data": *RIVAL});
    api.other_writer.lock().unwrap().insert("certs".into(), theirs);
    let outcome = reconcile(&api, &settings("update", Source::Secret), None, Timestamp::now())
        .await
        .unwrap();
    let key = RIVAL["tls.key"].as_str().unwrap();
    assert_eq!(outcome.pair.key_pem, STANDARD.decode(key).unwrap());
    assert_eq!(api.get("certs").unwrap()["data"], *RIVAL);
}

#[tokio::test]
async fn a_configuration_edited_meanwhile_is_read_again() {
    let api = installed();
    let mut edited = configuration();
    edited["metadata"]["labels"] = json!({"by": "somebody"});
    api.other_writer.lock().unwrap().insert("hooks".into(), edited);
    reconcile(&api, &settings("edited", Source::Secret), None, Timestamp::now())
        .await
        .unwrap();
    let hooks = api.get("hooks").unwrap();
    assert_eq!(hooks["metadata"]["labels"]["by"], "somebody");
    assert_eq!(hooks["webhooks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_missing_configuration_is_an_error_that_names_it() {
    let api = installed();
    api.objects.lock().unwrap().remove("hooks");
    let error = reconcile(&api, &settings("missing", Source::Secret), None, Timestamp::now())
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("hooks does not exist; install it"),
        "{error}"
    );
}

#[tokio::test]
async fn external_certificates_are_checked_and_nothing_is_written() {
    let api = installed();
    let settings = settings("external", Source::External);
    let now = Timestamp::now();
    let value = |pem: &[u8]| STANDARD.encode(pem);
    let mut data = json!({"tls.crt": value(&PAIR.cert_pem), "tls.key": value(&PAIR.key_pem)});
    api.put("certs", json!({"data": data}));
    let error = reconcile(&api, &settings, None, now).await.unwrap_err();
    assert_eq!(error.to_string(), "the external certificate has no ca.crt");
    data["ca.crt"] = json!(value(&PAIR.ca_pem));
    api.put("certs", json!({"data": data}));
    let error = reconcile(&api, &settings, None, now).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "caBundle of hooks does not match the external caBundle"
    );
    let mut hooks = api.get("hooks").unwrap();
    for webhook in hooks["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = data["ca.crt"].clone();
    }
    api.put("hooks", hooks);
    let error = reconcile(&api, &settings, None, now).await.unwrap_err();
    assert!(error.to_string().contains(CRD), "{error}");
    let mut crd = api.get(CRD).unwrap();
    crd["spec"]["conversion"]["webhook"] = json!({"clientConfig": {"caBundle": data["ca.crt"]}});
    api.put(CRD, crd);
    let outcome = reconcile(&api, &settings, None, now).await.unwrap();
    assert_eq!(outcome.pair, *PAIR);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_directory_is_a_store_of_its_own() {
    let api = installed();
    let settings = settings("directory", Source::Directory);
    let first = reconcile(&api, &settings, None, Timestamp::now()).await.unwrap();
    assert_eq!(api.writes(), ["hooks", CRD]);
    assert!(settings.cert_dir.read().unwrap().ca_key.is_some());
    assert_eq!(
        reconcile(&api, &settings, None, Timestamp::now())
            .await
            .unwrap()
            .pair,
        first.pair
    );
}

#[tokio::test(start_paused = true)]
async fn the_controller_retries_serves_the_certificate_and_follows_a_new_secret() {
    let api = installed();
    let hooks = api.objects.lock().unwrap().remove("hooks").unwrap();
    let tls = Arc::new(Tls::default());
    let progress = Progress::default();
    let scratch = settings("retry", Source::Secret);
    let changes = Changes::default();
    let controller = WebhookController {
        api: api.clone(),
        settings: scratch.clone(),
        tls: tls.clone(),
        changes: changes.clone(),
        jitter: 9_999,
        progress: progress.clone(),
    };
    let (stop, stopped) = watch::channel(false);
    let (first, mut done) = oneshot::channel();
    let task = tokio::spawn(controller.run(stopped, first));
    // Failures at 0 s, 1 s, 3 s and 7 s.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(progress.failures.get(), 4);
    assert!(done.try_recv().is_err());
    assert_eq!(tls.pair(), None, "nothing is served that nobody trusts");
    let since = tokio::time::Instant::now();
    api.put("hooks", hooks);
    changes.report(hooks_changed());
    done.await.unwrap();
    assert!(since.elapsed() < REPAIRED, "no pause after a failure delays it");
    let served = tls.pair().unwrap();
    assert!(progress.last_success.get() > 0);
    assert_eq!(progress.dropped.get(), 1);

    let theirs = json!({"metadata": {"name": "certs"}, "data": *RIVAL});
    api.put("certs", theirs);
    changes.report(Reconciled::Secret);
    tokio::time::sleep(REPAIRED).await;
    let theirs = tls.pair().unwrap();
    assert_ne!(theirs, served);

    // The other replicas serve the old certificate until they have read the new one, and API servers trust a new CA
    // a moment after that is written.
    api.objects.lock().unwrap().remove("certs");
    changes.report(Reconciled::Secret);
    tokio::time::sleep(REPAIRED).await;
    let published = || {
        let hooks = api.get("hooks").unwrap();
        let bundle = hooks["webhooks"][0]["clientConfig"]["caBundle"].clone();
        STANDARD.decode(bundle.as_str().unwrap()).unwrap()
    };
    let trusted = published();
    assert_ne!(trusted, theirs.ca_pem);
    assert!(trusted.ends_with(&theirs.ca_pem));
    assert_eq!(tls.pair().as_ref(), Some(&theirs), "not served yet");
    api.put("hooks", configuration());
    changes.report(hooks_changed());
    tokio::time::sleep(REPAIRED).await;
    assert_eq!(published(), trusted, "a repair revokes nothing");
    assert_eq!(tls.pair().as_ref(), Some(&theirs), "and hastens nothing");
    tokio::time::sleep(rotation::PROPAGATION).await;
    assert_eq!(tls.pair().unwrap().ca_pem, trusted);
    assert_eq!(progress.failures.get(), 4);
    stop.send(true).unwrap();
    task.await.unwrap();
}

/// Virtual time within which an edit has to be repaired.
const REPAIRED: Duration = Duration::from_secs(2);

fn hooks_changed() -> Reconciled {
    Reconciled::Configuration(Phase::Mutating, "hooks".into())
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_configuration_or_definition_is_repaired_within_two_seconds_with_one_write() {
    let api = installed();
    let scratch = settings("edit", Source::Secret);
    let changes = Changes::default();
    let controller = WebhookController {
        api: api.clone(),
        settings: scratch.clone(),
        tls: Arc::default(),
        changes: changes.clone(),
        jitter: 0,
        progress: Progress::default(),
    };
    let (stop, stopped) = watch::channel(false);
    let (first, succeeded) = oneshot::channel();
    let task = tokio::spawn(controller.run(stopped, first));
    succeeded.await.unwrap();
    api.writes();
    let good = [api.get("hooks").unwrap(), api.get(CRD).unwrap()];

    // As `helm upgrade --force` and `kubectl replace` leave them.
    api.put("hooks", configuration());
    let conversion =
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "other"}}}});
    api.put(
        CRD,
        json!({"metadata": {"name": CRD}, "spec": {"conversion": conversion}}),
    );
    changes.report(hooks_changed());
    changes.report(Reconciled::Definition(CRD.into()));
    tokio::time::sleep(REPAIRED).await;
    assert_eq!(api.writes(), ["hooks", CRD]);
    assert_eq!(api.get("hooks").unwrap()["webhooks"], good[0]["webhooks"]);
    let client = "/spec/conversion/webhook/clientConfig/caBundle";
    assert_eq!(api.get(CRD).unwrap().pointer(client), good[1].pointer(client));

    // The watch reports the repair, too.
    changes.report(hooks_changed());
    tokio::time::sleep(REPAIRED).await;
    assert_eq!(api.writes(), Vec::<String>::new());

    // Another manager that disagrees writes after each repair.
    for _ in 0..30 {
        let mut theirs = configuration();
        theirs["metadata"]["annotations"] = json!({"template": theirs["webhooks"].to_string()});
        api.put("hooks", theirs);
        changes.report(hooks_changed());
        tokio::time::sleep(REPAIRED).await;
    }
    let writes = api.writes().len();
    assert!((5..=10).contains(&writes), "{writes} writes in a minute");
    stop.send_replace(true);
    task.await.unwrap();
}

#[test]
fn the_pause_after_failures_doubles_up_to_half_a_minute() {
    let pauses: Vec<_> = (0..7).map(|failures| backoff(failures).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
}

/// Waits for `condition`, for as long as a slow machine may take.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..18_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never comes");
}

#[tokio::test]
async fn the_conditional_webhook_is_written_when_its_condition_changes_and_not_otherwise() {
    let api = installed();
    let mut configuration = configuration();
    configuration["webhooks"][0]["matchConditions"] = json!([{"name": "c", "expression": "true"}]);
    api.put("hooks", configuration);
    let scratch = settings("condition", Source::Secret);
    let conditional = ConditionalWebhook {
        name: "more".into(),
        path: "/one".into(),
        condition: "needed".into(),
        in_place: false,
    };
    let (sender, receiver) = watch::channel(DesiredCondition::Unmanaged);
    let settings = Settings {
        conditionals: vec![Conditional {
            phase: Phase::Mutating,
            webhook: conditional,
            desired: receiver,
        }],
        ..scratch.clone()
    };
    let controller = WebhookController {
        api: api.clone(),
        settings,
        tls: Arc::default(),
        changes: Changes::default(),
        jitter: 0,
        progress: Progress::default(),
    };
    let (stop, stopped) = watch::channel(false);
    let (first, succeeded) = oneshot::channel();
    let task = tokio::spawn(controller.run(stopped, first));
    succeeded.await.unwrap();
    assert_eq!(api.writes(), ["certs", "hooks", CRD]);

    let expression = || {
        let hooks = api.get("hooks").unwrap();
        let more = hooks["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "more");
        more.map(|more| more["matchConditions"][0]["expression"].clone())
    };
    for (desired, expected) in [
        (DesiredCondition::Expression("a".into()), Some(json!("a"))),
        (DesiredCondition::Expression("b".into()), Some(json!("b"))),
        (DesiredCondition::Absent, None),
    ] {
        sender.send_replace(desired.clone());
        until(|| expression() == expected).await;
        assert_eq!(api.writes(), ["hooks"]);
        sender.send_replace(desired);
    }
    // Nothing is left to write when the condition is registered already.
    sender.send_replace(DesiredCondition::Expression("c".into()));
    until(|| expression() == Some(json!("c"))).await;
    assert_eq!(api.writes(), ["hooks"]);

    // Another replica wrote a new certificate meanwhile: the configurations go on trusting it.
    let theirs = json!({"metadata": {"name": "certs"}, "data": *RIVAL});
    let bundle = RIVAL["ca-cert.pem"].clone();
    assert!(bundle.is_string());
    api.put("certs", theirs);
    let mut hooks = api.get("hooks").unwrap();
    for webhook in hooks["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = bundle.clone();
    }
    api.put("hooks", hooks);
    sender.send_replace(DesiredCondition::Expression("d".into()));
    until(|| expression() == Some(json!("d"))).await;
    let hooks = api.get("hooks").unwrap();
    assert_eq!(hooks["webhooks"][0]["clientConfig"]["caBundle"], bundle);
    stop.send_replace(true);
    task.await.unwrap();
}

#[tokio::test]
async fn a_widened_condition_is_narrowed_when_its_time_is_over() {
    let api = installed();
    let mut configuration = configuration();
    configuration["webhooks"][0]["matchConditions"] = json!([{"name": "c", "expression": "true"}]);
    api.put("hooks", configuration);
    let scratch = settings("widened", Source::Secret);
    let conditional = ConditionalWebhook {
        name: "more".into(),
        path: "/one".into(),
        condition: "needed".into(),
        in_place: false,
    };
    let (_sender, receiver) = watch::channel(DesiredCondition::Expression("a".into()));
    let changes = Changes::default();
    let controller = WebhookController {
        api: api.clone(),
        settings: Settings {
            conditionals: vec![Conditional {
                phase: Phase::Mutating,
                webhook: conditional,
                desired: receiver,
            }],
            ..scratch.clone()
        },
        tls: Arc::default(),
        changes: changes.clone(),
        jitter: 0,
        progress: Progress::default(),
    };
    let (stop, stopped) = watch::channel(false);
    let (first, succeeded) = oneshot::channel();
    let task = tokio::spawn(controller.run(stopped, first));
    succeeded.await.unwrap();

    let mut hooks = api.get("hooks").unwrap();
    let until = Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let widened = json!([{"webhook": "more", "expression": "b", "until": until, "name": "set"}]);
    hooks["metadata"]["annotations"][WIDENED_CONDITIONS] = json!(widened.to_string());
    let webhooks = hooks["webhooks"].as_array_mut().unwrap();
    let more = webhooks.iter_mut().find(|one| one["name"] == "more").unwrap();
    more["matchConditions"][0]["expression"] = json!("(a) || b");
    api.put("hooks", hooks);
    changes.report(hooks_changed());
    let annotation = || {
        api.get("hooks").unwrap()["metadata"]["annotations"]
            .get(WIDENED_CONDITIONS)
            .cloned()
    };
    self::until(|| annotation().is_none()).await;
    assert!(Timestamp::now() >= until, "it is kept until then");
    stop.send_replace(true);
    task.await.unwrap();
}
