//! The verbs, each written once for all resources.

mod body;
mod commit;
mod create;
mod delete;
mod delete_options;
mod found;
mod list;
mod log;
mod patch;
mod pod;
mod progress;
mod scale;
mod table;
mod touched;
mod under_way;
mod update;

pub(crate) use self::body::reshape;
pub(crate) use self::delete::{FOREGROUND, ORPHAN};
pub(crate) use self::delete_options::DeleteOptions;
use self::found::find;
pub(crate) use self::list::{as_stored as list_as_stored, check as check_list};
pub(crate) use self::log::log;
pub(crate) use self::patch::media as patch_media;
pub(crate) use self::table::{check as check_table, table};
pub(crate) use self::touched::Touched;
pub(crate) use self::under_way::Progress;
use crate::api::{Api, Call, Reply};
use crate::registry::{Subresource, Writes};
use crate::status::Failure;
use crate::webhook::Stop;
use crate::wire::Method;

/// Runs the verb that method and path name.
pub(crate) fn run(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    if let Some(dry_run) = call.query.all("dryRun").iter().find(|value| *value != "All") {
        return Err(invalid_dry_run(call, dry_run).into());
    }
    if !call.target.subresource.is_empty() {
        return subresource(api, call);
    }
    match (call.request.method, call.target.name.is_empty()) {
        (Method::Get, true) => list::list(api, call),
        (Method::Get, false) => get(api, call),
        (Method::Post, true) if has_place(call) => create::create(api, call),
        (Method::Put, false) => update::put(api, call),
        (Method::Patch, false) => patch::patch(api, call),
        (Method::Delete, false) => delete::one(api, call),
        (Method::Delete, true) if has_place(call) && call.resource.writes == Writes::All => {
            delete::collection(api, call)
        }
        (Method::Post, false) if call.resource.is_custom() => {
            let kind = &call.resource.kind;
            let text = String::from_utf8_lossy(&call.request.body);
            let why = format!(
                "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{text}' ({text})"
            );
            Err(Failure::bad_request(why).into())
        }
        (Method::Put | Method::Patch, true) if call.resource.is_custom() => {
            Err(Failure::bad_request("name must be provided").into())
        }
        _ => Err(Failure::method_unknown().into()),
    }
}

/// Objects of namespaced resources are written in a namespace.
fn has_place(call: &Call<'_>) -> bool {
    call.resource.is_namespaced() != call.target.namespace.is_empty()
}

fn invalid_dry_run(call: &Call<'_>, given: &str) -> Failure {
    use kube_schema::validate::{FieldError, Kind};
    let options = match call.request.method {
        Method::Post => "CreateOptions",
        Method::Put => "UpdateOptions",
        Method::Patch => "PatchOptions",
        Method::Delete | Method::Get => "DeleteOptions",
    };
    let kind = crate::status::Subject::new("meta.k8s.io", options);
    let error = FieldError {
        path: "dryRun".into(),
        kind: Kind::NotSupported(&["All"]),
        value: serde_json::json!([given]),
        detail: String::new(),
    };
    Failure::invalid(&kind, "", &[error])
}

fn get(api: &Api, call: &Call<'_>) -> Result<Reply, Stop> {
    let stored = find(api, call)?;
    let value = call.read(stored)?;
    Ok(Reply { code: 200, value })
}

fn subresource(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    let found = call
        .resource
        .subresources
        .iter()
        .find(|one| one.name() == call.target.subresource);
    let Some(found) = found.copied().filter(|_| !call.target.name.is_empty()) else {
        let failure = if call.resource.is_custom() {
            Failure::not_found(&call.resource.subject(), &call.target.name)
        } else {
            Failure::no_resource()
        };
        return Err(failure.into());
    };
    match (found, call.request.method) {
        (Subresource::Status | Subresource::Scale, Method::Post | Method::Delete)
            if call.resource.is_custom() =>
        {
            let verb = if call.request.method == Method::Post {
                "create"
            } else {
                "delete"
            };
            Err(Failure::verb_unsupported(&call.resource.subject(), verb).into())
        }
        (Subresource::Status | Subresource::EphemeralContainers | Subresource::Resize, Method::Get) => {
            get(api, call)
        }
        (
            Subresource::Status
            | Subresource::EphemeralContainers
            | Subresource::Resize
            | Subresource::Finalize,
            Method::Put,
        ) => update::put(api, call),
        (Subresource::Status | Subresource::EphemeralContainers | Subresource::Resize, Method::Patch) => {
            patch::patch(api, call)
        }
        (Subresource::Scale, method) => scale::run(api, call, method),
        (Subresource::Eviction, Method::Post) => pod::evict(api, call),
        (Subresource::Binding, Method::Post) => pod::bind(api, call),
        _ => Err(Failure::method_unknown().into()),
    }
}
