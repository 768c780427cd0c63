// SPDX-License-Identifier: GPL-2.0

//! One line of a table: `key=value` pairs.

/// What a key stands for, as text. Other values are numbers.
const TEXTS: [&str; 9] = [
    "device",
    "gid",
    "comm",
    "mode",
    "role",
    "state",
    "rem_addr",
    "loc_addr",
    "service_id",
];

/// One line of a table, its keys in the order they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record(Vec<(String, Value)>);

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A count, a size, a time, a name that is a number.
    Number(i64),
    /// The same, if it is that large.
    Large(u64),
    /// Any other name.
    Text(String),
}

impl Record {
    /// Takes a line apart.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for pair in line.split(' ') {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("`{pair}` is no key=value"))?;
            if key.is_empty() || pairs.iter().any(|(known, _)| known == key) {
                return Err(format!("the key of `{pair}` is empty or there twice"));
            }
            pairs.push((key.to_owned(), Value::parse(key, value)?));
        }
        Ok(Self(pairs))
    }

    /// A number, 0 if there is none of that name: an older module does not have all.
    pub(crate) fn number(&self, key: &str) -> u64 {
        match self.get(key) {
            Some(Value::Number(number)) => u64::try_from(*number).unwrap_or(0),
            Some(Value::Large(number)) => *number,
            _ => 0,
        }
    }

    /// A text, `-` if there is none of that name.
    pub(crate) fn text(&self, key: &str) -> &str {
        match self.get(key) {
            Some(Value::Text(text)) => text,
            _ => "-",
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0
            .iter()
            .find_map(|(known, value)| (known == key).then_some(value))
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl Value {
    fn parse(key: &str, text: &str) -> Result<Self, String> {
        if TEXTS.contains(&key) {
            return Ok(Self::Text(unescape(text)?));
        }
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        // Of a key that is newer than this program.
        Ok(text
            .parse()
            .map_or_else(|_| Self::Text(text.to_owned()), Self::Large))
    }
}

/// Undoes the escapes of names, `\xNN`. Control characters become `?`.
fn unescape(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let byte = escaped
            .strip_prefix('x')
            .and_then(|digits| digits.get(..2))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| format!("`{text}` has a bad escape"))?;
        bytes.push(byte);
        rest = escaped.get(3..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.replace(|c: char| c.is_control(), "?"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_their_types() {
        let line = "device=rxe0 job=3 gid=00000000000000000000000000000001 pid=-1 new=word \
                    bytes=18446744073709551615";
        let record = Record::parse(line).unwrap_or(Record(Vec::new()));
        assert_eq!(record.text("device"), "rxe0");
        assert_eq!(record.number("job"), 3);
        assert_eq!(record.text("gid"), "00000000000000000000000000000001");
        assert_eq!(record.get("pid"), Some(&Value::Number(-1)));
        assert_eq!(record.number("pid"), 0);
        assert_eq!(record.text("new"), "word");
        assert_eq!(record.number("bytes"), u64::MAX);
        assert_eq!((record.number("none"), record.text("none")), (0, "-"));
    }

    #[test]
    fn names_are_unescaped() {
        let name = |text: &str| Record::parse(text).map(|record| record.text("comm").to_owned());
        assert_eq!(name(r"comm=a\x20b\x3dc\x5c"), Ok(r"a b=c\".to_owned()));
        assert_eq!(name(r"comm=a\x0a\x1b[m"), Ok("a??[m".to_owned()));
        assert_eq!(name(r"comm=\xc3\xa4"), Ok("ä".to_owned()));
        for bad in [r"comm=\", r"comm=\x2", r"comm=\xzz", r"comm=\n12"] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_lines_are_refused() {
        for bad in ["", "word", "a=1 b", "=1", "a=1 a=2", "a=1  b=2"] {
            assert!(Record::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(line in "\\PC*") {
            let _ = Record::parse(&line);
        }

        #[test]
        fn any_name_comes_back(name in "[ -~]{0,16}") {
            let escape = |byte: u8| match byte {
                b'\\' | b'=' | b' ' => format!("\\x{byte:02x}"),
                _ => char::from(byte).to_string(),
            };
            let line: String = name.bytes().map(escape).collect();
            let record = Record::parse(&format!("comm={line}"));
            prop_assert_eq!(record.map(|record| record.text("comm").to_owned()), Ok(name));
        }
    }
}
