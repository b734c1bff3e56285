//! What the server offers: groups, versions, resources; its version and health.

mod aggregated;
mod legacy;

use serde_json::json;

use crate::registry::Registry;
use crate::route::Route;
use crate::status::Failure;
use crate::wire::{Method, Request, Response};

/// Answers whatever is not about objects.
pub(crate) fn respond(registry: &Registry, request: &Request, route: &Route) -> Result<Response, Failure> {
    if request.method != Method::Get {
        return Err(unknown(request));
    }
    let wants_aggregated = request
        .accept
        .split(',')
        .next()
        .is_some_and(|first| first.contains("as=APIGroupDiscoveryList"));
    match route {
        Route::Groups { legacy } if wants_aggregated => Ok(aggregated::groups(registry, *legacy)),
        Route::Groups { legacy: true } => Ok(legacy::core_versions()),
        Route::Groups { legacy: false } => Ok(legacy::groups(registry)),
        Route::Group(name) => legacy::group(registry, name).ok_or_else(|| unknown(request)),
        Route::Resources { group, version } => {
            legacy::resources(registry, group, version).ok_or_else(|| unknown(request))
        }
        Route::Other(path) => other(path).ok_or_else(|| unknown(request)),
        Route::Objects(_) => Err(unknown(request)),
    }
}

/// A path below which there is nothing.
pub(crate) fn unknown(_request: &Request) -> Failure {
    Failure::no_resource()
}

fn other(path: &str) -> Option<Response> {
    match path {
        "/version" | "/version/" => Some(Response::json(
            200,
            &json!({
                "major": "1", "minor": "34", "emulationMajor": "1", "emulationMinor": "34",
                "minCompatibilityMajor": "1", "minCompatibilityMinor": "33", "gitVersion": "v1.34.2",
                "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": "", "compiler": "", "platform": "",
            }),
        )),
        "/healthz" | "/livez" | "/readyz" | "/healthz/ping" | "/livez/ping" | "/readyz/ping" => {
            Some(Response::text(200, "ok"))
        }
        _ => None,
    }
}
