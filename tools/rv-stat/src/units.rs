// SPDX-License-Identifier: GPL-2.0

//! Numbers as people read them.

use std::net::{
    Ipv4Addr,
    Ipv6Addr, //
};

/// A size: at most four digits and the unit, as `1023 B`, `1.5 MiB`, `256 GiB`.
pub(crate) fn size(bytes: f64) -> String {
    scaled(
        bytes,
        1024.0,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
    )
}

/// A count: as it is up to 9999, then as `12.3k`, `4.56M`.
pub(crate) fn count(number: f64) -> String {
    if number < 10_000.0 {
        return short(number, true);
    }
    scaled(number, 1000.0, &["", "k", "M", "G", "T", "P", "E"]).replace(' ', "")
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let mut scaled = number;
    let mut left = units;
    // What would be shown as a whole step is one of the next unit.
    while let [_, next @ ..] = left {
        if next.is_empty() || scaled < step - 0.5 {
            break;
        }
        scaled /= step;
        left = next;
    }
    let whole = left.len() == units.len();
    format!("{} {}", short(scaled, whole), left.first().unwrap_or(&""))
}

/// Three digits, or as many as the number has before the point; no zeros behind it.
fn short(number: f64, whole: bool) -> String {
    let digits = match number {
        n if whole && n.fract() == 0.0 => 0,
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A time of so many µs, in its two largest units: `2d 3h`, `1m 5s`, `12 ms`.
pub(crate) fn time(us: u64) -> String {
    let seconds = us / 1_000_000;
    match seconds {
        0 if us < 1000 => format!("{us} us"),
        0 => format!("{} ms", us / 1000),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// How much of all `part` is, `-` if there is nothing.
pub(crate) fn percent(part: u64, all: u64) -> String {
    if all == 0 {
        return "-".to_owned();
    }
    // CAST: A figure for people.
    format!("{:.1}%", part as f64 * 100.0 / all as f64)
}

/// The address that a GID of 32 digits is: IPv4, IPv6, or `None` if it is all zeros or no GID.
pub(crate) fn address(gid: &str) -> Option<String> {
    let number = u128::from_str_radix(gid, 16).ok().filter(|gid| *gid != 0)?;
    let address = Ipv6Addr::from(number);
    Some(match address.to_ipv4_mapped() {
        Some(address) => Ipv4Addr::to_string(&address),
        None => address.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (1023.0, "1023 B"),
            (1024.0, "1 KiB"),
            (1536.0, "1.5 KiB"),
            (1_048_575.0, "1 MiB"),
            (268_435_456.0, "256 MiB"),
            (1e21, "867 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn counts() {
        for (number, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (7.0, "7"),
            (9999.0, "9999"),
            (12_345.0, "12.3k"),
            (999_999.0, "1M"),
            (4_560_000.0, "4.56M"),
            (120.0, "120"),
        ] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn times() {
        for (us, text) in [
            (7, "7 us"),
            (12_345, "12 ms"),
            (59_999_999, "59s"),
            (65_000_000, "1m 5s"),
            (3_600_000_000, "1h 0m"),
            (183_600_000_000, "2d 3h"),
        ] {
            assert_eq!(time(us), text);
        }
    }

    #[test]
    fn shares() {
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(5, 5), "100.0%");
    }

    #[test]
    fn addresses() {
        for (gid, text) in [
            ("00000000000000000000ffff0a090001", Some("10.9.0.1")),
            ("fe80000000000000000000000000000a", Some("fe80::a")),
            ("00000000000000000000000000000000", None),
            ("-", None),
        ] {
            assert_eq!(address(gid).as_deref(), text);
        }
    }
}
