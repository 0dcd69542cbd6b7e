//! The last lines of a start: where it serves, and a command that works.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::console::Console;
use crate::serve::Place;

/// A request to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// OpenAI's chat completions.
    Chat {
        /// The model's name.
        model: String,
    },
    /// A question as the body of a POST to `/`.
    Ask,
    /// A GET.
    Get {
        /// The path, and nothing that a shell would read.
        path: String,
    },
}

impl Sample {
    fn curl(&self, base: &str) -> String {
        let question = "What is the capital of France? Answer with one word.";
        match self {
            Self::Chat { model } => {
                let body = serde_json::json!({
                    "model": model,
                    "messages": [{"role": "user", "content": question}],
                    "temperature": 0,
                });
                // A quote in a file's name must not end the shell's word.
                let body = body.to_string().replace('\'', r"'\''");
                format!("curl {base}/v1/chat/completions -H 'content-type: application/json' -d '{body}'")
            }
            Self::Ask => format!("curl -N {base}/ -d '{question}'"),
            Self::Get { path } => format!("curl {base}{path}"),
        }
    }
}

/// Says what is served and where.
pub(crate) fn announce(console: Console, what: &str, place: &Place, sample: &Sample) {
    let (requests, admin) = match place {
        Place::Listening { requests, admin } => (*requests, *admin),
        Place::Behind(class) => return console.say(&format!("Serving {what} to the class {class}")),
    };
    console.say(&format!("Serving {what} on http://{requests}"));
    if let Some(admin) = admin {
        console.say(&format!("Admin on http://{admin} (/livez, /readyz, /metrics, /v1)"));
    }
    let curl = sample.curl(&format!("http://{}", reachable(requests)));
    match console {
        Console::Json => console.say(&curl),
        Console::Terminal | Console::Plain => console.say(&format!("\nTry it:\n  {curl}\n")),
    }
}

/// Where a client on this machine reaches what listens on every interface.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chat_sample_carries_json_whatever_the_model_is_called() {
        let curl = Sample::Chat { model: "it's".into() }.curl("http://h");
        let body = curl.split_once("-d '").unwrap().1.strip_suffix('\'').unwrap().replace(r"'\''", "'");
        let json: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(json["model"], "it's");
    }

    #[test]
    fn every_interface_is_reached_by_loopback() {
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(reachable("10.0.0.1:80".parse().unwrap()).to_string(), "10.0.0.1:80");
    }
}
