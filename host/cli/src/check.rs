//! `nala-host check`: all that is wrong with an application, without running it.

mod application;
mod finding;
mod hosts;
mod imports;
mod operator;

use std::io::Write;

use nala_manifest::Severity;
use serde_json::json;

use self::finding::Finding;
use crate::args::{CheckArgs, OutputFormat};
use crate::console::{Console, Help};

/// Runs the verb.
///
/// # Errors
/// Something is wrong, which is printed on standard output, or that cannot be written.
pub(crate) fn main(args: &CheckArgs, console: Console) -> anyhow::Result<()> {
    let mut found = application::check(args, console)?;
    if let Some(config) = &args.config {
        found.extend(operator::check(config));
    }
    let count = |severity| found.iter().filter(|one| one.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let files: Vec<String> =
        std::iter::once(&args.manifest).chain(&args.config).map(|path| path.display().to_string()).collect();
    let files = files.join(" and ");
    let mut out = std::io::stdout().lock();
    match args.output.format {
        OutputFormat::Json => {
            let report = json!({ "sound": errors == 0, "errors": errors, "warnings": warnings, "diagnostics": found });
            writeln!(out, "{report:#}")?;
        }
        OutputFormat::Text => {
            for one in &found {
                writeln!(out, "{one}\n")?;
            }
            if errors == 0 {
                writeln!(out, "{files}: no errors, {}", counted(warnings, "warning"))?;
            }
        }
    }
    if errors == 0 {
        return Ok(());
    }
    let what = format!("{files}: {}, {}", counted(errors, "error"), counted(warnings, "warning"));
    Err(Help { what, help: "standard output says where each is, and what to write instead".to_owned() }.into())
}

fn counted(number: usize, thing: &str) -> String {
    match number {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}"),
        n => format!("{n} {thing}s"),
    }
}
