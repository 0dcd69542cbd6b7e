//! Rounds of turns, and the table made of them.

use std::time::Duration;

use crate::client::Usage;
use crate::prompts::Seed;
use crate::settings::Settings;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Peer,
}

/// What a figure counts, and so which of two is better.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Tokens a second
    Rate,
    /// Milliseconds
    Time,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Rate => "tokens/s",
            Self::Time => "ms",
        }
    }

    /// How many times as fast the first is.
    fn ratio(self, first: f64, second: f64) -> f64 {
        match self {
            Self::Rate => first / second,
            Self::Time => second / first,
        }
    }

    fn best(self, values: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::Rate => values.fold(f64::MIN, f64::max),
            Self::Time => values.fold(f64::MAX, f64::min),
        }
    }
}

/// What a turn gave.
pub(crate) struct Turn {
    /// In the order of the figures' names.
    pub(crate) figures: Vec<f64>,
    pub(crate) usage: Usage,
}

/// Measures in rounds of three turns, ours, the peer's and ours again, and prints
/// what came of them.
///
/// The peer has the prompts of our first turn. Our second has prompts of its own,
/// since those of the first are known by then.
pub(crate) fn compare(
    settings: &Settings,
    title: &str,
    figures: &[(&str, Unit)],
    mut turn: impl FnMut(Side, Seed) -> Turn,
) {
    let mut rounds = Vec::new();
    for round in 0..=settings.rounds as u32 {
        let mut quiet = |side, seed| {
            pause();
            turn(side, seed)
        };
        let (seed, other) = (Seed(2 * round), Seed(2 * round + 1));
        let taken = [quiet(Side::Ours, seed), quiet(Side::Peer, seed), quiet(Side::Ours, other)];
        // The first round warms caches and code.
        if round > 0 {
            rounds.push(taken);
        }
    }
    println!("\n{title}");
    print_usage(&rounds);
    println!(
        "{:<34} {:>19} {:>19} {:>30} {:>24}",
        "", "ours: best, median", "peer: best, median", "ratio: best, median (range)", "control: median (range)"
    );
    for (index, (name, unit)) in figures.iter().enumerate() {
        let values: Vec<[f64; 3]> = rounds.iter().map(|[a, b, c]| [a, b, c].map(|turn| turn.figures[index])).collect();
        print_row(&format!("{name}, {}", unit.name()), *unit, &values);
    }
}

/// Lets the threads of the side before fall asleep: they spin for some tenths of
/// a second, and would take the cores from the next one.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_secs(1));
}

/// A row of ours, the peer's and ours again. The control is our second turn
/// against our first; ratios above 1 say that ours is faster.
fn print_row(name: &str, unit: Unit, rounds: &[[f64; 3]]) {
    let column = |at: usize| rounds.iter().map(move |round| round[at]);
    let (ours, peer) = (unit.best(column(0)), unit.best(column(1)));
    let ratios = Spread::of(rounds.iter().map(|[a, b, c]| unit.ratio(f64::midpoint(*a, *c), *b)));
    let control = Spread::of(rounds.iter().map(|[a, _, c]| unit.ratio(*c, *a)));
    println!(
        "{name:<34} {:>19} {:>19} {:>30} {:>24}",
        format!("{ours:.1}, {:.1}", Spread::of(column(0)).median),
        format!("{peer:.1}, {:.1}", Spread::of(column(1)).median),
        format!("{:.2}, {ratios}", unit.ratio(ours, peer)),
        control.to_string(),
    );
}

/// What both sides say of their tokens in a turn. Other numbers of new tokens are
/// another work, and are said to be.
fn print_usage(rounds: &[[Turn; 3]]) {
    let Some([ours, peer, _]) = rounds.last() else { return };
    let (ours, peer) = (ours.usage, peer.usage);
    let same = rounds.iter().flatten().all(|turn| turn.usage.completion == ours.completion);
    println!(
        "tokens of a turn, ours and the peer's: prompt {} {}, of them cached {} {}, new {} {}{}",
        ours.prompt,
        peer.prompt,
        ours.cached,
        peer.cached,
        ours.completion,
        peer.completion,
        if same { "" } else { " – THE NUMBERS OF NEW TOKENS DIFFER" }
    );
}

/// Median and range.
pub(crate) struct Spread {
    least: f64,
    pub(crate) median: f64,
    most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self { least: values[0], median: values[values.len().div_ceil(2) - 1], most: values[values.len() - 1] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$} – {:.digits$})", self.median, self.least, self.most)
    }
}
