//! The text of a configuration file.

use std::cell::LazyCell;

use jsonschema::Validator;
use serde_json::Value;
use untaint::config;

thread_local! {
    static SCHEMA: LazyCell<Validator> = LazyCell::new(|| {
        let schema = serde_json::from_str(config::schema::TEXT).unwrap();
        jsonschema::validator_for(&schema).unwrap()
    });
}

/// A text that is not UTF-8 never gets as far as the parser.
pub fn check(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else {
        return false;
    };
    match config::parse(text) {
        Ok(configuration) => {
            let shown = config::show(&configuration);
            let again =
                config::parse(&shown).unwrap_or_else(|problems| panic!("{problems}\n{shown}"));
            assert_eq!(again, configuration, "{shown}");
            let instance: Value = serde_yaml::from_str(&shown).unwrap();
            let verdict = SCHEMA.with(|schema| {
                schema
                    .validate(&instance)
                    .map_err(|error| error.to_string())
            });
            assert_eq!(verdict, Ok(()), "{shown}");
            true
        }
        Err(problems) => {
            let message = problems.to_string();
            let of_the_whole = message.starts_with("is empty; ");
            assert!(!message.is_empty());
            assert!(
                of_the_whole || message.lines().all(|problem| is_inside(text, problem)),
                "{message}"
            );
            false
        }
    }
}

/// Whether `problem` begins with a line and a column that the text has, or that follow its end.
fn is_inside(text: &str, problem: &str) -> bool {
    let mut parts = problem.splitn(3, ':').map(str::parse::<usize>);
    let (Some(Ok(line)), Some(Ok(column))) = (parts.next(), parts.next()) else {
        return false;
    };
    // As YAML has them: LF, CR or both together end a line.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = text.split('\n').chain([""]);
    line > 0
        && lines
            .nth(line - 1)
            .is_some_and(|found| (1..=found.chars().count() + 2).contains(&column))
}
