//! The events of a history, in any order.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use untaint::gate::State;

/// Taints that others add to the Node: key, value and effect. Some match the rules, and some have only the key of a rule.
pub(crate) const PALETTE: [(&str, &str, &str); 10] = [
    ("t/one", "", "NoSchedule"),
    ("t/one", "w", "NoExecute"),
    ("t/other", "", "NoSchedule"),
    ("t/two", "v", "NoSchedule"),
    ("t/two", "w", "NoSchedule"),
    ("t/three", "", "NoExecute"),
    ("t/three", "w", "NoExecute"),
    ("f/x", "1", "NoSchedule"),
    ("f/y", "", "NoExecute"),
    ("karpenter.sh/unregistered", "", "NoExecute"),
];

/// The number of taints that others add at any time. The taint of Karpenter is added and removed with its label.
const AT_WILL: usize = PALETTE.len() - 1;
/// The largest number of rules at a time.
pub(crate) const SLOTS: usize = 3;

/// A write of another client to the Node.
#[derive(Debug, Clone)]
pub(crate) enum Others {
    Put {
        taint: usize,
        front: bool,
    },
    /// Removes all taints with the key of this taint.
    TakeOff(usize),
    Rotate(usize),
    Pool(Option<&'static str>),
    Unregistered,
    Registered,
    Delete,
    Recreate(Vec<usize>),
}

/// The fate of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    Served,
    /// It is applied, and something in the server undoes it before the answer.
    Restored,
    /// There is no answer. It is applied or not.
    Lost {
        applied: bool,
    },
    /// The server fails before or after it was applied.
    Failed {
        code: u16,
        applied: bool,
        retry_after: Option<u64>,
    },
    /// It is refused.
    Refused {
        code: u16,
        detailed: bool,
        retry_after: Option<u64>,
    },
}

/// The fields of a rule without its taint.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of a rule")]
pub(crate) struct Options {
    pub(crate) another_taint: bool,
    pub(crate) gated: bool,
    pub(crate) stable_for: u64,
    pub(crate) deadline: u64,
    pub(crate) fails_open: bool,
    pub(crate) retaint: bool,
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    Others {
        change: Others,
        delivered: bool,
    },
    /// The watch delivers so many of the waiting changes.
    Deliver(usize),
    Watching(bool),
    Gate(usize, State),
    /// Time passes. With `served`, the watch is on time and requests are served.
    Pass {
        time: Duration,
        served: bool,
    },
    /// The process is paused.
    Pause(Duration),
    Reload {
        rules: [Option<Options>; SLOTS],
        lands: bool,
    },
    /// The request on its way reaches the server.
    Arrive,
    Answer(Fate),
    /// For so many seconds, every PATCH has this fate, and every read has it or is served. The watch is on time, and each taint
    /// that the agent has seen removed comes back at once.
    Siege {
        seconds: u64,
        fate: Fate,
        reads: bool,
        puts: Option<usize>,
    },
}

/// The rules at the start, whether the process starts with the boot, and the events.
pub(crate) fn histories() -> impl Strategy<Value = ([Option<Options>; SLOTS], bool, Vec<Event>)> {
    (
        configuration(),
        any::<bool>(),
        prop::collection::vec(event(), 1..120),
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (others(), prop::bool::weighted(0.7)).prop_map(|(change, delivered)| Event::Others { change, delivered }),
        4 => (1..4_usize).prop_map(Event::Deliver),
        6 => (0..SLOTS, gate()).prop_map(|(slot, state)| Event::Gate(slot, state)),
        1 => any::<bool>().prop_map(Event::Watching),
        8 => (millis(), prop::bool::weighted(0.7)).prop_map(|(time, served)| Event::Pass { time, served }),
        1 => millis().prop_map(Event::Pause),
        2 => (configuration(), any::<bool>()).prop_map(|(rules, lands)| Event::Reload { rules, lands }),
        2 => Just(Event::Arrive),
        8 => fate().prop_map(Event::Answer),
        1 => (1..90_u64, fate(), any::<bool>(), prop::option::weighted(0.8, 0..AT_WILL))
            .prop_map(|(seconds, fate, reads, puts)| Event::Siege { seconds, fate, reads, puts }),
    ]
}

fn gate() -> impl Strategy<Value = State> {
    prop_oneof![4 => Just(State::Open), 3 => Just(State::Closed), 1 => Just(State::Unknown)]
}

fn millis() -> impl Strategy<Value = Duration> {
    let bounds = prop_oneof![4 => 0..400_u64, 4 => 400..12_000_u64, 2 => 12_000..90_000_u64];
    bounds.prop_map(Duration::from_millis)
}

fn others() -> impl Strategy<Value = Others> {
    prop_oneof![
        10 => (0..AT_WILL, any::<bool>()).prop_map(|(taint, front)| Others::Put { taint, front }),
        4 => (0..AT_WILL).prop_map(Others::TakeOff),
        3 => (1..4_usize).prop_map(Others::Rotate),
        2 => select(&[None, Some("a"), Some("a"), Some("b")][..]).prop_map(Others::Pool),
        1 => Just(Others::Unregistered),
        2 => Just(Others::Registered),
        1 => Just(Others::Delete),
        3 => prop::collection::vec(0..AT_WILL, 0..6).prop_map(Others::Recreate),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    let wait = || prop::option::of(select(&[1_u64, 30][..]));
    let code = select(&[401_u16, 403, 404, 409, 422, 429][..]);
    prop_oneof![
        10 => Just(Fate::Served),
        1 => Just(Fate::Restored),
        3 => any::<bool>().prop_map(|applied| Fate::Lost { applied }),
        2 => (select(&[500_u16, 503, 504][..]), any::<bool>(), wait())
            .prop_map(|(code, applied, retry_after)| Fate::Failed { code, applied, retry_after }),
        6 => (code, any::<bool>(), wait()).prop_map(|(code, detailed, retry_after)| Fate::Refused {
            code,
            // The Node exists, so a 404 for it is not possible.
            detailed: detailed && code != 404,
            retry_after,
        }),
    ]
}

fn configuration() -> impl Strategy<Value = [Option<Options>; SLOTS]> {
    let slot = || prop::option::weighted(0.8, options());
    [slot(), slot(), slot()]
}

fn options() -> impl Strategy<Value = Options> {
    let sometimes = prop::bool::weighted;
    let durations = (select(&[0_u64, 0, 2, 15][..]), select(&[5_u64, 600][..]));
    let flags = (
        sometimes(0.1),
        sometimes(0.8),
        sometimes(0.3),
        sometimes(0.7),
        sometimes(0.1),
    );
    (durations, flags).prop_map(
        |((stable_for, deadline), (another_taint, gated, fails_open, retaint, dry_run))| Options {
            another_taint,
            gated,
            stable_for,
            deadline,
            fails_open,
            retaint,
            dry_run,
        },
    )
}
