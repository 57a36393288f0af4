//! Writes the table of the taints of other programs.

use std::fmt::Write;

use untaint::taint::OWNERS;

const START: &str = "<!-- owners of taints -->\n";
const END: &str = "\n<!-- end -->";

/// Returns `page` with the table.
pub(crate) fn with_table(page: &str) -> String {
    let (before, rest) = page.split_once(START).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "\n| keys | only removed by | source |\n|---|---|---|\n".to_owned();
    for owner in &OWNERS {
        let keys: Vec<_> = owner.keys.iter().map(|key| format!("`{key}`")).collect();
        let (module, file) = owner.source;
        writeln!(
            table,
            "| {} | {} | {module}: `{file}` |",
            keys.join(", "),
            owner.name
        )
        .unwrap();
    }
    format!("{before}{START}{table}{END}{after}")
}
