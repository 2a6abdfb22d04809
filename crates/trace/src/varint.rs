//! Numbers of variable length (LEB128: seven bits a byte, low bits first), and a cursor that reads
//! them from untrusted bytes.

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed difference: small magnitudes of either sign become small numbers.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Reads from the front of a slice; `None` when it ends too early or a number has over 64 bits.
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|b| b[0])
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        self.number().map(|n| (n >> 1) as i64 ^ -((n & 1) as i64))
    }

    pub fn narrow(&mut self) -> Option<u32> {
        self.number().and_then(|n| u32::try_from(n).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let values = [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 62, u64::MAX];
        let mut out = Vec::new();
        for v in values {
            put(&mut out, v);
            put_signed(&mut out, v as i64);
        }
        let mut cursor = Cursor::new(&out);
        for v in values {
            assert_eq!(cursor.number(), Some(v));
            assert_eq!(cursor.signed(), Some(v as i64));
        }
        assert!(cursor.is_empty());
    }

    #[test]
    fn an_endless_or_cut_number_is_none() {
        assert_eq!(Cursor::new(&[0x80; 20]).number(), None);
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).number(),
            None
        );
        assert_eq!(Cursor::new(&[0x80]).number(), None);
        assert_eq!(Cursor::new(&[1, 2, 3]).bytes(4), None);
    }
}
