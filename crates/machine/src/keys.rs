//! Reading the keys of a TOML table one by one, remembering on which line each stands.
//!
//! It walks over the parsed document instead of deriving a deserializer, because an error has to
//! name the dotted key, its line, the value found there and what is allowed.

use std::collections::BTreeMap;

use serde_spanned::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{Fault, nearest};

/// The line of each key that was read, so that rules checked later can name it too.
pub(crate) struct Lines<'i> {
    text: &'i str,
    seen: BTreeMap<String, usize>,
}

impl<'i> Lines<'i> {
    pub(crate) fn new(text: &'i str) -> Self {
        Lines {
            text,
            seen: BTreeMap::new(),
        }
    }

    /// Line and column, from 1, of a byte offset.
    pub(crate) fn place(&self, offset: usize) -> (usize, usize) {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        (
            before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            offset.saturating_sub(line_start) + 1,
        )
    }

    /// The line of `key`; if the description leaves it out, that of the table it belongs to.
    pub(crate) fn line(&self, key: &str) -> usize {
        let mut key = key;
        loop {
            if let Some(line) = self.seen.get(key) {
                return *line;
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return 1,
            }
        }
    }
}

/// One table being read. Any key left when all known keys have been taken is an error.
pub(crate) struct Keys<'i> {
    /// Dotted name of the table; empty for the whole file.
    path: String,
    table: DeTable<'i>,
    known: Vec<&'static str>,
}

type Value<'i> = Spanned<DeValue<'i>>;

impl<'i> Keys<'i> {
    pub(crate) fn new(path: String, table: DeTable<'i>) -> Self {
        Keys {
            path,
            table,
            known: Vec::new(),
        }
    }

    pub(crate) fn path(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn take(&mut self, key: &'static str, lines: &mut Lines) -> Option<Value<'i>> {
        self.known.push(key);
        let value = self.table.remove(key)?;
        lines.seen.insert(self.path(key), lines.place(value.span().start).0);
        Some(value)
    }

    fn missing(&self, key: &str, allowed: &str) -> Fault {
        // Keys left in the table have not been asked for yet, or never will be.
        let looks_like_it = |left: &&str| nearest(left, [key]).is_some();
        Fault::Missing {
            key: self.path(key),
            allowed: allowed.into(),
            misspelt: self
                .table
                .keys()
                .map(|left| &**left.get_ref())
                .find(looks_like_it)
                .map(str::to_string),
        }
    }

    /// A whole number of at most `max`; `None` where the key is absent.
    pub(crate) fn integer(&mut self, key: &'static str, max: u64, lines: &mut Lines) -> Result<Option<u64>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(None);
        };
        integer(value.get_ref(), &self.path(key), max).map(Some)
    }

    pub(crate) fn required_integer(&mut self, key: &'static str, max: u64, lines: &mut Lines) -> Result<u64, Fault> {
        self.integer(key, max, lines)?
            .ok_or_else(|| self.missing(key, "a whole number"))
    }

    pub(crate) fn u32(&mut self, key: &'static str, lines: &mut Lines) -> Result<Option<u32>, Fault> {
        // The cast keeps the value: it is at most u32::MAX.
        Ok(self.integer(key, u64::from(u32::MAX), lines)?.map(|value| value as u32))
    }

    pub(crate) fn required_u32(&mut self, key: &'static str, lines: &mut Lines) -> Result<u32, Fault> {
        self.u32(key, lines)?.ok_or_else(|| self.missing(key, "a whole number"))
    }

    pub(crate) fn number(&mut self, key: &'static str, lines: &mut Lines) -> Result<Option<f64>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(None);
        };
        let parsed = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse::<f64>().ok(),
            _ => None,
        };
        match parsed {
            Some(number) => Ok(Some(number)),
            None => Err(Fault::value(
                self.path(key),
                found(value.get_ref()),
                "a number, such as 75 or 93.5",
            )),
        }
    }

    pub(crate) fn required_number(&mut self, key: &'static str, lines: &mut Lines) -> Result<f64, Fault> {
        self.number(key, lines)?
            .ok_or_else(|| self.missing(key, "a number, such as 75 or 93.5"))
    }

    pub(crate) fn flag(&mut self, key: &'static str, lines: &mut Lines) -> Result<Option<bool>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            other => Err(Fault::value(self.path(key), found(other), "true or false")),
        }
    }

    pub(crate) fn required_text(&mut self, key: &'static str, lines: &mut Lines) -> Result<String, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Err(self.missing(key, "a string, such as \"L2\""));
        };
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            other => Err(Fault::value(self.path(key), found(other), "a string, such as \"L2\"")),
        }
    }

    /// One of a few words, each with its value.
    pub(crate) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        lines: &mut Lines,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(None);
        };
        let chosen = match value.get_ref() {
            DeValue::String(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        match chosen {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => Err(Fault::value(self.path(key), found(value.get_ref()), list(words))),
        }
    }

    pub(crate) fn required_word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        lines: &mut Lines,
    ) -> Result<T, Fault> {
        self.word(key, words, lines)?
            .ok_or_else(|| self.missing(key, &list(words)))
    }

    /// An array, each element with its own dotted name (`masks[2]`); empty where it is absent.
    pub(crate) fn array<T>(
        &mut self,
        key: &'static str,
        lines: &mut Lines,
        mut element: impl FnMut(&DeValue, &str) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(Vec::new());
        };
        let path = self.path(key);
        elements(value.get_ref(), &path)?
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let path = format!("{path}[{index}]");
                lines.seen.insert(path.clone(), lines.place(item.span().start).0);
                element(item.get_ref(), &path)
            })
            .collect()
    }

    pub(crate) fn table(&mut self, key: &'static str, lines: &mut Lines) -> Result<Option<Keys<'i>>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(None);
        };
        let path = self.path(key);
        match value.into_inner() {
            DeValue::Table(table) => Ok(Some(Keys::new(path, table))),
            other => Err(Fault::value(path, found(&other), format!("a table, written [{key}]"))),
        }
    }

    pub(crate) fn required_table(&mut self, key: &'static str, lines: &mut Lines) -> Result<Keys<'i>, Fault> {
        self.table(key, lines)?
            .ok_or_else(|| self.missing(key, &format!("as a table, written [{key}]")))
    }

    /// An array of tables, `[[key]]`.
    pub(crate) fn tables(&mut self, key: &'static str, lines: &mut Lines) -> Result<Vec<Keys<'i>>, Fault> {
        let Some(value) = self.take(key, lines) else {
            return Ok(Vec::new());
        };
        let allowed = format!("one table for each, written [[{key}]]");
        let DeValue::Array(array) = value.get_ref() else {
            return Err(Fault::value(self.path(key), found(value.get_ref()), allowed));
        };
        let mut tables = Vec::new();
        for (index, item) in array.iter().enumerate() {
            let path = format!("{}[{index}]", self.path(key));
            lines.seen.insert(path.clone(), lines.place(item.span().start).0);
            match item.get_ref() {
                DeValue::Table(table) => tables.push(Keys::new(path, table.clone())),
                other => return Err(Fault::value(path, found(other), allowed)),
            }
        }
        Ok(tables)
    }

    /// Refuses the first key in the file that was not asked for.
    pub(crate) fn finish(self, lines: &mut Lines) -> Result<(), Fault> {
        let Some(key) = self.table.keys().min_by_key(|key| key.span().start) else {
            return Ok(());
        };
        let path = self.path(key.get_ref());
        lines.seen.insert(path.clone(), lines.place(key.span().start).0);
        Err(Fault::Unknown {
            key: path,
            nearest: nearest(key.get_ref(), self.known.iter().copied()),
            known: self.known.iter().map(ToString::to_string).collect(),
        })
    }
}

pub(crate) fn integer(value: &DeValue, path: &str, max: u64) -> Result<u64, Fault> {
    let parsed = match value {
        DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    };
    parsed
        .filter(|number| *number <= max)
        .ok_or_else(|| Fault::value(path, found(value), format!("a whole number from 0 to {max}")))
}

pub(crate) fn elements<'a, 'i>(value: &'a DeValue<'i>, path: &str) -> Result<&'a DeArray<'i>, Fault> {
    match value {
        DeValue::Array(array) => Ok(array),
        other => Err(Fault::value(path, found(other), "a list, such as [1, 2]")),
    }
}

/// The value in the file, short enough for a message.
fn found(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
        DeValue::Integer(integer) => integer.to_string().chars().take(40).collect(),
        DeValue::Float(float) => float.to_string().chars().take(40).collect(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

fn list<T>(words: &[(&str, T)]) -> String {
    words
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect::<Vec<_>>()
        .join(" or ")
}
