//! What the server offers: groups, versions, resources; its version and health.

mod aggregated;
mod legacy;
mod openapi;

use serde_json::json;

use crate::registry::Registry;
use crate::route::Route;
use crate::wire::{Method, Request, Response};

/// Answers whatever is not about objects.
pub(crate) fn respond(registry: &Registry, request: &Request, route: &Route) -> Response {
    if request.method != Method::Get {
        return unknown();
    }
    let wants_aggregated = request
        .accept
        .split(',')
        .next()
        .is_some_and(|first| first.contains("as=APIGroupDiscoveryList"));
    match route {
        Route::Groups { legacy } if wants_aggregated => aggregated::groups(registry, *legacy),
        Route::Groups { legacy: true } => legacy::core_versions(),
        Route::Groups { legacy: false } => legacy::groups(registry),
        Route::Group(name) => legacy::group(registry, name).unwrap_or_else(unknown),
        Route::Resources { group, version } => {
            legacy::resources(registry, group, version).unwrap_or_else(unknown)
        }
        Route::Other(path) if path == "/openapi/v2" => openapi::version_2(&request.accept),
        Route::Other(path) => openapi::respond(registry, path)
            .or_else(|| other(path))
            .unwrap_or_else(unknown),
        Route::Objects(_) => unknown(),
    }
}

/// A path below which there is nothing: not even an object that reports it.
pub(crate) fn unknown() -> Response {
    Response::text(404, "404 page not found\n")
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
