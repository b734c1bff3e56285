//! Pod specs, of pods and of templates.

use serde_json::{Value, json};

use super::{each, fill, items, set};

/// Fills in what the server fills into the pod template that is a member of `of`; for a pod, `of` is the pod itself.
pub(crate) fn default(template: &mut Value) {
    let Some(spec) = template.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    for container in each(spec, "containers") {
        if container.get("imagePullPolicy").is_none() {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let policy = if tag(image) == "latest" {
                "Always"
            } else {
                "IfNotPresent"
            };
            set(container, "imagePullPolicy", policy);
        }
    }
    kube_schema::defaults::pod_template(template, kube_schema::defaults::Options::default());
    if let Some(spec) = template.get_mut("spec")
        && let Some(account) = spec.get("serviceAccountName").cloned()
    {
        set(spec, "serviceAccount", account);
    }
}

/// The tag of an image; `latest` if it names neither tag nor digest.
fn tag(image: &str) -> &str {
    if image.contains('@') {
        return "";
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':').map_or("latest", |(_, tag)| tag)
}

/// Requests that are not given equal the limits; only pods, not templates.
pub(super) fn requests_from_limits(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let Some(resources) = container.get_mut("resources") else {
                continue;
            };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
                continue;
            };
            if limits.is_empty() {
                continue;
            }
            fill(resources, "requests", json!({}));
            let Some(requests) = resources.get_mut("requests") else {
                continue;
            };
            for (name, value) in limits {
                fill(requests, &name, value);
            }
        }
    }
}

/// The quality of service that requests and limits amount to.
pub(super) fn quality(spec: &Value) -> &'static str {
    let containers = || items(spec, "containers").chain(items(spec, "initContainers"));
    let has = |container: &Value, which: &str, name: &str| -> Option<Value> {
        let found = container.pointer(&format!("/resources/{which}/{name}"))?;
        (found != "0").then(|| found.clone())
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers() {
        for name in ["cpu", "memory"] {
            let (request, limit) = (has(container, "requests", name), has(container, "limits", name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{quality, tag};

    #[test]
    fn tags_and_quality() {
        assert_eq!(tag("nginx"), "latest");
        assert_eq!(tag("reg:5000/nginx"), "latest");
        assert_eq!(tag("reg:5000/nginx:1"), "1");
        assert_eq!(tag("nginx@sha256:1"), "");
        let of = |resources| quality(&json!({"containers": [{"resources": resources}]}));
        assert_eq!(of(json!({})), "BestEffort");
        assert_eq!(of(json!({"requests": {"cpu": "1"}})), "Burstable");
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(of(json!({"requests": both, "limits": both})), "Guaranteed");
    }
}
