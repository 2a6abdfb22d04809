//! A table, described once: its title, its columns and their contents, its cells with their exact values, its notes.
//!
//! It is drawn as text ([`Table::text`], [`Table::section`], [`Table::facts`]) and as HTML ([`Table::html`]). A
//! description is independent of both: a cell has its meaning and its rounding for people, a column has its kind of
//! contents.

mod cell;
mod cells;
mod html;
mod text;

pub use cell::{Cell, Exact, Rounding, Tone, Value};
pub use cells::{Cells, Has};
pub use text::{FAINT, HEADING, PLAIN, WARNING, cut, heading, paragraph, unbroken, wrap};

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The subject of a row.
    Label,
    Text,
    Count,
    /// Fractions of a whole.
    Share,
    /// How much more or less than something else; its exact value is the ratio.
    Change,
    /// Nanoseconds.
    Time,
    Bytes,
    Address,
    /// Other numbers, in the column's unit.
    Number,
    /// Fractions of the longest bar.
    Bar,
}

impl Role {
    /// Its name: the class of its cells in HTML.
    pub fn name(self) -> &'static str {
        match self {
            Role::Label => "label",
            Role::Text => "text",
            Role::Count => "count",
            Role::Share => "share",
            Role::Change => "change",
            Role::Time => "time",
            Role::Bytes => "bytes",
            Role::Address => "address",
            Role::Number => "number",
            Role::Bar => "bar",
        }
    }

    /// The unit of the exact values of its cells; empty for counts, fractions and cells without numbers.
    fn unit(self) -> &'static str {
        match self {
            Role::Time => "ns",
            Role::Bytes => "bytes",
            _ => "",
        }
    }

    fn layout(self) -> Layout {
        match self {
            Role::Label | Role::Text | Role::Bar => Layout::Left,
            _ => Layout::Right,
        }
    }
}

/// The layout of a column if there is little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// To the left, never cut.
    Left,
    /// To the right, never cut.
    Right,
    /// To the left, cut in the middle if the table would be too wide.
    Cut,
    /// To the left, broken into lines if the table would be too wide. The last column only.
    Wrap,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    role: Role,
    /// The heading; empty if its cells need none.
    title: String,
    /// Its name in outputs in which every column needs one.
    name: String,
    unit: &'static str,
    layout: Layout,
}

impl Column {
    pub fn new(role: Role, title: impl Into<String>) -> Column {
        let title = title.into();
        Column {
            role,
            name: title.trim().to_string(),
            title,
            unit: role.unit(),
            layout: role.layout(),
        }
    }

    /// The same column, cut in the middle if the table would be too wide.
    pub fn cut(self) -> Column {
        Column {
            layout: Layout::Cut,
            ..self
        }
    }

    /// The same column, broken into lines if the table would be too wide.
    pub fn wrap(self) -> Column {
        Column {
            layout: Layout::Wrap,
            ..self
        }
    }

    /// The name of a column that has no title.
    pub fn named(self, name: impl Into<String>) -> Column {
        Column {
            name: name.into(),
            ..self
        }
    }

    /// Sets the unit of its exact values.
    pub fn of(self, unit: &'static str) -> Column {
        Column { unit, ..self }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn unit(&self) -> &'static str {
        self.unit
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }
}

/// A table; every row has as many cells as there are columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    title: String,
    columns: Vec<Column>,
    /// By column.
    cells: Vec<Cells>,
    /// How many rows.
    count: usize,
    notes: Vec<String>,
    /// True if it continues under the title of the previous table.
    continued: bool,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Table {
        let columns: Vec<Column> = columns.into_iter().collect();
        Table {
            title: title.into(),
            cells: vec![Cells::default(); columns.len()],
            columns,
            ..Table::default()
        }
    }

    /// A list of facts: the subject of each, and its value.
    pub fn of_facts<'a>(title: impl Into<String>, facts: impl IntoIterator<Item = (&'a str, String)>) -> Table {
        let mut table = Table::new(
            title,
            [
                Column::new(Role::Label, "").named("fact"),
                Column::new(Role::Text, "").named("value"),
            ],
        );
        for (name, value) in facts {
            table.row([name.into(), value.into()]);
        }
        table
    }

    /// The same table, under the title of the previous one.
    pub fn continued(self) -> Table {
        Table {
            continued: true,
            ..self
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row = cells.into_iter();
        for cells in &mut self.cells {
            let cell = row.next();
            debug_assert!(cell.is_some(), "a row of {} is short", self.title);
            cells.push(cell.unwrap_or_default());
        }
        debug_assert!(row.next().is_none(), "a row of {} is long", self.title);
        self.count += 1;
    }

    /// A sentence below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn row_at(&self, at: usize) -> Vec<Cell> {
        self.cells.iter().map(|cells| cells.cell(at)).collect()
    }

    /// From the top, each with as many cells as there are columns.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Cell>> {
        (0..self.count).map(|at| self.row_at(at))
    }

    /// By column.
    pub fn cells(&self) -> &[Cells] {
        &self.cells
    }

    /// True if it continues under the title of the previous table.
    pub fn is_continued(&self) -> bool {
        self.continued
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
