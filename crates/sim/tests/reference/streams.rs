//! The streams that one prefetching cache follows, as a list in the order in which they were seen.

use machine::Prefetch;

struct Stream {
    frame: u64,
    last: i64,
    /// 1 up, -1 down, 0 none.
    direction: i64,
}

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

    pub fn forget(&mut self, frame: u64) {
        self.list.retain(|stream| stream.frame != frame);
    }

    /// A lookup of a line of a frame that has `lines`; the lines to bring, in their order.
    pub fn see(&mut self, frame: u64, line: u64, lines: u64) -> Vec<u64> {
        let line = line as i64;
        let ahead = i64::from(self.limits.lines);
        let known = self.list.iter().position(|stream| stream.frame == frame);
        let Some(known) = known else {
            if self.list.len() == self.limits.streams as usize {
                self.list.remove(0);
            }
            self.list.push(Stream {
                frame,
                last: line,
                direction: 0,
            });
            return Vec::new();
        };
        let mut stream = self.list.remove(known);
        let step = line - stream.last;
        let mut wanted = Vec::new();
        if step != 0 {
            let fits = step.abs() <= ahead && (stream.direction == 0 || stream.direction == step.signum());
            stream.direction = if fits { step.signum() } else { 0 };
            stream.last = line;
            if stream.direction != 0 {
                wanted = (1..=ahead).map(|distance| line + distance * stream.direction).collect();
            }
        }
        self.list.push(stream);
        wanted.retain(|line| (0..lines as i64).contains(line));
        wanted.into_iter().map(|line| line as u64).collect()
    }
}
