//! Medians, ranges and ratios.

/// Decode rates of one number of streams.
pub(crate) struct Table {
    streams: u32,
    /// bare, engine, whole, bare again; a row a round.
    rounds: Vec<[f64; 4]>,
}

impl Table {
    pub(crate) fn new(streams: u32) -> Self {
        Self { streams, rounds: Vec::new() }
    }

    pub(crate) fn add(&mut self, bare: f64, engine: f64, whole: f64, again: f64) {
        self.rounds.push([bare, engine, whole, again]);
    }

    /// Rates in tokens a second, and each round's ratio to the mean of the two
    /// bare loops around it.
    pub(crate) fn print(&self) {
        println!("\n{} stream{}: decode, tokens/s", self.streams, if self.streams == 1 { "" } else { "s" });
        println!("{:<28} {:>8} {:>17}   {:>6} {:>15}", "", "median", "range", "ratio", "range");
        let names = ["bare llama_decode loop", "engine", "whole: HTTP + components", "bare again (control)"];
        for (side, name) in names.iter().enumerate() {
            let rates: Vec<f64> = self.rounds.iter().map(|r| r[side]).collect();
            let ratios: Vec<f64> = self.rounds.iter().map(|r| r[side] / f64::midpoint(r[0], r[3])).collect();
            let (rate, rate_range) = summary(rates);
            let (ratio, ratio_range) = summary(ratios);
            println!(
                "{name:<28} {rate:>8.1} {:>17}   {ratio:>6.3} {:>15}",
                format!("{:.1} – {:.1}", rate_range.0, rate_range.1),
                format!("{:.3} – {:.3}", ratio_range.0, ratio_range.1),
            );
        }
    }
}

fn summary(mut values: Vec<f64>) -> (f64, (f64, f64)) {
    values.sort_by(f64::total_cmp);
    (quantile(&values, 0.5), (values[0], values[values.len() - 1]))
}

/// A quantile of sorted values, by the nearest rank.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Tokens a second while all streams were running: from the moment the last one
/// had its first token to the moment the first one had its last.
pub(crate) fn common_rate(streams: &[Vec<f64>]) -> f64 {
    let begin = streams.iter().map(|s| s[0]).fold(f64::MIN, f64::max);
    let end = streams.iter().map(|s| s[s.len() - 1]).fold(f64::MAX, f64::min);
    let tokens = streams.iter().flatten().filter(|&&t| t > begin && t <= end).count();
    tokens as f64 / (end - begin)
}
