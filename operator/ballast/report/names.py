"""What people call an application: by Spark's label spark-app-name, not by its id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ballast.model import Executor


def application_names(executors: Iterable[Executor]) -> dict[str, str]:
    """`namespace/name` of applications by `namespace/id`, where Spark's label spark-app-name names them.

    Several of one name have their ids, too.
    """
    named = {
        f"{each.namespace}/{each.application}": f"{each.namespace}/{each.application_name}"
        for each in executors
        if each.application_name
    }
    several = Counter(named.values())
    return {key: name if several[name] == 1 else f"{name} ({key.partition('/')[2]})" for key, name in named.items()}
