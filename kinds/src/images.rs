//! Caches that the controllers of images on nodes share.

use std::sync::Arc;

use kruise_api::{imagepulljob::ImagePullJob, nodeimage::NodeImage};
use kruise_frame::caches::NODES;
use kruise_plan_kit::{ResourceId, image};
use kruise_plan_nodes::imagepulljob::{Copies, Nodes};
use kruise_runtime::caches::{CacheId, Reach};
use kruise_runtime::parsed::Parsed;
use kruise_views::SecretView;
use kube_cache::{Index, ObjectKey, SharedInformer};

/// A NodeImage in a cache.
pub type CachedNodeImage = Parsed<Arc<NodeImage>>;
/// An ImagePullJob in a cache.
pub type CachedPullJob = Parsed<Arc<ImagePullJob>>;

/// NodeImages by the uids of the objects that want one of their tags.
pub const NODE_IMAGES_BY_OWNER: Index<CachedNodeImage> = Index::new("owner", |cached| {
    let images = cached.object.iter().flat_map(|node| node.images.values());
    let owners = images
        .flat_map(|image| &image.tags)
        .flat_map(|tag| &tag.owner_references);
    let mut uids: Vec<Box<str>> = owners.map(|owner| owner.uid.as_str().into()).collect();
    uids.sort();
    uids.dedup();
    uids
});

/// NodeImages. They are listed before the nodes and the jobs that they name, so that what is missing there is gone.
pub const NODE_IMAGES: CacheId<CachedNodeImage> = CacheId::of("nodeimages", kruise_api::nodeimage::RESOURCE)
    .reach(Reach::Cluster)
    .before(&[NODES.name, IMAGE_PULL_JOBS.name]);

/// ImagePullJobs by what they wait for: see the functions of [`waits`].
pub const JOBS_BY_WAIT: Index<CachedPullJob> = Index::new("waits for", |cached| {
    let job = cached.object.as_ref().ok();
    job.map(|job| waits::of(job)).unwrap_or_default()
});

/// ImagePullJobs, whole.
pub const IMAGE_PULL_JOBS: CacheId<CachedPullJob> =
    CacheId::of("imagepulljobs, whole", kruise_api::imagepulljob::RESOURCE).indexed(&[JOBS_BY_WAIT]);

/// Copies of pull secrets by their originals, `namespace/name`.
const COPIES_BY_SOURCE: Index<SecretView> =
    Index::new("source", |secret| secret.source.iter().cloned().collect());
/// Copies of pull secrets by the jobs that need them, `namespace/name`.
const COPIES_BY_JOB: Index<SecretView> = Index::new("job", |secret| {
    let copy = secret.source.as_ref();
    copy.map(|_| secret.references.to_vec()).unwrap_or_default()
});
/// Secrets, without their data. Those of types that nobody pulls with, and that make up most of a cluster's, are
/// not read at all. Other types are: OpenKruise may have copied such secrets to where all nodes read them, and its
/// copies are released.
pub const SECRETS: CacheId<SecretView> = CacheId::of("secrets", ResourceId::SECRETS)
    .indexed(&[COPIES_BY_SOURCE, COPIES_BY_JOB])
    .with_fields(
        "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token,type!=bootstrap.kubernetes.io/token",
    );

/// Keys of [`JOBS_BY_WAIT`].
pub mod waits {
    use super::{ImagePullJob, image};

    /// Jobs of an image.
    pub fn image_named(name: &str) -> String {
        format!("image/{name}")
    }

    /// Jobs that name a node.
    pub fn node(name: &str) -> String {
        format!("node/{name}")
    }

    /// Jobs that select nodes by labels, all nodes, or pods.
    pub const NODES: &str = "nodes";

    /// Jobs of a namespace that select pods.
    pub fn pods(namespace: &str) -> String {
        format!("pods/{namespace}")
    }

    /// Jobs that name a secret.
    pub fn secret(namespace: &str, name: &str) -> String {
        format!("secret/{namespace}/{name}")
    }

    /// What a job waits for. One that has ended waits for its secrets alone, whose copies it keeps.
    pub(super) fn of(job: &ImagePullJob) -> Vec<Box<str>> {
        let (namespace, secrets) = (&job.metadata.namespace, job.spec.pull_secrets.iter());
        let secrets = secrets.map(|name| secret(namespace, name));
        let mut keys = if job.is_active() {
            of_active(job)
        } else {
            Vec::new()
        };
        keys.extend(secrets);
        keys.sort();
        keys.dedup();
        keys.into_iter().map(Into::into).collect()
    }

    fn of_active(job: &ImagePullJob) -> Vec<String> {
        let (namespace, spec) = (&job.metadata.namespace, &job.spec);
        let mut keys = vec![image_named(&image::name_and_tag(&spec.image).0)];
        let names = spec
            .selector
            .as_ref()
            .and_then(|selector| selector.names.as_ref());
        match names.filter(|_| spec.pod_selector.is_none()) {
            Some(names) => keys.extend(names.iter().map(|name| node(name))),
            None => keys.push(NODES.to_owned()),
        }
        if spec.pod_selector.is_some() {
            keys.push(pods(namespace));
        }
        keys
    }
}

/// The cache of NodeImages, as plans read it. One that cannot be read is none.
pub struct NodesOf<'a>(pub &'a SharedInformer<CachedNodeImage>);

impl Nodes for NodesOf<'_> {
    fn get(&self, name: &str) -> Option<Arc<NodeImage>> {
        let cached = self.0.snapshot().get(&ObjectKey::new("", name))?;
        cached.object.as_ref().ok().cloned()
    }

    fn all(&self) -> Vec<Arc<NodeImage>> {
        let all = self.0.snapshot();
        all.iter()
            .filter_map(|cached| cached.object.as_ref().ok().cloned())
            .collect()
    }
}

/// The cache of secrets, as plans read it.
pub struct CopiesOf<'a>(pub &'a SharedInformer<SecretView>);

impl Copies for CopiesOf<'_> {
    fn get(&self, namespace: &str, name: &str) -> Option<Arc<SecretView>> {
        self.0.snapshot().get(&ObjectKey::new(namespace, name))
    }

    fn of(&self, source: &str) -> Vec<Arc<SecretView>> {
        self.0.snapshot().by_index(&COPIES_BY_SOURCE, source)
    }

    fn needed_by(&self, job: &str) -> Vec<Arc<SecretView>> {
        self.0.snapshot().by_index(&COPIES_BY_JOB, job)
    }
}

/// Key of an object that an annotation of a copy names, `namespace/name`.
pub fn key_of(text: &str) -> Option<ObjectKey> {
    let (namespace, name) = text.split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}
