//! Helm 3 and 4 on a playground: a small chart is installed, upgraded, rolled back and uninstalled.

use std::process::Command;

use serde_json::Value;

use crate::process::{Playground, Scratch};

const SET: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets/web";
const TEMPLATE: &str = "apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: {{ .Values.image | quote }}}]}
";

#[test]
#[ignore = "needs Helm 3 or 4: HELM=… cargo test -p kruise --test it -- --ignored helm::"]
fn helm_installs_upgrades_rolls_back_and_uninstalls_a_chart() {
    let scratch = Scratch::new("helm");
    let playground = Playground::start(&scratch, &["--fast"]);
    let chart = scratch.file("chart");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    )
    .unwrap();
    std::fs::write(chart.join("values.yaml"), "replicas: 2\nimage: nginx:1\n").unwrap();
    std::fs::write(chart.join("templates/web.yaml"), TEMPLATE).unwrap();
    let chart = chart.display().to_string();
    let helm = |arguments: &[&str]| {
        let program = std::env::var("HELM").unwrap_or_else(|_| "helm".into());
        let output = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", &playground.kubeconfig)
            .env("HOME", scratch.file(""))
            .output()
            .expect("helm is installed, or HELM names it");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
    };
    let image = || {
        let set: Value = playground.get(SET);
        set["spec"]["template"]["spec"]["containers"][0]["image"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    helm(&["install", "shop", &chart]);
    assert_eq!(image(), "nginx:1");
    helm(&["upgrade", "shop", &chart, "--set", "image=nginx:2,replicas=3"]);
    assert_eq!(image(), "nginx:2");
    helm(&["rollback", "shop", "1"]);
    assert_eq!(image(), "nginx:1");
    assert_eq!(playground.get(SET)["spec"]["replicas"], 2);
    helm(&["uninstall", "shop"]);
    let (code, _) = playground.request("GET", SET, "application/json", "");
    assert_eq!(code, 404);
}
