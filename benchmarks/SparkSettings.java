import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Prints key, version and default of each setting that a Spark on the class path registers. */
public final class SparkSettings {
  private static final List<String> REGISTRIES =
      List.of(
          "org.apache.spark.internal.config.package$",
          "org.apache.spark.internal.config.UI$",
          "org.apache.spark.internal.config.Network$",
          "org.apache.spark.internal.config.Status$",
          "org.apache.spark.internal.config.Streaming$",
          "org.apache.spark.internal.config.Python$",
          "org.apache.spark.deploy.k8s.Config$",
          "org.apache.spark.sql.internal.SQLConf$");

  public static void main(String[] args) throws Exception {
    for (String name : REGISTRIES) {
      try {
        Class.forName(name);
      } catch (Throwable absent) {
        System.err.println(name + ": " + absent);
      }
    }
    var find = Class.forName("org.apache.spark.internal.config.ConfigEntry").getMethod("findEntry", String.class);
    for (String key : Files.readAllLines(Path.of(args[0]))) {
      Object entry = find.invoke(null, key);
      if (entry != null) {
        Object version = entry.getClass().getMethod("version").invoke(entry);
        Object standard = entry.getClass().getMethod("defaultValueString").invoke(entry);
        System.out.println(key + "\t" + version + "\t" + standard);
      }
    }
  }
}
