//! A table, described once: its title, its columns and what they hold, its cells with their exact values, its notes.
//!
//! It is drawn as text ([`Table::text`], [`Table::section`], [`Table::facts`]) and as HTML ([`Table::html`]). A description
//! knows nothing of either: a cell says what it is and how it is rounded for people, a column says what it holds.

mod cell;
mod html;
mod text;

pub use cell::{Cell, Exact, Rounding, Tone, Value};
pub use text::{FAINT, HEADING, PLAIN, WARNING, cut, heading, paragraph, unbroken, wrap};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// What a row is about.
    Label,
    Text,
    Count,
    /// Fractions of a whole.
    Share,
    /// How much more or less than something else; exactly, the ratio to that.
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

    /// What the exact values of its cells are in; empty for counts, fractions and what is no number.
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

/// How a column is laid out where there is little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// To the left, never cut.
    Left,
    /// To the right, never cut.
    Right,
    /// To the left, cut in the middle where the table would be too wide.
    Cut,
    /// To the left, broken into lines where the table would be too wide. The last column only.
    Wrap,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    role: Role,
    /// What stands above it; nothing where its cells speak for themselves.
    title: String,
    /// What it is called where every column needs a name.
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

    /// The same column, cut in the middle where the table would be too wide.
    pub fn cut(self) -> Column {
        Column {
            layout: Layout::Cut,
            ..self
        }
    }

    /// The same column, broken into lines where the table would be too wide.
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

    /// What its exact values are in.
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
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
    /// Whether it goes on under the title of the table before it.
    continued: bool,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            title: title.into(),
            columns: columns.into_iter().collect(),
            ..Table::default()
        }
    }

    /// A list of facts: what each is about, and what it is.
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

    /// The same table, under the title of the one before it.
    pub fn continued(self) -> Table {
        Table {
            continued: true,
            ..self
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "a row of {}", self.title);
        self.rows.push(cells);
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

    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Whether it stands under the title of the table before it.
    pub fn is_continued(&self) -> bool {
        self.continued
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
