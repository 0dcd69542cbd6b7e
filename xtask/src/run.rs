//! `cargo xtask run`: from a checkout to a served model.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::say;
use crate::repo::Repo;
use crate::setup::{self, Purpose};

/// Where the model is served.
const LISTEN: &str = "127.0.0.1:3000";
/// Where probes and metrics are.
const ADMIN_LISTEN: &str = "127.0.0.1:3001";

/// Arguments of `run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For `nala-host up`; they win over --listen 127.0.0.1:3000 and the others
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Arguments of the hidden verb `announce`.
#[derive(clap::Args)]
pub(crate) struct AnnounceArgs {
    /// Address that will answer
    address: String,
    /// The server's process, to give up when it ends
    pid: u32,
}

/// Runs the verb: this process becomes the server, so that signals reach it.
///
/// # Errors
/// Set-up or build failed, or the server cannot be started.
pub(crate) fn main(repo: &Repo, args: &Args) -> Result<()> {
    setup::prepare(repo, Purpose::Run)?;
    crate::build::main(repo)?;
    let address = option(&args.rest, "--listen").unwrap_or(LISTEN);
    announce_later(address)?;
    let mut command = host_up(repo, &args.rest);
    say(&format!("starting {}", crate::process::show(&command)));
    // Returns only if it failed.
    let error = command.exec();
    Err(error).with_context(|| format!("{} cannot be run", repo.host_binary().display()))
}

/// `nala-host up` with our defaults for what is not given.
pub(crate) fn host_up(repo: &Repo, rest: &[String]) -> Command {
    let mut command = Command::new(repo.host_binary());
    command.current_dir(repo.root()).arg("up");
    let positional = rest.first().is_some_and(|first| !first.starts_with('-'));
    if !positional {
        command.arg("spin.toml");
    }
    command.args(rest);
    let model = nala_models::DEFAULT_MODEL;
    for (name, default) in [("--model", model), ("--listen", LISTEN), ("--admin-listen", ADMIN_LISTEN)] {
        if option(rest, name).is_none() {
            command.args([name, default]);
        }
    }
    command
}

/// The value of an option among arguments, `--name value` or `--name=value`.
fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == name {
            return rest.next().map(String::as_str);
        }
        if let Some(value) = argument.strip_prefix(name).and_then(|tail| tail.strip_prefix('=')) {
            return Some(value);
        }
    }
    None
}

/// Starts `announce` in the background, with init as its parent: the server
/// that this process becomes would not collect it.
fn announce_later(address: &str) -> Result<()> {
    let program = std::env::current_exe().context("the path of xtask is unknown")?;
    let status = Command::new("sh")
        .args(["-c", "\"$0\" announce \"$1\" \"$2\" &"])
        .arg(program)
        .args([address, &std::process::id().to_string()])
        .status()
        .context("sh did not start")?;
    if !status.success() {
        bail!("sh could not start the announcement ({status})");
    }
    Ok(())
}

/// Waits until the server answers and prints a command to ask it.
///
/// Ends in silence when the server ends: what it printed tells why.
pub(crate) fn announce(args: &AnnounceArgs) -> Result<()> {
    let address = reachable(&args.address);
    while !answers(&address) {
        if !Path::new(&format!("/proc/{}", args.pid)).exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    // The server's own last line may be on its way.
    std::thread::sleep(Duration::from_millis(200));
    eprintln!("\nAsk it something:\n\n{}\n", curl_line(&address));
    Ok(())
}

/// Where a client on this machine reaches what listens on `address`.
fn reachable(address: &str) -> String {
    match address.rsplit_once(':') {
        Some(("0.0.0.0", port)) => format!("127.0.0.1:{port}"),
        Some(("[::]", port)) => format!("[::1]:{port}"),
        _ => address.to_owned(),
    }
}

fn curl_line(address: &str) -> String {
    let model = nala_models::DEFAULT_MODEL;
    format!(
        "curl http://{address}/v1/chat/completions -H 'content-type: application/json' \
         -d '{{\"model\": \"{model}\", \"messages\": [{{\"role\": \"user\", \
         \"content\": \"What is the capital of France? Answer with one word.\"}}], \
         \"temperature\": 0}}'"
    )
}

/// Whether `GET /v1/models` is answered with 200.
pub(crate) fn answers(address: &str) -> bool {
    status_of(address, "/v1/models").is_ok_and(|line| line.contains(" 200"))
}

/// The status line of an answer.
fn status_of(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn arguments(rest: &str) -> Vec<String> {
        let command = host_up(&Repo::at(Path::new("/repo")), &words(rest));
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn options_are_found_in_both_forms() {
        assert_eq!(option(&words("--listen 1:2 --model m"), "--model"), Some("m"));
        assert_eq!(option(&words("--listen=1:2"), "--listen"), Some("1:2"));
        assert_eq!(option(&words("--listening 1:2"), "--listen"), None);
        assert_eq!(option(&words("--listen"), "--listen"), None);
    }

    #[test]
    fn given_arguments_win_over_defaults() {
        assert_eq!(
            arguments(""),
            words(
                "up spin.toml --model smollm2-135m-instruct-q4_1 --listen 127.0.0.1:3000 \
                 --admin-listen 127.0.0.1:3001"
            )
        );
        let given = arguments("app/spin.toml --listen=0.0.0.0:80");
        assert_eq!(given.get(1).unwrap(), "app/spin.toml");
        assert!(!given.contains(&"127.0.0.1:3000".to_owned()));
        assert!(given.contains(&"127.0.0.1:3001".to_owned()));
    }

    #[test]
    fn the_curl_line_names_an_address_that_can_be_reached() {
        assert_eq!(reachable("0.0.0.0:8080"), "127.0.0.1:8080");
        assert_eq!(reachable("[::]:8080"), "[::1]:8080");
        assert_eq!(reachable("10.0.0.1:80"), "10.0.0.1:80");
    }

    #[test]
    fn the_curl_line_carries_json() {
        let line = curl_line("127.0.0.1:3000");
        let body = line.split('\'').nth(3).unwrap();
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(value.get("model").unwrap(), nala_models::DEFAULT_MODEL);
    }

    #[test]
    fn only_an_answer_of_200_counts() {
        let serve = |answer: &'static str| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let answered = answers(&address);
            server.join().unwrap();
            answered
        };
        assert!(serve("HTTP/1.1 200 OK\r\n\r\n{}"));
        assert!(!serve("HTTP/1.1 503 Service Unavailable\r\n\r\n"));
        assert!(!answers("127.0.0.1:1"));
    }
}
