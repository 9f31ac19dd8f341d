"""The testbed's command line: `python -m tests.testbed --help`."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from tests.testbed import instance as instances
from tests.testbed.binaries import find_binaries
from tests.testbed.errors import TestbedError
from tests.testbed.instance import Instance
from tests.testbed.nodes import NodeSpec
from tests.testbed.teardown import tear_down, tear_down_abandoned
from tests.testbed.testbed import Testbed

EXAMPLES = """
examples:
  python -m tests.testbed up                       six nodes, Prometheus, until `down`
  python -m tests.testbed up --nodes 3 --zones 1   three nodes in one zone
  python -m tests.testbed up --kwok 1000 --no-kubelet
                                                   a thousand nodes that exist in the API alone
  python -m tests.testbed up --network --rack-megabits 50
                                                   crossing racks takes time
  export KUBECONFIG=$(python -m tests.testbed kubeconfig)
  python -m tests.testbed status -o json
  python -m tests.testbed down --all
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, or 1 with the error on standard error."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except TestbedError as error:
        print("\n".join([f"testbed: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.testbed",
        description="A real Kubernetes cluster on this machine, without a container engine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_up(commands)
    down = commands.add_parser("down", help="end testbeds and remove every trace of them")
    _add_id(down)
    down.add_argument("--all", action="store_true", help="all of them, not only one")
    down.set_defaults(run=_down)
    status = commands.add_parser("status", help="show the testbeds and their parts")
    status.add_argument("-o", "--output", choices=["text", "json"], default="text")
    status.set_defaults(run=_status)
    kubeconfig = commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    _add_id(kubeconfig)
    kubeconfig.set_defaults(run=_kubeconfig)
    binaries = commands.add_parser("binaries", help="find the binaries, or build them into the cache")
    binaries.set_defaults(run=_binaries)
    return parser


def _add_up(commands: Any) -> None:
    up = commands.add_parser("up", help="start a testbed and leave it running")
    up.add_argument("--nodes", type=_count, default=6, metavar="N", help="nodes that run pods (default: 6)")
    up.add_argument("--zones", type=_count, default=2, metavar="N", help="zones to spread them over (default: 2)")
    up.add_argument("--racks", type=_count, default=3, metavar="N", help="racks in a zone (default: 3)")
    up.add_argument("--cpu", default="1", help="CPU of a node, a Kubernetes quantity (default: 1)")
    up.add_argument("--quota", type=float, metavar="CORES", help="limit each node's pods to so many cores")
    up.add_argument("--kwok", type=int, default=0, metavar="N", help="add so many nodes without any pods' processes")
    up.add_argument("--no-kubelet", action="store_true", help="no nodes that run pods")
    up.add_argument("--no-scheduler", action="store_true", help="bind pods yourself")
    up.add_argument("--no-prometheus", action="store_true", help="no Prometheus")
    up.add_argument("--scrape-interval", type=float, default=2.0, metavar="SECONDS", help="(default: 2)")
    up.add_argument("--network", action="store_true", help="nodes in namespaces, with limited links")
    up.add_argument("--rack-megabits", type=float, default=100.0, metavar="N", help="of each link (default: 100)")
    up.add_argument("--zone-megabits", type=float, metavar="N", help="of each zone's link (default: as a rack's)")
    up.set_defaults(run=_up)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write a number from 1 on (for no nodes: --no-kubelet)")
    return int(text)


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="which testbed; may be left out when there is only one")


def _up(options: argparse.Namespace) -> None:
    started = time.monotonic()
    testbed = Testbed(progress=_say).up(
        nodes=_spread("node", options.nodes, options),
        kubelet=not options.no_kubelet,
        scheduler=not options.no_scheduler,
        prometheus=not options.no_prometheus,
        kwok=bool(options.kwok),
        scrape_interval_seconds=options.scrape_interval,
        network=options.network,
        rack_megabits=options.rack_megabits,
        zone_megabits=options.zone_megabits,
    )
    try:
        if options.kwok:
            testbed.add_fake_nodes(_spread("fake", options.kwok, options))
    except BaseException:
        testbed.down()
        raise
    testbed.detach()
    _say(f"testbed {testbed.instance.id} is up after {time.monotonic() - started:.0f} s")
    print(testbed.kubeconfig)


def _spread(prefix: str, count: int, options: argparse.Namespace) -> list[NodeSpec]:
    """Nodes over zones in turn, and in each zone over its racks in turn."""
    return [
        NodeSpec(
            name=f"{prefix}-{index + 1}",
            zone=f"zone-{index % options.zones + 1}",
            rack=f"rack-{index % options.zones + 1}-{index // options.zones % options.racks + 1}",
            cpu=options.cpu,
            cpu_quota_cores=options.quota,
        )
        for index in range(count)
    ]


def _down(options: argparse.Namespace) -> None:
    root = instances.default_root()
    for instance in tear_down_abandoned(root):
        _say(f"testbed {instance.id} was abandoned: it is ended")
    chosen = instances.existing(root)
    if options.id:
        chosen = [instance for instance in chosen if instance.id == options.id]
    elif len(chosen) > 1 and not options.all:
        ids = ", ".join(instance.id for instance in chosen)
        raise TestbedError(f"several testbeds run ({ids}): name one, or give --all")
    for instance in chosen:
        tear_down(instance)
        _say(f"testbed {instance.id} is down")


def _status(options: argparse.Namespace) -> None:
    found = [_describe(instance) for instance in instances.existing(instances.default_root())]
    if options.output == "json":
        print(json.dumps({"testbeds": found}, indent=2))
        return
    if not found:
        print("no testbed is up")
    for each in found:
        print(f"testbed {each['id']}  {each['url']}  {len(each['nodes'])} nodes  {each['folder']}")
        if each["prometheusUrl"]:
            print(f"  Prometheus: {each['prometheusUrl']}")
        for part in each["parts"]:
            print(f"  {part['name']:<24} {'running' if part['alive'] else 'ENDED':<8} {part['pid']:>8}  {part['log']}")


def _describe(instance: Instance) -> dict[str, Any]:
    details = instance.manifest.details()
    parts = [
        {
            "name": part.name,
            "pid": part.process.pid,
            "alive": part.process.is_alive(),
            "log": str(part.log),
        }
        for part in instance.manifest.parts()
    ]
    return {
        "id": instance.id,
        "folder": str(instance.folder),
        "url": details.get("url"),
        "prometheusUrl": details.get("prometheusUrl"),
        "kubeconfig": str(instance.folder / "admin.kubeconfig"),
        "abandoned": instance.manifest.is_abandoned(),
        "nodes": details.get("nodes", []),
        "parts": parts,
    }


def _kubeconfig(options: argparse.Namespace) -> None:
    print(Testbed.attach(options.id).kubeconfig)


def _binaries(_options: argparse.Namespace) -> None:
    for name, path in sorted(find_binaries(progress=_say).items()):
        print(f"{name:<24} {path}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
