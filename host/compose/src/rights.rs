//! Which right each interface gives, and what answers a dependency that does not
//! inherit it. `docs/capabilities.md` shows the same table.

use nala_manifest::dependencies::{Configuration, Inheritance};

/// What an interface gives to whoever imports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Nothing that could be withheld: whatever it works on has to be handed over.
    None,
    /// What a key of the manifest grants.
    Of(Configuration, Denial),
    /// Nobody knows, so only who inherits everything has it.
    Unknown,
}

/// How a dependency is denied an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// By the answers of these functions; the others need a handle that nobody can
    /// have then, and trap.
    Answers(&'static [(&'static str, Answer)]),
    /// The interface has no word for it, so the dependency is refused.
    Refusal,
}

/// What a function answers whoever is denied it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// No error, and nothing: an empty list, no option, an empty string.
    Nothing,
    /// The error of this name; if it takes a text, it says why.
    Error(&'static str),
}

/// Some interfaces of a package.
struct Entry {
    package: &'static str,
    /// `MAJOR.MINOR` of a release, or the whole version of a draft.
    versions: &'static [&'static str],
    interfaces: Interfaces,
    right: Right,
}

enum Interfaces {
    All,
    These(&'static [&'static str]),
}

use Interfaces::{All, These};

const BOTH: &[&str] = &["0.2", "0.3"];
const P2: &[&str] = &["0.2"];
const P3: &[&str] = &["0.3"];

const fn denied(configuration: Configuration, answers: &'static [(&'static str, Answer)]) -> Right {
    Right::Of(configuration, Denial::Answers(answers))
}

const fn refused(configuration: Configuration) -> Right {
    Right::Of(configuration, Denial::Refusal)
}

const REQUEST_DENIED: Answer = Answer::Error("HTTP-request-denied");
const ACCESS_DENIED: Answer = Answer::Error("access-denied");
const NO_NAMES: Answer = Answer::Error("permanent-resolver-failure");

/// The table. Deny by default: what does not stand here is [`Right::Unknown`].
#[rustfmt::skip]
const RIGHTS: &[Entry] = &[
    // What gives no right.
    Entry { package: "wasi:io", versions: P2, interfaces: All, right: Right::None },
    Entry { package: "wasi:clocks", versions: BOTH, interfaces: All, right: Right::None },
    Entry { package: "wasi:random", versions: BOTH, interfaces: All, right: Right::None },
    Entry { package: "wasi:logging", versions: &["0.1.0-draft"], interfaces: All, right: Right::None },
    Entry {
        package: "wasi:cli", versions: BOTH, right: Right::None,
        interfaces: These(&[
            "exit", "stderr", "stdin", "stdout", "terminal-input", "terminal-output", "terminal-stderr",
            "terminal-stdin", "terminal-stdout", "types",
        ]),
    },
    // Files, requests and sockets are handles, which come from the interfaces below.
    Entry { package: "wasi:filesystem", versions: BOTH, interfaces: These(&["types"]), right: Right::None },
    Entry { package: "wasi:http", versions: BOTH, interfaces: These(&["types"]), right: Right::None },
    Entry {
        package: "wasi:sockets", versions: P2, right: Right::None,
        interfaces: These(&["instance-network", "network", "tcp", "udp"]),
    },
    // What is granted by the manifest.
    Entry {
        package: "wasi:cli", versions: BOTH, interfaces: These(&["environment"]),
        right: denied(Configuration::Environment, &[
            ("get-environment", Answer::Nothing),
            ("get-arguments", Answer::Nothing),
            ("initial-cwd", Answer::Nothing),
            ("get-initial-cwd", Answer::Nothing),
        ]),
    },
    Entry {
        package: "wasi:filesystem", versions: BOTH, interfaces: These(&["preopens"]),
        right: denied(Configuration::Files, &[("get-directories", Answer::Nothing)]),
    },
    Entry {
        package: "wasi:http", versions: P2, interfaces: These(&["outgoing-handler"]),
        right: denied(Configuration::AllowedOutboundHosts, &[("handle", REQUEST_DENIED)]),
    },
    Entry {
        package: "wasi:http", versions: P3, interfaces: These(&["client"]),
        right: denied(Configuration::AllowedOutboundHosts, &[("send", REQUEST_DENIED)]),
    },
    Entry {
        package: "wasi:sockets", versions: P2, interfaces: These(&["tcp-create-socket", "udp-create-socket"]),
        right: denied(Configuration::AllowedOutboundHosts, &[
            ("create-tcp-socket", ACCESS_DENIED),
            ("create-udp-socket", ACCESS_DENIED),
        ]),
    },
    Entry {
        package: "wasi:sockets", versions: P3, interfaces: These(&["types"]),
        right: denied(Configuration::AllowedOutboundHosts, &[
            ("[static]tcp-socket.create", ACCESS_DENIED),
            ("[static]udp-socket.create", ACCESS_DENIED),
        ]),
    },
    Entry {
        package: "wasi:sockets", versions: BOTH, interfaces: These(&["ip-name-lookup"]),
        right: denied(Configuration::AllowedOutboundHosts, &[("resolve-addresses", NO_NAMES)]),
    },
    Entry {
        package: "wasi:keyvalue", versions: &["0.2.0-draft2"], interfaces: These(&["store", "atomics", "batch"]),
        right: denied(Configuration::KeyValueStores, &[("open", ACCESS_DENIED)]),
    },
    Entry {
        package: "fermyon:spin", versions: &["2.0"], interfaces: These(&["key-value"]),
        right: denied(Configuration::KeyValueStores, &[("[static]store.open", ACCESS_DENIED)]),
    },
    Entry {
        package: "spin:key-value", versions: &["3.0"], interfaces: All,
        right: denied(Configuration::KeyValueStores, &[("[static]store.open", ACCESS_DENIED)]),
    },
    Entry {
        package: "wasi:config", versions: &["0.2.0-rc.1", "0.2.0-draft-2024-09-27"], interfaces: These(&["store"]),
        right: denied(Configuration::Variables, &[("get", Answer::Nothing), ("get-all", Answer::Nothing)]),
    },
    Entry {
        package: "fermyon:spin", versions: &["2.0"], interfaces: These(&["variables"]),
        right: denied(Configuration::Variables, &[("get", Answer::Error("undefined"))]),
    },
    Entry {
        package: "spin:variables", versions: &["3.0"], interfaces: All,
        right: denied(Configuration::Variables, &[("get", Answer::Error("undefined"))]),
    },
    Entry {
        package: "fermyon:spin", versions: &[""], interfaces: These(&["config"]),
        right: denied(Configuration::Variables, &[("get-config", Answer::Error("provider"))]),
    },
    // A component without models is refused as well, rather than told so when it asks.
    Entry { package: "nala:llm", versions: &["0.1"], interfaces: All, right: refused(Configuration::AiModels) },
    Entry { package: "nala:chat", versions: &["0.1"], interfaces: All, right: refused(Configuration::AiModels) },
    Entry { package: "nala:tools", versions: &["0.1"], interfaces: These(&["types", "report"]), right: Right::None },
    Entry {
        package: "wasi:nn", versions: &["0.2.0-rc-2024-10-28"], interfaces: All,
        right: refused(Configuration::AiModels),
    },
    Entry {
        package: "fermyon:spin", versions: &["2.0"], interfaces: These(&["llm"]),
        right: refused(Configuration::AiModels),
    },
];

impl Right {
    /// What an import gives, by its name.
    pub(crate) fn of(import: &str) -> Self {
        let (path, version) = import.split_once('@').unwrap_or((import, ""));
        let Some((package, interface)) = path.split_once('/') else { return Self::Unknown };
        let is_it = |entry: &&Entry| {
            entry.package == package
                && entry.versions.iter().any(|known| is_of(version, known))
                && match entry.interfaces {
                    All => true,
                    These(these) => these.contains(&interface),
                }
        };
        RIGHTS.iter().find(is_it).map_or(Self::Unknown, |entry| entry.right)
    }
}

/// Whether a version is the known one, or a release of the known line.
fn is_of(version: &str, known: &str) -> bool {
    let patch = version.strip_prefix(known).and_then(|rest| rest.strip_prefix('.'));
    let is_release = |patch: &str| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
    version == known || !known.is_empty() && patch.is_some_and(is_release)
}

/// Whether who inherits this has what a key grants.
pub(crate) fn has(inherits: &Inheritance, configuration: Configuration) -> bool {
    match inherits {
        Inheritance::All => true,
        Inheritance::Only(these) => these.contains(&configuration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_gives_what_the_table_says_and_others_are_unknown() {
        for free in
            ["wasi:io/streams@0.2.0", "wasi:http/types@0.3.0", "wasi:cli/stdout@0.2.12", "wasi:sockets/tcp@0.2.3"]
        {
            assert_eq!(Right::of(free), Right::None, "{free}");
        }
        for (import, key) in [
            ("wasi:cli/environment@0.2.6", Configuration::Environment),
            ("wasi:filesystem/preopens@0.3.0", Configuration::Files),
            ("wasi:http/outgoing-handler@0.2.12", Configuration::AllowedOutboundHosts),
            ("wasi:sockets/types@0.3.1", Configuration::AllowedOutboundHosts),
            ("fermyon:spin/key-value@2.0.0", Configuration::KeyValueStores),
            ("fermyon:spin/config", Configuration::Variables),
            ("nala:llm/session@0.1.0", Configuration::AiModels),
            ("fermyon:spin/llm@2.0.0", Configuration::AiModels),
        ] {
            assert!(matches!(Right::of(import), Right::Of(of, _) if of == key), "{import}");
        }
        // Another version may give another right.
        for unknown in [
            "wasi:io/streams@0.3.0",
            "wasi:http/types@0.4.0",
            "wasi:http/types@0.20.0",
            "wasi:http/types@0.2.0-rc-2023-11-10",
            "wasi:http/types",
            "wasi:sockets/tcp@0.3.0",
            "wasi:cli/run@0.2.0",
            "fermyon:spin/config@2.0.0",
            "fermyon:spin/redis@2.0.0",
            // Granted by a key that no dependency can name.
            "nala:machine/telemetry@0.1.0",
            "x:y/z",
            "plain",
            "",
        ] {
            assert_eq!(Right::of(unknown), Right::Unknown, "{unknown}");
        }
    }

    #[test]
    fn the_documentation_has_every_key_and_interface_that_is_denied() {
        let text = include_str!("../../../docs/capabilities.md");
        for entry in RIGHTS {
            let Right::Of(configuration, denial) = entry.right else { continue };
            let key = format!("`{configuration}`");
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("| {key}"))).collect();
            assert!(!lines.is_empty(), "no row of {key}");
            assert!(lines.iter().any(|line| line.contains(entry.package)), "{key} has no {}", entry.package);
            if let Denial::Answers(answers) = denial {
                for (_, answer) in answers {
                    let Answer::Error(error) = answer else { continue };
                    assert!(lines.iter().any(|line| line.contains(error)), "{key} has no `{error}`");
                }
            }
        }
    }
}
