//! The rules, step by step and by random programs.

use proptest::prelude::*;

use super::*;

/// An engine by its number, and whether sessions are saved with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fake {
    saved: bool,
}

impl Kept for Fake {
    fn has_saved(&self) -> bool {
        self.saved
    }
}

const PLAIN: Fake = Fake { saved: false };
const RETRY: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(60);

fn ledger(budget: u64, models: &[(u64, Residence)]) -> Ledger<Fake> {
    let models = models.iter().enumerate().map(|(n, (bytes, residence))| (n.to_string().into(), *bytes, *residence));
    Ledger::new(budget, RETRY, models)
}

fn on_demand(budget: u64, bytes: &[u64]) -> Ledger<Fake> {
    ledger(budget, &bytes.iter().map(|bytes| (*bytes, Residence::OnDemand)).collect::<Vec<_>>())
}

struct Bench {
    ledger: Ledger<Fake>,
    now: Instant,
}

impl Bench {
    fn new(ledger: Ledger<Fake>) -> Self {
        Self { ledger, now: Instant::now() }
    }

    fn queue(&mut self, index: Index) -> Place {
        self.ledger.queue(index, self.now + WAIT)
    }

    fn ask(&mut self, place: &mut Place) -> &'static str {
        match self.ledger.ask(place, self.now) {
            Answer::Leased(_) => "leased",
            Answer::Load(victims) if victims.is_empty() => "load",
            Answer::Load(_) => "unload and load",
            Answer::Wait => "wait",
            Answer::Failed(_) => "failed",
            Answer::ShutDown => "shut down",
        }
    }

    /// Loads a model, which must find room at once, and takes a lease.
    fn lease(&mut self, index: Index) {
        let mut place = self.queue(index);
        assert_eq!(self.ask(&mut place), "load");
        assert_eq!(self.ledger.begin(index), Begin::Now);
        assert!(self.ledger.finish(index, Ok(PLAIN), self.now).is_none());
        assert_eq!(self.ask(&mut place), "leased");
        self.now += Duration::from_secs(1);
    }

    fn release(&mut self, index: Index) {
        self.ledger.release(index, self.now);
        self.now += Duration::from_secs(1);
    }

    fn loaded(&self) -> Vec<String> {
        self.ledger.loaded().map(|(name, _)| name.to_owned()).collect()
    }
}

#[test]
fn the_least_recently_used_goes_and_the_load_waits_for_its_memory() {
    let mut bench = Bench::new(on_demand(10, &[4, 4, 4]));
    bench.lease(0);
    bench.lease(1);
    bench.release(1);
    bench.release(0);
    let mut third = bench.queue(2);
    assert_eq!(bench.ask(&mut third), "unload and load");
    assert_eq!(bench.loaded(), ["0"], "1 was used before 0");
    assert_eq!(bench.ledger.begin(2), Begin::Later, "the memory of 1 is not free yet");
    assert_eq!(bench.ask(&mut third), "wait");
    bench.ledger.unloaded(1);
    assert_eq!(bench.ledger.begin(2), Begin::Now);
}

#[test]
fn what_is_in_use_or_resident_stays() {
    let mut bench =
        Bench::new(ledger(8, &[(4, Residence::OnDemand), (4, Residence::Resident), (2, Residence::OnDemand)]));
    bench.lease(0);
    bench.lease(1);
    bench.release(1);
    let mut third = bench.queue(2);
    assert_eq!(bench.ask(&mut third), "wait");
    let why = bench.ledger.waits_for(2, Duration::ZERO).to_string();
    assert!(why.contains("needs 2 bytes") && why.contains("0 (4 bytes, 1 in use)"), "{why}");
    assert!(why.contains("1 (4 bytes, stays loaded)"), "{why}");
    bench.release(0);
    assert_eq!(bench.ask(&mut third), "unload and load");
    assert_eq!(bench.loaded(), ["1"]);
}

#[test]
fn no_more_is_unloaded_than_is_needed() {
    let mut bench = Bench::new(on_demand(10, &[1, 6, 3, 6]));
    for index in [0, 1, 2] {
        bench.lease(index);
    }
    for index in [0, 1, 2] {
        bench.release(index);
    }
    let mut place = bench.queue(3);
    assert_eq!(bench.ask(&mut place), "unload and load");
    assert_eq!(bench.loaded(), ["0", "2"], "the room of 1 suffices, though 0 was idle for longer");
}

#[test]
fn saved_sessions_are_given_up_last_and_never_for_idleness() {
    let mut bench = Bench::new(on_demand(10, &[5, 5, 5]));
    let mut place = bench.queue(0);
    assert_eq!(bench.ask(&mut place), "load");
    assert_eq!(bench.ledger.begin(0), Begin::Now);
    assert!(bench.ledger.finish(0, Ok(Fake { saved: true }), bench.now).is_none());
    assert_eq!(bench.ask(&mut place), "leased");
    bench.release(0);
    bench.lease(1);
    bench.release(1);
    let hour = Duration::from_secs(3600);
    assert_eq!(bench.ledger.next_idle(hour, bench.now).map(|at| at < bench.now + hour), Some(true));
    let late = bench.now + 2 * hour;
    let expired: Vec<Index> = bench.ledger.take_idle(hour, late).into_iter().map(|(index, _)| index).collect();
    assert_eq!(expired, [1]);
    assert_eq!(bench.ledger.next_idle(hour, late), None);
    bench.ledger.unloaded(1);
    bench.lease(1);
    bench.release(1);
    let mut place = bench.queue(2);
    assert_eq!(bench.ask(&mut place), "unload and load");
    assert_eq!(bench.loaded(), ["0"]);
}

#[test]
fn room_is_made_for_whoever_waits_longest_and_free_room_is_for_whoever_fits() {
    let mut bench = Bench::new(on_demand(10, &[6, 8, 6, 3]));
    bench.lease(0);
    let mut large = bench.queue(1);
    let mut other = bench.queue(2);
    let mut small = bench.queue(3);
    for place in [&mut large, &mut other] {
        assert_eq!(bench.ask(place), "wait");
    }
    assert_eq!(bench.ask(&mut small), "load", "4 are free");
    bench.release(0);
    assert_eq!(bench.ask(&mut other), "wait", "the large one comes first");
    assert_eq!(bench.ask(&mut large), "wait", "the small one is still loading");
    // The large one gives up.
    bench.ledger.leave(&large);
    assert_eq!(bench.ask(&mut other), "unload and load");
    // One that waited too long and does not look again keeps nobody.
    let mut bench = Bench::new(on_demand(10, &[6, 6, 6]));
    bench.lease(0);
    let _sleeps = bench.queue(1);
    bench.now += WAIT;
    bench.release(0);
    let mut awake = bench.queue(2);
    assert_eq!(bench.ask(&mut awake), "unload and load");
}

#[test]
fn what_was_loaded_for_somebody_waits_for_them() {
    let mut bench = Bench::new(on_demand(5, &[5, 5]));
    let mut first = bench.queue(0);
    assert_eq!(bench.ask(&mut first), "load");
    assert_eq!(bench.ledger.begin(0), Begin::Now);
    assert!(bench.ledger.finish(0, Ok(PLAIN), bench.now).is_none());
    let mut second = bench.queue(1);
    assert_eq!(bench.ask(&mut second), "wait");
    assert_eq!(bench.ask(&mut first), "leased");
}

#[test]
fn a_failed_load_is_told_to_all_and_tried_again_later() {
    let mut bench = Bench::new(on_demand(5, &[5]));
    let (mut first, mut second) = (bench.queue(0), bench.queue(0));
    assert_eq!(bench.ask(&mut first), "load");
    assert_eq!(bench.ask(&mut second), "wait");
    assert_eq!(bench.ledger.begin(0), Begin::Now);
    assert!(bench.ledger.finish(0, Err(LoadFailure::Panicked), bench.now).is_none());
    bench.now += RETRY;
    // However late they look.
    assert_eq!((bench.ask(&mut first), bench.ask(&mut second)), ("failed", "failed"));
    bench.now -= Duration::from_secs(1);
    let mut third = bench.queue(0);
    assert_eq!(bench.ask(&mut third), "failed");
    bench.now += Duration::from_secs(1);
    assert_eq!(bench.ask(&mut third), "load");
    assert_eq!(bench.ledger.held(), 0);
}

#[test]
fn nothing_is_left_after_the_end() {
    let mut bench = Bench::new(on_demand(10, &[5, 5]));
    bench.lease(0);
    let mut second = bench.queue(1);
    assert_eq!(bench.ask(&mut second), "load");
    assert_eq!(bench.ledger.begin(1), Begin::Now);
    assert_eq!(bench.ledger.shut_down().len(), 1, "whoever uses it");
    assert_eq!(bench.ask(&mut second), "shut down");
    assert!(bench.ledger.finish(1, Ok(PLAIN), bench.now).is_some(), "nobody wants it");
    assert!(bench.ledger.moves());
    bench.ledger.unloaded(0);
    bench.ledger.unloaded(1);
    bench.release(0);
    assert!(!bench.ledger.moves() && bench.loaded().is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Queue(usize),
    Ask(usize),
    Leave(usize),
    Release(usize),
    Begin(usize),
    Finish { load: usize, well: bool },
    Unloaded(usize),
    Expire,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..8_usize;
    prop_oneof![
        3 => n.clone().prop_map(Step::Queue),
        6 => n.clone().prop_map(Step::Ask),
        1 => n.clone().prop_map(Step::Leave),
        3 => n.clone().prop_map(Step::Release),
        3 => n.clone().prop_map(Step::Begin),
        3 => (n.clone(), proptest::bool::weighted(0.8)).prop_map(|(load, well)| Step::Finish { load, well }),
        3 => n.prop_map(Step::Unloaded),
        1 => Just(Step::Expire),
        1 => (0..20_u64).prop_map(Step::Pass),
    ]
}

/// A ledger and a world around it that does what it is told, in any order.
struct World {
    bench: Bench,
    budget: u64,
    bytes: Vec<u64>,
    waiting: Vec<Place>,
    /// Models with a lease, each once for each lease.
    leased: Vec<Index>,
    claimed: Vec<Index>,
    loading: Vec<Index>,
    loaded: Vec<Index>,
    unloading: Vec<Index>,
}

fn pick<T>(list: &[T], n: usize) -> Option<usize> {
    (!list.is_empty()).then(|| n % list.len())
}

impl World {
    fn take_out(&mut self, victims: Vec<(Index, Fake)>) {
        for (victim, _) in victims {
            assert!(!self.leased.contains(&victim), "{victim} was unloaded under a lease");
            assert_ne!(victim, 0, "the resident one was unloaded");
            let at = self.loaded.iter().position(|index| *index == victim).expect("only what is loaded is unloaded");
            self.loaded.remove(at);
            self.unloading.push(victim);
        }
    }

    fn ask(&mut self, at: usize) {
        let now = self.bench.now;
        let place = &mut self.waiting[at];
        let index = place.index;
        match self.bench.ledger.ask(place, now) {
            Answer::Leased(_) => {
                assert!(self.loaded.contains(&index));
                self.leased.push(index);
                self.waiting.remove(at);
            }
            Answer::Load(victims) => {
                assert!(![&self.claimed, &self.loading, &self.loaded].iter().any(|list| list.contains(&index)));
                self.claimed.push(index);
                self.take_out(victims);
            }
            Answer::Failed(_) => {
                let place = self.waiting.remove(at);
                self.bench.ledger.leave(&place);
            }
            Answer::Wait => {}
            Answer::ShutDown => panic!("nobody has shut it down"),
        }
    }

    fn begin(&mut self, at: usize) {
        let index = self.claimed[at];
        match self.bench.ledger.begin(index) {
            Begin::Now => {
                self.claimed.remove(at);
                self.loading.push(index);
            }
            Begin::Later => assert!(!self.unloading.is_empty(), "{index} waits for nothing"),
            Begin::Never => panic!("{index} is claimed"),
        }
    }

    fn finish(&mut self, at: usize, well: bool) {
        let index = self.loading.remove(at);
        let done = if well { Ok(Fake { saved: index % 3 == 1 }) } else { Err(LoadFailure::Panicked) };
        assert!(self.bench.ledger.finish(index, done, self.bench.now).is_none());
        if well {
            self.loaded.push(index);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Queue(n) => {
                let place = self.bench.queue(n % self.bytes.len());
                self.waiting.push(place);
            }
            Step::Ask(n) => pick(&self.waiting, n).into_iter().for_each(|at| self.ask(at)),
            Step::Leave(n) => {
                if let Some(at) = pick(&self.waiting, n) {
                    let place = self.waiting.remove(at);
                    self.bench.ledger.leave(&place);
                }
            }
            Step::Release(n) => {
                if let Some(at) = pick(&self.leased, n) {
                    let index = self.leased.remove(at);
                    self.bench.ledger.release(index, self.bench.now);
                }
            }
            Step::Begin(n) => pick(&self.claimed, n).into_iter().for_each(|at| self.begin(at)),
            Step::Finish { load, well } => pick(&self.loading, load).into_iter().for_each(|at| self.finish(at, well)),
            Step::Unloaded(n) => {
                if let Some(at) = pick(&self.unloading, n) {
                    let index = self.unloading.remove(at);
                    self.bench.ledger.unloaded(index);
                }
            }
            Step::Expire => {
                let expired = self.bench.ledger.take_idle(Duration::from_secs(10), self.bench.now);
                self.take_out(expired);
            }
            Step::Pass(seconds) => self.bench.now += Duration::from_secs(seconds),
        }
        self.check();
    }

    fn check(&self) {
        let sum =
            |lists: &[&Vec<Index>]| lists.iter().flat_map(|list| list.iter()).map(|n| self.bytes[*n]).sum::<u64>();
        let held = sum(&[&self.loading, &self.loaded, &self.unloading]);
        assert_eq!(held, self.bench.ledger.held());
        assert!(held <= self.budget, "{held} of {} are held", self.budget);
        let planned = sum(&[&self.claimed, &self.loading, &self.loaded]);
        assert!(planned <= self.budget, "{planned} of {} are planned", self.budget);
    }

    /// Everything goes on as it should, and everybody who waits is answered.
    fn settle(&mut self) {
        for _ in 0..200 {
            while !self.leased.is_empty() {
                self.step(&Step::Release(0));
            }
            while !self.unloading.is_empty() {
                self.step(&Step::Unloaded(0));
            }
            while !self.claimed.is_empty() {
                self.step(&Step::Begin(0));
            }
            while !self.loading.is_empty() {
                self.step(&Step::Finish { load: 0, well: true });
            }
            for at in (0..self.waiting.len()).rev() {
                self.ask(at);
                self.check();
            }
            if self.waiting.is_empty() {
                return;
            }
        }
        panic!("{:?} wait for ever", self.waiting);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_programs_keep_to_the_budget_and_answer_everybody(
        bytes in proptest::collection::vec(1..10_u64, 1..6),
        spare in 0..12_u64,
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        // The first one is resident; each of the others fits beside it.
        let budget = bytes[0] + bytes[1..].iter().max().unwrap_or(&0) + spare;
        let residence = |n| if n == 0 { Residence::Resident } else { Residence::OnDemand };
        let models: Vec<_> = bytes.iter().enumerate().map(|(n, bytes)| (*bytes, residence(n))).collect();
        let mut world = World {
            bench: Bench::new(ledger(budget, &models)),
            budget,
            bytes,
            waiting: Vec::new(),
            leased: Vec::new(),
            claimed: Vec::new(),
            loading: Vec::new(),
            loaded: Vec::new(),
            unloading: Vec::new(),
        };
        // Its room is taken from the start, as by a preload.
        prop_assert!(world.bench.ledger.claim_free(0));
        world.loading.push(0);
        world.finish(0, true);
        for step in &steps {
            world.step(step);
        }
        world.settle();
    }
}
