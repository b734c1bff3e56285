//! Metrics with `--metrics-secure`, as Prometheus reads them: over TLS, with the token of an account.

use std::sync::Arc;

use kruise_e2e::manager::free_port;
use kruise_e2e::wait;
use ureq::tls::TlsConfig;

use crate::cluster::{Flagged, LIMIT, scenario_alone};

/// Status and text. The certificate is not checked: that it is the webhooks' is shown elsewhere.
fn read(url: &str, token: &str) -> (u16, String) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .disable_verification(true)
        .build();
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .tls_config(tls)
        .build()
        .new_agent();
    let mut request = agent.get(url);
    if !token.is_empty() {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut answer = request.call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), text)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn secure_metrics_are_for_accounts_with_the_right_to_them() {
    let scenario = scenario_alone("metrics");
    let kubectl = &scenario.kubectl;
    let port = free_port().unwrap();
    let address = format!("--metrics-addr=127.0.0.1:{port}");
    let _flagged = Flagged::shared(kubectl.kubeconfig(), &[&address, "--metrics-secure"]);
    for line in [
        "create serviceaccount reader",
        "create serviceaccount other",
        "create clusterrole metrics-test --verb=get --non-resource-url=/metrics",
        "create clusterrolebinding metrics-test --clusterrole=metrics-test --serviceaccount=metrics:reader",
    ] {
        kubectl.run(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let token = |account: &str| {
        kubectl
            .run(&["create", "token", account])
            .unwrap()
            .trim()
            .to_owned()
    };
    let (reader, other) = (token("reader"), token("other"));
    let url = format!("https://127.0.0.1:{port}/metrics");
    // The authorizer hears of a binding a moment later, and a refusal is remembered for ten seconds.
    wait::until_true("the account reads metrics", LIMIT, || {
        Ok(read(&url, &reader).0 == 200)
    })
    .unwrap();
    assert!(read(&url, &reader).1.contains("kruise_manager_is_leader"));
    assert_eq!(read(&url, &other).0, 403);
    assert_eq!(read(&url, "made.up.token").0, 401);
    assert_eq!(read(&url, "").0, 401);
    for kind in ["clusterrole", "clusterrolebinding"] {
        kubectl.run(&["delete", kind, "metrics-test"]).unwrap();
    }
}
