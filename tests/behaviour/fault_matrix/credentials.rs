//! TokenBucket and certificates that are rotated, wrong, or not yet valid.

use std::time::Duration;

use super::{Case, Scene, Spent, WATCH_FAILED, When, exactly, survive};

fn trust_the_new_authority(scene: &Scene) {
    scene.write("ca.crt", &scene.middle.authority());
}

#[tokio::test]
async fn certificates_that_are_rotated_or_not_yet_valid_keep_nobody_away_for_long() {
    survive(vec![
        Case {
            name: "ca-rotated",
            when: When::Watching,
            fault: |scene| {
                scene.middle.rotate_certificates().unwrap();
                trust_the_new_authority(scene);
                scene.proxy.reset_connections();
            },
            heal: None,
            // The watch and the removal both may begin one with the old authority, and one with the new.
            spent: Spent {
                patches: 1..=2,
                gets: 0..=1,
                connections: 2..=5,
                ..exactly(2, 0, 0, 0)
            },
            within: 0..=2,
        },
        Case {
            name: "ca-rotated-and-the-file-late",
            when: When::Watching,
            fault: |scene| {
                scene.middle.rotate_certificates().unwrap();
                scene.proxy.reset_connections();
            },
            heal: Some((WATCH_FAILED, trust_the_new_authority)),
            spent: Spent {
                patches: 1..=2,
                gets: 0..=1,
                connections: 2..=12,
                ..exactly(2, 0, 0, 0)
            },
            within: 0..=2,
        },
        Case {
            name: "certificate-not-yet-valid",
            when: When::Start,
            fault: |scene| {
                let soon = Duration::from_secs(4);
                scene.middle.take_certificate_valid_in(soon).unwrap();
            },
            heal: None,
            spent: Spent {
                connections: 3..=12,
                ..exactly(1, 0, 1, 0)
            },
            within: 2..=9,
        },
    ])
    .await;
}

fn use_the_new_token(scene: &Scene) {
    scene.write("token", &scene.new_token);
}

#[tokio::test]
async fn a_token_that_is_rotated_or_refused_is_read_again() {
    survive(vec![
        Case {
            name: "token-rotated",
            when: When::Watching,
            fault: |scene| {
                scene.middle.accept_tokens(&[&scene.new_token]);
                use_the_new_token(scene);
            },
            heal: None,
            // A 401 proves that nothing happened. The watch continues on the shared connection.
            spent: exactly(1, 0, 2, 1),
            within: 0..=1,
        },
        Case {
            name: "token-refused-at-start",
            when: When::Start,
            fault: |scene| scene.write("token", "nobody's"),
            heal: Some((WATCH_FAILED, use_the_new_token)),
            spent: Spent {
                watches: 2..=4,
                ..exactly(0, 0, 1, 1)
            },
            within: 0..=2,
        },
    ])
    .await;
}
