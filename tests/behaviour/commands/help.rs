//! Help, the version, and colors on a terminal.

use std::process::Command;

use super::{text, untaint};
use crate::scene::PROGRAM;

#[test]
fn help_and_version_are_commands_too() {
    for (command, flag) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "run"], &["run", "--help"]),
        (
            &["help", "config", "validate"],
            &["config", "validate", "--help"],
        ),
        (&["version"], &["--version"]),
    ] {
        let (command, flag) = (untaint(command, &[]), untaint(flag, &[]));
        assert_eq!(text(&command.stderr), "");
        assert_eq!(command.status.code(), Some(0));
        assert_eq!(text(&command.stdout), text(&flag.stdout));
    }
    let unknown = untaint(&["help", "fly"], &[]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("unrecognized subcommand 'fly'"));
}

/// What the program writes to a terminal. `script` opens one for it.
fn on_a_terminal(arguments: &str, no_color: Option<&str>) -> String {
    let command = format!("{PROGRAM} {arguments}");
    let mut terminal = Command::new("script");
    terminal
        .args(["--quiet", "--command", &command, "/dev/null"])
        .env_remove("NO_COLOR");
    terminal.envs(no_color.map(|value| ("NO_COLOR", value)));
    String::from_utf8(terminal.output().unwrap().stdout).unwrap()
}

/// <https://no-color.org>: a variable that is empty has no effect.
#[test]
fn the_variable_no_color_switches_colors_off_everywhere() {
    for (arguments, expected, has_colors) in [
        ("install /missing", "is not a directory", true),
        (
            "--log-format text install /missing",
            "is not a directory",
            true,
        ),
        (
            "--log-format json install /missing",
            "is not a directory",
            false,
        ),
        ("--help", "Usage: untaint", false),
        ("help run", "Usage: untaint run", false),
        ("version", "untaint 0", false),
        ("fly", "unrecognized subcommand 'fly'", false),
        ("config validate /missing", "/missing", false),
        ("check --file /missing", "/missing", true),
    ] {
        for (no_color, expects_colors) in [
            (None, has_colors),
            (Some(""), has_colors),
            (Some("1"), false),
            (Some("0"), false),
        ] {
            let output = on_a_terminal(arguments, no_color);
            assert!(output.contains(expected), "{arguments}: {output:?}");
            let is_colored = output.contains('\x1b');
            assert_eq!(
                is_colored, expects_colors,
                "{arguments} {no_color:?}: {output:?}"
            );
        }
    }
}
