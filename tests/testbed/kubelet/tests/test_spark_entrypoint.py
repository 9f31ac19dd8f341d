from tests.testbed.kubelet.spark_entrypoint import command

ENVIRONMENT = {
    "SPARK_HOME": "/opt/spark",
    "JAVA_HOME": "/java",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_DRIVER_URL": "spark://driver",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "127.1.1.2",
    "SPARK_EXECUTOR_POD_NAME": "x-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dten=10",
    "SPARK_JAVA_OPT_2": "-Dtwo=a b",
    "SPARK_DRIVER_BIND_ADDRESS": "127.1.1.3",
}


def test_an_executor_is_java_with_its_options_in_their_order() -> None:
    argv = command(["executor"], ENVIRONMENT)
    assert argv[:5] == ["/java/bin/java", "-Dtwo=a b", "-Dten=10", "-Xms512m", "-Xmx512m"]
    assert argv[argv.index("-cp") + 1] == "/opt/spark/conf:/opt/spark/jars/*:/opt/spark/work-dir"
    assert argv[argv.index("--hostname") + 1] == "127.1.1.2"
    assert argv[-1] == "x-exec-3"


def test_a_driver_submits_itself_in_client_mode_at_its_own_address() -> None:
    argv = command(["driver", "--class", "Main", "local:///app.py"], ENVIRONMENT)
    assert argv[0] == "/opt/spark/bin/spark-submit"
    assert "spark.driver.bindAddress=127.1.1.3" in argv
    assert argv[-5:] == ["--deploy-mode", "client", "--class", "Main", "local:///app.py"]


def test_anything_else_is_run_as_it_is() -> None:
    assert command(["bash", "-c", "true"], ENVIRONMENT) == ["bash", "-c", "true"]
