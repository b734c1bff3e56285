//! NodeImage: the images that one node holds, and how pulling them goes.
//!
//! [`NodeImage`] is read from raw JSON with [`NodeImage::from_value`]. What is written back is made from the stored
//! entries.

mod types;

use crate::convert::{Conversion, Rule};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::resource::ResourceId;
use crate::schema::shared::{object_reference, pull_policy, sandbox_config};
use crate::schema::{Object, list, map, time};

pub use types::{
    Image, ImageStatus, ImageTag, NodeImage, NodeImageStatus, ObjectReference, SecretReference,
    TagPullPolicy, TagStatus,
};

/// NodeImage.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "NodeImage",
    plural: "nodeimages",
    short_names: &[],
    scope: Scope::Cluster,
    about: "NodeImage lists the images that one node holds, and the progress of pulling them.",
    versions,
    conversion: Conversion::Rules(&[Rule::NewerOnly("spec.images{}.pullSecrets[].mode")]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

fn versions() -> Vec<Version> {
    let secret = || {
        Object::new("One secret that the node may pull this image with.")
            .text(
                "namespace",
                "Namespace of the secret that the node may pull with. Default: empty.",
            )
            .text(
                "name",
                "Name of the secret that the node may pull with. Default: empty.",
            )
    };
    let newer = secret().text(
        "mode",
        "batch: a secret kept in common for many jobs; empty otherwise. Default: empty.",
    );
    let version = |name, storage, secret: Object| Version {
        name,
        storage,
        spec: spec(secret).into(),
        status: status().into(),
        scale: false,
        columns: vec![
            columns::count("DESIRED", ".status.desired"),
            columns::count("PULLING", ".status.pulling"),
            columns::count("SUCCEED", ".status.succeeded"),
            columns::count("FAILED", ".status.failed"),
            columns::age("AGE"),
        ],
    };
    vec![
        version("v1alpha1", false, secret()),
        version("v1beta1", true, newer),
    ]
}

fn spec(secret: Object) -> Object {
    let policy = pull_policy()
        .int64(
            "activeDeadlineSeconds",
            "Seconds after createdAt when all attempts have failed. Default: never.",
        )
        .int32(
            "ttlSecondsAfterFinished",
            "Seconds after its end when the tag is taken off the list; needed by the webhook. No default.",
        );
    let tag = Object::new("One tag or digest of the image, and who wants it on this node.")
        .text(
            "tag",
            "Tag of the image, such as 1.4, or its digest: sha256 and 64 digits.",
        )
        .time(
            "createdAt",
            "Time when the current round of pulling was requested. Default: now.",
        )
        .int64(
            "version",
            "Number of the round; the status of the tag carries the same. Default: 0.",
        )
        .list(
            "ownerReferences",
            "Jobs that want the tag; without any of those it had, it is taken off. Default: none.",
            object_reference("One job that wants the tag on this node, such as an ImagePullJob."),
        )
        .text(
            "imagePullPolicy",
            "IfNotPresent pulls only what is missing; anything else always. Default: empty.",
        )
        .with("pullPolicy", policy)
        .required(&["tag"]);
    let image = Object::new("Tags of one image, and how they are pulled.")
        .list(
            "pullSecrets",
            "Secrets that the node may pull this image with. Default: none.",
            secret,
        )
        .with("sandboxConfig", sandbox_config())
        .list(
            "tags",
            "Tags of the image that the node holds, sorted by tag.",
            tag,
        )
        .required(&["tags"]);
    Object::new("Images that the node of this name holds, with their tags.").with(
        "images",
        map(
            "Images by their normalised names, at most 256, without tags. Default: none.",
            image,
        ),
    )
}

fn status() -> Object {
    let tag = Object::new("Progress of pulling one tag or digest on this node.")
        .text("tag", "Tag or digest as in the specification that this is about.")
        .text(
            "phase",
            "Where the pull is: Waiting, Pulling, Succeeded or Failed.",
        )
        .int32(
            "progress",
            "Percent of the image that is pulled; most runtimes report 0 or 100. Default: 0.",
        )
        .time(
            "startTime",
            "Time when the node began to pull the tag in this round.",
        )
        .time(
            "completionTime",
            "Time when the pull succeeded, or failed for good, in this round.",
        )
        .int64(
            "version",
            "Number of the round that this is about, as in the specification.",
        )
        .text(
            "imageID",
            "Identity of the pulled image, as the runtime of the node reports it.",
        )
        .text(
            "message",
            "Explanation of why the pull failed or waits, a sentence for people.",
        )
        .required(&["tag", "phase"]);
    let image = Object::new("Progress of pulling the tags of one image on this node.")
        .with(
            "tags",
            list("States of the tags, sorted by tag, one for each.", tag.into()),
        )
        .required(&["tags"]);
    let first = Object::new("How the first round of pulling on this node went; kept for compatibility.")
        .with(
            "syncAt",
            time("Time when the first round of pulling on this node ended."),
        )
        .text("status", "How the first round of pulling ended, in one word.")
        .text(
            "message",
            "Explanation of how the first round ended, a sentence for people.",
        );
    Object::new("Progress of pulling on this node; written by its agent and the controller.")
        .int32("desired", "Number of tags that the node has to hold.")
        .int32(
            "succeeded",
            "Number of tags that have been pulled on this node. Default: 0.",
        )
        .int32(
            "failed",
            "Number of tags that could not be pulled on this node. Default: 0.",
        )
        .int32(
            "pulling",
            "Number of tags that are being pulled on this node. Default: 0.",
        )
        .int32(
            "waiting",
            "Number of tags whose pull on this node has not begun. Default: 0.",
        )
        .with(
            "imageStatuses",
            map("States of the images by their normalised names.", image),
        )
        .with("firstSyncStatus", first)
        .required(&["desired"])
}
