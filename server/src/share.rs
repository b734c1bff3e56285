//! Which peer loses its share when something that all peers share is used up.
//!
//! No peer displaces one that holds less than itself. So a peer that takes all there is loses what it holds beyond
//! the others, and one that holds little, as an API server does, always finds room.

use std::{collections::BTreeMap, net::IpAddr};

use tokio::time::Instant;

/// Is a claim used for a request?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It may be dropped without losing a request, also for another claim of the same peer.
    Idle,
    /// It may be dropped only for peers that hold less.
    Busy,
}

/// A part of what is shared, held by one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Address of the peer, without the port.
    pub(crate) peer: IpAddr,
    /// How much it is, in the unit of what is shared.
    pub(crate) amount: usize,
    /// Whether it is in use.
    pub(crate) state: State,
    /// Since when it is in that state.
    pub(crate) since: Instant,
}

/// Position of the claim to drop in favour of `amount` more for `peer`; `None`: the new claim is refused.
///
/// It belongs to the peer that holds most, among those that hold at least as much as `peer` would. Of its claims an
/// idle one is dropped first, and of these the one that has been idle for longest.
pub(crate) fn to_drop(claims: &[Claim], peer: IpAddr, amount: usize) -> Option<usize> {
    let mut shares = BTreeMap::from([(peer, amount)]);
    for claim in claims {
        *shares.entry(claim.peer).or_default() += claim.amount;
    }
    let share = |peer: &IpAddr| shares.get(peer).copied().unwrap_or_default();
    let own = share(&peer);
    let larger = |claim: &Claim| match claim.state {
        State::Idle => share(&claim.peer) >= own,
        State::Busy => share(&claim.peer) > own,
    };
    let candidates = claims.iter().enumerate().filter(|(_, claim)| larger(claim));
    let order = |claim: &Claim| (std::cmp::Reverse(share(&claim.peer)), claim.state, claim.since);
    candidates.min_by_key(|(_, claim)| order(claim)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn claim(peer: u8, state: State, age: u64) -> Claim {
        Claim {
            peer: IpAddr::from([10, 0, 0, peer]),
            amount: 1,
            state,
            since: Instant::now() - Duration::from_secs(age),
        }
    }

    fn to(peer: u8, claims: &[Claim]) -> Option<usize> {
        to_drop(claims, IpAddr::from([10, 0, 0, peer]), 1)
    }

    #[test]
    fn the_largest_peer_loses_its_longest_idle_claim() {
        use State::{Busy, Idle};
        let claims = [
            claim(1, Idle, 90),
            claim(2, Idle, 5),
            claim(2, Idle, 9),
            claim(2, Busy, 20),
        ];
        for newcomer in [1, 2, 3] {
            assert_eq!(to(newcomer, &claims), Some(2), "{newcomer}");
        }
        let busy = [claim(1, Idle, 90), claim(2, Busy, 5), claim(2, Busy, 9)];
        assert_eq!(to(3, &busy), Some(2));
        assert_eq!(to(2, &busy), None, "no peer displaces one that holds less");
    }

    #[test]
    fn among_equal_peers_only_idle_claims_are_dropped() {
        use State::{Busy, Idle};
        assert_eq!(to(3, &[claim(1, Idle, 1), claim(2, Idle, 2)]), Some(1));
        assert_eq!(to(3, &[claim(1, Busy, 1), claim(2, Busy, 2)]), None);
        assert_eq!(
            to(1, &[claim(1, Idle, 1), claim(2, Idle, 2)]),
            Some(0),
            "a peer exchanges its own"
        );
    }

    #[test]
    fn amounts_count_not_claims() {
        let mut large = claim(1, State::Busy, 1);
        large.amount = 9;
        let claims = [large, claim(2, State::Busy, 9), claim(2, State::Busy, 9)];
        assert_eq!(to(3, &claims), Some(0));
        assert_eq!(to_drop(&claims, IpAddr::from([10, 0, 0, 3]), 9), None);
    }
}
