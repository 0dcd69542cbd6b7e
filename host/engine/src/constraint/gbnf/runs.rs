//! Finds runs of characters that can be one terminal.
//!
//! The lexer takes the longest run there is. That is right if, wherever a
//! character of the run may come, nothing else of the grammar that may come at
//! the same place can begin with the same byte: then the run has no rival, and
//! ends exactly where it would have ended.
//!
//! What may come at the same place is found by following all ways through the
//! grammar at once, by pairs of terminals: both may begin the text, or both may
//! follow a pair that can read the same character. What follows a terminal is
//! taken over all the places where its rule is used, so more pairs are found than
//! exist, never fewer.

use super::characters::Characters;
use super::rules::{Element, RuleId, Rules, What};

/// The most work, in words of bit sets. A grammar that needs more is left as it
/// is.
const BUDGET: usize = 20_000_000;
/// The most terminals that are looked at.
const MAX_TERMINALS: usize = 1_000;

/// Makes terminals of the runs where that changes nothing.
pub(super) fn join(rules: &mut Rules) {
    let Some(safe) = Analysis::new(rules).and_then(Analysis::safe) else { return };
    let mut safe = safe.into_iter();
    let repeated = repeated_rules(rules);
    for (rule, repeated) in rules.rules.iter_mut().zip(repeated) {
        for sequence in &mut rule.alternatives {
            let alone = sequence.len() == 1;
            for element in sequence {
                match &element.what {
                    // Each character was a terminal.
                    What::Text(text) => safe.by_ref().take(text.chars().count()).for_each(|_| ()),
                    What::Class(characters) => {
                        let characters = characters.clone();
                        let verdict = safe.next().unwrap_or_default();
                        join_element(element, characters, &verdict, alone && repeated);
                    }
                    What::Run { .. } | What::Rule(_) => {}
                }
            }
        }
    }
}

/// `loops`: the element is all of an alternative that is repeated without end.
fn join_element(element: &mut Element, characters: Characters, verdict: &Verdict, loops: bool) {
    if !verdict.no_rival {
        return;
    }
    let (min, max) = (element.min, element.max);
    if element.is_once() {
        if loops {
            element.what = What::Run { characters, min: 1, max: None };
        }
    // Where runs can follow each other, the first one takes everything, so the
    // others must be content with nothing.
    } else if max != Some(0) && max != Some(1) && ((min == 0 && max.is_none()) || !verdict.follows_itself) {
        *element = Element { what: What::Run { characters, min: min.max(1), max }, min: min.min(1), max: Some(1) };
    }
}

/// Rules that are only used as `rule*`.
fn repeated_rules(rules: &Rules) -> Vec<bool> {
    let mut repeated = vec![true; rules.rules.len()];
    let elements = rules.rules.iter().flat_map(|rule| &rule.alternatives).flatten();
    let once = elements.filter(|element| element.min > 0 || element.max.is_some());
    let ids = once.filter_map(|element| if let What::Rule(id) = element.what { Some(id) } else { None });
    for id in ids.chain([rules.root]) {
        if let Some(repeated) = repeated.get_mut(id.0) {
            *repeated = false;
        }
    }
    repeated
}

#[derive(Default)]
struct Verdict {
    no_rival: bool,
    /// Whether the same terminal can come again other than by its own repetition.
    follows_itself: bool,
}

/// A set of terminals.
type Set = Vec<u64>;

fn has(set: &[u64], n: usize) -> bool {
    set.get(n / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
}

fn put(set: &mut [u64], n: usize) {
    if let Some(word) = set.get_mut(n / 64) {
        *word |= 1 << (n % 64);
    }
}

/// Adds `more`, and says whether that was news.
fn unite(set: &mut [u64], more: &[u64]) -> bool {
    let mut news = false;
    for (word, more) in set.iter_mut().zip(more) {
        news |= more & !*word != 0;
        *word |= more;
    }
    news
}

fn members(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    (0..).zip(set).flat_map(|(at, &word)| {
        let rest = std::iter::successors(Some(word), |&word| Some(word & word.wrapping_sub(1)));
        rest.take_while(|&word| word != 0).map(move |word| at * 64 + word.trailing_zeros() as usize)
    })
}

/// What begins and ends a part of the grammar.
#[derive(Clone)]
struct Ends {
    first: Set,
    last: Set,
    nullable: bool,
}

struct Analysis {
    /// Characters of each terminal, in the order of the rules.
    terminals: Vec<Characters>,
    /// What can follow each terminal.
    next: Vec<Set>,
    follows_itself: Vec<bool>,
    /// What the text can begin with.
    first: Set,
    budget: usize,
}

impl Analysis {
    /// None if that is too much work.
    fn new(rules: &Rules) -> Option<Self> {
        let mut terminals = Vec::new();
        // The first terminal of each element.
        let mut starts = Vec::new();
        for element in rules.rules.iter().flat_map(|rule| &rule.alternatives).flatten() {
            starts.push(terminals.len());
            match &element.what {
                What::Class(characters) | What::Run { characters, .. } => terminals.push(characters.clone()),
                What::Text(text) => terminals.extend(text.chars().map(|c| Characters::of(&[(c, c)]))),
                What::Rule(_) => {}
            }
            if terminals.len() > MAX_TERMINALS {
                return None;
            }
        }
        let words = terminals.len().div_ceil(64).max(1);
        let none = vec![0; words];
        let mut this = Self {
            next: vec![none.clone(); terminals.len()],
            follows_itself: vec![false; terminals.len()],
            first: none.clone(),
            budget: BUDGET,
            terminals,
        };
        let empty = Ends { first: none.clone(), last: none, nullable: false };
        let mut ends = vec![empty.clone(); rules.rules.len()];
        loop {
            let mut news = false;
            let mut starts = starts.iter().copied();
            for (n, rule) in rules.rules.iter().enumerate() {
                let mut all = empty.clone();
                for sequence in &rule.alternatives {
                    let mut so_far = Ends { nullable: true, ..empty.clone() };
                    for element in sequence {
                        this.pay(6 * words)?;
                        let ends = this.element(element, starts.next()?, &ends, &empty);
                        if so_far.nullable {
                            unite(&mut so_far.first, &ends.first);
                        }
                        if !ends.nullable {
                            so_far.last.fill(0);
                        }
                        unite(&mut so_far.last, &ends.last);
                        so_far.nullable &= ends.nullable;
                    }
                    unite(&mut all.first, &so_far.first);
                    unite(&mut all.last, &so_far.last);
                    all.nullable |= so_far.nullable;
                }
                let known = ends.get_mut(n)?;
                news |= unite(&mut known.first, &all.first);
                news |= unite(&mut known.last, &all.last);
                news |= all.nullable && !std::mem::replace(&mut known.nullable, all.nullable);
            }
            if !news {
                break;
            }
        }
        this.follow(rules, &starts, &ends, &empty)?;
        this.first.clone_from(&ends.get(rules.root.0)?.first);
        Some(this)
    }

    fn pay(&mut self, work: usize) -> Option<()> {
        self.budget = self.budget.checked_sub(work)?;
        Some(())
    }

    fn element(&self, element: &Element, start: usize, rules: &[Ends], empty: &Ends) -> Ends {
        let mut ends = match &element.what {
            What::Rule(RuleId(n)) => rules.get(*n).unwrap_or(empty).clone(),
            What::Class(_) | What::Run { .. } => self.single(start, start, empty),
            What::Text(text) => match text.chars().count().checked_sub(1) {
                Some(more) => self.single(start, start + more, empty),
                None => Ends { nullable: true, ..empty.clone() },
            },
        };
        if element.max == Some(0) {
            ends = Ends { nullable: true, ..empty.clone() };
        }
        ends.nullable |= element.min == 0;
        ends
    }

    fn single(&self, first: usize, last: usize, empty: &Ends) -> Ends {
        let mut ends = empty.clone();
        put(&mut ends.first, first);
        put(&mut ends.last, last);
        ends
    }

    /// Finds what can follow each terminal.
    fn follow(&mut self, rules: &Rules, starts: &[usize], ends: &[Ends], empty: &Ends) -> Option<()> {
        let mut starts = starts.iter().copied();
        // Repetitions of single terminals, which come last.
        let mut own = Vec::new();
        for sequence in rules.rules.iter().flat_map(|rule| &rule.alternatives) {
            let mut before = empty.last.clone();
            for element in sequence {
                let start = starts.next()?;
                let part = self.element(element, start, ends, empty);
                self.link(&before, &part.first)?;
                if let What::Text(text) = &element.what {
                    for n in 1..text.chars().count() {
                        put(self.next.get_mut(start + n - 1)?, start + n);
                    }
                }
                if element.max.is_none_or(|max| max > 1) {
                    match element.what {
                        What::Class(_) | What::Run { .. } => own.push(start),
                        What::Text(_) | What::Rule(_) => self.link(&part.last, &part.first)?,
                    }
                }
                if !part.nullable {
                    before.fill(0);
                }
                unite(&mut before, &part.last);
            }
        }
        for (n, (next, follows)) in self.next.iter().zip(&mut self.follows_itself).enumerate() {
            *follows = has(next, n);
        }
        for n in own {
            put(self.next.get_mut(n)?, n);
        }
        Some(())
    }

    fn link(&mut self, before: &[u64], after: &[u64]) -> Option<()> {
        for terminal in members(before) {
            self.pay(after.len())?;
            unite(self.next.get_mut(terminal)?, after);
        }
        Some(())
    }

    /// For each terminal, whether it can be a run. None if that is too much work.
    fn safe(mut self) -> Option<Vec<Verdict>> {
        let count = self.terminals.len();
        let words = self.first.len();
        let mut together: Vec<Set> = vec![vec![0; words]; count];
        let mut work: Vec<(usize, usize)> = Vec::new();
        let first = self.first.clone();
        for a in members(&first) {
            put_row(together.get_mut(a)?, &first, a, &mut work);
        }
        while let Some((a, b)) = work.pop() {
            self.pay(1)?;
            if a != b && !self.terminals.get(a)?.overlaps(self.terminals.get(b)?) {
                continue;
            }
            let after = self.next.get(b)?.clone();
            let nexts: Vec<usize> = members(self.next.get(a)?).collect();
            for next in nexts {
                self.pay(words)?;
                put_row(together.get_mut(next)?, &after, next, &mut work);
            }
        }
        let bytes: Vec<[u128; 2]> = self.terminals.iter().map(Characters::first_bytes).collect();
        let verdict = |(n, mine): (usize, &[u128; 2])| {
            let rival =
                |other: &usize| bytes.get(*other).is_none_or(|theirs| mine.iter().zip(theirs).any(|(a, b)| a & b != 0));
            let no_rival = !members(together.get(n)?).filter(|&other| other != n).any(|other| rival(&other));
            Some(Verdict { no_rival, follows_itself: *self.follows_itself.get(n)? })
        };
        bytes.iter().enumerate().map(verdict).collect()
    }
}

/// Adds `more` to the row of `a`, and the new pairs to the work.
fn put_row(row: &mut [u64], more: &[u64], a: usize, work: &mut Vec<(usize, usize)>) {
    for (at, (word, more)) in row.iter_mut().zip(more).enumerate() {
        let news = [more & !*word];
        *word |= more;
        work.extend(members(&news).map(|bit| (a, at * 64 + bit)));
    }
}
