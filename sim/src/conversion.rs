//! Objects of custom resources from one version to another.
//!
//! Without a webhook only `apiVersion` changes, and the other version's schema prunes and defaults. With one, all
//! objects that are needed at once go into one `ConversionReview`. What comes back must be as many objects of the
//! wanted version, each with the kind, name and uid it had; of their metadata only labels and annotations are taken.
//!
//! Unlike a server's, a write in a version that is not stored asks for the answer's conversion before it commits: if
//! that fails, nothing was written.

mod batch;

use serde_json::Value;

pub(crate) use self::batch::Batch;
use self::batch::key;
use crate::call::Call;
use crate::entropy::Entropy;
use crate::registry::Conversion;
use crate::validation::text;
use crate::webhook::Stop;

/// An object in a version.
pub(crate) fn one(call: &Call<'_>, object: Value, version: &str) -> Result<Value, Stop> {
    let converted = all(call, vec![object], version)?.pop();
    Ok(converted.unwrap_or_default())
}

/// Objects in a version.
pub(crate) fn all(call: &Call<'_>, objects: Vec<Value>, version: &str) -> Result<Vec<Value>, Stop> {
    let batch = |objects| Batch {
        resource: call.resource.clone(),
        version: version.to_owned(),
        objects,
        uid: String::new(),
    };
    let Conversion::Webhook(_) = call.resource.conversion else {
        return Ok(batch(objects).relabelled());
    };
    let wanted = call.resource.api_version(version);
    let (mut done, mut missing) = (Vec::with_capacity(objects.len()), Vec::new());
    for object in objects {
        if text(&object, "apiVersion") == wanted {
            done.push(object);
            continue;
        }
        match call.answers.converted(&key(&wanted, &object)) {
            Some(converted) => done.push(converted.clone()?),
            None => missing.push(object),
        }
    }
    if missing.is_empty() {
        return Ok(done);
    }
    let uid = Entropy::new(call.seed.wrapping_add(call.answers.next()?)).uid();
    let batch = Batch {
        uid,
        ..batch(missing)
    };
    Err(Stop::Call(Box::new(batch.needed_call())))
}
