//! How much of a step prompts may have where several tenants are at work.
//!
//! A step cannot be interrupted. Where a tenant is alone, only its own streams and prompts
//! wait for its prompts. Where there are others, they wait as well: so a tenant's prompts
//! may make steps long now and then, as questions do, and go on in what steps have to spare
//! where they would all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::pace::toward;

/// Whoever was at work so lately may come back at any moment.
const LATELY: Duration = Duration::from_secs(2);

/// How long the prompts of a tenant may hold others up at once,
const AT_ONCE: Duration = Duration::from_millis(50);
/// and which part of all time.
const PART: u32 = 50;

/// How much longer a step may take for prompts of those who have held others up enough.
const STRETCH: f64 = 0.35;

/// Every so many batches such prompts get nothing, so that it stays known what a step
/// takes without them.
const BARE: u64 = 32;

/// The tokens a step that are tried first.
const FIRST: f64 = 4.0;
/// The fewest: one every so many steps. Behind a long text a single one can take as long
/// as the whole step.
const FEWEST: f64 = 0.125;
/// The most that an estimate grows or shrinks at once. A step that was held up by
/// something else says nothing.
const GROWTH: f64 = 1.25;
const SHRINKING: f64 = 0.5;

/// The tenants that were at work lately, and how long each has held others up.
#[derive(Debug, Default)]
pub(super) struct Company {
    seen: BTreeMap<Arc<str>, Seen>,
}

#[derive(Debug)]
struct Seen {
    at: Duration,
    /// For how long it has held others up as of then, less what time has made good.
    debt: Duration,
}

impl Seen {
    fn debt(&self, now: Duration) -> Duration {
        self.debt.saturating_sub(now.saturating_sub(self.at) / PART)
    }

    fn is_lately(&self, now: Duration) -> bool {
        self.at + LATELY >= now
    }
}

impl Company {
    /// Notes that a tenant is at work, and for how long its prompts have held others up
    /// just now.
    pub(super) fn saw(&mut self, tenant: &Arc<str>, held_up: Duration, now: Duration) {
        if let Some(seen) = self.seen.get_mut(tenant) {
            *seen = Seen { at: now, debt: seen.debt(now).saturating_add(held_up) };
            return;
        }
        self.seen.retain(|_, seen| seen.is_lately(now) || !seen.debt(now).is_zero());
        self.seen.insert(Arc::clone(tenant), Seen { at: now, debt: held_up });
    }

    /// Whether there were several tenants lately.
    pub(super) fn is_mixed(&self, now: Duration) -> bool {
        self.seen.values().filter(|seen| seen.is_lately(now)).nth(1).is_some()
    }

    /// Whether a tenant's prompts have held others up for long enough.
    pub(super) fn must_yield(&self, tenant: &str, now: Duration) -> bool {
        self.seen.get(tenant).is_some_and(|seen| seen.debt(now) > AT_ONCE)
    }
}

/// Finds how many tokens of a prompt a step has to spare.
///
/// Small batches do not cost by the token: kernels work in tiles. So what fits is found by
/// trying, and follows the length of the texts and the load of the machine.
#[derive(Debug)]
pub(super) struct Spare {
    /// Seconds of a step with so many tokens of runs and none of prompts.
    bare: BTreeMap<u32, f64>,
    /// Tokens a step, on average.
    tokens: f64,
    /// Those that have gathered and were not taken.
    credit: f64,
    steps: u64,
}

impl Default for Spare {
    fn default() -> Self {
        Self { bare: BTreeMap::new(), tokens: FIRST, credit: FIRST, steps: 0 }
    }
}

impl Spare {
    /// Tokens of prompts for the next step.
    pub(super) fn tokens(&self) -> u32 {
        if self.steps.is_multiple_of(BARE) { 0 } else { self.credit as u32 }
    }

    /// A step is over, in which prompts had so many of the tokens.
    pub(super) fn stepped(&mut self, prompts: u32) {
        self.steps += 1;
        let left = (self.credit - f64::from(prompts)).max(0.0);
        // What nobody takes does not gather.
        self.credit = (left + self.tokens).min(self.tokens.max(1.0));
    }

    /// Notes what a step took with so many tokens of runs, and of prompts that went on in
    /// what is spare.
    pub(super) fn measured(&mut self, runs: u32, prompts: u32, took: Duration) {
        let took = took.as_secs_f64();
        if prompts == 0 {
            let bare = self.bare.get(&runs).map_or(took, |before| toward(*before, took));
            self.bare.insert(runs, bare);
            return;
        }
        let bare = self.without(runs).as_secs_f64();
        if bare == 0.0 {
            return;
        }
        let tokens = f64::from(prompts);
        let fits = tokens * STRETCH * bare / (took - bare).max(f64::MIN_POSITIVE);
        let fits = fits.clamp(self.tokens * SHRINKING, self.tokens * GROWTH);
        // What was not asked for says nothing about more of it.
        if fits < self.tokens || prompts >= self.tokens as u32 {
            self.tokens = toward(self.tokens, fits).max(FEWEST);
        }
    }

    /// What a step of so many tokens of runs takes without prompts. Zero while that is not
    /// known, and where there are none.
    pub(super) fn without(&self, runs: u32) -> Duration {
        if runs == 0 {
            return Duration::ZERO;
        }
        let below = self.bare.range(..=runs).next_back();
        let known = below.or_else(|| self.bare.range(runs..).next());
        known.map_or(Duration::ZERO, |(_, seconds)| Duration::from_secs_f64(*seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_are_company_while_they_were_there_lately() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let at = Duration::from_secs;
        let mut company = Company::default();
        let saw = |company: &mut Company, tenant: &Arc<str>, now| company.saw(tenant, Duration::ZERO, now);
        saw(&mut company, &a, at(0));
        saw(&mut company, &a, at(1));
        assert!(!company.is_mixed(at(1)));
        saw(&mut company, &b, at(2));
        assert!(company.is_mixed(at(3)));
        assert!(!company.is_mixed(at(4)), "a was not there any more");
        for n in 0..100 {
            saw(&mut company, &format!("t{n}").into(), at(100 + n));
        }
        assert!(company.seen.len() < 5, "those who are gone are forgotten");
    }

    #[test]
    fn who_holds_others_up_yields_until_time_has_made_it_good() {
        let a: Arc<str> = "a".into();
        let mut company = Company::default();
        company.saw(&a, AT_ONCE, Duration::ZERO);
        assert!(!company.must_yield("a", Duration::ZERO));
        let step = Duration::from_millis(40);
        company.saw(&a, step, Duration::ZERO);
        assert!(company.must_yield("a", Duration::ZERO) && !company.must_yield("b", Duration::ZERO));
        assert!(company.must_yield("a", step * PART - Duration::from_millis(PART.into())));
        assert!(!company.must_yield("a", step * PART));
        // Over a long time it has its part.
        let (mut held_up, all) = (Duration::ZERO, Duration::from_secs(1000));
        for now in (0..).map(|n| step * n).take_while(|now| *now < all) {
            let long = if company.must_yield("a", now) { Duration::ZERO } else { step };
            company.saw(&a, long, now);
            held_up += long;
        }
        let expected = all / PART;
        assert!(held_up > expected - 2 * step && held_up < expected + AT_ONCE + 2 * step, "{held_up:?}");
        company.saw(&"b".into(), Duration::ZERO, all * 2);
        assert_eq!(company.seen.len(), 1, "those who are gone are forgotten");
    }

    /// Steps of ten milliseconds, and one for each token of a prompt beyond `free`.
    fn settle(spare: &mut Spare, free: u32) -> u32 {
        for _ in 0..2000 {
            let tokens = spare.tokens();
            spare.stepped(tokens);
            spare.measured(1, tokens, Duration::from_millis(u64::from(10 + tokens.saturating_sub(free))));
        }
        spare.steps += u64::from(spare.steps.is_multiple_of(BARE));
        spare.tokens()
    }

    #[test]
    fn what_is_spare_is_found_and_followed() {
        let mut spare = Spare::default();
        assert_eq!(spare.tokens(), 0, "first it must be known what a step takes");
        assert!((3..=4).contains(&settle(&mut spare, 0)), "{spare:?}");
        assert!((23..=24).contains(&settle(&mut spare, 20)), "{spare:?}");
        assert!((3..=4).contains(&settle(&mut spare, 0)), "{spare:?}");
    }

    #[test]
    fn where_a_token_takes_a_step_there_is_one_now_and_then() {
        let mut spare = Spare::default();
        let mut given = 0;
        for _ in 0..1000 {
            let tokens = spare.tokens();
            given += tokens;
            spare.stepped(tokens);
            spare.measured(1, tokens, Duration::from_millis(if tokens > 0 { 5000 } else { 10 }));
        }
        assert!((100..=170).contains(&given), "{given}");
    }

    #[test]
    fn a_step_that_took_less_than_it_can_is_no_reason_for_much_more() {
        let mut spare = Spare::default();
        spare.measured(1, 0, Duration::from_millis(10));
        spare.stepped(4);
        spare.measured(1, 4, Duration::from_millis(1));
        assert!(spare.tokens <= FIRST * GROWTH);
    }
}
