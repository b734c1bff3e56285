use jiff::Timestamp;
use kruise_views::PodView;
use proptest::prelude::*;

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A pod that set out at this second, in place, and took so many.
fn sample(began: i64, took: u64) -> Sample {
    Sample {
        began: Timestamp::from_second(began).unwrap(),
        took: seconds(took),
        stayed_ready: false,
        in_place: true,
    }
}

/// Seven pods, two at a time, of which a pod took twelve seconds and has to be ready for thirty.
fn seven() -> Facts {
    Facts {
        to_update: 7,
        at_once: 2,
        min_ready: seconds(30),
        observed: Observed {
            taken: [11, 12, 90, 12, 10].map(|took| sample(0, took)).to_vec(),
            ..Observed::default()
        },
        kept_by: "the partition",
        in_place: true,
        ..Facts::default()
    }
}

fn course(facts: &Facts) -> Course {
    outlook(facts).unwrap().course
}

fn pace_of(facts: &Facts) -> Pace {
    match course(facts) {
        Course::Waves { pace: Some(pace), .. } => pace,
        other => panic!("no times: {other:?}"),
    }
}

fn count_of(facts: &Facts) -> usize {
    match course(facts) {
        Course::Waves { count, .. } => count,
        Course::Held(held) => panic!("held: {held:?}"),
    }
}

#[test]
fn seven_pods_two_at_a_time_are_four_waves_of_a_median_pod_and_min_ready_seconds() {
    let facts = seven();
    assert_eq!(count_of(&facts), 4);
    let expected = Pace {
        took: seconds(12),
        of: 5,
        settles: seconds(30),
        first: seconds(42),
        last: seconds(168),
        overdue: None,
        end_not_counted: false,
    };
    assert_eq!(pace_of(&facts), expected);
}

#[test]
fn a_part_of_a_wave_is_a_wave() {
    for (to_update, at_once, expected) in [(1, 1, 1), (4, 2, 2), (5, 2, 3), (5, 9, 1), (10, 1, 10)] {
        let facts = Facts {
            to_update,
            at_once,
            ..seven()
        };
        assert_eq!(count_of(&facts), expected, "{to_update} in waves of {at_once}");
    }
}

#[test]
fn only_the_last_five_pods_count() {
    let mut facts = seven();
    facts.observed.taken = (0..20)
        .map(|began| sample(began, 100 - began as u64 * 4))
        .collect();
    let pace = pace_of(&facts);
    assert_eq!((pace.took, pace.of), (seconds(100 - 17 * 4), 5));
    facts.observed.taken.reverse();
    assert_eq!(pace_of(&facts), pace, "their order does not");
}

#[test]
fn of_two_pods_the_slower_one_counts() {
    let mut facts = seven();
    facts.observed.taken = vec![sample(0, 3), sample(1, 8)];
    assert_eq!((pace_of(&facts).took, pace_of(&facts).of), (seconds(8), 2));
}

#[test]
fn no_pod_of_the_revision_means_no_times() {
    let mut facts = seven();
    facts.observed.taken.clear();
    facts.observed.under_way = vec![Some(seconds(5))];
    assert_eq!(course(&facts), Course::Waves { count: 4, pace: None });
}

#[test]
fn pods_under_way_are_the_first_wave_and_shorten_it() {
    let mut facts = seven();
    facts.observed.under_way = vec![Some(seconds(20)), Some(seconds(2))];
    assert_eq!(count_of(&facts), 5);
    let pace = pace_of(&facts);
    assert_eq!((pace.first, pace.last), (seconds(40), seconds(40 + 4 * 42)));
    facts.observed.under_way = vec![None, Some(seconds(2))];
    assert_eq!(
        pace_of(&facts).first,
        seconds(42),
        "one that nothing is known of begins now"
    );
    facts.observed.under_way = vec![Some(seconds(20))];
    assert_eq!(count_of(&facts), 4, "another one joins it");
    assert_eq!(pace_of(&facts).first, seconds(42));
    facts.to_update = 0;
    assert_eq!((count_of(&facts), pace_of(&facts).last), (1, seconds(22)));
}

#[test]
fn a_pod_that_takes_much_longer_than_others_is_named() {
    let mut facts = seven();
    for (since, expected) in [(42, None), (84, None), (85, Some(seconds(85)))] {
        facts.observed.under_way = vec![Some(seconds(since)), Some(seconds(1))];
        assert_eq!(pace_of(&facts).overdue, expected, "{since}");
    }
    facts.observed.under_way = vec![Some(seconds(85)), Some(seconds(85))];
    assert_eq!(pace_of(&facts).first, Duration::ZERO);
}

#[test]
fn pods_that_stay_ready_take_no_time_and_those_that_do_not_take_a_second() {
    let mut facts = seven();
    facts.observed.taken = vec![Sample {
        stayed_ready: true,
        ..sample(0, 0)
    }];
    let pace = pace_of(&facts);
    assert_eq!(
        (pace.took, pace.settles, pace.last),
        (Duration::ZERO, Duration::ZERO, Duration::ZERO)
    );
    facts.observed.taken = vec![sample(0, 0)];
    assert_eq!(
        (pace_of(&facts).took, pace_of(&facts).first),
        (seconds(1), seconds(31))
    );
}

#[test]
fn new_pods_count_only_where_none_was_updated_in_place() {
    let new = |took| Sample {
        in_place: false,
        ..sample(9, took)
    };
    let mut facts = seven();
    facts.observed.taken = vec![sample(0, 3), new(60), new(60)];
    assert_eq!((pace_of(&facts).took, pace_of(&facts).of), (seconds(3), 1));
    facts.in_place = false;
    assert_eq!((pace_of(&facts).took, pace_of(&facts).of), (seconds(60), 3));
    facts.in_place = true;
    facts.observed.taken = vec![new(60)];
    assert_eq!(pace_of(&facts).took, seconds(60));
    for (ends_first, expected) in [(true, true), (false, false)] {
        facts.ends_first = ends_first;
        assert_eq!(pace_of(&facts).end_not_counted, expected);
    }
    facts.observed.taken = vec![sample(0, 3)];
    facts.ends_first = true;
    assert!(!pace_of(&facts).end_not_counted, "in place no pod ends");
}

#[test]
fn what_holds_a_rollout_is_said_in_place_of_times() {
    let held = |change: &dyn Fn(&mut Facts)| {
        let mut facts = seven();
        change(&mut facts);
        match course(&facts) {
            Course::Held(held) => Some(held),
            Course::Waves { .. } => None,
        }
    };
    assert_eq!(held(&|_| {}), None);
    assert_eq!(held(&|facts| facts.held = Some(Held::Paused)), Some(Held::Paused));
    assert_eq!(
        held(&|facts| facts.held = Some(Held::OnDelete)),
        Some(Held::OnDelete)
    );
    assert_eq!(held(&|facts| facts.at_once = 0), Some(Held::NoRoom));
    assert_eq!(held(&|facts| facts.observed.hooked = 2), Some(Held::Hooks(2)));
    assert_eq!(held(&|facts| facts.idle = true), Some(Held::Waits));
    let waiting = |facts: &mut Facts| {
        facts.idle = true;
        facts.observed.under_way = vec![None];
    };
    assert_eq!(held(&waiting), None, "it waits for the pod under way");
}

#[test]
fn with_nothing_but_the_partition_left_it_is_the_partition_that_holds() {
    let mut facts = Facts {
        to_update: 0,
        kept: 3,
        held: Some(Held::Paused),
        ..seven()
    };
    let kept = outlook(&facts).unwrap();
    assert_eq!((kept.course, kept.kept), (Course::Held(Held::Kept), 3));
    facts.observed.under_way = vec![None];
    assert_eq!(count_of(&facts), 1, "a pod is on its way nevertheless");
    facts.observed.hooked = 1;
    assert_eq!(course(&facts), Course::Held(Held::Hooks(1)));
}

#[test]
fn without_a_rollout_there_is_no_outlook() {
    let facts = Facts {
        to_update: 0,
        ..seven()
    };
    assert_eq!(outlook(&facts), None);
}

#[test]
fn nobody_knows_when_a_pod_is_gone_that_stays_beyond_its_grace_period() {
    let pod = |gone_by: i64| PodView {
        deleting: true,
        gone_by: Timestamp::from_second(gone_by).ok(),
        ..PodView::default()
    };
    let (stays, goes, now) = (pod(100), pod(195), Timestamp::from_second(200).unwrap());
    for (to_update, leaving, expected) in [
        (0, vec![&goes], None),
        (0, vec![&goes, &stays], Some(Held::Overstaying(1))),
        (3, vec![&stays, &stays], Some(Held::Overstaying(2))),
    ] {
        let mut facts = Facts { to_update, ..seven() };
        let count = leaving.len();
        facts.observed.add_replaced(1, leaving, now);
        let outlook = outlook(&facts).unwrap();
        assert_eq!((outlook.under_way, outlook.replaced), (count + 1, count + 1));
        let held = match outlook.course {
            Course::Held(held) => Some(held),
            Course::Waves { .. } => None,
        };
        assert_eq!(held, expected);
    }
}

fn some_facts() -> impl Strategy<Value = Facts> {
    let since = prop::option::of((0_u64..300).prop_map(seconds));
    let taken = prop::collection::vec((0_i64..50, 0_u64..90), 1..9);
    let under_way = prop::collection::vec(since, 0..6);
    (1_usize..60, 1_usize..12, 0_u64..60, taken, under_way).prop_map(
        |(to_update, at_once, min_ready, taken, under_way)| Facts {
            to_update,
            at_once,
            min_ready: seconds(min_ready),
            observed: Observed {
                taken: taken
                    .into_iter()
                    .map(|(began, took)| sample(began, took))
                    .collect(),
                under_way,
                ..Observed::default()
            },
            ..seven()
        },
    )
}

proptest! {
    #[test]
    fn waves_have_room_for_all_pods_and_none_is_for_nothing(facts in some_facts()) {
        let under_way = facts.observed.under_way.len();
        let (count, first) = (count_of(&facts), facts.at_once.max(under_way));
        let room = first + (count - 1) * facts.at_once;
        prop_assert!(room >= facts.to_update + under_way);
        prop_assert!(room - facts.at_once < facts.to_update + under_way);
    }

    #[test]
    fn more_pods_or_less_room_never_end_earlier(facts in some_facts()) {
        let last = pace_of(&facts).last;
        prop_assert!(pace_of(&facts).first <= last);
        let more = Facts { to_update: facts.to_update + 1, ..facts.clone() };
        prop_assert!(pace_of(&more).last >= last);
        let longer = Facts { min_ready: facts.min_ready + seconds(1), ..facts.clone() };
        prop_assert!(pace_of(&longer).last >= last);
        let wider = Facts { at_once: facts.at_once + 1, ..facts.clone() };
        prop_assert!(count_of(&wider) <= count_of(&facts));
    }
}
