//! The command line. Every flag has an environment variable.

mod manifests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::config::{HttpGet, parse_duration};
use crate::logging::Format;
use crate::syntax::{ABSOLUTE_PATH, NETWORK_NAME};
use crate::taint::{TaintMatcher, parse_taint};
use crate::text::without_secrets;

pub use manifests::{DEFAULT_IMAGE, ManifestsArgs, TenantArgs};

/// Where the HTTP server listens unless told otherwise.
const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9468);

/// Exit codes: a contract with scripts, hooks and init containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; for `run` without `--once`, stopped by a signal.
    Done = 0,
    /// Failed at run time.
    Failed = 1,
    /// Bad usage or configuration (clap exits with the same).
    Usage = 2,
    /// Not ready (`check`), or not in time or stopped before (`wait`, `run --once`).
    NotReady = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Removes a start-up taint from its own Node once the node is really ready for ordinary pods.
#[derive(Debug, Parser)]
#[command(
    name = "untaint",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 not ready or not in time."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How log lines look; auto: text on a terminal, JSON otherwise.
    #[arg(
        long,
        global = true,
        env = "UNTAINT_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "auto"
    )]
    pub log_format: Format,
    /// The least important lines to log: error, warn, info, debug, trace or off.
    #[arg(
        long,
        global = true,
        env = "UNTAINT_LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info"
    )]
    pub log_level: LevelFilter,
}

impl Cli {
    /// Reads the command line and the environment. Where that fails, or help is asked for, the program ends here.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|mut error| {
            for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg] {
                // What is wrong may be a URL, and the message is for the log of a pod.
                if let Some(ContextValue::String(value)) = error.get(kind) {
                    let value = without_secrets(value);
                    error.insert(kind, ContextValue::String(value));
                }
            }
            error.exit()
        })
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the own Node and remove its start-up taints when their gates are open; until stopped.
    Run(RunArgs),
    /// Wait until every gate is open. Needs no API server.
    Wait(WaitArgs),
    /// Evaluate every gate once and print why each is open or closed. Needs no API server.
    Check(CheckArgs),
    /// Look at configuration files.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print what a cluster needs to run untaint with a configuration: permissions, admission policies, pods.
    Manifests(ManifestsArgs),
    /// Copy this program into a directory, for hooks of containers that do not have it.
    Install {
        /// An existing directory, such as a shared volume.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Look at configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every error of the files; exit 2 if there is one.
    Validate {
        /// Configuration files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print the effective configuration, defaults included.
    Show {
        /// A configuration file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the JSON Schema of configuration files, for editors and other tools.
    Schema,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration file.
    #[arg(
        long,
        env = "UNTAINT_CONFIG",
        value_name = "FILE",
        conflicts_with = "taint",
        required_unless_present = "taint"
    )]
    pub config: Option<PathBuf>,
    /// One taint to remove, in place of a configuration file; any value and effect that are not given match.
    #[arg(long, env = "UNTAINT_TAINT", value_name = "KEY[=VALUE][:EFFECT]", value_parser = parse_taint)]
    pub taint: Option<TaintMatcher>,
    /// Gates of that taint.
    #[command(flatten)]
    pub gates: GateArgs,
    /// The own Node's name; in a pod, from spec.nodeName by the downward API. Never guessed from the host's name.
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: Option<String>,
    /// A kubeconfig; without it, the pod's ServiceAccount is used.
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Where to serve /healthz, /readyz, /statusz and /metrics, or off [default: 127.0.0.1:9468; off with --once].
    #[arg(long, env = "UNTAINT_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<Listen>,
    /// Exit with 0 once every configured taint is gone and stays gone for --settle.
    #[arg(long, env = "UNTAINT_ONCE")]
    pub once: bool,
    /// How long the taints must have been gone.
    #[arg(long, env = "UNTAINT_SETTLE", value_name = "DURATION", default_value = "1s", value_parser = parse_duration, requires = "once")]
    pub settle: Duration,
    /// Give up after so long, with exit code 3.
    #[arg(long, env = "UNTAINT_TIMEOUT", value_name = "DURATION", value_parser = parse_duration, requires = "once")]
    pub timeout: Option<Duration>,
    /// Decide and report, write nothing.
    #[arg(long, env = "UNTAINT_DRY_RUN")]
    pub dry_run: bool,
    /// Do not ask the server, by a dry run, whether an admission policy holds the account.
    #[arg(long, env = "UNTAINT_NO_POLICY_CHECK")]
    pub no_policy_check: bool,
}

impl RunArgs {
    /// Where to listen, if at all.
    pub fn listen(&self) -> Option<SocketAddr> {
        match self.listen {
            Some(Listen::On(address)) => Some(address),
            Some(Listen::Off) => None,
            None => (!self.once).then_some(DEFAULT_LISTEN),
        }
    }
}

/// Arguments of `wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Where the gates come from.
    #[command(flatten)]
    pub gates: ConfigOrGates,
    /// Give up after so long, with exit code 3.
    #[arg(long, env = "UNTAINT_TIMEOUT", value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Where the gates come from.
    #[command(flatten)]
    pub gates: ConfigOrGates,
}

/// A configuration file, or gates in its place.
#[derive(Debug, Args)]
pub struct ConfigOrGates {
    /// The configuration file.
    #[arg(long, env = "UNTAINT_CONFIG", value_name = "FILE", required_unless_present_any = ["cni", "http_get", "file"])]
    pub config: Option<PathBuf>,
    /// Gates in its place.
    #[command(flatten)]
    pub gates: GateArgs,
}

/// Gates given as flags. All must be open.
#[derive(Debug, Default, Args)]
pub struct GateArgs {
    /// The CNI configuration in /etc/cni/net.d must be there and, if given, be of this network.
    #[arg(long, env = "UNTAINT_CNI", value_name = "NETWORK", num_args = 0..=1, value_parser = |name: &str| NETWORK_NAME.parse(name), conflicts_with = "config")]
    pub cni: Option<Option<String>>,
    /// This URL must answer 200-299: http://, https:// (not verified) or unix:SOCKET[:/PATH]. May be repeated.
    #[arg(
        long,
        env = "UNTAINT_HTTP_GET",
        value_name = "URL",
        conflicts_with = "config"
    )]
    pub http_get: Vec<HttpGet>,
    /// This file must exist. May be repeated.
    #[arg(long, env = "UNTAINT_FILE", value_name = "PATH", value_parser = |path: &str| ABSOLUTE_PATH.parse(path).map(PathBuf::from), conflicts_with = "config")]
    pub file: Vec<PathBuf>,
}

/// `--listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Not at all.
    Off,
    /// Here; port 0 takes a free one, which is logged.
    On(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse().map(Self::On).map_err(|_| {
            "must be ADDRESS:PORT, such as 127.0.0.1:9468 or [::1]:9468, or off".into()
        })
    }
}
