//! The agent, the server and the clock.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use untaint::api::ApiError;
use untaint::boot::Boot;
use untaint::config::Rule;
use untaint::gate::State;
use untaint::node::Answer;
use untaint::node::patch::Action;
use untaint::node::writes::Request;

use crate::agent::Agent;
use crate::events::{Event, Fate, Options, Others, PALETTE, SLOTS};
use crate::invariants::check_effect;
use crate::server::{Server, refused};

/// The time from a request to its answer.
const ROUND_TRIP: Duration = Duration::from_millis(5);
/// The time after which a request counts as not answered.
const TIME_OUT: Duration = Duration::from_secs(5);
/// The limit of turns of the loop at one moment by time alone.
const AT_ONCE: u32 = 10;

/// Without faults, a taint is removed within this time: 1.5 times the longest wait that a server can ask for, a backoff, 1.5
/// times the longest wait after a refusal, a token, `stableFor` and a little more.
const IN_TIME: Duration = Duration::from_secs(45 + 5 + 90 + 10 + 15 + 1);
/// The limit of turns of the loop in this time.
const TURNS: u32 = 60;

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.removals += other.removals;
        self.put_backs += other.put_backs;
        self.refusals += other.refusals;
    }
}

pub(crate) struct World {
    now: Instant,
    server: Server,
    agent: Agent,
    /// When the request on its way was sent, and its result at the server.
    sent: Option<Instant>,
    served: Option<Answer>,
    wake: Option<Instant>,
    totals: Totals,
}

/// Counts of what was done.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) turns: u64,
    pub(crate) removals: u64,
    pub(crate) put_backs: u64,
    pub(crate) refusals: u64,
}

impl World {
    pub(crate) fn new(rules: &[Option<Options>; SLOTS], boots: bool) -> Self {
        let now = Instant::now();
        let boot = boots.then(|| Boot {
            time: "2026-01-02T00:00:00Z".parse().unwrap(),
            until: now + Duration::from_mins(1),
        });
        Self {
            now,
            server: Server::default(),
            agent: Agent::new(now, rules, boot),
            sent: None,
            served: None,
            wake: None,
            totals: Totals::default(),
        }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        match event {
            Event::Others { change, delivered } => {
                self.server.change(&change);
                self.deliver(if delivered { usize::MAX } else { 0 });
            }
            Event::Deliver(changes) => self.deliver(changes),
            Event::Watching(watching) => self.agent.watching = watching,
            Event::Gate(slot, state) => {
                self.agent.traffic.others_act();
                self.agent.found[slot] = state;
                self.agent.gates_report(self.now);
            }
            Event::Pass {
                time,
                served: false,
            } => self.pass(time, |_| None),
            Event::Pass { time, served: true } => self.pass(time, |world| {
                world.deliver(usize::MAX);
                Some(Fate::Served)
            }),
            Event::Pause(time) => {
                self.now += time;
                if time > Duration::from_secs(1) {
                    self.agent.traffic.others_act();
                    self.agent.paused(self.now);
                }
            }
            Event::Reload { rules, lands } => self.reload(&rules, lands),
            Event::Arrive => self.arrive(),
            Event::Answer(fate) => self.answer(fate),
            Event::Siege {
                seconds,
                fate,
                reads,
                puts,
            } => {
                self.pass(Duration::from_secs(seconds), |world| {
                    world.deliver(usize::MAX);
                    let taint = puts.filter(|taint| world.agent.knows_without(PALETTE[*taint].0));
                    if let Some(taint) = taint {
                        // The agent sees the removal before the taint is added again.
                        world.turn();
                        world.server.change(&Others::Put {
                            taint,
                            front: false,
                        });
                        world.deliver(usize::MAX);
                    }
                    let is_read = matches!(world.agent.pending, Some(Request::Get(_)));
                    Some(if is_read && !reads {
                        Fate::Served
                    } else {
                        fate
                    })
                });
            }
        }
        self.turn();
    }

    /// The watch, if there is one, delivers so many changes.
    fn deliver(&mut self, changes: usize) {
        if !self.agent.watching {
            return;
        }
        for _ in 0..changes.min(self.server.undelivered.len()) {
            if let Some(update) = self.server.undelivered.pop_front() {
                self.agent.observe_watch(update);
            }
            self.turn();
        }
    }

    fn reload(&mut self, rules: &[Option<Options>; SLOTS], lands: bool) {
        self.agent.traffic.others_act();
        let configured = self.agent.configured();
        if let Some(change) = self.agent.reload(self.now, rules) {
            if lands && self.served.is_none() {
                self.serve(&Request::Patch(change), &configured).ok();
            }
            (self.sent, self.served) = (None, None);
        }
    }

    /// One turn of the loop.
    fn turn(&mut self) {
        self.totals.turns += 1;
        self.wake = self.agent.turn(self.now);
        if self.agent.pending.is_some() {
            self.sent.get_or_insert(self.now);
        }
    }

    /// Time passes, and everything due happens. `siege` sets the fate of requests.
    fn pass(&mut self, time: Duration, siege: impl Fn(&mut Self) -> Option<Fate>) {
        let end = self.now + time;
        let mut at_once = 0;
        self.turn();
        loop {
            let fate = siege(self);
            let answer_in = if fate.is_some() { ROUND_TRIP } else { TIME_OUT };
            let answer_at = self.sent.map(|sent| (sent + answer_in).max(self.now));
            let next = answer_at.into_iter().chain(self.wake).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            at_once = if next > self.now { 0 } else { at_once + 1 };
            assert!(at_once < AT_ONCE, "the loop spins");
            self.now = next.max(self.now);
            if answer_at.is_some_and(|at| at <= self.now) {
                self.answer(fate.unwrap_or(Fate::Lost { applied: false }));
            }
            self.turn();
        }
        self.now = end;
    }

    fn arrive(&mut self) {
        if let (Some(request), None) = (self.agent.pending.clone(), &self.served) {
            let configured = self.agent.configured();
            self.served = Some(self.serve(&request, &configured));
        }
    }

    /// The request on its way ends.
    fn answer(&mut self, fate: Fate) {
        let Some(request) = self.agent.pending.clone() else {
            return;
        };
        let refusal = |code, detailed, retry_after: Option<u64>| ApiError::Refused {
            code,
            message: format!("{code}"),
            detailed,
            retry_after: retry_after.map(Duration::from_secs),
        };
        let (applied, error) = match fate {
            Fate::Served | Fate::Restored => (true, None),
            Fate::Lost { applied } => (applied, Some(ApiError::Transport("reset".into()))),
            Fate::Failed {
                code,
                applied,
                retry_after,
            } => (applied, Some(refusal(code, true, retry_after))),
            // Too late: the server has applied it.
            Fate::Refused { .. } if self.served.is_some() => (true, None),
            Fate::Refused {
                code,
                detailed,
                retry_after,
            } => (false, Some(refusal(code, detailed, retry_after))),
        };
        let restores = matches!(fate, Fate::Restored) && self.served.is_none();
        if restores {
            self.served = Some(self.server.get());
        } else if applied {
            self.arrive();
        }
        let served = self.served.take();
        let answer = error.map_or_else(|| served.unwrap_or_else(|| Err(refused(500, false))), Err);
        (self.sent, self.agent.pending) = (None, None);
        self.agent.answered(self.now, &request, answer);
    }

    fn serve(&mut self, request: &Request, configured: &[Rule]) -> Answer {
        if let Request::Patch(change) = request {
            let patched = self.server.patch(&change.operations);
            self.totals.refusals += u64::from(patched.is_err());
            let (before, after) = patched?;
            match change.action {
                Action::Remove => self.totals.removals += 1,
                Action::PutBack => self.totals.put_backs += 1,
            }
            check_effect(change, configured, &before, &after);
        }
        self.server.get()
    }

    /// From now on, there are no faults. Every taint of the rules must be removed, in time and with few requests.
    pub(crate) fn end_faults(mut self) -> Totals {
        self.agent.watching = true;
        if self.server.node().is_none() {
            self.server
                .change(&Others::Recreate((0..PALETTE.len() - 1).collect()));
        }
        self.server.change(&Others::Registered);
        self.server.change(&Others::Pool(Some("a")));
        self.deliver(usize::MAX);
        self.agent.traffic.others_act();
        self.agent.found = [State::Open; SLOTS];
        self.agent.gates_report(self.now);
        let begin = (self.now, self.totals.turns);
        self.turn();
        while self.agent.pending.is_some() || self.is_left() {
            let answer_at = self.sent.map(|sent| (sent + ROUND_TRIP).max(self.now));
            let next = answer_at.into_iter().chain(self.wake).min();
            self.now = next.expect("a taint is there forever").max(self.now);
            if answer_at.is_some_and(|at| at <= self.now) {
                self.answer(Fate::Served);
            }
            self.deliver(usize::MAX);
            self.turn();
            assert!(self.now - begin.0 <= IN_TIME, "a taint is there for long");
            assert!(
                self.totals.turns - begin.1 <= u64::from(TURNS),
                "the loop spins"
            );
        }
        self.totals
    }

    fn is_left(&self) -> bool {
        let node = self.server.view().unwrap();
        let rules = self.agent.configured();
        let mut live = rules.iter().filter(|rule| !rule.dry_run);
        live.any(|rule| node.has(&rule.taint))
    }
}
