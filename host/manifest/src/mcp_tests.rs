use std::path::Path;

use crate::{Application, McpAccess, McpEndpoint};

/// A manifest with these servers and this of a component's tools.
fn manifest(servers: &str, tools: &str) -> String {
    format!(
        "spin_manifest_version = 2\n\
         [application]\nname = \"a\"\n\
         [variables]\nkey = {{ default = \"k\", secret = true }}\n\
         [[trigger.http]]\nroute = \"/...\"\ncomponent = \"agent\"\n\
         [component.agent]\nsource = \"agent.wasm\"\n\
         [component.agent.tool.nala]\ntools = {tools}\n\
         [component.clock]\nsource = \"clock.wasm\"\n\
         {servers}"
    )
}

fn read(servers: &str, tools: &str) -> Result<Application, String> {
    Application::parse(&manifest(servers, tools), Path::new("/app"), None).map_err(|error| error.to_string())
}

#[test]
fn servers_are_read_and_named_like_components() {
    let servers = r#"
        [application.tool.nala.mcp.weather]
        url = "https://weather.example/mcp"
        token = "{{ key }}"
        headers = { X-Team = "blue" }
        tools = ["forecast"]
        timeout = "20s"

        [application.tool.nala.mcp.tickets]
        url = "https://tickets.example/mcp"
        oauth = { client_id = "nala", client_secret = "{{ key }}", scopes = ["read"] }

        [application.tool.nala.mcp.mail]
        url = "https://mail.example/mcp"
        oauth = "login"

        [application.tool.nala.mcp.docs]
        command = "./serve"
        args = ["--key", "{{ key }}"]
        environment = { MODE = "quiet" }
    "#;
    let application = read(servers, r#"["clock", "weather", "docs"]"#).unwrap();
    let agent = application.component("agent").unwrap();
    assert_eq!(
        (agent.tools.as_slice(), agent.mcp.as_slice()),
        (&["clock".to_owned()][..], &["weather".to_owned(), "docs".to_owned()][..])
    );
    assert_eq!(application.mcp.len(), 4);
    let weather = &application.mcp["weather"];
    assert_eq!(weather.tools.as_deref(), Some(&["forecast".to_owned()][..]));
    assert_eq!(weather.timeout, Some(std::time::Duration::from_secs(20)));
    let McpEndpoint::Remote { access: McpAccess::Token(_), headers, .. } = &weather.endpoint else {
        panic!("{weather:?}")
    };
    assert!(headers.contains_key("X-Team"));
    let McpEndpoint::Remote { access: McpAccess::Client { hosts, .. }, .. } = &application.mcp["tickets"].endpoint
    else {
        panic!("a client")
    };
    assert!(hosts.is_empty(), "nowhere else is the secret sent");
    let McpEndpoint::Program { command, folder, .. } = &application.mcp["docs"].endpoint else { panic!("a program") };
    assert_eq!((command.as_str(), folder.as_path()), ("/app/./serve", Path::new("/app")));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let one = |lines: &str| format!("[application.tool.nala.mcp.one]\n{lines}\n");
    for (servers, tools, said) in [
        (one(""), "[]", "the MCP server `one` is nowhere"),
        (one("url = \"ftp://a\""), "[]", "neither http nor https"),
        (one("url = \"https://me:pw@a.example/\""), "[]", "seen by everyone"),
        (one("url = \"nowhere\""), "[]", "no address of a server"),
        (one("url = \"https://a.example\"\ncommand = \"x\""), "[]", "not both"),
        (one("url = \"https://a.example\"\ntoken = \"{{ unknown }}\""), "[]", "no variable `unknown`"),
        (one("url = \"https://a.example\"\ntoken = \"a\"\noauth = \"login\""), "[]", "not both"),
        (one("url = \"https://a.example\"\noauth = \"browser\""), "[]", "no way to be authorized"),
        (one("url = \"https://a.example\"\nheaders = { Mcp-Session-Id = \"x\" }"), "[]", "cannot be set"),
        (one("url = \"https://a.example\"\nargs = []"), "[]", "args"),
        (one("command = \"\""), "[]", "cannot be empty"),
        (one("command = \"a\"\ntimeout = \"soon\""), "[]", "is no time"),
        (one("command = \"a\"").replace("one", "One_"), "[]", "cannot be the name of an MCP server"),
        (one("command = \"a\"").replace("one", "clock"), "[]", "a component is named `clock` as well"),
        (one("command = \"a\""), "[\"two\"]", "`two`"),
    ] {
        let error = read(&servers, tools).unwrap_err();
        assert!(error.contains(said), "{servers}: {error}");
    }
}
