use std::fs;
use std::path::Path;

use flate2::read::GzDecoder;

use crate::Scene;

const ABOUT: &str = "apiVersion: v2\nname: untaint\nversion: 0.1.0\nappVersion: \"0.1.0\"\n";

/// A chart in place of the real one.
fn with_chart(about: &str) -> Scene {
    let scene = Scene::new();
    let chart = scene.at("source/deploy/chart");
    let _ = fs::remove_dir_all(&chart);
    fs::create_dir_all(chart.join("templates")).unwrap();
    for (path, text) in [
        ("Chart.yaml", about),
        ("values.yaml", "rules: []\n"),
        ("templates/b.yaml", "b: 1\n"),
        ("templates/_a.tpl", "a\n"),
    ] {
        fs::write(chart.join(path), text).unwrap();
    }
    scene
}

#[test]
fn the_package_of_the_chart_has_its_files_below_its_name() {
    let scene = with_chart(ABOUT);
    scene.make();
    let package = scene.released("untaint-0.1.0.tgz");
    let mut archive = tar::Archive::new(GzDecoder::new(&*package));
    let names = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        assert_eq!(entry.header().mtime().unwrap(), 1_000_000_000);
        entry.path().unwrap().display().to_string()
    });
    let expected = [
        "Chart.yaml",
        "templates/_a.tpl",
        "templates/b.yaml",
        "values.yaml",
    ];
    let expected = expected.map(|name| format!("untaint/{name}"));
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[test]
fn the_chart_has_the_version_of_the_program_and_is_small() {
    for (wrong, expected) in [
        (
            ABOUT.replace("version: 0.1.0", "version: 0.0.9"),
            "deploy/chart/Chart.yaml: version: must be 0.1.0",
        ),
        (
            ABOUT.replace("appVersion: \"0.1.0\"", ""),
            "deploy/chart/Chart.yaml: appVersion: must be 0.1.0",
        ),
    ] {
        let refusal = with_chart(&wrong).refusal();
        assert!(refusal.contains(expected), "{refusal}");
    }
    let scene = with_chart(ABOUT);
    let large: String = (0..60_000).map(|number: u32| number.to_string()).collect();
    fs::write(scene.at("source/deploy/chart/large"), large).unwrap();
    let refusal = scene.refusal();
    assert!(refusal.contains("bytes, more than 25600"), "{refusal}");
}

#[test]
fn the_release_has_a_package_exactly_if_the_source_has_a_chart() {
    let scene = Scene::new();
    scene.make();
    let has_chart = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/chart")
        .exists();
    assert_eq!(scene.at("release/untaint-0.1.0.tgz").exists(), has_chart);
}
