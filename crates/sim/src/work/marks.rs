//! Marked work items in a thread's stream, and the runs that they form.
//!
//! The rules are those of README.md, "Work in another order". Only events are looked at, so that
//! the references need not be decoded.

use trace::Event;

/// A place in a thread's stream: the number of its references and events before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub refs: u64,
    pub events: u64,
}

/// Returns whether work on both sides of an event cannot change places.
pub fn meets(event: &Event) -> bool {
    match event {
        Event::WorkBegin { .. }
        | Event::WorkEnd
        | Event::Work { .. }
        | Event::Alloc { .. }
        | Event::Free { .. }
        | Event::Called { .. } => false,
        Event::Barrier { .. }
        | Event::Lock { .. }
        | Event::Unlock { .. }
        | Event::Post { .. }
        | Event::Wait { .. }
        | Event::Spawn { .. }
        | Event::Join { .. }
        | Event::Exit
        | Event::Phase { .. }
        | Event::Window { .. }
        | Event::Counted { .. }
        | Event::Slot { .. }
        | Event::SlotFree { .. }
        | Event::DataRange { .. }
        | Event::DataThread { .. }
        | Event::Allocate { .. }
        | Event::DataFree { .. }
        | Event::Summary { .. }
        | Event::TeamBegin { .. }
        | Event::TeamEnd { .. } => true,
    }
}

/// Receives items and runs, in the order of the stream.
pub trait Runs {
    type Error;
    /// The next item of the present run begins at `begin`.
    fn item(&mut self, begin: At, hints: &[u64]) -> Result<(), Self::Error>;
    /// The run ends: its last item reaches up to `end`.
    fn end(&mut self, end: At) -> Result<(), Self::Error>;
}

/// Finds the items of one thread.
pub struct Marks {
    /// References between two items beyond which the second begins a new run.
    gap: u64,
    /// Events so far.
    events: u64,
    /// The current item: its start, and its hints.
    open: Option<(At, Vec<u64>)>,
    /// The end of the last item of the present run.
    ended: Option<At>,
    /// Items that stay where they are, because threads meet in them or their end is missing.
    pub fixed: u64,
}

impl Marks {
    pub fn new(gap: u64) -> Marks {
        Marks {
            gap,
            events: 0,
            open: None,
            ended: None,
            fixed: 0,
        }
    }

    /// Takes in the thread's next event, which comes after `refs` of its references.
    pub fn event<R: Runs>(&mut self, refs: u64, event: &Event, runs: &mut R) -> Result<(), R::Error> {
        let here = At {
            refs,
            events: self.events,
        };
        self.events += 1;
        match event {
            Event::WorkBegin { hints } => {
                // Items do not nest: a beginning ends the current item.
                self.close(here, runs)?;
                if self.ended.is_some_and(|ended| refs - ended.refs > self.gap) {
                    self.end_run(runs)?;
                }
                self.open = Some((here, hints.clone()));
            }
            Event::WorkEnd => {
                let events = self.events;
                self.close(At { refs, events }, runs)?;
            }
            event if !meets(event) => {}
            _ => {
                self.fixed += u64::from(self.open.take().is_some());
                self.end_run(runs)?;
            }
        }
        Ok(())
    }

    /// The stream ends; returns the events that it had.
    pub fn finish<R: Runs>(&mut self, runs: &mut R) -> Result<u64, R::Error> {
        self.fixed += u64::from(self.open.take().is_some());
        self.end_run(runs)?;
        Ok(self.events)
    }

    fn close<R: Runs>(&mut self, end: At, runs: &mut R) -> Result<(), R::Error> {
        if let Some((begin, hints)) = self.open.take() {
            runs.item(begin, &hints)?;
            self.ended = Some(end);
        }
        Ok(())
    }

    fn end_run<R: Runs>(&mut self, runs: &mut R) -> Result<(), R::Error> {
        match self.ended.take() {
            Some(end) => runs.end(end),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs as text: the start of each item, and the end of the run.
    #[derive(Default)]
    struct Text(String);

    impl Runs for Text {
        type Error = std::convert::Infallible;
        fn item(&mut self, begin: At, hints: &[u64]) -> Result<(), Self::Error> {
            self.0 += &format!("{}.{}{hints:?} ", begin.refs, begin.events);
            Ok(())
        }
        fn end(&mut self, end: At) -> Result<(), Self::Error> {
            self.0 += &format!("to {}.{}; ", end.refs, end.events);
            Ok(())
        }
    }

    fn begin(hint: u64) -> Event {
        Event::WorkBegin { hints: vec![hint] }
    }

    fn text(gap: u64, events: &[(u64, Event)]) -> (String, u64) {
        let (mut marks, mut text) = (Marks::new(gap), Text::default());
        for (refs, event) in events {
            let Ok(()) = marks.event(*refs, event, &mut text);
        }
        let Ok(_) = marks.finish(&mut text);
        (text.0, marks.fixed)
    }

    #[test]
    fn items_with_at_most_a_gap_between_them_are_a_run() {
        let end = || Event::WorkEnd;
        let items = [
            (5, begin(1)),
            (9, end()),
            (19, begin(2)),
            (29, end()),
            (40, begin(3)),
            (50, end()),
        ];
        assert_eq!(
            text(10, &items),
            ("5.0[1] 19.2[2] to 29.4; 40.4[3] to 50.6; ".to_string(), 0)
        );
        assert_eq!(text(11, &items).0, "5.0[1] 19.2[2] 40.4[3] to 50.6; ");
    }

    #[test]
    fn threads_that_meet_end_a_run_and_keep_an_item_where_it_is() {
        let phase = || Event::Phase { name: "next".into() };
        let items = [
            (0, begin(1)),
            (1, Event::WorkEnd),
            (1, phase()),
            (1, begin(2)),
            (2, Event::WorkEnd),
            (2, begin(3)),
            (2, Event::Lock { object: 1 }),
            (3, Event::Unlock { object: 1 }),
            (4, Event::WorkEnd),
            (4, begin(4)),
            (5, Event::Free { addr: 1 }),
            (6, Event::WorkEnd),
        ];
        assert_eq!(
            text(10, &items),
            ("0.0[1] to 1.2; 1.3[2] to 2.5; 4.9[4] to 6.12; ".to_string(), 1)
        );
    }

    #[test]
    fn a_beginning_ends_the_item_at_hand_and_ends_alone_are_nothing() {
        let items = [
            (0, Event::WorkEnd),
            (3, begin(1)),
            (5, begin(2)),
            (9, Event::WorkEnd),
            (9, Event::WorkEnd),
            (10, begin(3)),
        ];
        assert_eq!(text(10, &items), ("3.1[1] 5.2[2] to 9.4; ".to_string(), 1));
    }
}
