"""Compares replayed cases with the list of those that are known not to pass yet: pending.py REPORT LIST [AREA ...].

Fails when a case that is not on the list fails, and when one on the list passes or is gone: the list only shrinks.
With UPDATE=1 it writes the list instead. A list that says `unrecorded` was never written: then failures are only told.
"""

import json
import os
import sys

HEADER = "# Recorded conversations that don't pass yet (.ci/run conformance). Only shrinks; UPDATE=1 writes it anew.\n"


def main():
    report, path, *areas = sys.argv[1:]
    outcomes = {}
    for result in json.load(open(report)):
        outcomes["/".join(result["case"].split(os.sep)[-2:])] = result["passed"]
    failing = {case for case, passed in outcomes.items() if not passed}
    print("%d passed, %d failed" % (len(outcomes) - len(failing), len(failing)))
    if os.environ.get("UPDATE") == "1":
        with open(path, "w") as out:
            out.write(HEADER + "".join(case + "\n" for case in sorted(failing)))
        return 0
    lines = [line.split("#")[0].strip() for line in open(path)]  # a comment says what a case waits for
    pending = {line for line in lines if line}
    if areas:  # not all were replayed
        pending = {case for case in pending if case.split("/")[0] in areas}
    if "unrecorded" in pending:
        print("%s was never recorded; these fail:" % path)
        print("".join("  %s\n" % case for case in sorted(failing)), end="")
        return 0
    for text, cases in (("fails and is not listed", failing - pending), ("is listed and does not fail", pending - failing)):
        for case in sorted(cases):
            print("%s: %s" % (case, text))
    return 1 if failing != pending else 0


if __name__ == "__main__":
    sys.exit(main())
