//! How much of a step prompts may have where several tenants are at work.
//!
//! A step cannot be interrupted. Where a tenant is alone, only its own streams and prompts
//! wait for its prompts. Where there are others, they wait as well: so a tenant's prompts
//! may make steps long now and then, as questions do, and go on in what steps have to spare
//! where they would all the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::fair::Owner;
use super::pace::{Pace, toward};
use crate::config::CompanyConfig;

/// Whoever was at work so lately may come back at any moment.
const LATELY: Duration = Duration::from_secs(2);

/// For so long after its work there is room for more of it.
const EXPECTED: Duration = Duration::from_secs(60);

/// So many times what it may hold others up at once is the most that a tenant owes: else
/// one that had a bad time, or a busy one, would pay for it for hours.
const MOST: u32 = 20;

/// A step that is much longer than it would be without prompts counts as so many times
/// that at the least: streams are as uneven as their long steps are many.
const NOTICED: u32 = 3;

/// Every so many batches prompts of those who owe too much get nothing, so that it stays
/// known what a step takes without them.
const BARE: u64 = 32;

/// The tokens a step that are tried first.
const FIRST: f64 = 1.0;
/// The fewest: one every so many steps. Behind a long text a single one can take as long
/// as the whole step, and a stream whose hundredth step is that long is an uneven one.
const FEWEST: f64 = 1.0 / 256.0;
/// How fast they become rarer while a single one does not fit, and come back once it does.
const RARER: f64 = 0.25;
const BACK: f64 = 2.0;
/// The most that an estimate grows or shrinks at once. A step that was held up by
/// something else says nothing.
const GROWTH: f64 = 1.25;
const SHRINKING: f64 = 0.5;

/// The tenants that were at work lately, and how long each has held others up.
#[derive(Debug)]
pub(super) struct Company {
    config: CompanyConfig,
    seen: BTreeMap<Arc<str>, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// When it was at work last.
    at: Duration,
    weight: u32,
    /// For how long it has held others up, less what time had made good by then.
    debt: Duration,
    as_of: Duration,
}

impl Seen {
    fn debt(&self, config: &CompanyConfig, now: Duration) -> Duration {
        self.debt.saturating_sub(now.saturating_sub(self.as_of) / config.part.max(1))
    }

    fn is_lately(&self, now: Duration) -> bool {
        self.at + LATELY >= now
    }

    fn is_expected(&self, now: Duration) -> bool {
        self.at + EXPECTED >= now
    }
}

impl Company {
    pub(super) fn new(config: CompanyConfig) -> Self {
        Self { config, seen: BTreeMap::new() }
    }

    /// Notes that a tenant is at work, and for how long others were held up for it just
    /// now. With more weight it owes less for that.
    pub(super) fn saw(&mut self, owner: &Owner, held_up: Duration, now: Duration) {
        let weight = owner.tenant.weight.max(1);
        let config = &self.config;
        if let Some(seen) = self.seen.get_mut(&owner.tenant.name) {
            (seen.at, seen.weight) = (now, weight);
        } else {
            self.seen.retain(|_, seen| seen.is_expected(now) || !seen.debt(config, now).is_zero());
            let seen = Seen { at: now, weight, debt: Duration::ZERO, as_of: now };
            self.seen.insert(Arc::clone(&owner.tenant.name), seen);
        }
        self.charge(owner, held_up, now);
    }

    /// Notes for how long others were held up for a tenant, which need not be at work
    /// itself: its state was moved. Who was not here for long owes nothing for it.
    pub(super) fn charge(&mut self, owner: &Owner, held_up: Duration, now: Duration) {
        let most = self.config.at_once.saturating_mul(MOST);
        let Some(seen) = self.seen.get_mut(&owner.tenant.name) else { return };
        let debt = seen.debt(&self.config, now).saturating_add(held_up / owner.tenant.weight.max(1));
        (seen.debt, seen.as_of) = (debt.min(most), now);
    }

    /// Whether there were several tenants lately.
    pub(super) fn is_mixed(&self, now: Duration) -> bool {
        self.seen.values().filter(|seen| seen.is_lately(now)).nth(1).is_some()
    }

    /// A tenant's part of what there is, by weight beside those who may come back soon.
    /// None: there is nobody else.
    pub(super) fn share(&self, owner: &Owner, now: Duration) -> Option<f64> {
        let others = self.seen.iter().filter(|(name, seen)| **name != owner.tenant.name && seen.is_expected(now));
        let others: f64 = others.map(|(_, seen)| f64::from(seen.weight)).sum();
        let own = f64::from(owner.tenant.weight.max(1));
        (others > 0.0).then_some(own / (own + others))
    }

    /// Whether a tenant has held others up for long enough, and is not alone.
    pub(super) fn must_yield(&self, owner: &Owner, now: Duration) -> bool {
        let owes = |seen: &Seen| seen.debt(&self.config, now) > self.config.at_once;
        self.seen.get(&owner.tenant.name).is_some_and(owes) && self.is_mixed(now)
    }

    /// Whether somebody else who was at work lately has not held others up as long.
    pub(super) fn is_watched(&self, owner: &Owner, now: Duration) -> bool {
        let others = self.seen.iter().filter(|(name, seen)| **name != owner.tenant.name && seen.is_lately(now));
        others.map(|(_, seen)| seen.debt(&self.config, now)).any(|debt| debt <= self.config.at_once)
    }

    /// How long a step with prompts should take.
    pub(super) fn step_time(&self, alone: Duration, now: Duration) -> Duration {
        if self.is_mixed(now) { alone.min(self.config.step_time) } else { alone }
    }
}

/// Finds how many tokens of a prompt a step has to spare.
///
/// Small batches do not cost by the token: kernels work in tiles. So what fits is found by
/// trying, and follows the length of the texts and the load of the machine.
#[derive(Debug)]
pub(super) struct Spare {
    /// What steps take with so many tokens of runs and none of prompts.
    bare: Pace,
    /// How much longer a step may take, as a part of that.
    stretch: f64,
    /// Tokens a step, on average.
    tokens: f64,
    /// Those that have gathered and were not taken.
    credit: f64,
    steps: u64,
}

impl Spare {
    pub(super) fn new(config: CompanyConfig) -> Self {
        let stretch = f64::from(config.stretch) / 100.0;
        Self { bare: Pace::default(), stretch, tokens: FIRST, credit: FIRST, steps: 0 }
    }

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
        if prompts == 0 {
            return self.bare.measured(runs as usize, took);
        }
        let bare = self.without(runs).as_secs_f64();
        if bare == 0.0 {
            return;
        }
        let tokens = f64::from(prompts);
        let fits = tokens * self.stretch * bare / (took.as_secs_f64() - bare).max(f64::MIN_POSITIVE);
        if prompts == 1 && self.tokens <= 1.0 && (fits < 1.0 || self.tokens < 1.0) {
            let tokens = if fits < 1.0 { self.tokens.min(1.0) * RARER } else { self.tokens * BACK };
            self.tokens = tokens.clamp(FEWEST, 1.0);
            return;
        }
        let fits = fits.clamp(self.tokens * SHRINKING, self.tokens * GROWTH);
        // What was not asked for says nothing about more of it.
        if fits < self.tokens || prompts >= self.tokens as u32 {
            self.tokens = toward(self.tokens, fits);
        }
    }

    /// For how long a step with so many tokens of runs held others up.
    pub(super) fn held_up(&self, runs: u32, took: Duration) -> Duration {
        let bare = self.without(runs);
        let longer = took.saturating_sub(bare);
        if longer > bare.mul_f64(self.stretch) { longer.max(bare * NOTICED) } else { longer }
    }

    /// What a step of so many tokens of runs takes without prompts. Zero while that is not
    /// known, and where there are none.
    fn without(&self, runs: u32) -> Duration {
        let known = if runs == 0 { None } else { self.bare.least(runs) };
        known.map_or(Duration::ZERO, Duration::from_secs_f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Priority, Tenant};

    fn owner(name: &str, weight: u32) -> Owner {
        Owner { tenant: Tenant { name: name.into(), weight, ..Tenant::default() }, priority: Priority::Normal }
    }

    fn company() -> (Company, CompanyConfig) {
        let config = CompanyConfig { at_once: Duration::from_millis(50), ..CompanyConfig::default() };
        (Company::new(config), config)
    }

    #[test]
    fn tenants_are_company_while_they_were_there_lately() {
        let (a, b) = (owner("a", 1), owner("b", 1));
        let at = Duration::from_secs;
        let (mut company, _) = company();
        let saw = |company: &mut Company, owner: &Owner, now| company.saw(owner, Duration::ZERO, now);
        saw(&mut company, &a, at(0));
        saw(&mut company, &a, at(1));
        assert!(!company.is_mixed(at(1)));
        saw(&mut company, &b, at(2));
        assert!(company.is_mixed(at(3)));
        assert_eq!(company.step_time(at(1), at(3)), Duration::from_millis(50));
        assert!(!company.is_mixed(at(4)), "a was not there any more");
        assert_eq!(company.step_time(at(1), at(4)), at(1));
        assert_eq!(company.share(&a, at(4)), Some(0.5), "b may come back");
        assert_eq!(company.share(&owner("heavy", 2), at(4)), Some(0.5));
        assert_eq!(company.share(&a, at(100)), None);
        for n in 0..100 {
            saw(&mut company, &owner(&format!("t{n}"), 1), at(100 + 20 * n));
        }
        assert!(company.seen.len() < 5, "those who are gone are forgotten");
    }

    #[test]
    fn who_holds_others_up_yields_until_time_has_made_it_good() {
        let (a, b) = (owner("a", 1), owner("b", 1));
        let (mut company, CompanyConfig { at_once, part, .. }) = company();
        company.saw(&a, at_once, Duration::ZERO);
        let meet = |company: &mut Company, now| company.saw(&b, Duration::ZERO, now);
        meet(&mut company, Duration::ZERO);
        assert!(!company.must_yield(&a, Duration::ZERO));
        let step = Duration::from_millis(40);
        company.saw(&a, step, Duration::ZERO);
        assert!(company.must_yield(&a, Duration::ZERO) && !company.must_yield(&b, Duration::ZERO));
        let good = step * part;
        for (now, yields) in [(good - Duration::from_millis(part.into()), true), (good, false)] {
            company.saw(&a, Duration::ZERO, now - Duration::from_millis(1));
            meet(&mut company, now);
            assert_eq!(company.must_yield(&a, now), yields);
        }
        // Over a long time it has its part.
        let (begin, all) = (good, Duration::from_secs(1000));
        let mut held_up = Duration::ZERO;
        for now in (0..).map(|n| begin + step * n).take_while(|now| *now < begin + all) {
            let long = if company.must_yield(&a, now) { Duration::ZERO } else { step };
            company.saw(&a, long, now);
            meet(&mut company, now);
            held_up += long;
        }
        let expected = all / part;
        assert!(held_up > expected - 2 * step && held_up < expected + at_once + 2 * step, "{held_up:?}");
        company.saw(&owner("c", 1), Duration::ZERO, all * 3);
        assert_eq!(company.seen.len(), 1, "those who are gone are forgotten");
    }

    #[test]
    fn nobody_owes_for_hours_nor_where_it_is_alone_and_weight_counts() {
        let (a, heavy) = (owner("a", 1), owner("heavy", 10));
        let (mut company, CompanyConfig { at_once, part, .. }) = company();
        company.saw(&a, Duration::from_secs(3600), Duration::ZERO);
        assert!(!company.must_yield(&a, Duration::ZERO), "nobody else is there");
        company.saw(&heavy, at_once * 10, Duration::ZERO);
        assert!(company.must_yield(&a, Duration::ZERO) && !company.must_yield(&heavy, Duration::ZERO));
        company.saw(&heavy, at_once, Duration::ZERO);
        assert!(company.must_yield(&heavy, Duration::ZERO));
        let soon = at_once * (MOST - 1) * part;
        for tenant in [&a, &heavy] {
            company.saw(tenant, Duration::ZERO, soon);
        }
        assert!(!company.must_yield(&a, soon));
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
        let mut spare = Spare::new(CompanyConfig::default());
        assert_eq!(spare.tokens(), 0, "first it must be known what a step takes");
        assert!((3..=4).contains(&settle(&mut spare, 0)), "{spare:?}");
        assert!((23..=24).contains(&settle(&mut spare, 20)), "{spare:?}");
        assert!((3..=4).contains(&settle(&mut spare, 0)), "{spare:?}");
    }

    #[test]
    fn steps_that_are_noticed_count_for_more() {
        let mut spare = Spare::new(CompanyConfig::default());
        let ms = Duration::from_millis;
        assert_eq!(spare.held_up(1, ms(40)), ms(40), "nothing is known");
        spare.measured(1, 0, ms(10));
        let held_up = [12, 15, 40, 90].map(|took| spare.held_up(1, ms(took)));
        assert_eq!(held_up, [2, 30, 30, 80].map(ms));
        assert_eq!(spare.held_up(0, ms(40)), ms(40), "nothing goes on beside it");
    }

    #[test]
    fn where_a_token_takes_a_step_there_is_one_now_and_then() {
        let mut spare = Spare::new(CompanyConfig::default());
        let given = |spare: &mut Spare, steps: u32, token: u64| -> u32 {
            let step = |_| {
                let tokens = spare.tokens();
                spare.stepped(tokens);
                let took = 10 + token * u64::from(tokens);
                spare.measured(1, tokens, Duration::from_millis(took));
                tokens
            };
            (0..steps).map(step).sum()
        };
        given(&mut spare, 1000, 10);
        let rare = given(&mut spare, 10_000, 10);
        assert!((30..=50).contains(&rare), "less than one in a hundred steps: {rare}");
        given(&mut spare, 1000, 1);
        let often = given(&mut spare, 1000, 1);
        assert!(often > 2000, "{often}");
    }

    #[test]
    fn a_step_that_took_less_than_it_can_is_no_reason_for_much_more() {
        let mut spare = Spare::new(CompanyConfig::default());
        spare.measured(1, 0, Duration::from_millis(10));
        spare.stepped(4);
        spare.measured(1, 4, Duration::from_millis(1));
        assert!(spare.tokens <= FIRST * GROWTH);
    }
}
