"""One party of an MPyC computation, in a process of its own: its input comes on stdin, the result goes to stdout."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


async def _answered(asked: dict[str, Any]) -> list[int]:
    from mpyc.runtime import mpc

    number = mpc.SecInt(96)
    await mpc.start()
    values = asked["values"]
    if asked["task"] == "rank":
        found = await _ranked(mpc, number, asked)
    else:
        columns = [mpc.input(number(value)) for value in values]
        if asked["task"] == "sum":
            found = [int(await mpc.output(mpc.sum(column))) for column in columns]
        else:
            found = [int(await mpc.output(columns[0][0] < columns[0][1]))]
    await mpc.shutdown()
    return found


async def _ranked(mpc: Any, number: Any, asked: dict[str, Any]) -> list[int]:
    """Bisect: every round opens whether enough values lie below, and whether enough do not lie above."""
    import bisect

    own, rank = sorted(asked["values"]), asked["rank"]
    total = int(await mpc.output(mpc.sum(mpc.input(number(len(own))))))
    if asked.get("share") is not None:
        rank = min(max(1, math.ceil(asked["share"] * total)), total)
    if not 1 <= rank <= total:
        raise ValueError("There is no such rank.")
    low, high = 0, asked["size"] - 1
    while low <= high:
        middle = (low + high) // 2
        below = mpc.sum(mpc.input(number(bisect.bisect_left(own, middle))))
        above = mpc.sum(mpc.input(number(len(own) - bisect.bisect_right(own, middle))))
        if await mpc.output(below >= rank):
            high = middle - 1
        elif await mpc.output(total - above < rank):
            low = middle + 1
        else:
            return [int(middle), int(rank), total]
    raise ValueError("The counts contradict each other.")


def main() -> None:
    """Read the input, take part, and print the result."""
    asked = json.loads(sys.stdin.read())
    from mpyc.runtime import mpc

    sys.stdout.write(json.dumps(mpc.run(_answered(asked))) + "\n")


if __name__ == "__main__":
    main()
