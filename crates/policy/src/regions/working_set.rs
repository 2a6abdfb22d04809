//! The part of a region that is in use: from the access bits of its pages in the last 32 scans (Lee12, section 4).

/// The bits of one page, the latest scan in the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    bits: u32,
    /// Scans so far, up to 32.
    scans: u8,
}

/// Scans that are remembered.
pub const SCANS: u32 = 32;

impl History {
    pub fn scan(&mut self, accessed: bool) {
        self.bits = self.bits << 1 | u32::from(accessed);
        self.scans = (self.scans + 1).min(SCANS as u8);
    }

    /// Records scans that did not look at the page because its region was not touched: they would have found it not
    /// accessed.
    pub fn skip(&mut self, scans: u64) {
        let scans = scans.min(SCANS.into()) as u32;
        self.bits = self.bits.checked_shl(scans).unwrap_or(0);
        self.scans = (u32::from(self.scans) + scans).min(SCANS) as u8;
    }

    /// Scans of the last 32 that found the page accessed. For a page that was scanned fewer times the count is scaled
    /// up to 32 scans.
    pub fn accessed(self) -> u32 {
        match u32::from(self.scans) {
            0 => 0,
            scans => self.bits.count_ones() * SCANS / scans,
        }
    }
}

/// Pages by how many of the last 32 scans found them accessed, from 0 to 31; the last has those of 32, too.
pub type Histogram = [u64; SCANS as usize];

pub fn histogram(histories: impl Iterator<Item = History>) -> Histogram {
    let mut histogram = Histogram::default();
    for history in histories {
        histogram[(history.accessed() as usize).min(SCANS as usize - 1)] += 1;
    }
    histogram
}

/// Quarters of a page that count, by accessed scans: all of it from 26, three quarters from 20, half from 14, one from 8
/// (Lee12, section 4).
const QUARTERS: [(std::ops::Range<usize>, u64); 4] = [(26..32, 4), (20..26, 3), (14..20, 2), (8..14, 1)];

/// The working set, in quarters of a page.
pub fn quarters(histogram: &Histogram) -> u64 {
    let weighed = QUARTERS.into_iter();
    weighed
        .map(|(counts, weight)| histogram[counts].iter().sum::<u64>() * weight)
        .sum()
}

/// The working set in bytes.
pub fn bytes(histogram: &Histogram, page_bytes: u64) -> u64 {
    quarters(histogram) * page_bytes / 4
}

/// Access bits of a page that is scanned only where its region was touched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bits {
    history: History,
    /// By number of scan, from 1: the last that found it accessed, and the last one in its history.
    last: u64,
    scanned: u64,
}

impl Bits {
    /// A scan finds it accessed.
    pub fn found(&mut self, scan: u64) {
        self.last = scan;
    }

    /// A scan reaches it.
    pub fn scan(&mut self, scan: u64) {
        self.history = self.until(scan - 1);
        self.history.scan(self.last == scan);
        self.scanned = scan;
    }

    /// Its history up to a scan. Before the first one that came to it, there is none.
    pub fn until(&self, scan: u64) -> History {
        let mut history = self.history;
        if self.scanned > 0 {
            history.skip(scan.saturating_sub(self.scanned));
        }
        history
    }
}
