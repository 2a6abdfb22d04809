//! Numbers, lists and texts as bytes, and back from bytes that somebody else wrote.

use super::MESSAGE_BYTES;

/// A fault of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("a message ends in the middle")]
    Short,
    #[error("trailing bytes after the message")]
    Long,
    #[error("there is no message {0}")]
    Unknown(u8),
    #[error("a list in a message is too long")]
    List,
    #[error("a number in a message is out of range")]
    Range,
    #[error("a text in a message is not UTF-8")]
    Text,
}

pub struct Writer(Vec<u8>);

impl Writer {
    pub fn new(tag: u8) -> Writer {
        Writer(vec![tag])
    }

    pub fn bool(&mut self, value: bool) {
        self.0.push(value.into());
    }

    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Its length, and then its entries.
    pub fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Writer, &T)) {
        self.u32(list.len() as u32);
        list.iter().for_each(|item| each(self, item));
    }

    /// As much of the text as fits into `most` bytes.
    pub fn text(&mut self, text: &str, most: usize) {
        let end = (0..=most.min(text.len()))
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        self.list(&text.as_bytes()[..end], |to, byte| to.0.push(*byte));
    }

    pub fn done(self) -> Vec<u8> {
        debug_assert!(self.0.len() <= MESSAGE_BYTES);
        self.0
    }
}

pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The first byte, and a reader of what is behind it.
    pub fn new(message: &'a [u8]) -> Result<(u8, Reader<'a>), Malformed> {
        if message.len() > MESSAGE_BYTES {
            return Err(Malformed::Long);
        }
        let (tag, rest) = message.split_first().ok_or(Malformed::Short)?;
        Ok((*tag, Reader(rest)))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn bool(&mut self) -> Result<bool, Malformed> {
        match self.take::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed::Range),
        }
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Ensures: at most `most` entries; no more memory is taken than the message itself accounts for.
    pub fn list<T>(
        &mut self,
        most: usize,
        mut each: impl FnMut(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(Malformed::List);
        }
        let mut list = Vec::with_capacity(count.min(self.0.len()));
        for _ in 0..count {
            list.push(each(self)?);
        }
        Ok(list)
    }

    pub fn text(&mut self, most: usize) -> Result<String, Malformed> {
        let bytes = self.list(most, |from| from.take::<1>().map(|[byte]| byte))?;
        String::from_utf8(bytes).map_err(|_| Malformed::Text)
    }

    /// Asserts that no bytes are left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Long)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_as_many_entries_as_allowed_and_not_one_more() {
        let of = |entries: u32| [&[7][..], &entries.to_le_bytes(), &vec![b'x'; entries as usize]].concat();
        for (entries, read) in [
            (0, Ok("")),
            (3, Ok("xxx")),
            (4, Err(Malformed::List)),
            (u32::MAX >> 8, Err(Malformed::List)),
        ] {
            let message = of(entries.min(MESSAGE_BYTES as u32 / 2));
            let (_, mut from) = Reader::new(&message).unwrap();
            assert_eq!(from.text(3), read.map(str::to_string), "{entries} entries");
        }
        // Trailing bytes after the list.
        let message = [of(3), vec![0]].concat();
        let (_, mut from) = Reader::new(&message).unwrap();
        assert_eq!(from.text(3), Ok("xxx".to_string()));
        assert_eq!(from.end(), Err(Malformed::Long));
    }
}
