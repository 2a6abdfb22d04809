//! Requests that need a look at the client's address space: begun here, and answered when the look has ended, or
//! refused when it is late.

use std::time::Instant;

use super::Server;
use super::callers::micros;
use crate::daemon::asked::{Asked, Pending, Purpose, too_slow};
use crate::daemon::broker::failed;
use crate::daemon::looks::{MOST, Seen, Sight, Task};

impl Server {
    /// Begins a look that a connection waits for.
    pub(super) fn look(&mut self, name: u64, task: Task, request: Asked) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let look = self.looks.begin(session.who.user, task);
        let until = request.begun + MOST;
        session.look = Some(Pending { look, request });
        self.looked_for.insert(look, name);
        self.look_until.push_back((until, look));
    }

    /// Answers those whose pages were seen.
    pub(super) fn go_on(&mut self, now: Instant) {
        for seen in self.looks.take() {
            if let Sight::Whereabouts(frames) = seen.sight {
                let search = self.searches.extract_if(|_, (look, _)| *look == seen.look).next();
                if let Some((_, (_, name))) = search {
                    self.keepers.found(name, frames, &mut self.broker.users, now);
                }
                self.look_for_frames(now);
                continue;
            }
            let Some(name) = self.looked_for.remove(&seen.look) else {
                continue;
            };
            let Some(session) = self.sessions.get_mut(&name) else {
                continue;
            };
            if session.stuck == Some(seen.look) {
                // Too late, but it may be tried again.
                session.stuck = None;
            } else if let Some(pending) = session.look.take_if(|pending| pending.look == seen.look) {
                self.seen(name, pending.request, seen, now);
            }
        }
    }

    fn seen(&mut self, name: u64, request: Asked, seen: Seen, now: Instant) {
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let begun = Instant::now();
        let outcome = match seen.sight {
            Sight::Opened(Ok(map)) => {
                session.opened(map);
                return self.resume(name);
            }
            Sight::Opened(Err(_)) => return self.hang_up(name, "its pages cannot be seen"),
            Sight::Pages(Ok(entries)) => session.answer_seen(&mut self.broker, request.purpose, entries, now),
            Sight::Pages(Err(error)) => Err(failed(error)),
            // No connection waits for this.
            Sight::Whereabouts(_) => return,
        };
        let work = micros(seen.work + begun.elapsed()) / 16;
        self.say(name, outcome, request.kind, request.begun, request.work.max(work));
    }

    /// Refuses requests whose look did not end in time.
    pub(super) fn give_up_looks(&mut self, now: Instant) {
        while let Some((until, look)) = self.look_until.front().copied() {
            // A look that is over may be forgotten before its time.
            let open = self.looked_for.get(&look).copied();
            if open.is_some() && until > now {
                return;
            }
            self.look_until.pop_front();
            let Some(name) = open else { continue };
            let over = self.looks.give_up(look);
            if over {
                self.looked_for.remove(&look);
            }
            let Some(session) = self.sessions.get_mut(&name) else {
                continue;
            };
            let Some(pending) = session.look.take_if(|pending| pending.look == look) else {
                continue;
            };
            session.stuck = (!over).then_some(look);
            self.broker.metrics.given_up += 1;
            let request = pending.request;
            let opening = matches!(request.purpose, Purpose::Open);
            self.say(name, Err(too_slow()), request.kind, request.begun, request.work);
            if opening {
                self.hang_up(name, "its pages could not be seen in time");
            }
        }
    }

    /// Starts searches for frames of connections that have ended: one search of a user at a time, since the user's
    /// processes may block it.
    pub(super) fn look_for_frames(&mut self, now: Instant) {
        let searches = &mut self.searches;
        while let Some((name, user, frames)) = self.keepers.due(now, |user| searches.contains_key(&user)) {
            let look = self.looks.begin(user, Task::Whereabouts(user, frames));
            searches.insert(user, (look, name));
        }
    }

    /// Forgets a look that nobody waits for any more.
    pub(super) fn forget_look(&mut self, look: u64) {
        if self.looks.give_up(look) {
            self.looked_for.remove(&look);
        }
    }
}
