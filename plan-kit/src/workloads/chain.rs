//! The owners of a pod.

use kruise_views::OwnerView;

use super::{Aspect, Known, Source, Workload};

/// Longest chain. A longer one is a circle, or made to cost requests.
pub(super) const LONGEST: usize = 8;

/// The workloads that a pod belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// From its controller upwards. A workload that cannot be read, or that has yet to be read, is the last.
    pub workloads: Vec<Workload>,
    /// The workload that has yet to be read: the chain may go on above it.
    pub missing: Option<Workload>,
}

/// The workloads that the pods of this controller belong to. An owner that does not exist, or whose name has since
/// been given to another object, ends the chain and is not in it. An empty uid is not compared.
pub fn chain(controller: &OwnerView, known: Source<'_>) -> Chain {
    let mut chain = Chain::default();
    let mut owner = controller.clone();
    while chain.workloads.len() < LONGEST {
        let workload = Workload::from(&owner);
        let found = known(&workload, Aspect::Owner);
        match found {
            Known::Found(found) if owner.uid.is_empty() || found.uid == owner.uid => {
                chain.workloads.push(workload);
                match &found.controller {
                    Some(next) => owner = (**next).clone(),
                    None => break,
                }
            }
            Known::Found(_) | Known::Gone => break,
            Known::Unreadable => {
                chain.workloads.push(workload);
                break;
            }
            Known::NotYet => {
                chain.workloads.push(workload.clone());
                chain.missing = Some(workload);
                break;
            }
        }
    }
    chain
}
