#!/usr/bin/env python3
"""Random loop nests: `nests.py SEED` prints a C program of parallel loops over arrays of one to three dimensions, with
random bounds, directions, strides, schedules, offsets, conditions and orders of indices. With the recorder of touched
pages it says whether threads touch what is predicted for them."""
import random
import sys

seed = int(sys.argv[1])
r = random.Random(seed)
out = []
SIZES = {1: [40000], 2: [90, 333], 3: [24, 30, 41]}
arrays = [("abcdefgh"[n], 1 if n == 0 else r.choice([1, 2, 2, 3]), r.choice(["double", "float", "int", "char"])) for n in range(5)]
kinds = {name: r.choice(["global", "pointer"]) for name, _, _ in arrays}


def shape(dims):
    return "".join(f"[{n}]" for n in SIZES[dims])


for name, dims, kind in arrays:
    if kinds[name] == "global":
        out.append(f"static {kind} {name}{shape(dims)};")
    else:
        out.append(f"static {kind} (*{name}){shape(dims)[shape(dims).index(']') + 1:]};")


def loop(depth):
    dims = r.choice([1, 2, 2, 3])
    name = f"f{depth}"
    sizes = SIZES[dims]
    order = list(range(dims))
    r.shuffle(order)
    pragma = "#pragma omp parallel for schedule(static" + r.choice(["", "", ", 1", ", 3", ", n3"]) + ")"
    if r.random() < 0.15:
        pragma += " num_threads(3)"
    lines = [f"static void {name}(int n1, int n2, int n3, int flag) {{", pragma]
    for level, d in enumerate(order):
        v = "ijk"[d]
        low, high = r.choice(["0", "1", "2", "3"]), r.choice([f"{sizes[d] - 2}", f"{sizes[d] - 5}", f"n{d + 1}", f"least(n{d + 1}, {sizes[d] // 2})"])
        step = r.choice([1, 1, 1, 1, 2, 3])
        if dims == 1:
            high = r.choice(["39990", "n1 * 300", "39990 - n1"])
        if r.random() < 0.75:
            lines.append(f"for (int {v} = {low}; {v} < {high}; {v} += {step})")
        else:
            lines.append(f"for (int {v} = {high} - 1; {v} >= {low}; {v} -= {step})")
    lines.append("{")
    usable = [a for a in arrays if a[1] <= dims]

    def index(a, write):
        at = []
        for d in range(a[1]):
            v = "ijk"[d]
            if a[1] < dims and r.random() < 0.3:
                v = r.choice("ijk"[:dims])
                if SIZES[dims]["ijk".index(v)] > SIZES[a[1]][d]:
                    v = "ijk"[d] if SIZES[dims][d] <= SIZES[a[1]][d] else "0"
            elif SIZES[dims][d] > SIZES[a[1]][d]:
                v = "0"
            off = "" if write else r.choice(["", "", "", "+1", "-1" if v != "0" else "", "+2"])
            if off == "-1":
                v, off = f"({v} > 0 ? {v} : 1)", "-1"
                if r.random() < 0.9:
                    v, off = v.split(" ")[0][1:], ""
            if dims == 2 and d == 0 and v == "i" and not write and r.random() < 0.2:
                v, off = r.choice(["(i + 85) % 86", "i * 1", "(i / 2)"]), ""
            at.append(f"[{v}{off}]")
        return a[0] + "".join(at)

    for _ in range(r.randint(1, 3)):
        w, reads = r.choice(usable), [r.choice(usable) for _ in range(r.randint(0, 3))]
        text = f"{index(w, True)} += " + " + ".join([index(a, False) for a in reads] + ["1"]) + ";"
        guard = r.random()
        if guard < 0.12:
            text = f"if (flag) {text}"
        elif guard < 0.2:
            text = f"if ({index(r.choice(usable), False)} > 0) {text} else {text[:-1]} + 2;"
        elif guard < 0.25:
            text = f"if ({index(r.choice(usable), False)} > 0) {text}"
        lines.append(text)
    lines += ["}", "}"]
    return lines


count = 6
body = [line for n in range(count) for line in loop(n)]
print("#include <stdlib.h>\nstatic int least(int a, int b) { return a < b ? a : b; }")
print("\n".join(out))
print("\n".join(body))
print("int main(int argc, char **argv) {\n(void)argv;")
for name, dims, kind in arrays:
    if kinds[name] == "pointer":
        size = 1
        for n in SIZES[dims]:
            size *= n
        print(f"{name} = calloc({size}, sizeof({kind}));")
for n in range(count):
    print(f"f{n}(argc + {r.randint(8, 18)}, argc + {r.randint(10, 20)}, argc + {r.randint(12, 30)}, argc - {r.randint(0, 1)});")
print("}")
