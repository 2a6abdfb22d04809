//! The instruction with which a guest controls recording: an eight-byte NOP whose displacement is a marker word.
//!
//! `nopl WORD(%rax,%rax,1)`, in bytes `0f 1f 84 00` and the word, little-endian. It has no effect on any x86 processor,
//! and compilers pad with a displacement of 0.

const NOP: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
/// `DOM` and the command.
const BEGIN: u32 = 0x444f_4d01;
const END: u32 = 0x444f_4d02;

/// How many bytes of an instruction identify it.
pub const BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Begin,
    End,
}

/// The marker in an instruction, if any.
pub fn of(instruction: &[u8]) -> Option<Marker> {
    let [a, b, c, d, word @ ..] = instruction else {
        return None;
    };
    if [*a, *b, *c, *d] != NOP {
        return None;
    }
    match u32::from_le_bytes(word.try_into().ok()?) {
        BEGIN => Some(Marker::Begin),
        END => Some(Marker::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_are_known_and_padding_is_none() {
        let nop = |word: u32| [NOP, word.to_le_bytes()].concat();
        assert_eq!(of(&nop(0x444f_4d01)), Some(Marker::Begin));
        assert_eq!(of(&nop(0x444f_4d02)), Some(Marker::End));
        assert_eq!(of(&nop(0)), None);
        assert_eq!(of(&nop(0x444f_4d03)), None);
        assert_eq!(of(&[0x0f, 0x1f, 0x84]), None);
        assert_eq!(of(&[0x0f, 0x1f, 0x40, 0, 1, 0x4d, 0x4f, 0x44]), None);
        assert_eq!(of(&[nop(0x444f_4d01), vec![0]].concat()), None);
    }
}
