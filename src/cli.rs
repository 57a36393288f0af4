//! The command line. Every flag has an environment variable.

mod manifests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::config::{HttpGet, parse_duration};
use crate::logging::Format;
use crate::syntax::{ABSOLUTE_PATH, DNS_SUBDOMAIN, NETWORK_NAME};
use crate::taint::{TaintMatcher, parse_taint};
use crate::text::without_secrets;

pub use manifests::{AdditionArgs, DEFAULT_IMAGE, ManifestsArgs, TenantArgs};

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9468);

/// Exit codes. Scripts, hooks and init containers rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; for `run` without `--once`, stopped by a signal.
    Done = 0,
    Failed = 1,
    /// Bad usage, configuration or credentials. clap uses the same code.
    Usage = 2,
    /// `check`: not ready. `wait`, `run --once`: not ready in time, or stopped by a signal before that.
    NotReady = 3,
    /// `run --once`: no rule for this Node is left with anything to do, but the Node has a taint that a rule names. To try
    /// again does not help until the labels of the Node or the configuration change.
    Left = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Removes a start-up taint from its own Node, which must run Linux, when the node can really run pods.
#[derive(Debug, Parser)]
#[command(
    name = "untaint",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done; 1 failed; 2 bad usage, configuration or credentials; 3 not ready, or not ready in time; 4 run --once: a configured taint stays, because no rule for it selects the Node."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// The format of log lines. auto is text on a terminal and JSON otherwise.
    #[arg(
        long,
        global = true,
        env = "UNTAINT_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "auto"
    )]
    pub log_format: Format,
    /// The least important level to log: error, warn, info, debug or trace. With off, untaint logs nothing.
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
    /// Reads the command line and the environment. On an error, and for help, the program ends here.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|mut error| {
            for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg] {
                // The wrong value may be a URL with secrets, and the message may end up in the log of a pod.
                if let Some(ContextValue::String(value)) = error.get(kind) {
                    let value = without_secrets(value);
                    error.insert(kind, ContextValue::String(value));
                }
            }
            error.exit()
        })
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Node(NodeCommand),
    /// Validate and show configuration files.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the permissions, admission policies and pods that a cluster needs for a configuration.
    Manifests(ManifestsArgs),
    /// Print the version.
    Version,
}

/// The commands that run on nodes, which need Linux.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Watch the Node that this process runs on, and remove its start-up taints when their gates are open.
    Run(RunArgs),
    /// Wait until every gate has been open for stableFor. Does not use the API server.
    Wait(WaitArgs),
    /// Evaluate every gate once, and print its state and the reason. Does not use the API server.
    Check(ConfigOrGates),
    /// Copy this program into a directory, for hooks in containers whose image does not contain it.
    Install {
        /// An existing directory, for example a shared volume.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every error of the files, which are joined as with --config. If there is an error, the exit code is 2.
    Validate {
        /// Configuration files, directories with such files, or - for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print the effective configuration, including defaults.
    Show {
        /// Configuration files, directories with such files, or - for standard input.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print the JSON Schema of configuration files, for editors and other tools.
    Schema,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A configuration file, or a directory with such files. Can be repeated, or separated by colons. With --once, - reads
    /// standard input.
    #[arg(
        long,
        env = "UNTAINT_CONFIG",
        value_name = "FILE",
        value_delimiter = ':',
        conflicts_with = "taint",
        required_unless_present = "taint"
    )]
    pub config: Vec<PathBuf>,
    /// One taint to remove, instead of a configuration file. Without VALUE or EFFECT, any value or effect matches.
    #[arg(long, env = "UNTAINT_TAINT", value_name = "KEY[=VALUE][:EFFECT]", value_parser = parse_taint)]
    pub taint: Option<TaintMatcher>,
    #[command(flatten)]
    pub gates: GateArgs,
    /// The name of the Node that this process runs on. In a pod, set NODE_NAME from spec.nodeName. untaint never guesses it
    /// from the host's name.
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: Option<String>,
    /// A kubeconfig. Without it, untaint uses the pod's ServiceAccount.
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The address at which untaint serves /healthz, /readyz, /statusz and /metrics, or off [default: 127.0.0.1:9468, or
    /// off with --once].
    #[arg(long, env = "UNTAINT_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<Listen>,
    /// Exit with code 0 when every configured taint has been gone for --settle, or with code 4 if a configured taint is there
    /// and no rule selects this Node.
    #[arg(long, env = "UNTAINT_ONCE")]
    pub once: bool,
    /// How long the taints must be gone before --once exits.
    #[arg(long, env = "UNTAINT_SETTLE", value_name = "DURATION", default_value = "1s", value_parser = parse_duration, requires = "once")]
    pub settle: Duration,
    /// Give up after this time, with exit code 3.
    #[arg(long, env = "UNTAINT_TIMEOUT", value_name = "DURATION", value_parser = parse_duration, requires = "once")]
    pub timeout: Option<Duration>,
    /// Decide and report, but write nothing.
    #[arg(long, env = "UNTAINT_DRY_RUN")]
    pub dry_run: bool,
    /// Do not send dry runs to the API server to check whether an admission policy restricts untaint's account.
    #[arg(long, env = "UNTAINT_NO_POLICY_CHECK")]
    pub no_policy_check: bool,
}

impl RunArgs {
    /// The address to listen on, if any.
    pub fn listen(&self) -> Option<SocketAddr> {
        match self.listen {
            Some(Listen::On(address)) => Some(address),
            Some(Listen::Off) => None,
            None => (!self.once).then_some(DEFAULT_LISTEN),
        }
    }
}

#[derive(Debug, Args)]
pub struct WaitArgs {
    #[command(flatten)]
    pub gates: ConfigOrGates,
    /// Give up after this time, with exit code 3.
    #[arg(long, env = "UNTAINT_TIMEOUT", value_name = "DURATION", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

/// Configuration files, or gates instead of them.
#[derive(Debug, Args)]
pub struct ConfigOrGates {
    /// A configuration file, a directory with such files, or - for standard input. Can be repeated, or separated by colons.
    #[arg(long, env = "UNTAINT_CONFIG", value_name = "FILE", value_delimiter = ':', required_unless_present_any = ["cni", "http_get", "file"])]
    pub config: Vec<PathBuf>,
    #[command(flatten)]
    pub gates: GateArgs,
    /// The name of the Node that this process runs on, for the programs of exec gates.
    #[arg(long, env = "NODE_NAME", value_name = "NAME", value_parser = |name: &str| DNS_SUBDOMAIN.parse(name))]
    pub node_name: Option<String>,
}

/// Gates given as flags. All must be open.
#[derive(Debug, Default, Args)]
pub struct GateArgs {
    /// A gate that is open if /etc/cni/net.d has a CNI configuration. With NETWORK, it must be the one of this network.
    #[arg(long, env = "UNTAINT_CNI", value_name = "NETWORK", num_args = 0..=1, value_parser = |name: &str| NETWORK_NAME.parse(name), conflicts_with = "config")]
    pub cni: Option<Option<String>>,
    /// A gate that is open if this URL answers with 200-299: http://, https:// (untaint does not verify the certificate) or
    /// unix:SOCKET[:/PATH]. Can be repeated.
    #[arg(
        long,
        env = "UNTAINT_HTTP_GET",
        value_name = "URL",
        conflicts_with = "config"
    )]
    pub http_get: Vec<HttpGet>,
    /// A gate that is open if this file exists. Can be repeated.
    #[arg(long, env = "UNTAINT_FILE", value_name = "PATH", value_parser = |path: &str| ABSOLUTE_PATH.parse(path).map(PathBuf::from), conflicts_with = "config")]
    pub file: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    Off,
    /// With port 0, the kernel chooses a free port, and the log has it.
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
