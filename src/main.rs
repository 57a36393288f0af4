//! Starts the program: arguments, logs, cryptography, runtime, exit code.

use std::process::ExitCode;

use untaint::cli::{Cli, Exit};
use untaint::{commands, logging};

fn main() -> ExitCode {
    let cli = Cli::read();
    let _flush = logging::init(cli.log_format, cli.log_level);
    // kube, the HTTPS gate and the tests share one TLS provider. It must be installed first.
    #[cfg(target_os = "linux")]
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "failed to start");
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(commands::dispatch(cli.command));
    // Do not wait for threads: a file check may hang in the kernel.
    runtime.shutdown_background();
    exit.into()
}
