//! Tokens and certificates that are rotated, wrong, or not yet valid.

use std::time::Duration;

use super::{Case, Scene, Spent, WATCH_FAILED, When, exactly, survive};

fn trust_the_new_authority(scene: &Scene) {
    scene.write("ca.crt", &scene.middle.authority());
}

/// The server has a new authority. The watch and the removal can both open connections.
fn rotated(name: &'static str, connections: usize, fault: fn(&Scene)) -> Case {
    let spent = Spent {
        patches: 1..=2,
        gets: 0..=1,
        connections: 2..=connections,
        ..exactly(2, 0, 0, 0)
    };
    let rotate = move |scene: &Scene| {
        scene.middle.rotate_certificates().unwrap();
        fault(scene);
        scene.proxy.reset_connections();
    };
    Case::new(name, When::Watching, rotate, spent, 0..=2)
}

#[tokio::test]
async fn certificates_that_are_rotated_or_not_yet_valid_keep_nobody_away_for_long() {
    survive([
        // Each opens one with the old authority, and one with the new authority.
        rotated("ca-rotated", 5, trust_the_new_authority),
        rotated("ca-rotated-and-the-file-late", 12, |_| ())
            .healed_after(WATCH_FAILED, trust_the_new_authority),
        Case::new(
            "certificate-not-yet-valid",
            When::Start,
            |scene| {
                let soon = Duration::from_secs(4);
                scene.middle.take_certificate_valid_in(soon).unwrap();
            },
            Spent {
                connections: 3..=12,
                ..exactly(1, 0, 1, 0)
            },
            2..=9,
        ),
    ])
    .await;
}

fn use_the_new_token(scene: &Scene) {
    scene.write("token", &scene.new_token);
}

#[tokio::test]
async fn a_token_that_is_rotated_or_refused_is_read_again() {
    survive([
        Case::new(
            "token-rotated",
            When::Watching,
            |scene| {
                scene.middle.accept_tokens(&[&scene.new_token]);
                use_the_new_token(scene);
            },
            // A 401 proves that nothing changed. The watch continues on the same connection.
            exactly(1, 0, 2, 1),
            0..=1,
        ),
        Case::new(
            "token-refused-at-start",
            When::Start,
            |scene| scene.write("token", "nobody's"),
            Spent {
                watches: 2..=4,
                ..exactly(0, 0, 1, 1)
            },
            0..=2,
        )
        .healed_after(WATCH_FAILED, use_the_new_token),
    ])
    .await;
}
