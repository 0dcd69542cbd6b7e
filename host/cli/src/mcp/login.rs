//! `nala-host mcp login`: somebody logs in at a server, in a browser.

use std::time::Duration;

use anyhow::Context;
use nala_egress::{AllowList, EgressMetrics, Networks, Owner};
use nala_manifest::{Application, McpEndpoint};
use nala_mcp::{Login, LoginError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::{Host, Url};

use crate::application::servers::{self, Logins};
use crate::application::{Chosen, dotenv::DotEnv};
use crate::args::LoginArgs;
use crate::console::{Console, Help};
use crate::services;

/// How long somebody has to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// Connections that a login takes at most.
const CONNECTIONS: usize = 64;

/// The longest request of a browser that is read, in bytes.
const LONGEST: u64 = 16 << 10;

/// Where the browser is sent in the end.
const PATH: &str = "/callback";

/// The variable with the secret of a registered client: on a command line all would see it.
const SECRET: &str = "NALA_MCP_CLIENT_SECRET";

/// Runs the verb.
///
/// # Errors
/// There is no such server, nobody logs in, or the tokens cannot be kept.
pub(super) fn main(args: &LoginArgs, console: Console) -> anyhow::Result<()> {
    let application = Application::read(&args.from, None)?;
    let McpEndpoint::Remote { url, .. } = servers::to_log_in(&application, &args.server)? else {
        anyhow::bail!("nobody logs in at a program");
    };
    let chosen = Chosen { variables: args.variable.clone(), ..Chosen::default() };
    let dotenv = DotEnv::beside(&args.from)?;
    let values = application.values(&|name| chosen.variable(name).or_else(|| dotenv.variable(name)))?;
    let url = values.resolve(url)?.expose().to_owned();
    let url = nala_manifest::check_server_url(&url).map_err(|why| anyhow::anyhow!("{url:?} is no address: {why}"))?;
    let tokens = Logins::beside(args.state_dir.as_deref()).of(&args.server, &url);
    let runtime = crate::tool::runtime()?;
    runtime.block_on(async {
        let listener =
            TcpListener::bind(("127.0.0.1", args.port)).await.context("the browser has nowhere to go back to")?;
        let port = listener.local_addr()?.port();
        let secret = std::env::var(SECRET).ok();
        let login = Login {
            redirect: format!("http://127.0.0.1:{port}{PATH}"),
            client_name: "Nala".to_owned(),
            registered: args.client_id.clone().map(|id| (id, secret)),
            metadata_url: args.client_metadata.clone(),
            scopes: args.scopes.clone(),
            challenge: None,
        };
        let egress = services::gate(Networks::default(), CONNECTIONS, EgressMetrics::default())?
            .egress(Owner::new("", args.server.as_str()), everywhere(&url)?);
        let visit = |page: Url| async move {
            check_page(&page)?;
            let state = page.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
            console.say(&format!("Log in here: {page}"));
            if !args.no_browser {
                open(&page);
            }
            let back = tokio::time::timeout(PATIENCE, returned(listener, state.as_deref())).await;
            back.map_err(|_| format!("nobody logged in within {PATIENCE:?}"))?.map_err(|error| error.to_string())
        };
        nala_mcp::login(&url, &egress, login, &tokens, visit).await.map_err(explain)
    })?;
    console.say(&format!("Logged in at `{}`; `nala-host up` uses it from its next start on.", args.server));
    Ok(())
}

fn explain(error: LoginError) -> anyhow::Error {
    let help = match &error {
        LoginError::Browser(_) => "run it again, and follow the address to its end",
        LoginError::Server(_) => "look whether the address in the manifest is that of an MCP server",
        _ => {
            "use --client-id if the server does not register clients itself, with its secret, if it has one, in \
              NALA_MCP_CLIENT_SECRET"
        }
    };
    Help { what: error.to_string(), help: help.to_owned() }.into()
}

/// Whoever logs in by hand decides where; what is on this machine counts only if the server
/// is.
fn everywhere(url: &Url) -> anyhow::Result<AllowList> {
    let mut hosts = vec![servers::origin(url), "https://*".to_owned()];
    if is_of_this_machine(url) {
        hosts.extend(["http://localhost:*", "http://127.0.0.1:*"].map(str::to_owned));
    }
    Ok(AllowList::parse(&hosts)?)
}

fn is_of_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A server says where its page is. What is no page would have something else than a browser
/// do what the server wants.
fn check_page(page: &Url) -> Result<(), String> {
    let is_page = match page.scheme() {
        "https" => true,
        "http" => is_of_this_machine(page),
        _ => false,
    };
    match is_page {
        true => Ok(()),
        false => Err(format!("the server wants a browser to open what is no page by https: {:.200}", page.as_str())),
    }
}

/// Has a browser show a page, where there is one.
fn open(page: &Url) {
    let mut command = std::process::Command::new("xdg-open");
    command.arg(page.as_str()).stdin(std::process::Stdio::null());
    let quiet = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    if let Ok(mut browser) = quiet.spawn() {
        std::thread::spawn(move || browser.wait());
    }
}

/// The address that a browser is sent to in the end. What else comes is sent away, such as
/// what pages elsewhere have a browser ask for, which do not know the `state`.
async fn returned(listener: TcpListener, state: Option<&str>) -> std::io::Result<String> {
    let port = listener.local_addr()?.port();
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Some(target) = target(&mut stream).await else { continue };
        let is_it = is_return(&target, state);
        let (status, text) = match is_it {
            true if target.contains("code=") => ("200 OK", "You are logged in. This page can be closed."),
            true => ("400 Bad Request", "The server did not let you in. The terminal says more."),
            false => ("404 Not Found", "This is not the page that you are looking for."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}\n",
            text.len() + 1
        );
        // A browser that is gone has seen enough.
        let _gone = stream.write_all(answer.as_bytes()).await;
        if is_it {
            return Ok(format!("http://127.0.0.1:{port}{target}"));
        }
    }
}

/// Whether a target is that of a browser which has been where it was sent.
fn is_return(target: &str, state: Option<&str>) -> bool {
    let Some(query) = target.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('?')) else { return false };
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    state.is_none_or(|state| pairs.any(|(name, value)| name == "state" && value == state))
}

/// What a browser asks for. A connection on which nothing comes holds up no other for long.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LONGEST));
    let reading = async {
        reader.read_line(&mut line).await.ok()?;
        let target = line.strip_prefix("GET ")?.split(' ').next()?.to_owned();
        loop {
            let mut rest = String::new();
            if reader.read_line(&mut rest).await.ok()? <= 2 {
                return Some(target);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), reading).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_are_opened() {
        for good in ["https://auth.example/authorize?x=y", "http://127.0.0.1:8080/a", "http://localhost/a"] {
            assert!(check_page(&good.parse().unwrap()).is_ok(), "{good}");
        }
        for bad in
            ["http://auth.example/a", "file:///etc/passwd", "smb://x/y", "vscode://x", "http://127.evil.example/"]
        {
            assert!(check_page(&bad.parse().unwrap()).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn the_browser_comes_back_and_others_do_not_matter() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let waiting = tokio::spawn(returned(listener, Some("b")));
        for target in ["/favicon.ico", "/callback", "/callback?code=x&state=forged", "/callback?code=a&state=b"] {
            let mut browser = TcpStream::connect(address).await.unwrap();
            browser.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            browser.read_to_string(&mut answer).await.unwrap();
            let expected = if target.ends_with("=b") { "HTTP/1.1 200" } else { "HTTP/1.1 404" };
            assert!(answer.starts_with(expected), "{target}: {answer}");
        }
        let back = waiting.await.unwrap().unwrap();
        assert_eq!(back, format!("http://{address}/callback?code=a&state=b"));
    }
}
