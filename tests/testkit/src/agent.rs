//! The agent as a process. Tests read its log.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::DEADLINE;

/// A running agent; killed when dropped.
pub struct Agent {
    child: Child,
    logs: watch::Receiver<Vec<Value>>,
    _task: JoinSet<()>,
}

impl Agent {
    /// Starts `program` with these arguments. Its environment has only these variables.
    pub fn start<A: AsRef<OsStr>>(
        program: &str,
        arguments: &[A],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .args(["--log-format", "json"])
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {program}"))?;
        let stderr = child.stderr.take().context("a piped standard error")?;
        let (sender, logs) = watch::channel(Vec::new());
        let mut task = JoinSet::new();
        task.spawn(collect(stderr, sender));
        Ok(Self {
            child,
            logs,
            _task: task,
        })
    }

    /// Every line so far. A line that is not JSON is a string.
    #[must_use]
    pub fn logs(&self) -> Vec<Value> {
        self.logs.borrow().clone()
    }

    /// How many lines have this message so far.
    #[must_use]
    pub fn count(&self, message: &str) -> usize {
        self.logs
            .borrow()
            .iter()
            .filter(|line| line["message"] == message)
            .count()
    }

    /// Waits for the first line for which `wanted` is true; fails after [`DEADLINE`].
    pub async fn wait_for_log(&self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut logs = self.logs.clone();
        let found = logs.wait_for(|lines| lines.iter().any(&wanted));
        match timeout(DEADLINE, found).await {
            Ok(Ok(lines)) => Ok(lines
                .iter()
                .find(|line| wanted(line))
                .cloned()
                .unwrap_or_default()),
            _ => bail!("no such line in {:#?}", self.logs()),
        }
    }

    /// The first line with this message.
    pub async fn wait_for_message(&self, message: &str) -> Result<Value> {
        self.wait_for_log(|line| line["message"] == message)
            .await
            .with_context(|| message.to_owned())
    }

    /// Waits for another line without a time limit; fails at the end of the log.
    pub async fn next_log(&mut self) -> Result<()> {
        Ok(self.logs.changed().await?)
    }

    /// Returns once there are `count` lines with this message; fails after [`DEADLINE`].
    pub async fn wait_for_count(&self, message: &str, count: usize) -> Result<()> {
        let is_it = |line: &&Value| line["message"] == message;
        let mut logs = self.logs.clone();
        let found = logs.wait_for(|lines| lines.iter().filter(is_it).count() >= count);
        match timeout(DEADLINE, found).await {
            Ok(Ok(_)) => Ok(()),
            _ => bail!(
                "fewer than {count} lines with {message:?} in {:#?}",
                self.logs()
            ),
        }
    }

    /// The body of a GET to the agent's server, with its status code.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        get(&self.address().await?, path).await
    }

    /// The head and the body of its server's answer: see [`ask`].
    pub async fn ask(&self, request: &str, lines: &[&str]) -> Result<(String, String)> {
        ask(&self.address().await?, request, lines).await
    }

    async fn address(&self) -> Result<String> {
        let listening = self.wait_for_message("listening").await?;
        let address = listening["address"].as_str();
        Ok(address.context("an address")?.to_owned())
    }

    /// `/statusz`.
    pub async fn status(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.get("/statusz").await?.1)?)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Its resident memory, in KiB.
    pub fn resident(&self) -> Result<usize> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let mut lines = status.lines();
        let resident = lines.find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.context("a line of resident memory")?;
        Ok(resident.trim_end_matches("kB").trim().parse()?)
    }

    /// Sends a signal, by name.
    pub async fn signal(&self, name: &str) -> Result<()> {
        kill(name, &self.id().to_string()).await
    }

    /// Sends a signal to the only child of the command that was started: the agent, if the command waits for it.
    pub async fn signal_child(&self, name: &str) -> Result<()> {
        let id = self.id();
        let child = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        kill(name, child.trim()).await
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for the end of the process; fails after `limit`.
    pub async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        match timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => bail!("still running; it printed {:#?}", self.logs()),
        }
    }

    /// Waits for the end of the process and returns its exit code; fails after [`DEADLINE`].
    pub async fn exit_code(&mut self) -> Result<i32> {
        self.ended(DEADLINE)
            .await?
            .code()
            .context("ended by a signal")
    }
}

async fn kill(signal: &str, id: &str) -> Result<()> {
    let status = Command::new("kill").args(["-s", signal, id]).status();
    let status = status.await?;
    if !status.success() {
        bail!("kill: {status}");
    }
    Ok(())
}

async fn collect(stderr: ChildStderr, sender: watch::Sender<Vec<Value>>) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
        sender.send_modify(|lines| lines.push(line));
    }
}

/// The body of the answer to a GET, with its status code.
pub async fn get(address: &str, path: &str) -> Result<(u16, String)> {
    let (head, body) = ask(address, &format!("GET {path}"), &[]).await?;
    let code = head.split(' ').nth(1).context("a status code")?.parse()?;
    Ok((code, body))
}

/// The head and the body of the answer to a method and a path, with more `lines` in the head of the request. A client
/// library would add headers of its own.
pub async fn ask(address: &str, request: &str, lines: &[&str]) -> Result<(String, String)> {
    let mut head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for line in lines {
        head += line;
        head += "\r\n";
    }
    head += "\r\n";
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = timeout(DEADLINE, exchange).await??;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("an empty line after the head")?;
    Ok((head.to_owned(), body.to_owned()))
}

/// The arguments of `untaint run` for this Node.
#[must_use]
pub fn run_on<'a>(node: &'a str, config: &'a Path, kubeconfig: &'a Path) -> [&'a str; 7] {
    let [config, kubeconfig] = [config, kubeconfig].map(|path| path.to_str().unwrap());
    [
        "run",
        "--node-name",
        node,
        "--config",
        config,
        "--kubeconfig",
        kubeconfig,
    ]
}

/// The output of `untaint manifests` for this configuration, with more arguments.
pub async fn manifests(program: &str, config: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    let command = command.arg("manifests").args(arguments);
    let output = command.arg("--config").arg(config).output().await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "untaint manifests: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Writes a configuration file with these rules, which are the YAML below `rules:`.
pub fn write_configuration(path: &Path, rules: &str) -> Result<()> {
    let head = "apiVersion: untaint/v1alpha1\nkind: UntaintConfiguration\nrules:\n";
    Ok(std::fs::write(path, format!("{head}{rules}"))?)
}
