"""How far predictions were off: the range that `domicile advise` prints beside a gain.

A ratio of times is predicted as `p` and measured as `p ** k`. The range of `k` over the pairs of the build half is what a
gain is printed with; how many pairs of the held half are within it is counted and printed, and not used."""

import json
import math

# A smaller predicted change says nothing of how large changes are predicted.
LEAST_CHANGE = 1.05


def exponent(measured, predicted):
    return math.log(measured) / math.log(predicted)


def spread(pairs):
    """Of pairs of (set, measured ratio, its interval, predicted ratio)."""
    changed = [pair for pair in pairs if pair[3] is not None and max(pair[3], 1 / pair[3]) >= LEAST_CHANGE]
    # Where the measured interval holds 1, nothing was measured that a range could be made of.
    of_build = [
        exponent(measured, predicted)
        for half, measured, (low, high), predicted in changed
        if half == "build" and not low <= 1 <= high
    ]
    if not of_build:
        return None
    least, most = min(of_build), max(of_build)
    held = [pair for pair in changed if pair[0] == "held"]
    # The measured interval has to meet the range.
    within = [
        pair
        for pair in held
        if max(pair[2][0], pair[3] ** least) <= min(pair[2][1], pair[3] ** most)
    ]
    return {
        "least": round(least, 3),
        "most": round(most, 3),
        "pairs": len(of_build),
        "held": len(held),
        "held_within": len(within),
    }


def of_results(results):
    return spread(
        [
            (
                one["set"],
                one["measured"]["ratio"],
                (one["measured"]["least"], one["measured"]["most"]),
                one["predicted"]["ratio"],
            )
            for one in results.values()
            if one.get("predicted")
        ]
    )


def said(found):
    """The range in the words of the book."""
    return (
        f"range of gains: a ratio p is measured as p^{found['least']} to p^{found['most']} in the {found['pairs']} pairs of set"
        f" build; the measured interval meets that range in {found['held_within']} of {found['held']} pairs of set held"
    )


def write(path, found, about):
    facts = {"date": about["date"][:10], "processor": about["processor"], **found}
    path.write_text(json.dumps(facts, indent=1) + "\n")
