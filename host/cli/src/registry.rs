//! `nala-host push` and `nala-host pull`: components and OCI registries.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use nala_fetch::Wanted;
use nala_oci::{Client, Credentials, Reach, Transport};
use nala_wasm::MAX_COMPONENT_BYTES;
use tempfile::NamedTempFile;

use crate::args::{PullArgs, PushArgs};
use crate::component;
use crate::console::{Console, Help};
use crate::fetching::{self, LIMIT, Moving};

/// The moment that builds are to take for now, in seconds since 1970.
///
/// Source: <https://reproducible-builds.org/specs/source-date-epoch/>.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// Stores a component.
///
/// # Errors
/// The file is no component, or whatever keeps it from being stored.
pub(crate) fn push(args: &PushArgs, console: Console) -> anyhow::Result<()> {
    let (bytes, changed) = read(&args.component)?;
    let created = created(changed)?;
    let reference = &args.reference;
    let transport = match args.plain_http.iter().any(|registry| registry == reference.registry()) {
        true => Transport::PlainText,
        false => Transport::Automatic,
    };
    let credentials = Credentials::of_this_process(reference)?;
    let client = Client::new(transport, LIMIT, Reach::Anybody)?;
    let annotations = args.annotation.iter().cloned().collect();
    let mut moving = Moving::new(format!("Pushing {reference}"), console);
    let mut progress = |done, total| moving.reached(done, total);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("pushing")?;
    let pushing = client.push_showing(reference, bytes, &annotations, created, &credentials, &mut progress);
    let pushed = runtime.block_on(pushing);
    moving.end();
    let pinned = reference.pinned(&pushed?);
    console.say(&format!("Pushed {}; whoever wants this very component names its digest:", args.component.display()));
    writeln!(io::stdout().lock(), "{pinned}")?;
    Ok(())
}

/// The bytes of a component, and when its file was changed.
fn read(path: &Path) -> anyhow::Result<(Vec<u8>, SystemTime)> {
    component::refuse_special(path)?;
    let cannot = || format!("{} cannot be read", path.display());
    let file = File::open(path).with_context(cannot)?;
    let changed = file.metadata().and_then(|meta| meta.modified()).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).with_context(cannot)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_COMPONENT_BYTES) {
        let what = format!("{} has more than {MAX_COMPONENT_BYTES} bytes", path.display());
        return Err(Help { what, help: "no host serves a component of that size".to_owned() }.into());
    }
    Ok((bytes, changed))
}

/// The moment that is noted.
fn created(changed: SystemTime) -> anyhow::Result<SystemTime> {
    let Some(text) = std::env::var_os(EPOCH) else { return Ok(changed) };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let moment = seconds.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(seconds));
    // Years of more than four digits cannot be written in the artifact.
    let moment = moment.filter(|_| seconds.is_some_and(|seconds| seconds.as_secs() < 253_402_300_800));
    moment.with_context(|| format!("{EPOCH} is `{}`, and no number of seconds since 1970", text.display()))
}

/// Fetches a component into a file.
///
/// # Errors
/// Whatever keeps it from being fetched or written.
pub(crate) fn pull(args: &PullArgs, console: Console) -> anyhow::Result<()> {
    let reference = &args.reference;
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.wasm", reference.name())));
    // Before anything is fetched.
    if output.exists() && !args.force {
        let what = format!("{} is there already", output.display());
        return Err(Help { what, help: "name another file by -o, or give --force to replace it".to_owned() }.into());
    }
    let fetcher = fetching::fetcher(&args.fetch)?;
    let wanted = Wanted::Reference(reference.clone());
    let fetched = fetching::fetch(&fetcher, &wanted, &reference.to_string(), console)?;
    let cannot = || format!("{} cannot be written", output.display());
    let copy = copy(&fetched.path, &output).with_context(cannot)?;
    // As a whole or not at all.
    let kept = if args.force { copy.persist(&output) } else { copy.persist_noclobber(&output) };
    kept.map_err(|error| error.error).with_context(cannot)?;
    console.say(&format!("{} is a component of {}", output.display(), fetched.component));
    let pinned = fetched.pinned.unwrap_or_else(|| reference.clone());
    writeln!(io::stdout().lock(), "{pinned}")?;
    Ok(())
}

/// A copy of a file, beside where it is to be, and as readable as other files that are made.
fn copy(from: &Path, to: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let readable = Permissions::from_mode(0o666);
    let mut copy = builder.prefix(".nala-").permissions(readable).tempfile_in(crate::wall::folder(to))?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    Ok(copy)
}
