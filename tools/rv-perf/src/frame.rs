// SPDX-License-Identifier: GPL-2.0

//! Messages as bytes: `RVPF`, the length as a little-endian 32-bit number, and JSON.

use crate::failure::{
    Failure,
    Result, //
};
use crate::message::Message;

/// What every frame starts with, so that another program's bytes are noticed.
const MAGIC: [u8; 4] = *b"RVPF";
/// Magic and length.
const HEADER: usize = 8;
/// No message is longer: the longest is `Ready`, with about 50 bytes a slot.
const LONGEST: usize = 1 << 20;

/// Turns a message into bytes.
pub(crate) fn encode(message: &Message) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(message)
        .map_err(|error| Failure::Local(format!("cannot encode a message: {error}")))?;
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    if json.len() > LONGEST {
        return Err(Failure::Local(format!(
            "a message of {length} bytes is too long"
        )));
    }
    let mut bytes = Vec::with_capacity(HEADER + json.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&json);
    Ok(bytes)
}

/// Turns bytes, which come in any portions, into messages.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes bytes from the peer.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next message that is complete.
    ///
    /// # Errors
    ///
    /// When the bytes are no message; there is no way to go on after that.
    pub(crate) fn next(&mut self) -> Result<Option<Message>> {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else {
            return self.check_start().map(|()| None);
        };
        self.check_start()?;
        let [.., a, b, c, d] = *header;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err(Failure::Peer(format!(
                "the peer sent a message of {length} bytes; is it rv-perf?"
            )));
        }
        let Some(json) = rest.get(..length) else {
            return Ok(None);
        };
        let message = serde_json::from_slice(json).map_err(|error| {
            Failure::Peer(format!("the peer sent a malformed message: {error}"))
        })?;
        self.bytes.drain(..HEADER + length);
        Ok(Some(message))
    }

    /// Fails as soon as the first bytes are not those of a frame.
    fn check_start(&self) -> Result<()> {
        let agree = MAGIC.iter().zip(&self.bytes).all(|(a, b)| a == b);
        if agree {
            return Ok(());
        }
        Err(Failure::Peer(
            "the peer does not speak the protocol of rv-perf: wrong port?".into(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{
        Ready,
        Slot, //
    };
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn all(decoder: &mut Decoder) -> Vec<Message> {
        std::iter::from_fn(|| decoder.next().unwrap()).collect()
    }

    #[test]
    fn messages_come_back() {
        let messages = [Message::Created, Message::Credit(7), Message::Arrived];
        let mut decoder = Decoder::default();
        for message in &messages {
            decoder.push(&encode(message).unwrap());
        }
        assert_eq!(all(&mut decoder), messages);
    }

    #[test]
    fn another_protocol_is_noticed_at_its_first_byte() {
        let mut decoder = Decoder::default();
        decoder.push(b"G");
        let failure = decoder.next().unwrap_err();
        assert!(failure.to_string().contains("wrong port"), "{failure}");
    }

    #[test]
    fn too_long() {
        let mut decoder = Decoder::default();
        decoder.push(b"RVPF\xff\xff\xff\xff");
        assert_eq!(decoder.next().unwrap_err().code(), 4);
        let text = "x".repeat(LONGEST);
        assert_eq!(encode(&Message::Error(text)).unwrap_err().code(), 1);
    }

    #[test]
    fn no_json() {
        let mut decoder = Decoder::default();
        decoder.push(b"RVPF\x02\0\0\0{]");
        let failure = decoder.next().unwrap_err();
        assert!(failure.to_string().contains("malformed"), "{failure}");
    }

    #[test]
    fn unknown_message() {
        let mut decoder = Decoder::default();
        decoder.push(b"RVPF\x05\0\0\0\"New\"");
        assert_eq!(decoder.next().unwrap_err().code(), 4);
    }

    #[test]
    fn a_full_slot_table_fits() {
        let slot = Slot {
            iova: u64::MAX,
            rkey: u32::MAX,
        };
        let ready = Message::Ready(Ready {
            slots: vec![slot; 2 * crate::cli::MOST_WINDOW as usize],
            credits: u64::MAX,
        });
        assert!(encode(&ready).is_ok());
    }

    prop_compose! {
        fn message()(kind in 0..4, number: u64, text: String, slots in vec((any::<u64>(), any::<u32>()), 0..20)) -> Message {
            match kind {
                0 => Message::Credit(number),
                1 => Message::Error(text),
                2 => Message::Ready(Ready {
                    slots: slots.into_iter().map(|(iova, rkey)| Slot { iova, rkey }).collect(),
                    credits: number,
                }),
                _ => Message::Arrived,
            }
        }
    }

    proptest! {
        #[test]
        fn any_portions(messages in vec(message(), 0..8), cuts in vec(1_usize..40, 1..200)) {
            let bytes: Vec<u8> = messages.iter().flat_map(|m| encode(m).unwrap()).collect();
            let mut decoder = Decoder::default();
            let mut got = Vec::new();
            let mut rest = bytes.as_slice();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                decoder.push(now);
                got.extend(all(&mut decoder));
                rest = later;
            }
            prop_assert_eq!(got, messages);
        }

        #[test]
        fn any_bytes_are_answered(portions in vec(vec(any::<u8>(), 0..64), 0..8)) {
            let mut decoder = Decoder::default();
            for bytes in portions {
                decoder.push(&bytes);
                if decoder.next().is_err() {
                    break;
                }
            }
        }

        #[test]
        fn any_body_is_answered(body in vec(any::<u8>(), 0..256)) {
            let mut decoder = Decoder::default();
            decoder.push(b"RVPF");
            decoder.push(&u32::try_from(body.len()).unwrap().to_le_bytes());
            decoder.push(&body);
            let _ = decoder.next();
        }
    }
}
