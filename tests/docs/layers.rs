//! Modules use only modules of earlier layers of `src/lib.rs`, and never each other in a circle. Read from paths in the text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{at_root, some};

/// A module's path from the root of the crate, as `gate::probe::exec`.
type Module = Vec<String>;

/// A module and the modules that its paths name.
struct File {
    module: Module,
    uses: Vec<Module>,
}

fn path(path: &str) -> Module {
    path.split("::").map(str::to_owned).collect()
}

/// Every module of the program, without the modules of tests.
fn files() -> Vec<File> {
    let mut sources = Vec::new();
    collect(&at_root("src"), &mut Vec::new(), &mut sources);
    let modules: BTreeMap<Module, Vec<Vec<String>>> = sources
        .iter()
        .map(|(module, text)| (module.clone(), used_paths(text, true)))
        .collect();
    let file = |(module, text): &(Module, String)| {
        let paths = used_paths(text, false);
        let uses = paths
            .iter()
            .filter_map(|path| resolve(module, path, &modules));
        File {
            module: module.clone(),
            uses: uses.collect(),
        }
    };
    some(sources.iter().map(file).collect())
}

fn collect(folder: &Path, parent: &mut Module, sources: &mut Vec<(Module, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["tests", "testing", "lib", "main"].contains(&name.as_str()) {
            continue;
        }
        let mut module = parent.clone();
        if name != "mod" {
            module.push(name);
        }
        if path.is_dir() {
            collect(&path, &mut module, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
            sources.push((module, text[..tests].to_owned()));
        }
    }
}

/// The paths of all `use` items, with braces expanded, and all other paths that begin with `crate` or `super`.
/// Only those of `pub use` if they are `exported`.
fn used_paths(text: &str, exported: bool) -> Vec<Vec<String>> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let lines: Vec<_> = text.lines().filter(is_code).collect();
    let code = lines.join("\n");
    let is_in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut paths = Vec::new();
    let starts = ["use ", "crate::", "super::"];
    for start in &starts[..if exported { 1 } else { 3 }] {
        let begins = |(at, _): &(usize, &str)| !code[..*at].ends_with(is_in_path);
        for (at, _) in code.match_indices(start).filter(begins) {
            let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
            if exported && !code[line..at].trim_start().starts_with("pub") {
                continue;
            }
            let end = if *start == "use " {
                code[at..].find(';')
            } else {
                code[at..].find(|c| !is_in_path(c))
            };
            let item = &code[at..end.map_or(code.len(), |end| at + end)];
            expand(item.trim_start_matches("use "), &[], &mut paths);
        }
    }
    paths
}

fn expand(tree: &str, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    let (path, branches) = tree.split_once('{').unwrap_or((tree, ""));
    // Without `as` and the name after it.
    let names = path
        .split("::")
        .filter_map(|name| name.split_whitespace().next());
    let names = names.map(str::to_owned);
    let path: Vec<_> = prefix.iter().cloned().chain(names).collect();
    if branches.is_empty() {
        paths.push(path);
        return;
    }
    let mut depth = 0;
    let inner = branches
        .rsplit_once('}')
        .map_or(branches, |(inner, _)| inner);
    let comma = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    for branch in inner
        .split(comma)
        .filter(|branch| !branch.trim().is_empty())
    {
        expand(branch, &path, paths);
    }
}

/// The innermost module of `path`, as seen from `module`; `None` outside this crate.
fn resolve(
    module: &[String],
    path: &[String],
    modules: &BTreeMap<Module, Vec<Vec<String>>>,
) -> Option<Module> {
    let mut found = module.to_vec();
    for name in path {
        match name.as_str() {
            "crate" => found.clear(),
            "super" => drop(found.pop()?),
            "self" => {}
            _ => found.push(name.clone()),
        }
        if !modules.contains_key(&found) && !modules.keys().any(|known| known.starts_with(&found)) {
            found.pop();
            let exports = modules.get(&found).filter(|_| found != module);
            let mut exports = exports.into_iter().flatten();
            if let Some(export) = exports.find(|export| export.last() == Some(name)) {
                // Where the name comes from.
                return resolve(&found, export, modules).or(Some(found));
            }
            break;
        }
    }
    (found != module).then_some(found)
}

/// For each module with submodules: which submodule uses which other, and in which file.
fn siblings() -> BTreeMap<Module, BTreeMap<(String, String), String>> {
    let mut uses: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for file in files() {
        for used in &file.uses {
            let pairs = file.module.iter().zip(used);
            let common = pairs.take_while(|(one, other)| one == other).count();
            // A module and its submodules may use each other.
            if let (Some(user), Some(used)) = (file.module.get(common), used.get(common)) {
                let pair = (user.clone(), used.clone());
                let within = file.module[..common].to_vec();
                let place = file.module.join("::");
                uses.entry(within).or_default().insert(pair, place);
            }
        }
    }
    uses
}

/// The layer of each module in `src/lib.rs`, where a blank line separates layers.
fn layers() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(at_root("src/lib.rs")).unwrap();
    let layers = text.split("\n\n").enumerate();
    let modules = layers.flat_map(|(layer, lines)| {
        let names = lines.lines().filter_map(|line| {
            let name = line.split_once("mod ")?.1.strip_suffix(';')?;
            Some((name.to_owned(), layer))
        });
        names.collect::<Vec<_>>()
    });
    modules.collect()
}

#[test]
fn a_module_is_found_in_every_form_of_a_path() {
    let modules = ["agent", "agent::taints", "gate", "gate::probe", "gate::run"];
    let modules = modules.map(|module| (path(module), Vec::new()));
    let modules = BTreeMap::from(modules);
    for text in [
        "use crate::agent::Agent;",
        "use crate::agent as other;",
        "pub(in crate::gate) use crate::agent::{self as other, taints};",
        "use crate::{boot, agent::Agent};",
        "use crate::{\n    boot::{Boot, id},\n    agent::{Agent, taints::{One, Two}},\n};",
        "use super::super::agent::Agent;",
        "use super::{run, super::agent};",
        "    use crate::agent::*;",
        "    let agent = crate::agent::Agent::new();",
        "    let agent = super::super::agent::Agent::new();",
        "fn agent() -> Box<super::super::agent::Agent> {",
        "impl From<super::super::agent::Agent> for Probe {",
    ] {
        let (module, used) = (path("gate::probe"), used_paths(text, false));
        let mut used = used
            .iter()
            .filter_map(|used| resolve(&module, used, &modules));
        assert!(used.any(|used| used.starts_with(&path("agent"))), "{text}");
    }
}

#[test]
fn a_name_that_another_module_exports_is_found_where_it_comes_from() {
    let modules = [
        ("gate", "run::Runner"),
        ("gate::probe", ""),
        ("gate::run", ""),
    ];
    let modules = modules.map(|(module, export)| (path(module), vec![path(export)]));
    let modules = BTreeMap::from(modules);
    for used in ["super::Runner", "crate::gate::Runner"] {
        let found = resolve(&path("gate::probe"), &path(used), &modules);
        assert_eq!(found, Some(path("gate::run")), "{used}");
    }
}

#[test]
fn a_module_uses_only_modules_of_the_layers_before_its_own() {
    let (layers, uses) = (layers(), siblings());
    for ((user, used), place) in &uses[&Vec::new()] {
        assert!(
            layers[used] < layers[user],
            "{place} uses {used}, which src/lib.rs does not have in an earlier layer than {user}"
        );
    }
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    for (within, uses) in siblings() {
        let users: BTreeSet<_> = uses.keys().map(|(user, _)| user).collect();
        for start in users {
            let mut reached = BTreeSet::new();
            let mut waiting = vec![start];
            while let Some(user) = waiting.pop() {
                let next = uses.keys().filter(|(one, _)| one == user);
                let next = next.map(|(_, used)| used);
                waiting.extend(next.filter(|used| reached.insert(*used)));
            }
            let within = within.join("::");
            assert!(
                !reached.contains(start),
                "in {within}: {start} uses itself by way of {reached:?}"
            );
        }
    }
}
