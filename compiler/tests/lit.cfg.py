# lit's configuration: `make check` in the folder above runs it.
import os

import lit.formats

config.name = "domicile-compiler"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".c", ".cpp", ".f90", ".ll", ".test"]
config.test_source_root = os.path.dirname(__file__)
build = os.environ["DOMICILE_BUILD"]
config.test_exec_root = os.path.join(build, "tests")
config.excludes = ["stub", "kernels", "Inputs"]

plugin = os.path.join(build, "libdomicile_compiler.so")
tests = os.path.dirname(__file__)
oracle = os.path.join(build, "tests", "oracle.o")
if os.path.isdir(os.path.join(tests, "..", "..", "workloads", "tomcatv")):
    config.available_features.add("workloads")
# Those of the largest programs take half the time of all: they run with `make test-long`.
if os.environ.get("DOMICILE_CASES") == "all":
    config.available_features.add("long")
config.substitutions += [
    ("%workload", f"env PLUGIN={plugin} ORACLE={oracle} {tests}/exact/workload"),
    ("%nests", f"env PLUGIN={plugin} ORACLE={oracle} {tests}/exact/nests"),
    ("%plugin", plugin),
    ("%commands", os.path.join(os.path.dirname(os.path.dirname(__file__)), "bin")),
    ("%clangxx", "clang++-19 -fopenmp -fpass-plugin=" + plugin),
    ("%clang", "clang-19 -fopenmp -fpass-plugin=" + plugin),
    ("%flang", "flang-new-19 -fopenmp -fpass-plugin=" + plugin),
    ("%opt", "opt-19 -load-pass-plugin=" + plugin + " -passes=domicile-summary"),
    ("%print", os.path.join(build, "tests", "print.o")),
    ("%oracle", oracle),
    ("FileCheck", "FileCheck-19"),
]
# `not` has no version in its name.
config.environment["PATH"] = os.environ["PATH"] + ":/usr/lib/llvm-19/bin"
