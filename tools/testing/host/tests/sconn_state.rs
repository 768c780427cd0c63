// SPDX-License-Identifier: GPL-2.0

//! The states of a single connection: `rv/sconn/state.rs`.

#[path = "../../../../rv/sconn/state.rs"]
mod state;

use proptest::prelude::*;
use state::{
    Event,
    State::{self, *},
    Step, STEPS,
};

const ALL: [State; 8] = [
    Init,
    Waiting,
    Resolving,
    Connecting,
    Connected,
    Disconnecting,
    Delay,
    Error,
];

const EVENTS: [Event; 11] = [
    Event::Req,
    Event::Rep,
    Event::Ready,
    Event::NoAnswer,
    Event::Rej { recoverable: true },
    Event::Rej { recoverable: false },
    Event::Dreq { recoverable: true },
    Event::Dreq { recoverable: false },
    Event::QpLost,
    Event::CqLost,
    Event::TimedOut,
];

/// The whole table, so that a step which comes or goes shows.
#[test]
fn transition_table() {
    let table: Vec<String> = ALL
        .iter()
        .map(|from| {
            let next: Vec<String> = ALL
                .iter()
                .filter(|to| from.may_become(**to))
                .map(|to| format!("{to:?}"))
                .collect();
            format!("{from:?} -> {}", next.join(" "))
        })
        .collect();
    let expected = [
        "Init -> Resolving Error",
        "Waiting -> Connecting Error",
        "Resolving -> Connecting Delay Error",
        "Connecting -> Connected Disconnecting Delay Error",
        "Connected -> Disconnecting Error",
        "Disconnecting -> Waiting Delay Error",
        "Delay -> Resolving Error",
        "Error -> ",
    ];
    assert_eq!(table, expected);
}

#[test]
fn no_state_follows_itself() {
    assert!(ALL.iter().all(|state| !state.may_become(*state)));
}

#[test]
fn every_step_is_of_one_role() {
    let servers = [Waiting];
    let clients = [Init, Resolving, Delay];
    for (from, to) in STEPS {
        let server = servers.contains(from) || servers.contains(to);
        let client = clients.contains(from) || clients.contains(to);
        assert!(!(server && client), "{from:?} -> {to:?}");
    }
}

/// One line for each event: what it means in each state, as in the table of the protocol. P goes on,
/// "." stays, R recovers, F fails; lower-case r recovers if that can be, and fails otherwise; s
/// recovers if that can be, and stays otherwise; i stays if a recovery can be, and fails otherwise.
#[test]
fn event_table() {
    #[rustfmt::skip]
    let expected = [
        //                                 Init
        //                                 | Waiting
        //                                 | | Resolving
        //                                 | | | Connecting
        //                                 | | | | Connected
        //                                 | | | | | Disconnecting
        //                                 | | | | | | Delay
        //                                 | | | | | | | Error
        "Req                           :   . P . s s . . .",
        "Rep                           :   F F F P F . F F",
        "Ready                         :   F F F P F . F F",
        "NoAnswer                      :   F F F r F F F F",
        "Rej { recoverable: true }     :   F F F r F i F F",
        "Rej { recoverable: false }    :   F F F F F i F F",
        "Dreq { recoverable: true }    :   F F F r r . F F",
        "Dreq { recoverable: false }   :   F F F F F . F F",
        "QpLost                        :   F F F r r . F F",
        "CqLost                        :   F F F F F F F F",
        "TimedOut                      :   . F F F . F F F",
    ];
    let letter = |state: State, event| match (state.on(event, true), state.on(event, false)) {
        (Step::Proceed, Step::Proceed) => "P",
        (Step::Ignore, Step::Ignore) => ".",
        (Step::Recover, Step::Recover) => "R",
        (Step::Fail, Step::Fail) => "F",
        (Step::Recover, Step::Fail) => "r",
        (Step::Recover, Step::Ignore) => "s",
        (Step::Ignore, Step::Fail) => "i",
        _ => "?",
    };
    let table: Vec<String> = EVENTS
        .iter()
        .map(|event| {
            let letters: Vec<&str> = ALL.iter().map(|state| letter(*state, *event)).collect();
            format!("{:<30}:   {}", format!("{event:?}"), letters.join(" "))
        })
        .collect();
    assert_eq!(table, expected);
}

/// What an event asks for is a step that there is.
#[test]
fn every_answer_is_a_step() {
    for state in ALL {
        for event in EVENTS {
            match state.on(event, true) {
                Step::Recover => assert!(state.may_become(Disconnecting), "{state:?} {event:?}"),
                Step::Fail => assert!(state == Error || state.may_become(Error)),
                Step::Proceed | Step::Ignore => {}
            }
        }
    }
}

/// A connection that cannot be recovered never goes to a state of recovery.
#[test]
fn without_recovery_nothing_is_recovered() {
    for state in ALL {
        for event in EVENTS {
            assert_ne!(state.on(event, false), Step::Recover, "{state:?} {event:?}");
        }
    }
}

proptest! {
    /// Whatever comes in whatever order, `Error` is the end, and `Connected` is only reached by way
    /// of `Connecting`.
    #[test]
    fn any_history_is_sound(history in proptest::collection::vec((0..11_usize, 0..3_usize), 0..60),
                            server: bool) {
        let mut state = if server { Waiting } else { Init };
        let mut been_up = false;
        for (event, own) in history {
            let before = state;
            let step = state.on(EVENTS[event], been_up);
            state = match step {
                Step::Ignore => state,
                Step::Recover => Disconnecting,
                Step::Fail => Error,
                Step::Proceed => match state {
                    Waiting => Connecting,
                    Connecting => Connected,
                    other => panic!("nothing to go on with in {other:?}"),
                },
            };
            prop_assert!(state == before || before.may_become(state));
            // What a connection does by itself.
            let next: Vec<State> = STEPS
                .iter()
                .filter(|(from, to)| {
                    *from == state && !matches!(to, Connected | Disconnecting)
                        && (server == matches!(to, Waiting) || *from != Disconnecting)
                        && !(server && matches!(to, Delay))
                })
                .map(|(_, to)| *to)
                .collect();
            if own < next.len() && state != Waiting {
                state = next[own];
            }
            been_up |= state == Connected;
            prop_assert!(before != Error || state == Error);
            prop_assert!(state != Connected || matches!(before, Connecting | Connected));
        }
    }
}
