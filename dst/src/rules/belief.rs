//! What the sender of a write may have believed: of each object, any version from the one that it must know.

use crate::rules::prelude::*;

/// An object as the sender of a write may have seen it.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// Any of these; none if there was no such object.
    pub versions: &'a [Arc<Object>],
    /// It cannot have missed that there is one.
    pub is_known: bool,
}

/// What a write changed of an object.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// Its versions up to the one that was written.
    pub versions: &'a [Arc<Object>],
    /// What was written.
    pub after: &'a Object,
}

impl<'a> Change<'a> {
    /// The object before; none if it was created.
    pub fn before(&self) -> Option<&'a Object> {
        let [.., before, _] = self.versions else {
            return None;
        };
        Some(before)
    }
}

impl Write<'_> {
    /// An object as the sender may have seen it.
    pub fn sees<'m>(&self, mirror: &'m Mirror, of: Resource, uid: &str) -> Seen<'m> {
        Seen::of(mirror.of(of), uid, self.sent.floors.of(of))
    }

    /// All objects of a resource as the sender may have seen them.
    pub fn sees_all<'m>(&self, mirror: &'m Mirror, of: Resource) -> impl Iterator<Item = Seen<'m>> + use<'m> {
        let (log, floor) = (mirror.of(of), self.sent.floors.of(of));
        log.objects.keys().map(move |uid| Seen::of(log, uid, floor))
    }

    /// The newest version of anything in a log before the write.
    pub fn newest_before(&self, log: &Log) -> u64 {
        let last = self.marks.of(log.resource).checked_sub(1);
        let last = last.and_then(|last| log.changes.get(last));
        last.map_or(0, |change| change.version)
    }

    /// What the write changed of an object of a resource; nothing if it changed nothing that is stored.
    pub fn change<'m>(&self, mirror: &'m Mirror, of: Resource) -> Option<Change<'m>> {
        let (log, place) = (mirror.of(of), self.marks.of(of));
        let version = log.changes.get(place)?.version;
        let versions = log.changed_at(place)?;
        let index = versions.iter().position(|one| one.version == version)?;
        Some(Change {
            versions: versions.get(..=index)?,
            after: versions.get(index)?,
        })
    }

    /// Does it report the status of an object of this resource?
    pub fn reports(&self, of: Resource) -> bool {
        self.resource == of.plural && self.subresource == "status" && self.method == Method::Patch
    }

    /// Does it change anything of an object of this resource beside its status?
    pub fn changes(&self, of: Resource) -> bool {
        self.resource == of.plural && self.subresource.is_empty() && self.method == Method::Patch
    }

    /// The object of a resource that it created.
    pub fn created<'m>(&self, mirror: &'m Mirror, of: Resource) -> Option<&'m Object> {
        let creates = self.resource == of.plural && self.method == Method::Post && self.name.is_empty();
        let versions = mirror.of(of).changed_at(self.marks.of(of)).filter(|_| creates)?;
        versions.last().map(|object| &**object)
    }

    /// The object of a resource that it deleted, as it was before anybody did.
    pub fn deleted<'m>(&self, mirror: &'m Mirror, of: Resource) -> Option<&'m Object> {
        let deletes = self.resource == of.plural && self.method == Method::Delete;
        let versions = mirror.of(of).changed_at(self.marks.of(of)).filter(|_| deletes)?;
        let alive = versions.iter().rev().find(|one| !one.is_going());
        alive.map(|object| &**object)
    }

    /// An object before the write, and after.
    pub fn both<'m>(&self, mirror: &'m Mirror, of: Resource) -> Option<[&'m Object; 2]> {
        let change = self.change(mirror, of)?;
        Some([change.before()?, change.after])
    }
}

impl<'a> Seen<'a> {
    /// An object as somebody may see it who knows everything up to `floor`.
    pub fn of(log: &'a Log, uid: &str, floor: u64) -> Self {
        let versions = log.window(uid, floor);
        let is_known = versions.first().is_some_and(|first| first.version <= floor);
        Self { versions, is_known }
    }

    /// The same, of what was there at a version of the cluster; nothing if it was not.
    pub fn until(self, newest: u64) -> Option<Self> {
        let until = self.versions.partition_point(|object| object.version <= newest);
        let versions = self
            .versions
            .get(..until)
            .filter(|versions| !versions.is_empty())?;
        Some(Self { versions, ..self })
    }

    /// Was there no such object?
    pub fn is_nothing(&self) -> bool {
        self.versions.is_empty()
    }

    /// Name.
    pub fn name(&self) -> &'a str {
        self.versions.first().map_or("", |object| &*object.name)
    }

    /// Its first version, of which there is one at least.
    pub fn first(&self) -> &'a Object {
        &self.versions[0]
    }

    /// As it is.
    pub fn truth(&self) -> &'a Object {
        &self.versions[self.versions.len() - 1]
    }

    /// May this be believed of it?
    pub fn may_be(&self, believed: impl Fn(&Object) -> bool) -> bool {
        self.versions.iter().any(|object| believed(object))
    }

    /// Is it so, whatever is believed of it?
    pub fn is(&self, believed: impl Fn(&Object) -> bool) -> bool {
        !self.is_nothing() && self.versions.iter().all(|object| believed(object))
    }

    /// Must this be believed of it, as the sender must know that it is there?
    pub fn must_be(&self, believed: impl Fn(&Object) -> bool) -> bool {
        self.is_known && self.is(believed)
    }
}

/// Name of an oracle, and what it demands of a write under a specification.
pub type Rule<'r, S> = (&'static str, &'r dyn Fn(&S) -> bool);

/// The first of some rules that no specification keeps together with those before it.
pub fn broken<S>(specs: &[S], rules: &[Rule<'_, S>]) -> Option<&'static str> {
    if Violation::are_collected() && !specs.is_empty() {
        let unkept = rules.iter().filter(|(_, rule)| !specs.iter().any(rule));
        unkept.for_each(|(name, _)| {
            drop(Violation::of(name, String::new()).and_then(Violation::unless_collected));
        });
        return None;
    }
    let mut left: Vec<&S> = specs.iter().collect();
    for (name, rule) in rules {
        left.retain(|spec| rule(spec));
        if left.is_empty() {
            return Some(name);
        }
    }
    None
}

/// What versions of a workload demand, each of which the sender may have taken for the newest; what is repeated is
/// left out.
pub fn specs<'a, S: PartialEq>(
    versions: impl IntoIterator<Item = &'a Arc<Object>>,
    read: impl Fn(&'a Object) -> S,
) -> Vec<S> {
    let mut specs = Vec::new();
    for version in versions {
        let spec = read(version);
        if specs.last() != Some(&spec) {
            specs.push(spec);
        }
    }
    specs
}

/// The revision of a label, or of a name, though it may be gone: nothing is left of a workload that is deleted.
pub fn revision(mirror: &Mirror, is_it: impl Fn(&Object) -> bool) -> Option<&Object> {
    let mut all = mirror.of(REVISIONS).objects.values();
    let found = all.find_map(|versions| versions.last().filter(|last| is_it(last)));
    found.map(|revision| &**revision)
}

/// Who wrote pods last, and what: what it wrote itself, it must know.
#[derive(Default)]
pub struct Memory {
    /// Newest version of each pod that its last writer wrote.
    pub wrote: Wrote,
    /// And of those that were created, the first.
    pub created: Wrote,
}

/// Versions of pods with their writers, by uid.
pub type Wrote = BTreeMap<Arc<str>, (ProcessId, u64)>;

impl Memory {
    /// Remembers a write.
    pub fn remember(&mut self, write: &Write<'_>, mirror: &Mirror) {
        let versions = mirror.of(PODS).changed_at(write.marks.of(PODS));
        if let Some(written) = versions.and_then(|versions| versions.last())
            && write.resource == "pods"
        {
            let what = (write.process, written.version);
            self.wrote.insert(written.uid.clone(), what);
            if write.created(mirror, PODS).is_some() {
                self.created.insert(written.uid.clone(), what);
            }
        }
    }
}

/// The pods that may be there as the sender of a write may have seen them, with what it wrote itself.
pub fn pods<'a>(write: &Write<'_>, mirror: &'a Mirror, wrote: &Wrote) -> impl Iterator<Item = Seen<'a>> {
    let log = mirror.of(PODS);
    let newest = write.newest_before(log);
    log.objects.keys().filter_map(move |uid| {
        let own = wrote.get(uid).filter(|(process, _)| *process == write.process);
        let floor = own
            .map_or(0, |(_, version)| *version)
            .max(write.sent.floors.of(PODS));
        Seen::of(log, uid, floor).until(newest)
    })
}

/// What the sender of a write may have believed of a workload. `S` is what its specification demands.
pub struct Knowledge<'a, S> {
    /// Uid of the workload.
    pub owner: Arc<str>,
    /// Versions of its specification, each of which the sender may have taken for the newest.
    pub specs: Vec<S>,
    /// Its pods.
    pub pods: Vec<Seen<'a>>,
    /// `spec.selector`, which never changes.
    selector: &'a Value,
}

impl<'a, S: PartialEq> Knowledge<'a, S> {
    /// What the sender of a write may have believed of the only workload of a resource.
    pub fn of(
        write: &Write<'_>,
        mirror: &'a Mirror,
        resource: Resource,
        read: impl Fn(&'a Object) -> S,
    ) -> Option<Self> {
        let workload = mirror.only(resource)?;
        let is_ours = |object: &Object| !object.gone && object.owner() == &*workload.uid;
        let wrote = Wrote::new();
        let pods = pods(write, mirror, &wrote).filter(|pod| pod.may_be(is_ours));
        Some(Self {
            owner: workload.uid.clone(),
            specs: specs(write.sees(mirror, resource, &workload.uid).versions, read),
            pods: pods.collect(),
            selector: &workload.spec()["selector"],
        })
    }

    /// The pod of a name.
    pub fn pod(&self, name: &str) -> Option<&Seen<'a>> {
        let mut pods = self.pods.iter();
        pods.find(|pod| pod.name() == name && !pod.truth().gone)
    }

    /// Is it a pod of the workload? One that left the selector is released.
    pub fn owns(&self, pod: &Object) -> bool {
        pod.owner() == &*self.owner && matches(self.selector, pod)
    }

    /// Most pods for which something may be believed.
    pub fn most(&self, believed: impl Fn(&Object) -> bool) -> i64 {
        let so = |object: &Object| self.owns(object) && believed(object);
        self.pods.iter().filter(|pod| pod.may_be(so)).count() as i64
    }

    /// Pods for which something must be believed.
    pub fn least(&self, believed: impl Fn(&Object) -> bool) -> i64 {
        let so = |object: &Object| self.owns(object) && believed(object);
        self.pods.iter().filter(|pod| pod.is(so)).count() as i64
    }

    /// Is it allowed under some specification?
    pub fn allows(&self, rule: impl Fn(&S) -> bool) -> bool {
        self.specs.iter().any(rule)
    }
}
