//! How the API server reaches the manager: through its Service or, outside the cluster, by URL.
//!
//! A client configuration has exactly one of both, and a manager with `WEBHOOK_HOST` puts the URL where the Service
//! was. `kubectl apply` removes only what it applied itself, so applying the Service again would leave both and be
//! refused. Hence the other one is written as null, which removes it even if the manager wrote it.

use serde_json::{Value, json};

/// Checks a URL that request paths are appended to, and drops its trailing slash.
pub fn base_url(text: &str) -> Result<String, String> {
    let base = text.trim_end_matches('/');
    match base.strip_prefix("https://") {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#']) => Ok(base.to_owned()),
        _ => Err("must be https://HOST:PORT, without a path".to_owned()),
    }
}

/// Settles every client configuration of `object` on `url`, or on the Service it names if there is none.
pub fn settle(object: &mut Value, url: Option<&str>) {
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        settle_one(webhook, url);
    }
    if let Some(conversion) = object.pointer_mut("/spec/conversion/webhook") {
        settle_one(conversion, url);
    }
}

fn settle_one(webhook: &mut Value, url: Option<&str>) {
    let Some(client) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) else {
        return;
    };
    let path = client
        .get("service")
        .and_then(|service| service.get("path")?.as_str());
    let path = path.unwrap_or("/").to_owned();
    match url {
        Some(url) => {
            client.insert("service".into(), Value::Null);
            client.insert("url".into(), json!(format!("{url}{path}")));
        }
        None => {
            client.insert("url".into(), Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(url: Option<&str>) -> (Value, Value) {
        let client = json!({"service": {"name": "s", "path": "/convert"}});
        let mut definition = json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}});
        let mut configuration = json!({"webhooks": [{"clientConfig": client}]});
        settle(&mut definition, url);
        settle(&mut configuration, url);
        (
            definition["spec"]["conversion"]["webhook"]["clientConfig"].take(),
            configuration["webhooks"][0]["clientConfig"].take(),
        )
    }

    #[test]
    fn the_service_removes_a_url_that_a_manager_wrote() {
        let expected = json!({"service": {"name": "s", "path": "/convert"}, "url": null});
        assert_eq!(settled(None), (expected.clone(), expected));
    }

    #[test]
    fn a_url_takes_the_place_of_the_service_with_its_path() {
        let expected = json!({"service": null, "url": "https://192.0.2.1:9876/convert"});
        assert_eq!(
            settled(Some("https://192.0.2.1:9876")),
            (expected.clone(), expected)
        );
    }

    #[test]
    fn a_url_is_a_host_and_nothing_else() {
        assert_eq!(
            base_url("https://a.example.com:1/"),
            Ok("https://a.example.com:1".to_owned())
        );
        for bad in ["http://a", "https://", "https://a/path", "https://a?b", "a:9876"] {
            assert!(base_url(bad).is_err(), "{bad}");
        }
    }
}
