//! The image for all architectures, as an image layout of the Open Container Initiative: the directory `image` of a release.
//!
//! It is the image that the Dockerfile describes: the same files, user, entry point and labels.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::Release;
use crate::archive::{Entry, gzip, tar};
use crate::files::{Files, sha256};
use crate::program::Program;

/// What a node downloads at most, in bytes.
const MOST: usize = 8 << 20;

/// Of an image layout: image-layout.md, image-index.md, manifest.md and config.md of the image specification 1.1.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

pub(crate) fn add(files: &mut Files, release: &Release, programs: &[Program]) -> Result<()> {
    let mut manifests = Vec::new();
    for program in programs {
        let mut manifest = manifest(files, release, program)?;
        manifest["platform"] = json!({"architecture": program.architecture, "os": "linux"});
        manifests.push(manifest);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    // One image with a name, as tools that copy an image out of a layout expect it.
    let mut image = blob(files, INDEX, index.to_string());
    image["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]});
    files.add("image/index.json", index.to_string());
    files.add(
        "image/oci-layout",
        json!({"imageLayoutVersion": "1.0.0"}).to_string(),
    );
    Ok(())
}

/// Adds the image for one architecture, and returns its descriptor.
fn manifest(files: &mut Files, release: &Release, program: &Program) -> Result<Value> {
    let license = crate::read("LICENSE")?;
    let entries = [
        Entry {
            path: "LICENSE",
            mode: 0o644,
            bytes: license.as_bytes(),
        },
        Entry {
            path: "untaint",
            mode: 0o755,
            bytes: &program.bytes,
        },
    ];
    let contents = tar(&entries, release.time)?;
    let layer = gzip(&contents)?;
    let config = config(release, program.architecture, &contents).to_string();
    let size = layer.len() + config.len();
    let architecture = program.architecture;
    ensure!(
        size <= MOST,
        "the image for {architecture} has {size} bytes, more than {MOST}"
    );
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(files, CONFIG, config),
        "layers": [blob(files, LAYER, layer)],
    });
    Ok(blob(files, MANIFEST, manifest.to_string()))
}

/// Adds a file that is named by its digest, and returns its descriptor.
fn blob(files: &mut Files, kind: &str, bytes: impl Into<Vec<u8>>) -> Value {
    let bytes = bytes.into();
    let digest = sha256(&bytes);
    let descriptor =
        json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()});
    files.add(format!("image/blobs/sha256/{digest}"), bytes);
    descriptor
}

fn config(release: &Release, architecture: &str, layer: &[u8]) -> Value {
    let created = release.time.to_string();
    json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": "65532:65532",
            // BuildKit sets these two in every image.
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "WorkingDir": "/",
            "Entrypoint": ["/untaint"],
            "Labels": {
                "org.opencontainers.image.title": "untaint",
                "org.opencontainers.image.description": "Removes a Kubernetes start-up taint from its own Node once the node is really ready",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": release.revision,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(layer))]},
        "history": [{"created": created, "created_by": "make dist"}],
    })
}
