//! One process's ring, from the recorder's side.

use std::collections::VecDeque;

use sys::packet::{Peer, Received};
use sys::shared::SharedMemory;

use crate::wire::{self, Hello};

/// Slots of each ring, and their size: small enough to stay in the processors' caches.
const SLOTS: usize = 8;
const SLOT_WORDS: usize = 1 << 15;

/// A process of the tool.
pub struct Ring {
    peer: Option<Peer>,
    memory: Option<SharedMemory>,
    pub hello: Option<Hello>,
    /// Words of the slots that were published and not taken, in turn.
    filled: VecDeque<usize>,
    /// Slots taken so far.
    pub taken: u64,
    pub opened: bool,
    ended: bool,
    /// What is left of the slot that was not published is taken last.
    rest_taken: bool,
    pub fault: Option<&'static str>,
}

impl Ring {
    pub fn new(peer: Peer) -> Ring {
        Ring {
            peer: Some(peer),
            memory: None,
            hello: None,
            filled: VecDeque::new(),
            taken: 0,
            opened: false,
            ended: false,
            rest_taken: false,
            fault: None,
        }
    }

    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref().filter(|_| !self.ended)
    }

    /// Takes the messages that have come.
    pub fn listen(&mut self) {
        let mut message = [0u8; 64];
        while !self.ended {
            let Some(peer) = &self.peer else { return };
            match peer.receive(&mut message) {
                Ok(Received::Message(bytes)) if self.hello.is_none() => self.greet(&message[..bytes]),
                Ok(Received::Message(8)) => {
                    let mut words = [0u8; 8];
                    words.copy_from_slice(&message[..8]);
                    let words = u64::from_le_bytes(words).min(SLOT_WORDS as u64);
                    // More than there are slots would be a lie.
                    if self.filled.len() < SLOTS {
                        self.filled.push_back(words as usize);
                    }
                }
                Ok(Received::Message(_)) => {}
                Ok(Received::Nothing) => return,
                Ok(Received::End) | Err(_) => self.ended = true,
            }
        }
    }

    fn greet(&mut self, message: &[u8]) {
        let answer = Hello::parse(message).and_then(|hello| {
            let bytes = wire::CONTROL_BYTES + 8 * SLOTS * SLOT_WORDS;
            let memory =
                SharedMemory::create("domicile-ring", bytes).map_err(|_| "there is no memory for another ring")?;
            let welcome = wire::welcome(SLOTS as u32, 8 * SLOT_WORDS as u64);
            let peer = self.peer.as_ref().ok_or("the connection is gone")?;
            peer.send_with(&welcome, memory.descriptor())
                .map_err(|_| "a process went away while it connected")?;
            Ok((hello, memory))
        });
        match answer {
            Ok((hello, memory)) => {
                self.hello = Some(hello);
                self.memory = Some(memory);
            }
            Err(fault) => {
                self.fault = Some(fault);
                self.hang_up();
            }
        }
    }

    /// The first word of the next slot, to see whether it must wait.
    pub fn peek(&self) -> Option<(u64, u64)> {
        let memory = self.memory.as_ref()?;
        self.filled.front()?;
        let at = self.slot_at(self.taken);
        Some((memory.word(at), memory.word(at + 1)))
    }

    fn slot_at(&self, number: u64) -> usize {
        wire::CONTROL_BYTES / 8 + (number as usize % SLOTS) * SLOT_WORDS
    }

    /// Copies the words of the next slot to `words` and gives the slot back. When the process has
    /// gone, the slot that it was filling comes last. False if there is nothing to take now.
    pub fn take(&mut self, words: &mut Vec<u64>) -> bool {
        let Some(memory) = &self.memory else { return false };
        if let Some(count) = self.filled.pop_front() {
            memory.copy_words(self.slot_at(self.taken), count, words);
            self.taken += 1;
            if let Some(peer) = &self.peer {
                // If it is gone its end shows at the next message.
                let _ = peer.send(&[1]);
            }
            return true;
        }
        if self.ended && !self.rest_taken {
            self.rest_taken = true;
            let cursor = match memory.word(wire::CONTROL_ASIDE) {
                0 => memory.word(wire::CONTROL_CURSOR),
                aside => aside,
            };
            let begin = memory.word(wire::CONTROL_BEGIN);
            let count = (cursor.saturating_sub(begin) / 8).min(SLOT_WORDS as u64) as usize;
            memory.copy_words(self.slot_at(memory.word(wire::CONTROL_SLOT)), count, words);
            return count > 0;
        }
        false
    }

    /// Whether all that the process had to say was taken.
    pub fn finished(&self) -> bool {
        self.ended && self.filled.is_empty() && (self.rest_taken || self.memory.is_none())
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Ends the connection: the process goes on unrecorded.
    pub fn hang_up(&mut self) {
        self.peer = None;
        self.ended = true;
    }
}
