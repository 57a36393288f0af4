//! The directories in a watched directory, and the links above a path.

use tempfile::TempDir;

use super::*;

type Change<'a> = &'a dyn Fn(&Scene) -> io::Result<()>;

/// A directory that is watched with the directories in it.
struct Scene {
    root: TempDir,
    watch: FsWatch,
}

impl Scene {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("net.d")).unwrap();
        let mut watch = FsWatch::with_directories(&root.path().join("net.d"));
        woken(&mut watch).await;
        Self { root, watch }
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    async fn assert_watched(&mut self, directory: &str) {
        let directory = self.at(directory);
        assert_watched(&mut self.watch, &directory).await;
    }
}

#[tokio::test]
async fn an_entry_of_a_directory_in_the_directory_wakes_however_that_one_came() {
    let changes: [(&str, Change, &str); 7] = [
        ("created", &|s| fs::create_dir(s.at("net.d/n")), "net.d/n"),
        (
            "removed and created again",
            &|s| {
                fs::remove_dir_all(s.at("net.d/n"))?;
                fs::create_dir(s.at("net.d/n"))
            },
            "net.d/n",
        ),
        (
            "renamed",
            &|s| fs::rename(s.at("net.d/n"), s.at("net.d/other")),
            "net.d/other",
        ),
        (
            "replaced",
            &|s| {
                fs::rename(s.at("net.d/other"), s.at("away"))?;
                fs::create_dir(s.at("new"))?;
                fs::rename(s.at("new"), s.at("net.d/other"))
            },
            "net.d/other",
        ),
        (
            "linked",
            &|s| {
                fs::create_dir(s.at("one"))?;
                symlink(s.at("one"), s.at("net.d/link"))
            },
            "one",
        ),
        (
            "linked to another",
            &|s| {
                fs::create_dir(s.at("two"))?;
                symlink(s.at("two"), s.at("net.d/new"))?;
                fs::rename(s.at("net.d/new"), s.at("net.d/link"))
            },
            "two",
        ),
        (
            "linked to itself",
            &|s| symlink(s.at("net.d"), s.at("net.d/itself")),
            "net.d",
        ),
    ];
    let mut scene = Scene::new().await;
    for (how, change, directory) in changes {
        println!("{how}");
        settle(&mut scene.watch).await;
        change(&scene).unwrap();
        scene.assert_watched(directory).await;
        fs::remove_file(scene.at(directory).join("10.conflist")).unwrap();
        scene.assert_watched("net.d").await;
        fs::remove_file(scene.at("net.d/10.conflist")).unwrap();
    }
}

#[tokio::test]
async fn only_so_many_directories_are_watched_and_the_directory_itself_always_is() {
    let mut scene = Scene::new().await;
    for index in 0..2 * placed::MAX_DIRECTORIES {
        fs::create_dir(scene.at(&format!("net.d/{index}"))).unwrap();
    }
    scene.assert_watched("net.d").await;
    settle(&mut scene.watch).await;
    let State::Watching(placed) = &scene.watch.state else {
        panic!("{:?}", scene.watch.state);
    };
    assert_eq!(placed.directories(), placed::MAX_DIRECTORIES);
}

#[tokio::test]
async fn a_link_above_the_path_that_leads_elsewhere_wakes() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for version in ["v1/run", "v2/run"] {
        fs::create_dir_all(at(version)).unwrap();
    }
    symlink("v1", at("current")).unwrap();
    let mut watch = watch(&at("current/run/ready")).await;
    for version in ["v2", "v1", "nowhere", "v2"] {
        settle(&mut watch).await;
        symlink(version, at("new")).unwrap();
        fs::rename(at("new"), at("current")).unwrap();
        woken(&mut watch).await;
        if version != "nowhere" {
            settle(&mut watch).await;
            let ready = at(version).join("run/ready");
            fs::write(&ready, "").unwrap();
            woken(&mut watch).await;
            fs::remove_file(ready).unwrap();
        }
    }
}
