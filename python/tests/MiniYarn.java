import java.io.FileOutputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A YARN cluster with one node. Writes its settings to a file, and listens on a port when it is ready. */
public class MiniYarn {
  public static void main(String[] arguments) throws Exception {
    YarnConfiguration conf = new YarnConfiguration();
    // The JVM of a small container may have more virtual memory than the container.
    conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
    conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
    conf.setFloat(
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 100);
    // The usual scheduler wants a file with its queues.
    conf.set(
        "yarn.resourcemanager.scheduler.class",
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler");
    MiniYARNCluster cluster = new MiniYARNCluster("skewext", 1, 1, 1);
    cluster.init(conf);
    cluster.start();
    cluster.waitForNodeManagersToConnect(60_000);
    try (OutputStream out = new FileOutputStream(arguments[0])) {
      cluster.getConfig().writeXml(out);
    }
    try (ServerSocket ready =
        new ServerSocket(Integer.parseInt(arguments[1]), 10, InetAddress.getByName("localhost"))) {
      while (true) ready.accept().close();
    }
  }
}
