use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::sync::mpsc;
use std::thread;

use tempfile::TempDir;

use super::*;

fn directory(files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    dir
}

/// The texts of the files for which these paths below `dir` stand, or what is wrong, without the path of `dir`.
fn read_in(dir: &TempDir, paths: &[&str]) -> Result<Vec<String>, String> {
    let paths: Vec<_> = paths.iter().map(|path| dir.path().join(path)).collect();
    let around = format!("{}/", dir.path().display());
    match read_files(&paths) {
        Ok(files) => Ok(files.into_iter().map(|file| file.text).collect()),
        Err(problems) => Err(problems.to_string().replace(&around, "")),
    }
}

#[test]
fn a_directory_stands_for_its_visible_yaml_files_in_the_order_of_their_names() {
    let dir = directory(&[
        "d/10.yaml",
        "d/9.yml",
        "d/a.yaml",
        "d/B.yaml",
        "d/.hidden.yaml",
        "d/..data/x.yaml",
        "d/c.yaml.bak",
        "d/c.yaml~",
        "d/yaml",
        "d/.yaml",
        "d/e.json",
        "d/below/f.yaml",
        "other.conf",
    ]);
    symlink("../other.conf", dir.path().join("d/link.yaml")).unwrap();
    let own = ["d/10.yaml", "d/9.yml", "d/B.yaml", "d/a.yaml", "other.conf"];
    assert_eq!(read_in(&dir, &["d"]).unwrap(), own);
    symlink("d", dir.path().join("to-d")).unwrap();
    assert_eq!(read_in(&dir, &["to-d/"]).unwrap(), own);
    // A file that is named has any name.
    let named = read_in(&dir, &["other.conf", "d/.hidden.yaml", "d/below"]).unwrap();
    assert_eq!(named, ["other.conf", "d/.hidden.yaml", "d/below/f.yaml"]);
}

#[test]
fn every_file_that_cannot_be_read_is_named() {
    let dir = directory(&["a.yaml", "empty/.hidden.yaml", "d/b.yaml"]);
    fs::create_dir(dir.path().join("d/c.yaml")).unwrap();
    symlink("nowhere", dir.path().join("d/e.yaml")).unwrap();
    let paths = ["missing.yaml", "empty", "a.yaml", "d", "a.yaml", "d/b.yaml"];
    let problems = read_in(&dir, &paths).unwrap_err();
    let expected = [
        "missing.yaml: cannot be read: no such file or directory",
        "empty: is a directory without a file *.yaml or *.yml",
        "d/c.yaml: cannot be read: is a directory",
        "d/e.yaml: cannot be read: no such file or directory",
        "a.yaml: is named twice",
        "d/b.yaml: is named twice",
    ];
    assert_eq!(problems.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_path_without_a_name_has_one_in_messages() {
    let problems = read_files(&[PathBuf::new()]).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "the empty path: cannot be read: no such file or directory"
    );
}

#[test]
fn a_name_forges_no_line_of_a_message() {
    let dir = directory(&["d/a.yaml"]);
    fs::create_dir(dir.path().join("d/x: is fine\ny.yaml")).unwrap();
    let problems = read_in(&dir, &["d"]).unwrap_err();
    assert_eq!(
        problems,
        "d/x: is fine\\ny.yaml: cannot be read: is a directory"
    );
}

#[test]
fn the_limit_of_one_mebibyte_is_for_each_file_and_for_all_together() {
    let dir = directory(&["a.yaml", "b.yaml", "c.yaml"]);
    let sized = |name: &str, size: u64| {
        let size = usize::try_from(size).unwrap();
        fs::write(dir.path().join(name), "#".repeat(size)).unwrap();
    };
    sized("a.yaml", MAX_TEXT_BYTES / 2);
    sized("b.yaml", MAX_TEXT_BYTES / 2);
    assert_eq!(read_in(&dir, &["a.yaml", "b.yaml"]).unwrap().len(), 2);
    assert_eq!(
        read_in(&dir, &["."]).unwrap_err(),
        "./c.yaml: is larger than 1 MiB together with the files before it"
    );
    sized("a.yaml", MAX_TEXT_BYTES + 1);
    assert_eq!(
        read_in(&dir, &["b.yaml", "a.yaml"]).unwrap_err(),
        "a.yaml: is larger than 1 MiB"
    );
}

#[test]
fn a_directory_with_very_many_files_is_refused() {
    let names: Vec<_> = (0..=MOST_FILES)
        .map(|index| format!("d/{index}.yaml"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let dir = directory(&names);
    assert_eq!(
        read_in(&dir, &["d"]).unwrap_err(),
        "d: has more than 256 files *.yaml and *.yml"
    );
    fs::remove_file(dir.path().join("d/0.yaml")).unwrap();
    assert_eq!(read_in(&dir, &["d"]).unwrap().len(), MOST_FILES);
}

/// In a mounted ConfigMap, `..data` leads to another version at any time.
#[test]
fn files_of_a_directory_that_is_swapped_while_it_is_read_are_of_one_version() {
    let dir = directory(&[]);
    let at = |name: &str| dir.path().join(name);
    let names: Vec<_> = (0..20).map(|index| format!("{index:02}.yaml")).collect();
    let write = |version: &str| {
        fs::create_dir(at(version)).unwrap();
        for name in &names {
            fs::write(at(version).join(name), version).unwrap();
        }
    };
    write("..0");
    symlink("..0", at("..data")).unwrap();
    for name in &names {
        symlink(format!("..data/{name}"), at(name)).unwrap();
    }
    let (reads, begun) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            for version in begun {
                let [old, new] = [version - 1, version].map(|version| format!("..{version}"));
                write(&new);
                symlink(&new, at("..data_tmp")).unwrap();
                fs::rename(at("..data_tmp"), at("..data")).unwrap();
                fs::remove_dir_all(at(&old)).unwrap();
            }
        });
        for version in 1..300 {
            reads.send(version).unwrap();
            let files = read_files(&[dir.path().to_owned()]).unwrap();
            let versions: BTreeSet<_> = files.iter().map(|file| &file.text).collect();
            assert_eq!(versions.len(), 1, "{versions:?}");
            // The next swap begins with the next reading.
            while !at(&format!("..{version}")).is_dir()
                || at(&format!("..{}", version - 1)).exists()
            {
                thread::yield_now();
            }
        }
        drop(reads);
    });
}

/// By `sha256sum`: `printf abc | sha256sum`, and the same of its output for the files `a` and `b` with these texts.
#[test]
fn the_hash_is_what_sha256sum_prints() {
    let file = |name: &str, text: &str| SourceFile {
        name: name.into(),
        text: text.into(),
    };
    assert_eq!(
        hash(&[file("a", "abc")]),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        hash(&[file("a", "abc"), file("b", "")]),
        "09c7e0b8a02d027d95ec0375a600ed4ad4d6b26a1c93f16d9150cab5fec761a6"
    );
}
