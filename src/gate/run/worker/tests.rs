use std::fs;
use std::io::Write;
use std::path::PathBuf;

use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::*;
use crate::config::{CniConfig, FileCheck, ProbeHandler, Schedule};
use crate::gate::State;
use crate::gate::probe::testing::soon;
use crate::gate::report::{RunId, Update};

const CONFLIST: &str = r#"{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "p"}]}"#;

/// A gate that is evaluated again only after a file event: its period is longer than a test.
struct Watched {
    /// What opens the gate by its presence.
    path: PathBuf,
    updates: mpsc::Receiver<Update>,
    _task: JoinSet<()>,
    _dir: TempDir,
}

impl Watched {
    fn file() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ready");
        let handler = ProbeHandler::File(FileCheck::new(path.clone()));
        Self::new(handler, path, dir)
    }

    fn text() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ready");
        let handler = ProbeHandler::File(FileCheck {
            contains: Some("end".into()),
            ..FileCheck::new(&path)
        });
        Self::new(handler, path, dir)
    }

    fn cni_config() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-n.conflist");
        let handler = ProbeHandler::CniConfig(CniConfig {
            dir: dir.path().into(),
            ..CniConfig::default()
        });
        Self::new(handler, path, dir)
    }

    fn new(handler: ProbeHandler, path: PathBuf, dir: TempDir) -> Self {
        let spec = Probe {
            name: "watched".into(),
            handler,
            schedule: Schedule {
                initial_delay: Duration::ZERO,
                period: Duration::from_hours(1),
                timeout: Duration::from_mins(1),
                success_threshold: 1,
                failure_threshold: 1,
            },
        };
        let (sender, updates) = mpsc::channel(16);
        let reporter = Reporter::new(RunId::next(), 0, sender);
        let mut task = JoinSet::new();
        task.spawn(run(spec, None, ProbeLock::default(), reporter));
        Self {
            path,
            updates,
            _task: task,
            _dir: dir,
        }
    }

    /// Waits until the gate reports this state.
    async fn becomes(&mut self, state: State) {
        while soon(self.updates.recv()).await.unwrap().outcome.state() != state {}
    }
}

#[tokio::test]
async fn every_change_of_a_burst_is_evaluated_between_two_periods() {
    for mut gate in [Watched::file(), Watched::cni_config()] {
        gate.becomes(State::Closed).await;
        for _ in 0..30 {
            fs::write(&gate.path, CONFLIST).unwrap();
            gate.becomes(State::Open).await;
            fs::remove_file(&gate.path).unwrap();
            gate.becomes(State::Closed).await;
        }
    }
}

#[tokio::test]
async fn a_text_that_is_written_into_a_file_or_cut_off_is_evaluated_between_two_periods() {
    let mut gate = Watched::text();
    for _ in 0..3 {
        gate.becomes(State::Closed).await;
        let mut file = fs::File::create(&gate.path).unwrap();
        file.write_all(b"beginning and ").unwrap();
        file.write_all(b"end").unwrap();
        gate.becomes(State::Open).await;
        file.set_len(4).unwrap();
    }
}

/// CNI 1.1: the plugins of `<dir>/<name>/*.conf` are appended.
#[tokio::test]
async fn a_change_in_the_networks_directory_is_evaluated_between_two_periods() {
    let mut gate = Watched::cni_config();
    let plugins = gate.path.with_file_name("n");
    let bad = plugins.join("1.conf");
    gate.becomes(State::Closed).await;
    fs::write(&gate.path, CONFLIST).unwrap();
    gate.becomes(State::Open).await;
    for _ in 0..3 {
        fs::create_dir(&plugins).unwrap();
        fs::write(&bad, "{}").unwrap();
        gate.becomes(State::Closed).await;
        fs::write(&bad, r#"{"type": "p"}"#).unwrap();
        gate.becomes(State::Open).await;
        fs::write(&bad, "").unwrap();
        gate.becomes(State::Closed).await;
        fs::rename(&plugins, plugins.with_file_name("m")).unwrap();
        gate.becomes(State::Open).await;
        fs::remove_dir_all(plugins.with_file_name("m")).unwrap();
    }
}

#[test]
fn a_file_that_changes_without_end_is_evaluated_twenty_times_a_second() {
    let start = Instant::now();
    let mut early = EARLY;
    let mut evaluations = 0;
    let mut now = start;
    while now < start + Duration::from_secs(1) {
        early.take(now);
        evaluations += 1;
        now = early.next_at(now).unwrap_or(now);
    }
    assert_eq!(
        evaluations,
        20 + 19,
        "20 at once, then one after each 50 ms"
    );
}
