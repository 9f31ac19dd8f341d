"""What the entrypoint of Spark's image does, for its arguments `executor` and `driver`; any other is run as is.

Its own program, standard library only.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")


def java_options(environment: Mapping[str, str]) -> list[str]:
    found = ((_JAVA_OPTION.fullmatch(name), value) for name, value in environment.items())
    return [value for _, value in sorted((int(match[1]), value) for match, value in found if match)]


def class_path(environment: Mapping[str, str]) -> str:
    home = environment["SPARK_HOME"]
    parts = [
        environment.get("SPARK_CONF_DIR", ""),
        environment.get("SPARK_CLASSPATH", ""),
        environment.get("HADOOP_CONF_DIR", ""),
        f"{home}/jars/*",
        environment.get("SPARK_EXTRA_CLASSPATH", ""),
        f"{home}/work-dir",
        environment.get("SPARK_DIST_CLASSPATH", ""),
    ]
    return ":".join(part for part in parts if part)


def executor(environment: Mapping[str, str]) -> list[str]:
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    return [
        f"{environment['JAVA_HOME']}/bin/java",
        *java_options(environment),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        class_path(environment),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", environment["SPARK_DRIVER_URL"]),
        *("--executor-id", environment["SPARK_EXECUTOR_ID"]),
        *("--cores", environment["SPARK_EXECUTOR_CORES"]),
        *("--app-id", environment["SPARK_APPLICATION_ID"]),
        *("--hostname", environment["SPARK_EXECUTOR_POD_IP"]),
        *("--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"]),
        *("--podName", environment["SPARK_EXECUTOR_POD_NAME"]),
    ]


def driver(arguments: list[str], environment: Mapping[str, str]) -> list[str]:
    address = environment["SPARK_DRIVER_BIND_ADDRESS"]
    return [
        f"{environment['SPARK_HOME']}/bin/spark-submit",
        *("--conf", f"spark.driver.bindAddress={address}"),
        *("--conf", f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}"),
        *("--deploy-mode", "client"),
        *arguments,
    ]


def command(arguments: list[str], environment: Mapping[str, str]) -> list[str]:
    match arguments:
        case ["executor", *_]:
            return executor(environment)
        case ["driver", *rest]:
            return driver(rest, environment)
        case _:
            return arguments


def main() -> None:
    argv = command(sys.argv[1:], os.environ)
    sys.stderr.write(f"+ {' '.join(argv)}\n")
    sys.stderr.flush()
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
