//! Modules use only modules of earlier layers of `src/lib.rs`, and never each other in a circle. Read from `use` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{at_root, some};

/// A module's path from the root of the crate, as `gate::probe::exec`.
type Module = Vec<String>;

/// A module and the modules that its `use` lines name.
struct File {
    module: Module,
    uses: Vec<Module>,
}

/// Every module of the program, without the modules of tests.
fn files() -> Vec<File> {
    let mut sources = Vec::new();
    collect(&at_root("src"), &mut Vec::new(), &mut sources);
    let modules: BTreeSet<Module> = sources.iter().map(|(module, _)| module.clone()).collect();
    let file = |(module, text): &(Module, String)| {
        let paths = used_paths(text);
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

/// The paths of all `use` lines, with braces expanded, and all other paths that begin with `crate`.
fn used_paths(text: &str) -> Vec<Vec<&str>> {
    let starts = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
    let mut paths = Vec::new();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        let is_outside = |c: char| !c.is_alphanumeric() && c != '_' && c != ':';
        let starts = line.match_indices("crate::").map(|(at, _)| &line[at..]);
        paths.extend(
            starts.map(|path| path.split(is_outside).next().unwrap().split("::").collect()),
        );
    }
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if starts.contains(&&text[line..at + "use ".len()]) {
            let tree = text[at + "use ".len()..].split(';').next().unwrap();
            expand(tree, &[], &mut paths);
        }
    }
    paths
}

fn expand<'t>(tree: &'t str, prefix: &[&'t str], paths: &mut Vec<Vec<&'t str>>) {
    let (path, branches) = tree.split_once('{').unwrap_or((tree, ""));
    let names = path.split("::").map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    let path: Vec<_> = prefix.iter().copied().chain(names).collect();
    if branches.is_empty() {
        paths.push(path);
        return;
    }
    let mut depth = 0;
    let inner = &branches[..branches.rfind('}').unwrap()];
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
fn resolve(module: &[String], path: &[&str], modules: &BTreeSet<Module>) -> Option<Module> {
    let mut found = module.to_vec();
    let mut rest = path;
    match path.first()? {
        &"crate" => found.clear(),
        &"super" | &"self" => {
            while let Some(&"super") = rest.first() {
                found.pop()?;
                rest = &rest[1..];
            }
            found.extend(
                rest.first()
                    .filter(|name| **name == "self")
                    .map(|_| String::new()),
            );
            found.retain(|name| !name.is_empty());
        }
        _ => {}
    }
    let names = rest.iter().filter(|name| !["crate", "self"].contains(name));
    for name in names {
        found.push((*name).to_owned());
        if !modules.contains(&found) && !modules.iter().any(|known| known.starts_with(&found)) {
            found.pop();
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
