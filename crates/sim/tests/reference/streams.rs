//! The streams that one prefetching cache follows, as a list in the order in which they were seen.

use machine::Prefetch;

struct Stream {
    frame: u64,
    last: i64,
    /// 1 up, -1 down, 0 none.
    direction: i64,
    walked: i64,
}

/// A line to bring: of the frame itself (0), or of that of the virtual page before (-1) or after (1).
pub type Wanted = (i64, u64);

pub struct Streams {
    limits: Prefetch,
    /// The one seen least recently in front.
    list: Vec<Stream>,
}

impl Streams {
    pub fn new(limits: Prefetch) -> Streams {
        Streams {
            limits,
            list: Vec::new(),
        }
    }

    pub fn brings_pairs(&self) -> bool {
        self.limits.pair
    }

    pub fn forget(&mut self, frame: u64) {
        self.list.retain(|stream| stream.frame != frame);
    }

    /// A lookup of a line of a frame that has `lines`; the lines to bring, in their order. `before` and `after` are the
    /// frames of the virtual pages beside it.
    pub fn see(&mut self, frame: u64, line: u64, lines: u64, before: Option<u64>, after: Option<u64>) -> Vec<Wanted> {
        let (line, lines) = (line as i64, lines as i64);
        let (most, longest) = (i64::from(self.limits.lines), i64::from(self.limits.step));
        if self.limits.runs_on && !self.list.iter().any(|stream| stream.frame == frame) {
            // A stream of the page beside this one goes on here, as if its line had been counted from here.
            for (beside, direction) in [(before, 1), (after, -1)] {
                let from = self.list.iter_mut().find(|stream| Some(stream.frame) == beside);
                if let Some(stream) = from
                    && stream.direction == direction
                    && (line - (stream.last - direction * lines)).abs() <= longest
                {
                    stream.frame = frame;
                    stream.last -= direction * lines;
                    break;
                }
            }
        }
        let known = self.list.iter().position(|stream| stream.frame == frame);
        let Some(known) = known else {
            if self.list.len() == self.limits.streams as usize {
                self.list.remove(0);
            }
            self.list.push(Stream {
                frame,
                last: line,
                direction: 0,
                walked: 0,
            });
            return Vec::new();
        };
        let mut stream = self.list.remove(known);
        let step = line - stream.last;
        let mut wanted = Vec::new();
        if step != 0 {
            let fits = step.abs() <= longest && (stream.direction == 0 || stream.direction == step.signum());
            stream.direction = if fits { step.signum() } else { 0 };
            stream.walked = if fits { stream.walked + step.abs() } else { 0 };
            stream.last = line;
            if stream.direction != 0 && stream.walked >= i64::from(self.limits.after) {
                let ahead = if self.limits.runs_on || self.limits.after > 0 {
                    most.min(2 * stream.walked)
                } else {
                    most
                };
                wanted = (1..=ahead).map(|distance| line + distance * stream.direction).collect();
            }
        }
        self.list.push(stream);
        let place = |line: i64| (line.div_euclid(lines), line.rem_euclid(lines) as u64);
        let reaches = if self.limits.runs_on { 1 } else { 0 };
        let wanted = wanted.into_iter().map(place);
        wanted.filter(|(page, _)| page.abs() <= reaches).collect()
    }
}
