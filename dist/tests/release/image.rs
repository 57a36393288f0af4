use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use testkit::dockerfile::instructions;

use crate::{REVISION, Scene, VERSION};

/// The file that a descriptor names, after a check of its size and its digest.
fn blob(scene: &Scene, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    let path = format!("image/blobs/sha256/{digest}");
    let blob = scene.released(&path);
    assert_eq!(descriptor["size"], blob.len());
    // The checksums have another test.
    assert!(scene.checksums().contains(&(digest.to_owned(), path)));
    blob
}

fn blob_json(scene: &Scene, descriptor: &Value) -> Value {
    serde_json::from_slice(&blob(scene, descriptor)).unwrap()
}

/// The descriptors of the images for each architecture.
fn platforms(scene: &Scene) -> Vec<Value> {
    assert_eq!(
        scene.released_json("image/oci-layout"),
        json!({"imageLayoutVersion": "1.0.0"})
    );
    let outer = scene.released_json("image/index.json");
    let images = outer["manifests"].as_array().unwrap();
    assert_eq!(images.len(), 1);
    assert_eq!(
        images[0]["annotations"]["org.opencontainers.image.ref.name"],
        VERSION
    );
    let inner = blob_json(scene, &images[0]);
    for index in [&outer, &inner] {
        assert_eq!(index["schemaVersion"], 2);
        assert_eq!(
            index["mediaType"],
            "application/vnd.oci.image.index.v1+json"
        );
    }
    inner["manifests"].as_array().unwrap().clone()
}

#[test]
fn the_layout_has_an_image_of_one_layer_for_each_architecture() {
    let scene = Scene::new();
    scene.make();
    let platforms = platforms(&scene);
    assert_eq!(platforms.len(), 2);
    for (descriptor, architecture) in platforms.iter().zip(["amd64", "arm64"]) {
        assert_eq!(
            descriptor["platform"],
            json!({"architecture": architecture, "os": "linux"})
        );
        let manifest = blob_json(&scene, descriptor);
        assert_eq!(manifest["mediaType"], descriptor["mediaType"]);
        let config = blob_json(&scene, &manifest["config"]);
        assert_eq!(config["architecture"], architecture);
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 1);
        let layer = blob(&scene, &layers[0]);
        let mut layer = tar::Archive::new(GzDecoder::new(&*layer));
        let mut names = Vec::new();
        for entry in layer.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            if name == "untaint" {
                assert_eq!(entry.header().mode().unwrap(), 0o755);
                assert_eq!(
                    content,
                    scene.released(&format!("untaint-{VERSION}-linux-{architecture}"))
                );
            }
            names.push(name);
        }
        assert_eq!(names, ["LICENSE", "untaint"]);
    }
}

#[test]
fn the_image_is_the_one_that_the_dockerfile_describes() {
    let scene = Scene::new();
    scene.make();
    let run = instructions("RUN").join(" ");
    let files = run
        .split(' ')
        .filter_map(|word| word.strip_prefix("/image/"));
    let mut files: Vec<_> = files.filter(|file| !file.contains('*')).collect();
    files.sort_unstable();
    assert_eq!(files, ["LICENSE", "untaint"]);
    assert_eq!(
        instructions("COPY").last().unwrap(),
        "--from=build /image /"
    );

    // A label is NAME="VALUE".
    let labels = instructions("LABEL")
        .join(" ")
        .replace("$REVISION", REVISION);
    let labels = labels
        .split("\" ")
        .map(|label| label.trim().trim_end_matches('"'));
    let labels: Value = labels
        .map(|label| label.split_once("=\"").unwrap())
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    for descriptor in platforms(&scene) {
        let image = blob_json(&scene, &descriptor);
        let config = blob_json(&scene, &image["config"]);
        // The time of the commit, as with SOURCE_DATE_EPOCH.
        assert_eq!(config["created"], "2001-09-09T01:46:40Z");
        let config = &config["config"];
        assert_eq!(config["Labels"], labels);
        let [user] = <[String; 1]>::try_from(instructions("USER")).unwrap();
        assert_eq!(config["User"], user);
        let [entry_point] = <[String; 1]>::try_from(instructions("ENTRYPOINT")).unwrap();
        assert_eq!(config["Entrypoint"].to_string(), entry_point);
        for instruction in ["CMD", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "VOLUME"] {
            assert!(instructions(instruction).is_empty(), "{instruction}");
        }
    }
}
