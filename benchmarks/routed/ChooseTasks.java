import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.grouping.LoadAwareShuffleGrouping;
import org.apache.storm.task.WorkerTopologyContext;

/** Storm's own grouping in a loop. Arguments: targets, choices a round, rounds. Prints choices per CPU second of each. */
public final class ChooseTasks {
    public static void main(String[] arguments) {
        int targets = Integer.parseInt(arguments[0]);
        long choices = Long.parseLong(arguments[1]);
        LoadAwareShuffleGrouping grouping = prepared(targets);
        List<Object> values = List.of("record");
        var clock = ManagementFactory.getThreadMXBean();
        long sum = 0;
        for (int round = 0; round < Integer.parseInt(arguments[2]); round++) {
            long began = clock.getCurrentThreadCpuTime();
            for (long i = 0; i < choices; i++) {
                sum += grouping.chooseTasks(0, values).get(0);
            }
            System.out.println(choices * 1e9 / (clock.getCurrentThreadCpuTime() - began));
        }
        // What is not used may not be computed.
        System.err.println(sum);
    }

    private static LoadAwareShuffleGrouping prepared(int targets) {
        Map<Integer, NodeInfo> places = new HashMap<>();
        Map<String, String> hosts = new HashMap<>(Map.of("here", "here"));
        List<Integer> tasks = new ArrayList<>();
        for (int task = 1; task <= targets; task++) {
            tasks.add(task);
            places.put(task, new NodeInfo("node-" + task, new HashSet<>(Set.of(6700L))));
            hosts.put("node-" + task, "node-" + task);
        }
        Map<String, Object> conf = new HashMap<>();
        conf.put("storm.network.topography.plugin", "org.apache.storm.networktopography.DefaultRackDNSToSwitchMapping");
        conf.put("topology.localityaware.higher.bound", 0.8);
        conf.put("topology.localityaware.lower.bound", 0.2);
        var context = new WorkerTopologyContext(new StormTopology(), conf, new HashMap<>(), new HashMap<>(),
            new HashMap<>(), "topology", "", "", 6700, new ArrayList<>(), new HashMap<>(), new HashMap<>(),
            new AtomicReference<>(places), "here", new AtomicReference<>(hosts));
        var grouping = new LoadAwareShuffleGrouping();
        grouping.prepare(context, new GlobalStreamId("source", "default"), tasks);
        return grouping;
    }
}
