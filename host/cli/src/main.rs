//! The binary `nala-host`: one module a verb, and the glue between the rooms.

mod answer;
mod application;
mod args;
mod build;
mod builtin;
mod check;
mod classes;
mod completions;
mod component;
mod console;
mod credentials;
mod deploy;
mod doctor;
mod envelope;
mod fetching;
mod kept;
mod key;
mod logging;
mod mcp;
mod model;
mod models;
mod new;
mod program;
mod ready;
mod registry;
mod run;
mod serve;
mod services;
mod signals;
mod tenancy;
mod tool;
mod up;
mod version;
mod wall;
mod watch;

use std::process::ExitCode;

use crate::args::{Cli, Verb};
use crate::console::Console;

fn main() -> ExitCode {
    // Wrong usage ends here, with status 2.
    let cli = Cli::read();
    let console = Console::new(cli.log.log_format);
    logging::start(&cli.log, console);
    match dispatch(cli, console) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads standard output, `head` for example, has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            console.error(&error);
            ExitCode::FAILURE
        }
    }
}

fn dispatch(cli: Cli, console: Console) -> anyhow::Result<()> {
    match cli.verb {
        Verb::Run(args) => run::main(&args, console),
        Verb::Up(args) => up::main(&args, console),
        Verb::New(args) => new::main(&args, console),
        Verb::Build(args) => build::main(&args, console),
        Verb::Check(args) => check::main(&args, console),
        Verb::Push(args) => registry::push(&args, console),
        Verb::Pull(args) => registry::pull(&args, console),
        Verb::Key(args) => key::main(&args),
        Verb::Model(args) => model::main(&args, console),
        Verb::Tool(args) => tool::main(&args, console),
        Verb::Mcp(args) => mcp::main(&args, console),
        Verb::Doctor(args) => doctor::main(&args),
        Verb::Completions(args) => completions::main(&args),
        Verb::Compile(args) => deploy::compile_in_jail(&args),
        Verb::Compose(args) => deploy::compose_in_jail(&args),
        Verb::Keep(args) => classes::keep(&args),
        Verb::KeepServers => application::servers::keep(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
