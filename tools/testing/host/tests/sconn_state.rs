// SPDX-License-Identifier: GPL-2.0

//! The states of a single connection: `rv/sconn/state.rs`.

#[path = "../../../../rv/sconn/state.rs"]
mod state;

use state::State::{self, *};

const ALL: [State; 7] = [
    Init, Waiting, Resolving, Connecting, Connected, Delay, Error,
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
        "Connecting -> Connected Delay Error",
        "Connected -> Error",
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
    for (from, to) in state::STEPS {
        let server = servers.contains(from) || servers.contains(to);
        let client = clients.contains(from) || clients.contains(to);
        assert!(!(server && client), "{from:?} -> {to:?}");
    }
}
