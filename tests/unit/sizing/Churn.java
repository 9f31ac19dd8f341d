import java.util.ArrayDeque;

/** Allocates a given number of MiB, a quarter of which lives for as long as the last `keep` MiB of it do. */
public final class Churn {
    public static void main(String[] arguments) throws InterruptedException {
        long mebibytes = Long.parseLong(arguments[0]);
        int keep = Integer.parseInt(arguments[1]);
        ArrayDeque<byte[]> kept = new ArrayDeque<>();
        for (long record = 0; record < mebibytes * 1024; record++) {
            byte[] made = new byte[1024];
            if (record % 4 == 0) {
                kept.addLast(made);
            }
            if (kept.size() > keep * 1024) {
                kept.removeFirst();
            }
        }
        if (arguments.length > 2) {
            System.gc();
        }
    }
}
