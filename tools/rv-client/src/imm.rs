// SPDX-License-Identifier: GPL-2.0

//! The 32-bit immediate: who it is for, and a tag that means something to him.

use crate::error::{
    Error,
    Result, //
};

/// Highest number of index bits that rv takes.
const MAX_INDEX_BITS: u8 = 12;

/// How a job splits immediates: the top `index_bits` bits are the receiver's `rv_index`, by which
/// rv finds the process; the rest, the tag, belongs to the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ImmLayout {
    /// At most [`MAX_INDEX_BITS`].
    index_bits: u8,
}

impl ImmLayout {
    /// Makes the layout of a job that attached with `index_bits`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] above 12 bits.
    pub fn new(index_bits: u8) -> Result<Self> {
        if index_bits > MAX_INDEX_BITS {
            return Err(Error::Argument(format!(
                "index bits {index_bits}: at most {MAX_INDEX_BITS}"
            )));
        }
        Ok(Self { index_bits })
    }

    /// Returns the number of bits of the tag: 20 to 32.
    pub fn tag_bits(self) -> u32 {
        32 - u32::from(self.index_bits)
    }

    /// Returns the highest tag.
    pub fn tag_mask(self) -> u32 {
        u32::MAX >> self.index_bits
    }

    /// Joins an index and a tag; bits of the tag that do not fit are cut off.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when the index has more than `index_bits` bits.
    pub fn encode(self, rv_index: u32, tag: u32) -> Result<u32> {
        // With 0 index bits the shift is by 32, and the only index is 0.
        if rv_index.checked_shr(self.index_bits.into()).unwrap_or(0) != 0 {
            return Err(Error::Argument(format!(
                "rv_index {rv_index} does not fit into {} bits",
                self.index_bits
            )));
        }
        let index = rv_index.checked_shl(self.tag_bits()).unwrap_or(0);
        Ok(index | (tag & self.tag_mask()))
    }

    /// Splits an immediate into index and tag.
    pub fn decode(self, imm: u32) -> (u32, u32) {
        let index = imm.checked_shr(self.tag_bits()).unwrap_or(0);
        (index, imm & self.tag_mask())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nine_bits_as_psm3() {
        let layout = ImmLayout::new(9).unwrap();
        assert_eq!(layout.tag_bits(), 23);
        assert_eq!(layout.encode(1, 0).unwrap(), 1 << 23);
        assert_eq!(layout.encode(511, 0x7f_ffff).unwrap(), u32::MAX);
        assert_eq!(layout.decode(0x0080_0007), (1, 7));
        assert!(layout.encode(512, 0).is_err());
    }

    #[test]
    fn no_bits_means_index_0() {
        let layout = ImmLayout::new(0).unwrap();
        assert_eq!(layout.encode(0, 0xffff_fffe).unwrap(), 0xffff_fffe);
        assert_eq!(layout.decode(0xffff_fffe), (0, 0xffff_fffe));
        assert!(layout.encode(1, 0).is_err());
    }

    #[test]
    fn too_many_bits() {
        assert!(ImmLayout::new(12).is_ok());
        assert!(ImmLayout::new(13).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(bits in 0_u8..=12, index: u32, tag: u32) {
            let layout = ImmLayout::new(bits).unwrap();
            let index = index & !(u32::MAX.checked_shl(bits.into()).unwrap_or(0));
            let tag = tag & layout.tag_mask();
            let imm = layout.encode(index, tag).unwrap();
            prop_assert_eq!(layout.decode(imm), (index, tag));
        }
    }
}
