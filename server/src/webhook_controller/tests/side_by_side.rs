//! Definitions that are reconciled at the same time.

use super::*;

/// An API server that takes a second for each request for a definition. It refuses writes to one.
struct Slow {
    memory: Arc<Memory>,
    refused: &'static str,
    in_flight: Mutex<(usize, usize)>,
}

impl Slow {
    /// With so many definitions.
    fn with(definitions: &[String], refused: &'static str) -> Self {
        let memory = installed();
        for name in definitions {
            let conversion = json!({"strategy": "Webhook"});
            memory.put(name, json!({"spec": {"conversion": conversion}}));
        }
        Self {
            memory,
            refused,
            in_flight: Mutex::default(),
        }
    }

    async fn second(&self) {
        {
            let (now, most) = &mut *self.in_flight.lock().unwrap();
            *now += 1;
            *most = (*most).max(*now);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.in_flight.lock().unwrap().0 -= 1;
    }
}

impl Api for Slow {
    async fn get_secret(&self, namespace: &str, name: &str) -> Result<Value, ApiError> {
        self.memory.get_secret(namespace, name).await
    }

    async fn create_secret(&self, secret: Value) -> Result<(), ApiError> {
        self.memory.create_secret(secret).await
    }

    async fn replace_secret(&self, secret: Value) -> Result<(), ApiError> {
        self.memory.replace_secret(secret).await
    }

    async fn get_configuration(&self, phase: Phase, name: &str) -> Result<Value, ApiError> {
        self.memory.get_configuration(phase, name).await
    }

    async fn patch_configuration(&self, phase: Phase, name: &str, patch: Value) -> Result<(), ApiError> {
        self.memory.patch_configuration(phase, name, patch).await
    }

    async fn get_crd(&self, name: &str) -> Result<Value, ApiError> {
        self.second().await;
        self.memory.get_crd(name).await
    }

    async fn patch_crd(&self, name: &str, patch: Value) -> Result<(), ApiError> {
        self.second().await;
        if name == self.refused {
            return Err(ApiError::Other("refused".into()));
        }
        self.memory.patch_crd(name, patch).await
    }
}

#[tokio::test(start_paused = true)]
async fn definitions_are_reconciled_side_by_side_a_few_at_a_time() {
    let names: Vec<String> = (0..16).map(|number| format!("{number}.example.org")).collect();
    let api = Slow::with(&names, "");
    let scratch = settings("side-by-side", Source::Secret);
    let settings = Settings {
        crds: names.clone(),
        ..scratch.clone()
    };
    let begin = Instant::now();
    let outcome = reconcile(&api, &settings, None, Timestamp::now()).await.unwrap();
    // Two rounds of a read and a write.
    assert_eq!(begin.elapsed(), Duration::from_secs(4));
    assert_eq!(api.in_flight.lock().unwrap().1, CONCURRENCY);
    for name in names {
        let crd = api.memory.get(&name).unwrap();
        assert!(
            configuration::conversion_trusts(&crd, &outcome.pair.ca_pem),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_cannot_be_written_keeps_no_other_from_it() {
    let names: Vec<String> = (0..16).map(|number| format!("{number}.example.org")).collect();
    let api = Slow::with(&names, "0.example.org");
    let scratch = settings("refused", Source::Secret);
    let settings = Settings {
        crds: names.clone(),
        ..scratch.clone()
    };
    let error = reconcile(&api, &settings, None, Timestamp::now())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("0.example.org"), "{error}");
    let is_written = |name: &String| {
        let crd = api.memory.get(name).unwrap();
        crd.pointer("/spec/conversion/webhook").is_some()
    };
    let written: Vec<bool> = names.iter().map(is_written).collect();
    assert_eq!(written, [vec![false], vec![true; 15]].concat());
}
