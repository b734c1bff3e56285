//! Who has to give way when something that all peers share is used up.
//!
//! No peer displaces one that holds less than itself. So a peer that takes all there is loses what it holds beyond
//! the others, and one that holds little, as an API server does, always finds room.

use std::{collections::BTreeMap, net::IpAddr};

use tokio::time::Instant;

/// Whether a claim is being used for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It may be taken away without anybody's request being lost, also by another claim of the same peer.
    Idle,
    /// Only peers that hold less may take it away.
    Busy,
}

/// What a peer holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Its address, without the port.
    pub(crate) peer: IpAddr,
    /// How much it is, in the unit of what is shared.
    pub(crate) amount: usize,
    /// Whether it is in use.
    pub(crate) state: State,
    /// Since when it is in that state.
    pub(crate) since: Instant,
}

/// The position of the claim that gives way to `amount` more for `peer`; `None`: the newcomer is turned away.
///
/// Among the peers that hold at least as much as the newcomer would, it is the one that holds most; of its claims an
/// idle one, of those the one that has been so for longest.
pub(crate) fn gives_way(claims: &[Claim], peer: IpAddr, amount: usize) -> Option<usize> {
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
        gives_way(claims, IpAddr::from([10, 0, 0, peer]), 1)
    }

    #[test]
    fn the_largest_peer_gives_way_with_what_it_used_least_lately() {
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
    fn among_equals_only_idle_claims_give_way() {
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
        assert_eq!(gives_way(&claims, IpAddr::from([10, 0, 0, 3]), 9), None);
    }
}
