//! Quantiles beside each other.

use std::collections::BTreeMap;

use crate::good::Seen;

/// A neighbour's part of all rounds.
#[derive(Default)]
struct Side {
    quiet: Seen,
    beside: Seen,
    outcomes: BTreeMap<String, usize>,
}

#[derive(Default)]
pub(crate) struct Table {
    order: Vec<&'static str>,
    sides: BTreeMap<&'static str, Side>,
    /// All first ones of two quiet phases that follow upon each other, and all second ones.
    control: (Seen, Seen),
}

impl Table {
    pub(crate) fn add(
        &mut self,
        name: &'static str,
        before: &Seen,
        beside: &Seen,
        after: &Seen,
        outcomes: BTreeMap<String, usize>,
    ) {
        if !self.order.contains(&name) {
            self.order.push(name);
        }
        let side = self.sides.entry(name).or_default();
        side.quiet.append(before);
        side.quiet.append(after);
        side.beside.append(beside);
        for (status, count) in outcomes {
            *side.outcomes.entry(status).or_default() += count;
        }
        self.control.0.append(before);
        self.control.1.append(after);
    }

    pub(crate) fn print(&self) {
        println!(
            "{:<14} | {:>13} {:>13} | {:>13} {:>13} | {:>13} {:>13} | {:>6} | answers to it",
            "neighbour", "token p50", "p99", "first p50", "max", "hello p50", "p99", "errors"
        );
        print_row("quiet, again", &self.control.0, &self.control.1, &BTreeMap::new());
        for name in &self.order {
            let side = &self.sides[name];
            print_row(name, &side.quiet, &side.beside, &side.outcomes);
        }
    }
}

fn print_row(name: &str, quiet: &Seen, beside: &Seen, outcomes: &BTreeMap<String, usize>) {
    let cell = |values: fn(&Seen) -> &Vec<f64>, q| {
        let (quiet, beside) = (quantile(values(quiet), q), quantile(values(beside), q));
        format!("{:>6.1} {:>5.2}x", beside * 1e3, beside / quiet)
    };
    let outcomes: Vec<_> = outcomes.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    println!(
        "{name:<14} | {} {} | {} {} | {} {} | {:>6} | {}",
        cell(|seen| &seen.gaps, 0.5),
        cell(|seen| &seen.gaps, 0.99),
        cell(|seen| &seen.firsts, 0.5),
        cell(|seen| &seen.firsts, 1.0),
        cell(|seen| &seen.hellos, 0.5),
        cell(|seen| &seen.hellos, 0.99),
        beside.errors,
        outcomes.join(", ")
    );
}

/// A quantile by the nearest rank.
fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    match sorted.len() {
        0 => f64::NAN,
        len => sorted[rank.clamp(1, len) - 1],
    }
}
