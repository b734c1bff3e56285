//! A line in the log for each rollout that begins, is held, goes on, or ends.

use kruise_plan_kit::rollout::{Course, Stage};

/// What was last known of the rollout of an object.
#[derive(Debug)]
pub(super) struct Known {
    revision: String,
    /// Has it begun and not ended?
    is_open: bool,
    course: Course,
}

/// Something to log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// To the new revision from this one; it is empty if there was none.
    Begun(String),
    Held(String),
    GoesOn,
    Ended,
}

/// Remembers a stage, and returns what is new in it.
///
/// Without memory, after a start, the stored status tells which revision was known: a rollout that another process
/// began is not announced again, and its end is.
pub(super) fn observe(known: &mut Option<Known>, stage: Stage) -> Vec<News> {
    let first = known.is_none();
    let before = known.take().unwrap_or(Known {
        revision: stage.reported,
        is_open: stage.has_old,
        course: Course::Moving,
    });
    let mut news = Vec::new();
    let begins = before.revision != stage.revision;
    if begins {
        news.push(News::Begun(before.revision));
    }
    let mut is_open = begins || before.is_open;
    if is_open && (begins || first || before.course != stage.course) {
        match &stage.course {
            Course::Done => {
                news.push(News::Ended);
                is_open = false;
            }
            Course::Held(why) => news.push(News::Held(why.clone())),
            Course::Moving => {
                let was_held = matches!(before.course, Course::Held(_));
                news.extend((was_held && !begins).then_some(News::GoesOn));
            }
        }
    }
    *known = Some(Known {
        revision: stage.revision,
        is_open,
        course: stage.course,
    });
    news
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(reported: &str, revision: &str, has_old: bool, course: Course) -> Stage {
        Stage {
            reported: reported.to_owned(),
            revision: revision.to_owned(),
            has_old,
            course,
        }
    }

    fn held() -> Course {
        Course::Held("paused".to_owned())
    }

    #[test]
    fn a_rollout_begins_and_ends_once_however_often_it_is_looked_at() {
        let mut known = None;
        let mut observe = |stage| observe(&mut known, stage);
        assert_eq!(
            observe(stage("", "a", false, Course::Moving)),
            [News::Begun(String::new())]
        );
        // The status is not stored yet.
        assert_eq!(observe(stage("", "a", false, Course::Moving)), []);
        assert_eq!(observe(stage("a", "a", false, Course::Done)), [News::Ended]);
        // Scaling is no rollout.
        assert_eq!(observe(stage("a", "a", false, Course::Moving)), []);
        assert_eq!(observe(stage("a", "a", false, Course::Done)), []);
        assert_eq!(
            observe(stage("a", "b", true, Course::Moving)),
            [News::Begun("a".to_owned())]
        );
        assert_eq!(
            observe(stage("b", "b", true, held())),
            [News::Held("paused".to_owned())]
        );
        assert_eq!(observe(stage("b", "b", true, held())), []);
        assert_eq!(observe(stage("b", "b", true, Course::Moving)), [News::GoesOn]);
        assert_eq!(observe(stage("b", "b", false, Course::Done)), [News::Ended]);
    }

    #[test]
    fn a_new_process_announces_nothing_that_was_known_and_the_end_of_what_is_under_way() {
        let mut known = None;
        assert_eq!(observe(&mut known, stage("a", "a", false, Course::Done)), []);
        let mut known = None;
        assert_eq!(observe(&mut known, stage("b", "b", true, Course::Moving)), []);
        assert_eq!(
            observe(&mut known, stage("b", "b", false, Course::Done)),
            [News::Ended]
        );
        let mut known = None;
        let resumed = observe(&mut known, stage("b", "b", true, held()));
        assert_eq!(resumed, [News::Held("paused".to_owned())]);
    }

    #[test]
    fn a_rollout_that_is_replaced_by_another_does_not_end() {
        let mut known = None;
        observe(&mut known, stage("a", "b", true, held()));
        assert_eq!(
            observe(&mut known, stage("b", "c", true, Course::Moving)),
            [News::Begun("b".to_owned())]
        );
    }
}
