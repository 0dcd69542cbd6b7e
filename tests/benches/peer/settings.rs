//! What is measured, and what both sides are told.

use std::path::Path;
use std::process::Command;

use crate::scenario;

const USAGE: &str = "\
cargo xtask bench peer -- [OPTIONS]
  --only NAME[,NAME]   of these: decode, first-token, streams, json, agent, agent-afresh, agent-calls, tree, growth
  --rounds N           rounds that count, after one that warms up [5]
  --tokens N           tokens of an answer [128]; a turn of the agent has a quarter, a branch of the tree half
  --streams N[,N]      numbers of streams [1,4,8,16]
  --sessions N         sessions that are parked or saved in growth [1000]
  --threads N          threads of each server [the CPUs granted to this process]
  --kv-cells N         KV cells of each server [16384]
  --slots N            sequences of each server [16]
  --batch N            tokens of a batch of each server [512]
  --peer-command CMD   the peer, a program with arguments (filled in by cargo xtask)
  --peer-args ARGS     further arguments for it, after ours";

/// What was asked for.
pub(crate) struct Settings {
    pub(crate) rounds: usize,
    pub(crate) tokens: u32,
    pub(crate) streams: Vec<u32>,
    pub(crate) sessions: u32,
    pub(crate) threads: u32,
    pub(crate) kv_cells: u32,
    pub(crate) slots: u32,
    pub(crate) batch: u32,
    only: Vec<String>,
    peer_command: Vec<String>,
    peer_args: Vec<String>,
    /// What the peer's `--help` says.
    peer_help: String,
    peer_version: String,
}

impl Settings {
    /// Reads the command line.
    ///
    /// # Errors
    /// What is to be printed instead of measuring.
    pub(crate) fn from_args(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut settings = Self {
            rounds: 5,
            tokens: 128,
            streams: vec![1, 4, 8, 16],
            sessions: 1000,
            threads: nala_machine::granted_cpus().threads as u32,
            kv_cells: 16_384,
            slots: 16,
            batch: 512,
            only: Vec::new(),
            peer_command: Vec::new(),
            peer_args: Vec::new(),
            peer_help: String::new(),
            peer_version: String::new(),
        };
        // Cargo tells every benchmark that it is one.
        let mut args = args.filter(|arg| arg != "--bench");
        while let Some(name) = args.next() {
            if name == "--help" {
                return Err(USAGE.to_owned());
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?;
            settings.set(&name, &value)?;
        }
        settings.check()?;
        settings.ask_peer()?;
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || match value.parse::<u32>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{name} is {value}, but must be a whole number of at least 1")),
        };
        match name {
            "--only" => self.only = value.split(',').map(str::to_owned).collect(),
            "--rounds" => self.rounds = number()? as usize,
            "--tokens" => self.tokens = number()?,
            "--streams" => {
                let streams = value.split(',').map(|n| n.parse().ok().filter(|n| *n > 0));
                let streams: Option<Vec<u32>> = streams.collect();
                self.streams = streams.ok_or_else(|| format!("--streams is {value}, but must be like 1,4,8"))?;
            }
            "--sessions" => self.sessions = number()?,
            "--threads" => self.threads = number()?,
            "--kv-cells" => self.kv_cells = number()?,
            "--slots" => self.slots = number()?,
            "--batch" => self.batch = number()?,
            // A path may have blanks.
            "--peer-command" if Path::new(value).is_file() => self.peer_command = vec![value.to_owned()],
            "--peer-command" => self.peer_command = words(value),
            "--peer-args" => self.peer_args = words(value),
            _ => return Err(format!("there is no option {name}\n{USAGE}")),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let known = || scenario::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        if let Some(name) = self.only.iter().find(|name| !known().contains(&name.as_str())) {
            return Err(format!("--only names {name}, but there are {}", known().join(", ")));
        }
        let most = self.streams.iter().copied().max().unwrap_or(1).max(scenario::BRANCHES);
        if self.slots < most {
            return Err(format!("--slots is {}, but {most} sequences are computed together", self.slots));
        }
        if self.tokens < 8 {
            return Err(format!("--tokens is {}, but an answer of fewer than 8 has no rate", self.tokens));
        }
        Ok(())
    }

    /// Whether a scenario is to be run.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// A command that starts the peer, without what it is to serve.
    pub(crate) fn peer(&self) -> Command {
        let mut command = Command::new(&self.peer_command[0]);
        command.args(&self.peer_command[1..]);
        command
    }

    /// What every peer is told, whatever the scenario.
    pub(crate) fn peer_args(&self) -> &[String] {
        &self.peer_args
    }

    /// Whether the peer has an option: other builds have others.
    pub(crate) fn peer_knows(&self, option: &str) -> bool {
        self.peer_help.split([' ', ',', '\n']).any(|word| word == option)
    }

    fn ask_peer(&mut self) -> Result<(), String> {
        let all_are_our_own = !self.only.is_empty() && self.only.iter().all(|name| name == "growth");
        if all_are_our_own {
            return Ok(());
        }
        if self.peer_command.is_empty() {
            return Err(format!("--peer-command is missing; cargo xtask bench peer gets one\n{USAGE}"));
        }
        let ask = |option: &str| {
            let output = self.peer().arg(option).output();
            let output = output.map_err(|e| format!("the peer {} does not start: {e}", self.peer_command.join(" ")))?;
            Ok::<_, String>(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        };
        (self.peer_help, self.peer_version) = (ask("--help")?, ask("--version")?);
        if !self.peer_knows("--parallel") {
            return Err(format!("{} is no llama-server: {}", self.peer_command.join(" "), self.peer_help));
        }
        Ok(())
    }

    /// Both sides, for the head of the output.
    pub(crate) fn describe(&self) -> String {
        let ours = Command::new(nala_e2e::paths::host_binary()).arg("--version").output().expect("nala-host runs");
        let one_line = |text: &str| text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        let rounds = if self.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", self.rounds) };
        format!(
            "model: {}\nours: {}\npeer: {}\n      {}\nboth: {} threads, {} KV cells (f16, one cache for all), {} sequences, \
             batches of {}, flash attention auto\n{rounds} after one that warms up; greedy answers of {} tokens",
            nala_e2e::paths::model().display(),
            one_line(&String::from_utf8_lossy(&ours.stdout)),
            self.peer_command.join(" "),
            one_line(&self.peer_version),
            self.threads,
            self.kv_cells,
            self.slots,
            self.batch,
            self.tokens,
        )
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
