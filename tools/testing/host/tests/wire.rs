// SPDX-License-Identifier: GPL-2.0

//! The private data of CM messages, roles, and indices: `rv/wire.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by it, as it should")]

#[path = "../../../../rv/wire.rs"]
mod wire;

use proptest::prelude::*;
use wire::*;

/// A REQ with every field set to something recognisable.
fn req() -> Req {
    let key = JobKey::new(core::array::from_fn(|i| 0xa0 + i as u8), 16);
    Req {
        index: 3,
        job_key: key.unwrap(),
        uid: 0x0102_0304,
    }
}

#[test]
fn req_has_the_bytes_of_the_protocol() {
    let mut expected = Vec::from(*b"\x21\x21\x4d\x53\x50\x55\x12\x00");
    expected.extend([2, 0, 0, 0]);
    expected.extend([0, 0, 3, 16]);
    expected.extend((0..16).map(|i| 0xa0 + i));
    expected.extend([4, 3, 2, 1]);
    expected.extend([0; 4]);
    assert_eq!(req().emit().as_slice(), expected);
}

#[test]
fn rep_has_the_bytes_of_the_protocol() {
    assert_eq!(
        emit_rep(),
        *b"\x21\x21\x4d\x53\x50\x55\x12\x00\x02\0\0\0\0\0\0\0"
    );
}

#[test]
fn farewell_has_the_bytes_of_the_protocol() {
    let bytes = Farewell::refuse(Refusal::NotFound).emit();
    assert_eq!(
        bytes,
        *b"\x21\x21\x4d\x53\x50\x55\x12\x00\x02\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0"
    );
    let recoverable = Farewell {
        reason: 7,
        recoverable: true,
    };
    assert_eq!(recoverable.emit()[16], 1);
}

#[test]
fn reasons_have_the_numbers_of_the_protocol() {
    let refusals = [
        (Refusal::InvalidReq, 1),
        (Refusal::InvalidRep, 2),
        (Refusal::NotFound, 3),
        (Refusal::Mismatch, 4),
        (Refusal::LocalError, 5),
        (Refusal::InError, 6),
        (Refusal::Connecting, 7),
        (Refusal::Disconnecting, 8),
        (Refusal::NotListener, 9),
        (Refusal::TimedOut, 10),
    ];
    for (refusal, number) in refusals {
        assert_eq!(Farewell::refuse(refusal).reason, number);
    }
    let disconnects = [
        (Disconnect::UnexpectedRtu, 2),
        (Disconnect::QpError, 4),
        (Disconnect::CqError, 5),
        (Disconnect::TimedOut, 6),
    ];
    for (disconnect, number) in disconnects {
        assert_eq!(Farewell::disconnect(disconnect, false).reason, number);
    }
}

/// A peer may begin a recovery by this alone.
#[test]
fn only_a_node_that_makes_room_refuses_for_now() {
    for (refusal, recoverable) in [
        (Refusal::InvalidReq, false),
        (Refusal::NotFound, false),
        (Refusal::LocalError, false),
        (Refusal::InError, false),
        (Refusal::Connecting, true),
        (Refusal::Disconnecting, true),
        (Refusal::NotListener, false),
        (Refusal::TimedOut, false),
    ] {
        assert_eq!(Farewell::refuse(refusal).recoverable, recoverable);
    }
    assert!(Farewell::disconnect(Disconnect::QpError, true).recoverable);
    assert!(!Farewell::disconnect(Disconnect::QpError, false).recoverable);
}

#[test]
fn req_of_an_older_version_is_refused() {
    let mut bytes = req().emit();
    bytes[8] = 1;
    assert_eq!(Req::parse(&bytes), Err(Refusal::InvalidReq));
}

#[test]
fn req_of_a_newer_version_is_read() {
    let mut bytes = [0; 92];
    bytes[..40].copy_from_slice(&req().emit());
    bytes[8] = 3;
    assert_eq!(Req::parse(&bytes), Ok(req()));
}

#[test]
fn req_with_a_key_that_is_too_long_is_refused() {
    let mut bytes = req().emit();
    bytes[15] = 17;
    assert_eq!(Req::parse(&bytes), Err(Refusal::InvalidReq));
}

#[test]
fn rep_of_another_version_is_refused() {
    for version in [0, 1, 3] {
        let mut bytes = emit_rep();
        bytes[8] = version;
        assert_eq!(parse_rep(&bytes), Err(Refusal::InvalidRep));
    }
    assert_eq!(parse_rep(&emit_rep()), Ok(()));
}

#[test]
fn zeros_are_no_explanation() {
    assert_eq!(Farewell::parse(&[0; 148]), Farewell::NONE);
    assert_eq!(Farewell::parse(&[]), Farewell::NONE);
}

#[test]
fn bytes_past_the_length_of_a_key_do_not_count() {
    let one = JobKey::new([1; 16], 4).unwrap();
    let mut bytes = [9; 16];
    bytes[..4].fill(1);
    let other = JobKey::new(bytes, 4).unwrap();
    assert!(one.is_same(&other));
    assert!(!one.is_same(&JobKey::new([1; 16], 5).unwrap()));
}

#[test]
fn keys_without_length_are_the_same() {
    let one = JobKey::new([1; 16], 0).unwrap();
    let other = JobKey::new([2; 16], 0).unwrap();
    assert!(one.is_same(&other));
}

#[test]
fn lower_address_listens() {
    assert_eq!(Role::of(1, 2), Some(Role::Server));
    assert_eq!(Role::of(2, 1), Some(Role::Client));
    assert_eq!(Role::of(2, 2), None);
}

#[test]
fn index_is_in_the_upper_bits() {
    assert_eq!(index_of(0xff80_0000, 9), 511);
    assert_eq!(index_of(0x0080_0000, 9), 1);
    assert_eq!(index_of(0x007f_ffff, 9), 0);
    assert_eq!(index_of(0xffff_ffff, 12), 4095);
    assert_eq!(index_of(0xffff_ffff, 0), 0);
}

proptest! {
    #[test]
    fn req_survives_the_wire(index: u8, key: [u8; 16], len in 0_u8..=16, uid: u32) {
        let req = Req { index, job_key: JobKey::new(key, len).unwrap(), uid };
        prop_assert_eq!(Req::parse(&req.emit()), Ok(req));
    }

    #[test]
    fn farewell_survives_the_wire(reason: u32, recoverable: bool) {
        let farewell = Farewell { reason, recoverable };
        prop_assert_eq!(Farewell::parse(&farewell.emit()), farewell);
    }

    #[test]
    fn any_bytes_are_read_without_harm(data in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Req::parse(&data);
        let _ = parse_rep(&data);
        let _ = Farewell::parse(&data);
    }

    /// As before, but the data begin as ours do, so that the fields behind are read.
    #[test]
    fn any_fields_are_read_without_harm(tail in prop::collection::vec(any::<u8>(), 0..96)) {
        let mut data = Vec::from(&emit_rep()[..12]);
        data.extend(tail);
        if let Ok(req) = Req::parse(&data) {
            prop_assert!(req.job_key.significant().len() <= JOB_KEY_LEN);
        }
        let _ = Farewell::parse(&data);
    }

    #[test]
    fn two_nodes_never_play_the_same_role(one: [u8; 16], other: [u8; 16]) {
        let roles = (Role::of(one, other), Role::of(other, one));
        prop_assert!(matches!(
            roles,
            (None, None)
                | (Some(Role::Server), Some(Role::Client))
                | (Some(Role::Client), Some(Role::Server))
        ));
    }

    #[test]
    fn index_fits_its_bits(imm: u32, bits in 0_u8..=12) {
        prop_assert!(u32::from(index_of(imm, bits)) < 1 << bits);
    }
}
