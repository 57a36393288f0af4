//! What a program consists of, as a bill of materials, in the format `CycloneDX` 1.6 (ECMA-424).

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::files::sha256;
use crate::program::Program;
use crate::{Release, read};

/// The license of each package, by its name and version.
pub(crate) struct Licenses(HashMap<(String, String), String>);

impl Licenses {
    /// Reads what `cargo metadata` printed.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let metadata: Value = serde_json::from_str(&read(path)?)?;
        let packages = metadata["packages"].as_array().context("no packages")?;
        let licenses = packages.iter().filter_map(|package| {
            let text = |field: &str| package[field].as_str().map(str::to_owned);
            // Before SPDX expressions, cargo had a slash for OR.
            let license = text("license")?.replace('/', " OR ");
            Some(((text("name")?, text("version")?), license))
        });
        Ok(Self(licenses.collect()))
    }

    fn of(&self, name: &str, version: &str) -> Result<&str> {
        let license = self.0.get(&(name.to_owned(), version.to_owned()));
        let license = license.with_context(|| format!("{name} {version} has no license"))?;
        Ok(license)
    }
}

/// The document for `program`. The order of its components is that of the list in the program.
pub(crate) fn document(
    release: &Release,
    program: &Program,
    licenses: &Licenses,
) -> Result<String> {
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    let mut root = None;
    let system = system(program)?;
    let of_system: Vec<_> = system
        .iter()
        .map(|component| component["bom-ref"].clone())
        .collect();
    for package in &program.packages {
        let component = component(package, licenses)?;
        let uses = package["dependencies"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        // A package can use another for the build and in the program. Each line must be there once.
        let uses: Result<BTreeSet<_>> = uses
            .iter()
            .map(|index| reference_at(program, index))
            .collect();
        let mut uses: Vec<Value> = uses?.into_iter().map(Value::from).collect();
        let reference = component["bom-ref"].clone();
        if package["root"] == true {
            uses.extend(of_system.clone());
            root = Some(component);
        } else {
            components.push(component);
        }
        dependencies.push(json!({"ref": reference, "dependsOn": uses}));
    }
    for component in system {
        dependencies.push(json!({"ref": component["bom-ref"], "dependsOn": []}));
        components.push(component);
    }
    let mut root = root.context("the list has no root")?;
    root["type"] = "application".into();
    root["hashes"] = json!([{"alg": "SHA-256", "content": sha256(&program.bytes)}]);
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": release.time.to_string(), "component": root},
        "components": components,
        "dependencies": dependencies,
    });
    Ok(format!("{document:#}\n"))
}

fn component(package: &Value, licenses: &Licenses) -> Result<Value> {
    let text = |field: &str| {
        package[field]
            .as_str()
            .with_context(|| format!("no {field}: {package}"))
    };
    let (name, version) = (text("name")?, text("version")?);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package)?,
        "name": name,
        "version": version,
        "licenses": [{"expression": licenses.of(name, version)?}],
    });
    if package["source"] == "crates.io" {
        component["purl"] = reference(package)?.into();
    }
    // It ran during the build. The program does not contain it.
    if package["kind"] == "build" {
        component["scope"] = "excluded".into();
    }
    Ok(component)
}

/// The package URL, which also is the reference within the document.
fn reference(package: &Value) -> Result<String> {
    let text = |field: &str| {
        package[field]
            .as_str()
            .with_context(|| format!("no {field}: {package}"))
    };
    // A plus sign must be escaped in a package URL.
    Ok(format!(
        "pkg:cargo/{}@{}",
        text("name")?,
        text("version")?.replace('+', "%2B")
    ))
}

fn reference_at(program: &Program, index: &Value) -> Result<String> {
    let package = index
        .as_u64()
        .and_then(|index| program.packages.get(usize::try_from(index).ok()?));
    reference(package.with_context(|| format!("the list has no package {index}"))?)
}

/// What the program contains besides packages. Scanners do not see it.
fn system(program: &Program) -> Result<[Value; 2]> {
    let c_library = program.c_library()?;
    let (c_url, c_version) = if let Some(version) = c_library.strip_prefix("Debian GLIBC ") {
        (
            format!(
                "pkg:deb/debian/glibc@{}?arch=source",
                version.replace('+', "%2B")
            ),
            version,
        )
    } else {
        let version = c_library.rsplit(' ').next().unwrap_or(c_library);
        (format!("pkg:generic/glibc@{version}"), version)
    };
    let compiler = program.compiler()?;
    let rust_version = compiler.split(' ').next().unwrap_or(compiler);
    let rust_url = format!("pkg:generic/rust@{rust_version}");
    Ok([
        json!({
            "type": "library",
            "bom-ref": c_url,
            "purl": c_url,
            "name": "glibc",
            "version": c_version,
            "licenses": [{"expression": "LGPL-2.1-or-later"}],
        }),
        json!({
            "type": "library",
            "bom-ref": rust_url,
            "purl": rust_url,
            "name": "rust",
            "description": "The standard library of Rust",
            "version": rust_version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }),
    ])
}
