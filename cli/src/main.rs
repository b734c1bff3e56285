//! `kubectl-kruise`, which kubectl runs as `kubectl kruise`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kruise_cli::root::main(std::env::args().collect())
}
