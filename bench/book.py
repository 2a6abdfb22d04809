"""Tables of a run, put between their marks in the book's pages."""

import prepare

PAGES = prepare.ROOT / "docs" / "src"


def write(page, group, name, heads, rows, about):
    """Replaces the table `name` of a group on a page."""
    cells = lambda row: "| " + " | ".join(row) + " |"
    table = "\n".join([cells(heads), cells(["---"] * len(heads)), *map(cells, rows)])
    begin, end = f"<!-- table: bench/run --write-book {group}, {name} -->", "<!-- end of table -->"
    path = PAGES / f"{page}.md"
    text = path.read_text()
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    path.write_text(f"{before}{begin}\n\n{about}\n\n{table}\n\n{end}{after}")
