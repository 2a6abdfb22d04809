//! The connections: accepted, answered, paused, closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::packet::{Peer, Received};
use sys::peer::Identity;
use sys::ready::Wanted;

use super::{SCRAPE, Server};
use crate::daemon::asked::{Asked, Purpose, Reply};
use crate::daemon::broker::Refused;
use crate::daemon::looks::Task;
use crate::daemon::scrape::Next;
use crate::daemon::session::Session;
use crate::daemon::users::Closed;
use crate::daemon::wire::{Answer, Refusal, Request};

/// The most clients that may ask for metrics at a time.
const SCRAPES: usize = 16;

impl Server {
    pub(super) fn welcome(&mut self, now: Instant) {
        // A few at a time: existing connections must have their turn, too.
        for _ in 0..16 {
            match self.listener.accept() {
                Ok(Some(peer)) => {
                    if let Err(why) = self.take_in(peer, now) {
                        self.broker.metrics.turned_away += 1;
                        tracing::debug!(why, "turned a connection away");
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    // The kernel would report it again and again: so not before the next look around.
                    self.deaf = self.ready.forget(&self.listener).is_ok();
                    return self.complain(now, &format!("connections cannot be accepted: {error}"));
                }
            }
        }
    }

    fn take_in(&mut self, peer: Peer, now: Instant) -> Result<(), &'static str> {
        let who = Identity::of(&peer).map_err(|_| "its process is gone")?;
        let turn_away = |text: &str| {
            let refused = Answer::Refused {
                why: Refusal::Crowded,
                text: text.into(),
            };
            // It may not even listen.
            let _ = peer.send(&refused.encode());
        };
        // The process takes back the frames that it kept from an earlier connection.
        let kept = self.keepers.take(&who, &mut self.broker.users);
        if self.sessions.len() + self.keepers.len() >= self.config.clients as usize {
            self.keepers.put_back(kept, &mut self.broker.users, now);
            turn_away("the daemon has as many connections as it can have; try again later");
            return Err("too many connections");
        }
        let user = who.user;
        if let Err(closed) = self.broker.users.connect(user, now) {
            self.keepers.put_back(kept, &mut self.broker.users, now);
            turn_away(match closed {
                Closed::Full => "this user has as many connections as one may have; close some",
                Closed::Busy => "this user asks for too much; try again later",
            });
            return Err("too many connections of the user");
        }
        let owner = self.broker.ledger.join();
        let (process, name) = (who.process, self.next_name);
        let mut session = Session::new(peer, Arc::new(who), owner, now);
        kept.into_iter().for_each(|kept| session.resume(kept.into()));
        if self.ready.watch(&session.who, name + 1, Wanted::Read).is_err() {
            let _ = self.broker.ledger.leave(owner);
            self.keepers.add(session, &mut self.broker.users, now);
            return Err("its process cannot be watched");
        }
        tracing::debug!(process, user, name, "connected");
        let opening = Task::Open(Arc::clone(&session.who));
        self.sessions.insert(name, session);
        self.next_name += 2;
        self.broker.metrics.connections += 1;
        self.broker.clients = self.sessions.len() as u32;
        let asked = Asked {
            purpose: Purpose::Open,
            begun: now,
            kind: 0,
            work: 0,
        };
        self.look(name, opening, asked);
        Ok(())
    }

    /// Answers one message of a connection, or begins the look that the answer takes.
    pub(super) fn serve(&mut self, name: u64, buffer: &mut [u8]) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        if session.look.is_some() {
            // One request at a time: the next is read when this one is answered.
            return self.pause(name);
        }
        let begun = Instant::now();
        let message = match session.peer.receive(buffer) {
            Ok(Received::Message(bytes)) => &buffer[..bytes],
            Ok(Received::Nothing) => return,
            Ok(Received::End) => return self.hang_up(name, "it hung up"),
            Err(_) => return self.hang_up(name, "it cannot be heard"),
        };
        let request = match Request::decode(message) {
            Ok(request) => request,
            Err(malformed) => {
                self.broker.metrics.malformed += 1;
                let refused = Answer::Refused {
                    why: Refusal::Protocol,
                    text: malformed.to_string(),
                };
                let _ = session.peer.send(&refused.encode());
                let (process, user) = (session.who.process, session.who.user);
                self.complain_of(begun, process, user, &malformed.to_string());
                return self.hang_up(name, "it sent what is no message");
            }
        };
        let (kind, work) = (request.kind(), 1 + message.len() as u64 / 128);
        let asked = |purpose| Asked {
            purpose,
            begun,
            kind,
            work,
        };
        let outcome = match session.answer(&mut self.broker, request, begun) {
            Ok(Reply::Now(answer)) => Ok(answer),
            Ok(Reply::Seen(run, purpose)) => match session.task(run) {
                Ok(task) => {
                    let mut asked = asked(purpose);
                    asked.work = asked.work.max(micros(begun.elapsed()) / 16);
                    return self.look(name, task, asked);
                }
                Err(refused) => Err(refused),
            },
            Err(refused) => Err(refused),
        };
        // A request that takes long costs more, at a microsecond a piece.
        let work = work.max(micros(begun.elapsed()) / 16);
        self.say(name, outcome, kind, begun, work);
    }

    /// Answers a client with the outcome of its request.
    pub(super) fn say(&mut self, name: u64, outcome: Result<Answer, Refused>, kind: usize, begun: Instant, work: u64) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let (answer, why) = match outcome {
            Ok(answer) => (answer, None),
            Err((why, text)) => (Answer::Refused { why, text }, Some(why)),
        };
        let failed = match &answer {
            Answer::Refused {
                why: Refusal::Failed | Refusal::Slow,
                text,
            } => Some((session.who.process, text.clone())),
            _ => None,
        };
        let sent = session.peer.send(&answer.encode());
        let user = session.who.user;
        let done = Instant::now();
        self.broker
            .metrics
            .answered(kind, why, done.saturating_duration_since(begun));
        if let Some((process, text)) = failed {
            self.complain_of(done, process, user, &text);
        }
        if sent.is_err() {
            return self.hang_up(name, "it does not take its answers");
        }
        if why == Some(Refusal::Protocol) {
            return self.hang_up(name, "it did not keep to the protocol");
        }
        let debt = self.broker.users.of(user).map(|user| user.work.owe(work, done));
        match debt.filter(|debt| !debt.is_zero()) {
            Some(debt) => {
                self.pause(name);
                self.waiting.push((done + debt, name));
            }
            None => self.resume(name),
        }
    }

    /// Stops reading from a connection, for a while.
    fn pause(&mut self, name: u64) {
        if let Some(session) = self.sessions.get_mut(&name)
            && !session.paused
        {
            session.paused = self.ready.forget(&session.peer).is_ok();
        }
    }

    /// Listens to it again.
    pub(super) fn resume(&mut self, name: u64) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        if session.paused {
            session.paused = false;
            if self.ready.watch(&session.peer, name, Wanted::Read).is_err() {
                self.hang_up(name, "it cannot be watched");
            }
        }
    }

    /// Reads again from those connections that have waited long enough.
    pub(super) fn listen_again(&mut self, now: Instant) {
        let (due, waiting) = self.waiting.drain(..).partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.waiting = waiting;
        for (_, name) in due {
            self.resume(name);
        }
    }

    /// Ends a connection and frees all that it had.
    pub(super) fn hang_up(&mut self, name: u64, why: &'static str) {
        let Some(session) = self.sessions.remove(&name) else {
            return;
        };
        // A connection that waits is not watched. A look that it waited for is over when it is.
        let _ = self.ready.forget(&session.peer);
        let _ = self.ready.forget(&session.who);
        if let Some(pending) = &session.look {
            self.forget_look(pending.look);
        }
        let _ = self.broker.ledger.leave(session.owner);
        self.broker.clients = self.sessions.len() as u32;
        tracing::debug!(
            process = session.who.process,
            user = session.who.user,
            name,
            frames = session.charged(),
            why,
            "disconnected"
        );
        let now = Instant::now();
        self.keepers.add(session, &mut self.broker.users, now);
        self.look_for_frames(now);
    }

    pub(super) fn open_door(&mut self, now: Instant) {
        for _ in 0..SCRAPES {
            let Some(door) = &self.door else { return };
            let scrape = match door.accept(now) {
                Ok(Some(scrape)) => scrape,
                Ok(None) => return,
                Err(error) => {
                    // As above.
                    self.shut = self.ready.forget(door).is_ok();
                    return self.complain(now, &format!("metrics: {error}"));
                }
            };
            // A caller that asks at once, as honest ones do, is answered before anybody can be in the way. One that
            // sends nothing, or does not read, keeps its place only until another wants it.
            if self.scrapes.len() >= SCRAPES
                && let Some(oldest) = self.scrapes.keys().min().copied()
            {
                self.scrapes.remove(&oldest);
            }
            let name = SCRAPE | self.next_name;
            self.next_name += 2;
            if self.ready.watch(&scrape, name, Wanted::Read).is_ok() {
                self.scrapes.insert(name, scrape);
                self.scrape(name, now);
            }
        }
    }

    pub(super) fn scrape(&mut self, name: u64, now: Instant) {
        let Some(scrape) = self.scrapes.get_mut(&name) else {
            return;
        };
        let wanted = match scrape.go_on(|| self.broker.page(now)) {
            Next::Read => Wanted::Read,
            Next::Write => Wanted::Write,
            Next::Over => {
                self.scrapes.remove(&name);
                return;
            }
        };
        if self.ready.change(scrape, name, wanted).is_err() {
            self.scrapes.remove(&name);
        }
    }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
