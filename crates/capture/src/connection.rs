//! One process's ring, from the recorder's side.

use std::sync::atomic::{Ordering, fence};

use sys::packet::{Peer, Received};
use sys::shared::SharedMemory;

use crate::wire::{self, Hello};

/// Slots of each ring, and their size: small enough to stay in the processors' caches.
const SLOTS: usize = 8;
const SLOT_WORDS: usize = 1 << 15;

/// Names a connection of the tool, unique in a recording.
pub type Connection = u64;

/// A process of the tool.
pub struct Ring {
    peer: Option<Peer>,
    memory: Option<SharedMemory>,
    pub hello: Option<Hello>,
    /// Slots that are known to be published.
    published: u64,
    /// Slots taken so far.
    pub taken: u64,
    pub opened: bool,
    ended: bool,
    /// True once the unpublished rest of the current slot was taken, which happens last.
    rest_taken: bool,
    pub fault: Option<&'static str>,
}

impl Ring {
    pub fn new(peer: Peer) -> Ring {
        Ring {
            peer: Some(peer),
            memory: None,
            hello: None,
            published: 0,
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

    /// Takes the messages that have arrived. They only wake the recorder: their content is in the shared memory.
    pub fn listen(&mut self) {
        self.hear();
        let published = self.page(wire::CONTROL_PUBLISHED);
        // More than the number of slots would be invalid.
        self.published = published.clamp(self.published, self.taken + SLOTS as u64);
    }

    fn hear(&mut self) {
        let mut message = [0u8; 64];
        while !self.ended {
            let Some(peer) = &self.peer else { return };
            match peer.receive(&mut message) {
                Ok(Received::Message(bytes)) if self.hello.is_none() => self.greet(&message[..bytes]),
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

    /// A word of the first page. Reads after this one see writes that are no older.
    fn page(&self, word: usize) -> u64 {
        let value = self.memory.as_ref().map_or(0, |memory| memory.word(word));
        fence(Ordering::Acquire);
        value
    }

    /// The first word of the next slot, to see whether it must wait.
    pub fn peek(&self) -> Option<(u64, u64)> {
        let memory = self.memory.as_ref()?;
        let at = slot_at(self.taken);
        (self.taken < self.published).then(|| (memory.word(at), memory.word(at + 1)))
    }

    /// Copies the words of the next slot to `words` and gives the slot back. When the process has
    /// gone, the slot that it was filling comes last. False if there is nothing to take now.
    pub fn take(&mut self, words: &mut Vec<u64>) -> bool {
        let Some(memory) = &self.memory else { return false };
        if self.taken < self.published {
            let count = memory.word(wire::CONTROL_WORDS + self.taken as usize % SLOTS);
            memory.copy_words(slot_at(self.taken), count.min(SLOT_WORDS as u64) as usize, words);
            self.taken += 1;
            if let Some(peer) = &self.peer {
                // If the process is gone, the next message shows that.
                let _ = peer.send(&[1]);
            }
            return true;
        }
        if self.ended && !self.rest_taken {
            self.rest_taken = true;
            let count = self.begun();
            memory.copy_words(slot_at(self.published), count, words);
            return count > 0;
        }
        false
    }

    /// Words in the slot after the published ones: everything that was written before the process was killed, or until
    /// now if it still runs.
    fn begun(&self) -> usize {
        // A running process may publish one slot in between, and no more: it gets none back.
        for _ in 0..SLOTS {
            let mut cursor = self.in_slots(self.page(wire::CONTROL_CURSOR));
            if cursor.is_none() {
                cursor = self.in_slots(self.page(wire::CONTROL_ASIDE));
            }
            let Some((slot, words)) = cursor else { continue };
            if slot as u64 == self.published % SLOTS as u64 {
                return words;
            }
        }
        0
    }

    /// The slot that contains an address of the program's, and the words before it there.
    fn in_slots(&self, address: u64) -> Option<(usize, usize)> {
        let words = usize::try_from(address.checked_sub(self.page(wire::CONTROL_SLOTS))? / 8).ok()?;
        (words < SLOTS * SLOT_WORDS).then_some((words / SLOT_WORDS, words % SLOT_WORDS))
    }

    /// True if all that the process sent was taken.
    pub fn finished(&self) -> bool {
        self.ended && self.taken == self.published && (self.rest_taken || self.memory.is_none())
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Ends the connection: the process continues unrecorded, and gets no slot back.
    pub fn hang_up(&mut self) {
        self.peer = None;
        self.ended = true;
    }
}

/// The offset of a slot in the shared memory, in words.
fn slot_at(number: u64) -> usize {
    wire::CONTROL_BYTES / 8 + (number as usize % SLOTS) * SLOT_WORDS
}
