use std::process::Command;

use clap::CommandFactory as _;
use untaint::cli::Cli;

use crate::Scene;

#[test]
fn every_command_has_a_page_with_its_options_and_their_variables() {
    let scene = Scene::new();
    scene.make();
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let mut commands = vec![&cli];
    let mut count = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        count += 1;
        let name = command.get_display_name().unwrap_or("untaint");
        let page = String::from_utf8(scene.released(&format!("man/{name}.1"))).unwrap();
        // roff escapes hyphens.
        let page = page.replace('\\', "");
        for option in command
            .get_arguments()
            .filter(|option| !option.is_hide_set())
        {
            let flag = option.get_long().map(|flag| format!("--{flag}"));
            let variable = option
                .get_env()
                .map(|name| name.to_str().unwrap().to_owned());
            for word in flag.into_iter().chain(variable) {
                assert!(page.contains(&word), "{name}: {word}");
            }
        }
    }
    assert!(count > 8, "{count}");
}

#[test]
fn the_completion_for_each_shell_is_a_script_of_that_shell() {
    let scene = Scene::new();
    scene.make();
    for (shell, script) in [
        ("bash", "untaint.bash"),
        ("zsh", "_untaint"),
        ("fish", "untaint.fish"),
    ] {
        let text = String::from_utf8(scene.released(&format!("completion/{script}"))).unwrap();
        assert!(text.contains("taint-new-nodes"), "{shell}");
        // Only bash is on every machine.
        let check = Command::new(shell)
            .arg("-n")
            .arg(scene.at("release/completion").join(script))
            .status();
        match check {
            Ok(status) => assert!(status.success(), "{shell}"),
            Err(_) => assert_ne!(shell, "bash"),
        }
    }
    let complete = r#"
        source "$0"
        COMP_WORDS=(untaint con) COMP_CWORD=1
        _untaint untaint con untaint
        echo "${COMPREPLY[@]}"
    "#;
    let script = scene.at("release/completion/untaint.bash");
    let output = Command::new("bash")
        .args(["-c", complete])
        .arg(script)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "config\n");
}
