//! Makes the files of a release from programs that are already built. `make dist` builds them and calls this.
//!
//! The same input gives the same bytes: nothing here reads a clock, the environment or the network, and the order of files
//! is that of their names.

mod archive;
mod changelog;
mod chart;
mod files;
mod image;
mod manifests;
mod manuals;
mod program;
mod provenance;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::{CommandFactory as _, Parser};
use jiff::Timestamp;
use untaint::cli::Cli;

use crate::files::Files;
use crate::program::Program;
use crate::sbom::Licenses;

/// Run it in the root of the source.
#[derive(Debug, Parser)]
struct Arguments {
    /// A directory with a directory for each architecture, such as amd64. Each contains the program `untaint` and its list of
    /// packages, `packages.json`, as rust-audit-info prints it.
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,
    /// What `cargo metadata` prints. It has the licenses of the packages.
    #[arg(long, value_name = "FILE")]
    metadata: PathBuf,
    /// An untaint that runs on this machine. It writes the manifests.
    #[arg(long, value_name = "FILE")]
    untaint: PathBuf,
    /// The commit of the source, in hexadecimal digits.
    #[arg(long, value_name = "COMMIT")]
    revision: String,
    /// The time of the commit, in seconds since 1970. It is the time of everything in the release.
    #[arg(long, value_name = "SECONDS")]
    time: i64,
    /// The directory to create.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// What all parts of a release have in common.
struct Release {
    version: String,
    /// The commit of the source.
    revision: String,
    time: Timestamp,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let release = Release {
        version: version()?,
        revision: arguments.revision,
        time: Timestamp::from_second(arguments.time).context("--time")?,
    };
    let is_commit = release.revision.len() >= 40
        && release
            .revision
            .chars()
            .all(|digit| digit.is_ascii_hexdigit());
    ensure!(is_commit, "--revision: {} is no commit", release.revision);
    let programs = Program::read_all(&arguments.programs)?;
    let licenses = Licenses::read(&arguments.metadata)?;

    let mut files = Files::default();
    files.add(
        "CHANGELOG.md",
        changelog::entry(&read("CHANGELOG.md")?, &release.version)?,
    );
    files.add("LICENSE", read("LICENSE")?);
    for program in &programs {
        let name = format!("untaint-{}-linux-{}", release.version, program.architecture);
        files.add(
            format!("{name}.cdx.json"),
            sbom::document(&release, program, &licenses)?,
        );
        files.add_program(name, program.bytes.clone());
    }
    image::add(&mut files, &release, &programs)?;
    chart::add(&mut files, &release)?;
    manifests::add(&mut files, &arguments.untaint)?;
    manuals::add(&mut files)?;
    // The last two name all others.
    files.add(
        format!("untaint-{}.intoto.json", release.version),
        provenance::statement(&release, &programs, &files)?,
    );
    files.add("SHA256SUMS", files.checksums());
    files.write(&arguments.output)
}

/// The version of untaint, which is not that of this program.
fn version() -> Result<String> {
    let command = Cli::command();
    let version = command.get_version().context("untaint has no version")?;
    Ok(version.to_owned())
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
