//! Several files, and directories of files.

use super::*;

/// A directory `conf.d` with a file of each of these names and keys.
fn a_directory(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("conf.d")).unwrap();
    for (name, key) in files {
        fs::write(dir.path().join("conf.d").join(name), rule(name, key)).unwrap();
    }
    dir
}

/// [`text`] with a rule that has the name of its file.
fn rule(file: &str, key: &str) -> String {
    let name = file.trim_end_matches(".yaml");
    text(key).replace("name: rule", &format!("name: {name}"))
}

impl Scene {
    /// The keys of the next configuration.
    async fn keys(&mut self) -> Vec<String> {
        loop {
            if let Reload::Changed(loaded) = self.next().await {
                let rules = loaded.configuration.rules.into_iter();
                return rules.map(|rule| rule.taint.key).collect();
            }
        }
    }
}

#[tokio::test]
async fn each_of_several_files_is_followed_and_one_that_is_bad_keeps_the_configuration_of_all() {
    let dir = a_directory(&[("a.yaml", "start"), ("b.yaml", "b")]);
    let mut scene = Scene::follow_by(look, dir, &["conf.d/a.yaml", "conf.d/b.yaml"]);
    let [a, b] = ["conf.d/a.yaml", "conf.d/b.yaml"].map(|name| scene.at(name));
    fs::write(&b, rule("b.yaml", "two")).unwrap();
    assert_eq!(scene.keys().await, ["start", "two"]);
    fs::write(&a, rule("a.yaml", "one")).unwrap();
    assert_eq!(scene.keys().await, ["one", "two"]);

    let reasons: [(&str, &str); 3] = [
        ("nonsense", "b.yaml:1:1: must be a mapping"),
        ("", "b.yaml: is empty"),
        (&rule("a.yaml", "b"), "is also the name at"),
    ];
    for (bad, expected) in reasons {
        fs::write(scene.at("new"), bad).unwrap();
        fs::rename(scene.at("new"), &b).unwrap();
        let reason = scene.failed().await;
        assert!(reason.contains(expected), "{reason}");
        assert!(reason.starts_with(b.to_str().unwrap()), "{reason}");
    }
    // A change of a file that is good changes nothing while the other one is bad.
    fs::write(&a, rule("a.yaml", "later")).unwrap();
    fs::write(scene.at("new"), rule("b.yaml", "mended")).unwrap();
    fs::rename(scene.at("new"), &b).unwrap();
    assert_eq!(scene.keys().await, ["later", "mended"]);
    fs::remove_file(&b).unwrap();
    let reason = scene.failed().await;
    assert!(reason.ends_with("no such file or directory"), "{reason}");
}

#[tokio::test]
async fn a_file_that_comes_goes_or_changes_its_name_in_a_directory_changes_the_configuration() {
    let dir = a_directory(&[("b.yaml", "start")]);
    let mut scene = Scene::follow(dir, "conf.d");
    let at = |scene: &Scene, name: &str| scene.at("conf.d").join(name);
    fs::write(at(&scene, "c.yml"), rule("c", "c")).unwrap();
    assert_eq!(scene.keys().await, ["start", "c"]);
    fs::write(at(&scene, "new"), rule("a", "a")).unwrap();
    fs::rename(at(&scene, "new"), at(&scene, "a.yaml")).unwrap();
    assert_eq!(scene.keys().await, ["a", "start", "c"]);
    // Hidden, of another kind, below: none of these counts.
    fs::write(at(&scene, ".a.yaml"), "nonsense").unwrap();
    fs::write(at(&scene, "a.yaml~"), "nonsense").unwrap();
    fs::create_dir(at(&scene, "below")).unwrap();
    fs::write(at(&scene, "below/d.yaml"), "nonsense").unwrap();
    fs::rename(at(&scene, "a.yaml"), at(&scene, "z.yaml")).unwrap();
    assert_eq!(scene.keys().await, ["start", "c", "a"]);
    fs::write(at(&scene, "z.yaml"), rule("a", "written")).unwrap();
    assert_eq!(scene.keys().await, ["start", "c", "written"]);
    fs::remove_file(at(&scene, "b.yaml")).unwrap();
    assert_eq!(scene.keys().await, ["c", "written"]);

    fs::remove_file(at(&scene, "c.yml")).unwrap();
    assert_eq!(scene.keys().await, ["written"]);
    fs::remove_file(at(&scene, "z.yaml")).unwrap();
    let reason = scene.failed().await;
    assert!(
        reason.ends_with("is a directory without a file *.yaml or *.yml"),
        "{reason}"
    );
    fs::remove_dir_all(scene.at("conf.d")).unwrap();
    let reason = scene.failed().await;
    assert!(reason.ends_with("no such file or directory"), "{reason}");
    fs::create_dir(scene.at("conf.d")).unwrap();
    fs::write(at(&scene, "a.yaml"), rule("a", "again")).unwrap();
    assert_eq!(scene.keys().await, ["again"]);
}

#[tokio::test]
async fn a_mounted_configmap_is_followed_as_a_directory_and_with_a_directory_in_it() {
    for (inside, path) in [("", "."), ("conf.d/", "conf.d")] {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (version, files) in [
            ("..1", &[("a", "start"), ("b", "b")][..]),
            ("..2", &[("a", "one"), ("c", "c")]),
            ("..3", &[("a", "one"), ("c", "changed")]),
        ] {
            let folder = at(version).join(inside);
            fs::create_dir_all(&folder).unwrap();
            for (name, key) in files {
                fs::write(folder.join(format!("{name}.yaml")), rule(name, key)).unwrap();
            }
        }
        symlink("..1", at("..data")).unwrap();
        if inside.is_empty() {
            for name in ["a", "b"] {
                symlink(format!("..data/{name}.yaml"), at(&format!("{name}.yaml"))).unwrap();
            }
        } else {
            symlink("..data/conf.d", at("conf.d")).unwrap();
        }
        let mut scene = Scene::follow(dir, path);
        // In the order of the kubelet's `AtomicWriter`.
        retarget(&scene.at("..data"), "..2");
        if inside.is_empty() {
            symlink("..data/c.yaml", scene.at("c.yaml")).unwrap();
            fs::remove_file(scene.at("b.yaml")).unwrap();
        }
        assert_eq!(scene.keys().await, ["one", "c"], "{path}");
        retarget(&scene.at("..data"), "..3");
        assert_eq!(scene.keys().await, ["one", "changed"], "{path}");
    }
}
