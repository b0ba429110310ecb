"""make test-faults: python -m service.long_faults [--cuts N] [--flips N]; many power cuts and damaged files."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from service.cuts import recorded, try_cuts
from service.damage import cuts, flips, sample, try_all


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=4000)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        for mode, count in (("FULL", given.cuts), ("NORMAL", given.cuts // 10)):
            found = try_cuts(recorded(Path(work), mode, 300, given.seed), Path(work), count, given.seed)
            print(f"{mode}: {found.cuts} power cuts, {found.losing} lost something acknowledged, at most "
                  f"{found.most} entries; {found.refused} refused, {len(found.faults)} audit faults")  # fmt: skip
            bad = found.losing + found.refused if mode == "FULL" else int(not found.losing)
            wrong += bad + len(found.faults)
        own = sample(Path(work))
        for what, fault, count in (("flipped bits", flips, given.flips), ("cut ends", cuts, given.flips // 10)):
            for ending, source in (("", own.closed), ("-wal", own.open)):
                size = os.path.getsize(f"{source}{ending}")
                hurt = try_all(own, source, ending, fault(count, size, given.seed))
                print(f"{what} in the {'log' if ending else 'file'}: {hurt.tried}, {hurt.found} found, "
                      f"{hurt.harmless} without effect, {len(hurt.silent)} silent {hurt.silent[:3]}")  # fmt: skip
                wrong += len(hurt.silent)
    print(f"{wrong} promises broken, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
