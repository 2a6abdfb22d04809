//! The cells of one column, in arrays: a table of a million rows consists of a few arrays, and not of a million small
//! objects.

use super::cell::{Cell, Exact, Rounding, Tone, Value};

/// The cells of a column, from the top.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    marks: Vec<Mark>,
    /// By cell: a whole number, or the bits of a real one, or 0. Empty if no cell has a number.
    numbers: Vec<u64>,
    /// By cell: the end of its text in `texts`; it begins at the end of the previous one. Empty if no cell has a text.
    ends: Vec<usize>,
    texts: String,
    /// The roundings of the cells.
    roundings: Vec<Rounding>,
    has: Has,
}

/// The kinds of values in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Has {
    pub text: bool,
    pub whole: bool,
    pub real: bool,
    /// Cells that are empty, or whose value is unknown.
    pub missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Mark {
    kind: Kind,
    tone: Tone,
    again: bool,
    /// Its position in `roundings`; [`IN_WORDS`]: people read its text.
    rounding: u16,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Empty,
    Unknown,
    Text,
    Whole,
    Real,
    Bar,
}

const IN_WORDS: u16 = u16::MAX;

impl Cells {
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    pub fn has(&self) -> Has {
        self.has
    }

    /// True if a cell is empty, or its value is unknown.
    pub fn is_missing(&self, at: usize) -> bool {
        matches!(self.marks[at].kind, Kind::Empty | Kind::Unknown)
    }

    /// All numbers, with 0 if one is missing; `None` if a cell has another kind of value.
    pub fn whole_numbers(&self) -> Option<&[u64]> {
        (!self.has.text && !self.has.real && self.has.whole).then_some(&self.numbers)
    }

    /// All texts concatenated, and the end of each; a missing one has length 0. `None` if a cell has another kind of
    /// value, or none has any.
    pub fn only_texts(&self) -> Option<(&str, &[usize])> {
        (self.has.text && !self.has.real && !self.has.whole).then_some((&self.texts, &self.ends))
    }

    /// The number of a cell, if it has one.
    pub fn number(&self, at: usize) -> Option<Exact> {
        match self.marks[at].kind {
            Kind::Whole => Some(Exact::Whole(self.numbers[at])),
            Kind::Real | Kind::Bar => Some(Exact::Real(f64::from_bits(self.numbers[at]))),
            Kind::Empty | Kind::Unknown | Kind::Text => None,
        }
    }

    pub fn cell(&self, at: usize) -> Cell {
        let mark = self.marks[at];
        let rounded = |exact: Exact| Value::Number(exact, self.rounding(at));
        let value = match mark.kind {
            Kind::Empty => Value::Empty,
            Kind::Unknown => Value::Unknown,
            Kind::Text => Value::Text(self.text(at).to_string()),
            Kind::Whole => rounded(Exact::Whole(self.numbers[at])),
            Kind::Real => rounded(Exact::Real(f64::from_bits(self.numbers[at]))),
            Kind::Bar => Value::Bar(f64::from_bits(self.numbers[at])),
        };
        Cell::of(value).toned(mark.tone).again(mark.again)
    }

    pub(super) fn push(&mut self, cell: Cell) {
        let (tone, again) = (cell.tone(), cell.is_again());
        let mut rounding = 0;
        let kind = match cell.into_value() {
            Value::Empty => Kind::Empty,
            Value::Unknown => Kind::Unknown,
            Value::Text(text) => {
                self.push_text(&text);
                Kind::Text
            }
            Value::Bar(fraction) => {
                self.push_number(fraction.to_bits());
                Kind::Bar
            }
            Value::Number(exact, of) => {
                rounding = self.push_rounding(of);
                let (kind, bits) = match exact {
                    Exact::Whole(number) => (Kind::Whole, number),
                    Exact::Real(number) => (Kind::Real, number.to_bits()),
                };
                self.push_number(bits);
                kind
            }
        };
        match kind {
            Kind::Empty | Kind::Unknown => self.has.missing = true,
            Kind::Text => self.has.text = true,
            Kind::Whole => self.has.whole = true,
            Kind::Real | Kind::Bar => self.has.real = true,
        }
        self.marks.push(Mark {
            kind,
            tone,
            again,
            rounding,
        });
        if !self.numbers.is_empty() {
            self.numbers.resize(self.marks.len(), 0);
        }
        if !self.ends.is_empty() {
            self.ends.resize(self.marks.len(), self.texts.len());
        }
    }

    fn push_number(&mut self, bits: u64) {
        self.numbers.resize(self.marks.len(), 0);
        self.numbers.push(bits);
    }

    fn push_text(&mut self, text: &str) {
        self.ends.resize(self.marks.len(), self.texts.len());
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }

    fn push_rounding(&mut self, of: Rounding) -> u16 {
        if let Rounding::Words(words) = &of {
            self.push_text(words);
            return IN_WORDS;
        }
        let known = self.roundings.iter().position(|known| *known == of);
        let at = known.unwrap_or_else(|| {
            self.roundings.push(of);
            self.roundings.len() - 1
        });
        u16::try_from(at).expect("a column has few roundings")
    }

    fn rounding(&self, at: usize) -> Rounding {
        match self.marks[at].rounding {
            IN_WORDS => Rounding::Words(self.text(at).to_string()),
            known => self.roundings[usize::from(known)].clone(),
        }
    }

    fn text(&self, at: usize) -> &str {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.texts[begin..self.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_as_they_were() {
        let given = [
            Cell::empty(),
            Cell::count(7),
            Cell::name("a name"),
            Cell::unknown(),
            Cell::share(0.25).toned(Tone::Good),
            Cell::address(4096).in_words("1:0x1000"),
            Cell::decimals(1.5, 2, " x").again(true),
            Cell::bar(0.5),
            Cell::from("a name"),
            Cell::bytes(64),
        ];
        let mut cells = Cells::default();
        given.iter().for_each(|cell| cells.push(cell.clone()));
        let back: Vec<Cell> = (0..cells.len()).map(|at| cells.cell(at)).collect();
        assert_eq!(back, given);
        assert_eq!((cells.whole_numbers(), cells.only_texts()), (None, None));
        assert_eq!(cells.number(1), Some(Exact::Whole(7)));
        assert!(cells.is_missing(0) && cells.is_missing(3) && !cells.is_missing(8));
    }

    #[test]
    fn columns_of_one_kind_are_arrays() {
        let mut numbers = Cells::default();
        [
            Cell::unknown(),
            Cell::count(3),
            Cell::empty(),
            Cell::address(5).in_words("1:0x5"),
        ]
        .into_iter()
        .for_each(|cell| numbers.push(cell));
        assert_eq!(numbers.whole_numbers(), Some(&[0, 3, 0, 5][..]));
        assert!(numbers.has().missing);
        let mut texts = Cells::default();
        [Cell::empty(), Cell::from("ab"), Cell::empty(), Cell::from("c")]
            .into_iter()
            .for_each(|cell| texts.push(cell));
        assert_eq!(texts.only_texts(), Some(("abc", &[0, 2, 2, 3][..])));
    }
}
