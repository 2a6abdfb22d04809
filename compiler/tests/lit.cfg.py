# lit's configuration: `make check` in the folder above runs it.
import os

import lit.formats

config.name = "domicile-compiler"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".c", ".cpp", ".f90", ".ll"]
config.test_source_root = os.path.dirname(__file__)
build = os.environ["DOMICILE_BUILD"]
config.test_exec_root = os.path.join(build, "tests")
config.excludes = ["stub", "kernels", "Inputs"]

plugin = os.path.join(build, "libdomicile_compiler.so")
config.substitutions += [
    ("%plugin", plugin),
    ("%commands", os.path.join(os.path.dirname(os.path.dirname(__file__)), "bin")),
    ("%clangxx", "clang++-19 -fopenmp -fpass-plugin=" + plugin),
    ("%clang", "clang-19 -fopenmp -fpass-plugin=" + plugin),
    ("%flang", "flang-new-19 -fopenmp -fpass-plugin=" + plugin),
    ("%opt", "opt-19 -load-pass-plugin=" + plugin + " -passes=domicile-summary"),
    ("%print", os.path.join(build, "tests", "print.o")),
    ("%oracle", os.path.join(build, "tests", "oracle.o")),
    ("FileCheck", "FileCheck-19"),
]
# `not` has no version in its name.
config.environment["PATH"] = os.environ["PATH"] + ":/usr/lib/llvm-19/bin"
