//! The decision, the patches and when they are sent, through random histories. The invariants always hold, and at the end the
//! taint is gone.
//!
//! Histories that fail are added to `regressions.txt`, and are tried first in later runs.
//! `PROPTEST_CASES=100000 cargo test --test model` tries more histories.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "whatever fails here fails a test"
)]

mod agent;
mod events;
mod invariants;
mod reference;
mod rule;
mod server;
mod world;

use std::cell::RefCell;

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use world::{Totals, World};

/// The number of histories without `PROPTEST_CASES`.
const CASES: u32 = 500;

#[test]
fn no_history_has_a_wrong_write_or_too_many_or_leaves_a_taint_forever() {
    let regressions = FileFailurePersistence::Direct("tests/model/regressions.txt");
    let mut config = Config {
        failure_persistence: Some(Box::new(regressions)),
        source_file: Some(file!()),
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let mut runner = TestRunner::new(config);
    let total = RefCell::new(Totals::default());
    let result = runner.run(&events::histories(), |(rules, boots, history)| {
        let mut world = World::new(&rules, boots);
        for event in history {
            world.apply(event);
        }
        *total.borrow_mut() += world.end_faults();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let totals = total.into_inner();
    eprintln!("{totals:?}");
    let each = [totals.removals, totals.put_backs, totals.refusals];
    assert!(
        !each.contains(&0),
        "a model that does nothing shows nothing: {totals:?}"
    );
}
