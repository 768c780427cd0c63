// SPDX-License-Identifier: GPL-2.0

//! Sizes as people write and read them.

/// Reads a size: digits, and perhaps K, M, G or T for powers of 1024 (`64K`, `1MiB`).
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let error = || format!("`{text}` is no size: write 4096, 64K, 1M or 2G");
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(error()),
    };
    let number: u64 = digits.parse().map_err(|_| error())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// Writes a size: whole KiB, MiB, GiB where it is some, else bytes.
pub(crate) fn size(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} bytes")
}

/// Returns MiB/s.
pub(crate) fn mib_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        mib(bytes) / seconds
    } else {
        0.0
    }
}

/// Returns MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    // CAST: Exact below 2^53, and a figure for people above.
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("1MiB", 1 << 20),
            ("2g", 2 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1.5M", "1X", "99999999999G", "1 M"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written() {
        assert_eq!(size(1 << 20), "1 MiB");
        assert_eq!(size(96 << 10), "96 KiB");
        assert_eq!(size(1000), "1000 bytes");
        assert_eq!(size(0), "0 bytes");
    }

    #[test]
    fn rates() {
        assert!((mib_per_second(10 << 20, 2.0) - 5.0).abs() < 1e-9);
        assert!(mib_per_second(10, 0.0).abs() < 1e-9);
    }
}
