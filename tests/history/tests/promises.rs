//! What a trusted store and its watches promise, and the tests that hold each promise: a promise has tests here, or a
//! line in `tests/data/uncovered-promises.txt` that says what is missing, or both.

use std::path::Path;

/// Short words for a promise, and its tests: a file and a function in it.
const PROMISES: &[(&str, &[(&str, &str)])] = &[
    (
        "answered writes survive kill -9",
        &[
            ("tests/history/src/crash.rs", "run"),
            ("src/storage/embedded/tests/crash.rs", "kill_9_loses_no_answered_write"),
        ],
    ),
    (
        "torn, short and unordered writes never corrupt",
        &[
            ("src/storage/embedded/tests/faults.rs", "power_may_fail_at_any_write"),
            (
                "src/storage/embedded/tests/reopen.rs",
                "a_torn_log_opens_at_a_whole_transaction",
            ),
            (
                "src/storage/embedded/tests/damage.rs",
                "flipped_bits_of_the_log_are_noticed",
            ),
            (
                "src/storage/embedded/tests/damage.rs",
                "flipped_bits_of_the_database_are_noticed_or_harmless",
            ),
            (
                "src/storage/embedded/tests/damage.rs",
                "lost_pages_and_lost_ends_of_the_database_are_noticed",
            ),
        ],
    ),
    (
        "a failed sync stops answers",
        &[(
            "src/storage/embedded/tests/faults.rs",
            "every_write_and_every_sync_may_fail",
        )],
    ),
    (
        "a full disk is survived",
        &[
            ("src/storage/embedded/tests/faults.rs", "a_full_disk_is_survived"),
            ("src/storage/embedded/tests/disk.rs", "unused_space_is_given_back"),
        ],
    ),
    (
        "keys are linearizable",
        &[
            ("tests/history/src/run/mod.rs", "run"),
            ("tests/history/src/tests.rs", "compare_and_swap"),
            ("src/storage/tests/cases.rs", "no_update_is_lost_among_many_writers"),
        ],
    ),
    (
        "watches are ordered, unique, complete, resumable, and bookmarks true",
        &[
            ("tests/history/src/run/watchers.rs", "watch"),
            ("tests/history/src/tests.rs", "watches"),
            ("tests/history/src/tests.rs", "bookmarks"),
            ("src/storage/tests/cases.rs", "watches_tell_every_change_in_order"),
            ("src/storage/tests/cases.rs", "no_change_is_told_without_its_past"),
        ],
    ),
    (
        "a watch cache without livelock, deafness or a gap at the start",
        &[
            ("src/storage/tests/cases.rs", "a_watch_continues_a_list_without_a_gap"),
            (
                "src/storage/mvcc/tests.rs",
                "a_view_from_elsewhere_is_watched_after_its_revision_only",
            ),
            (
                "src/storage/embedded/tests/disk.rs",
                "a_watch_left_behind_by_history_ends_with_an_error",
            ),
        ],
    ),
    (
        "no time travel over restarts and between servers",
        &[
            ("tests/history/src/run/readers.rs", "read"),
            ("tests/history/src/tests.rs", "time_travel"),
        ],
    ),
    (
        "reads that are certain to be new are quick",
        &[("src/storage/tests/cases.rs", "watches_hear_of_progress_when_asked")],
    ),
    (
        "etcd lost, cut off or without a leader",
        &[
            ("tests/history/src/run/faults.rs", "make"),
            ("src/storage/etcd/tests.rs", "watches_go_on_after_etcd_was_away"),
            ("src/storage/etcd/tests.rs", "one_member_of_several_is_enough"),
        ],
    ),
    (
        "etcd compacted by others",
        &[
            ("tests/history/src/run/faults.rs", "make"),
            (
                "src/storage/etcd/tests.rs",
                "a_gap_made_while_etcd_was_away_ends_the_watch",
            ),
        ],
    ),
    (
        "etcd put back to an older state",
        &[("src/storage/etcd/tests.rs", "etcd_that_has_gone_back_is_read_again")],
    ),
    (
        "leases end in time, by a clock that never jumps",
        &[
            ("src/storage/tests/cases.rs", "keys_end_with_their_lease"),
            ("src/storage/maintenance.rs", "leases_are_due_when_their_time_is_over"),
            (
                "src/storage/embedded/tests/reopen.rs",
                "leases_begin_anew_after_reopening",
            ),
        ],
    ),
    ("leases under load", &[]),
    (
        "a slow watcher harms only itself, in time and memory",
        &[
            ("src/storage/tests/cases.rs", "a_slow_watch_misses_nothing"),
            ("src/storage/mvcc/tests.rs", "a_watch_that_is_not_read_holds_no_changes"),
            (
                "src/server/tests/serving/watches.rs",
                "a_slow_watcher_costs_only_itself",
            ),
            (
                "src/storage/etcd/tests.rs",
                "a_reader_that_stands_still_does_not_stop_the_others",
            ),
        ],
    ),
    (
        "memory while lists are sent",
        &[(
            "src/server/cache/derived.rs",
            "renditions_stay_within_the_budget_and_the_used_ones_stay_longest",
        )],
    ),
    (
        "a stop is graceful",
        &[
            ("tests/clients/startup.rs", "sigterm_ends_open_watches_and_the_server"),
            (
                "src/server/tests/serving/farewell.rs",
                "new_requests_are_sent_away_while_old_ones_end",
            ),
        ],
    ),
    (
        "newer formats are refused",
        &[("src/storage/embedded/tests/reopen.rs", "files_of_others_are_refused")],
    ),
    ("older formats open", &[]),
    (
        "one process uses a folder",
        &[
            ("tests/history/src/crash.rs", "run"),
            (
                "src/storage/embedded/tests/reopen.rs",
                "one_process_at_a_time_and_nobody_else_reads_the_files",
            ),
        ],
    ),
    ("a day of work", &[]),
];

#[test]
fn every_promise_has_tests_or_says_what_is_missing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let list = read("tests/data/uncovered-promises.txt");
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let uncovered: Vec<(&str, &str)> = lines
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}")))
        .collect();
    for (name, reason) in &uncovered {
        assert!(
            PROMISES.iter().any(|(promise, _)| promise == name),
            "nobody promises {name:?}"
        );
        assert!(!reason.trim().is_empty());
    }
    for (promise, tests) in PROMISES {
        let missing = uncovered.iter().filter(|(name, _)| name == promise).count();
        assert!(missing <= 1, "{promise:?} has {missing} lines");
        assert!(
            missing == 1 || !tests.is_empty(),
            "{promise:?} has neither tests nor a line"
        );
        for (file, test) in *tests {
            assert!(
                read(file).contains(&format!("fn {test}(")),
                "{promise:?}: there is no {test} in {file}"
            );
        }
    }
}
