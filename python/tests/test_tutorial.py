"""The tutorial runs from its first cell to its last, and shows what its text says."""

import os
import pathlib
import unittest

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).parent / "tutorial.ipynb"
CHART = "vegaEmbed"


class Tutorial(unittest.TestCase):
    def test_all_cells_run_and_show_what_they_promise(self):
        os.environ["JUPYTER_PLATFORM_DIRS"] = "1"
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        self.assertFalse([cell for cell in notebook.cells if cell.get("outputs")], "outputs are made, and not committed")
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        shown = ["".join(str(output.get("data", output.get("text"))) for output in cell.outputs) for cell in code]
        of = lambda words: next(out for cell, out in zip(code, shown) if words in cell.source)
        self.assertTrue("<iframe srcdoc=" in of("before = domicile.simulate"), "the page of the report")
        self.assertIn("interchange the loops", of("domicile.advise(by_columns"))
        self.assertRegex(of("domicile.compare(before, after)"), r"takes 8\d\.\d% less time")
        self.assertIn("OnceToTheReader", of("class OnceToTheReader"))
        self.assertIn("sort", of("domicile.record"))
        self.assertEqual(sum(CHART in out for out in shown), 2)
        for trigger in (16, 32, 64, 128, 256):
            self.assertIn(f"trigger={trigger}", of("domicile.sweep"))


if __name__ == "__main__":
    unittest.main()
