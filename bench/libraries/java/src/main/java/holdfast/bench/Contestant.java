package holdfast.bench;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * amazon-dynamodb-lock-client as a contestant: one JSON object a line in, one a line out; see
 * bench/contestants/scenarios.ts. Its defaults but for the lease, and no heartbeat thread.
 */
public final class Contestant {
  private static final Gson GSON = new Gson();
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(
          task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
          });
  private static final DynamoDbClient DYNAMODB =
      DynamoDbClient.builder()
          .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_DYNAMODB")))
          .region(Region.US_EAST_1)
          .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("bench", "bench")))
          .build();

  /** What a line asks for; a scenario uses some of it. */
  private record Task(
      String scenario,
      String key,
      List<String> keys,
      int count,
      int contenders,
      long ttlSeconds,
      List<Double> delaysMs,
      double arriveMs,
      double ms,
      double holdMs,
      boolean once) {}

  public static void main(String[] arguments) throws Exception {
    System.out.println("{\"ready\":true}");
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = lines.readLine()) != null; ) System.out.println(answer(line));
    System.exit(0);
  }

  private static String answer(String line) {
    try {
      return GSON.toJson(Map.of("result", run(GSON.fromJson(line, Task.class))));
    } catch (Exception error) {
      return GSON.toJson(Map.of("error", String.valueOf(error)));
    }
  }

  private static Object run(Task task) throws Exception {
    return switch (task.scenario()) {
      case "cycles" -> cycles(task);
      case "heartbeats" -> heartbeats(task);
      case "handoff" -> Map.of("waitedMs", each(task.keys(), at -> handoff(task, at)));
      case "takeover" -> Map.of("waitedMs", each(task.keys(), at -> takeover(task, at)));
      case "contend" -> contend(task);
      default -> throw new IllegalArgumentException(task.scenario());
    };
  }

  private static AmazonDynamoDBLockClient client(long ttlSeconds) {
    return new AmazonDynamoDBLockClient(
        AmazonDynamoDBLockClientOptions.builder(DYNAMODB, System.getenv("PEER_TABLE"))
            .withOwnerName(UUID.randomUUID().toString())
            .withTimeUnit(TimeUnit.SECONDS)
            .withLeaseDuration(ttlSeconds)
            .withHeartbeatPeriod(Math.max(1, ttlSeconds / 3))
            .withCreateHeartbeatBackgroundThread(false)
            .build());
  }

  private static LockItem acquire(AmazonDynamoDBLockClient client, String key) throws InterruptedException {
    return client.acquireLock(
        AcquireLockOptions.builder(key)
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withRefreshPeriod(1000L) // the default, in this unit
            .withAdditionalTimeToWaitForLock(3_600_000L)
            .build());
  }

  private static Object cycles(Task task) throws Exception {
    var client = client(60);
    List<Double> acquire = new ArrayList<>();
    List<Double> release = new ArrayList<>();
    for (int at = 0; at < task.count(); at++) {
      long startedAt = System.nanoTime();
      LockItem lock = acquire(client, task.keys().get(at % task.keys().size()));
      long acquiredAt = System.nanoTime();
      client.releaseLock(lock);
      acquire.add((acquiredAt - startedAt) / 1e6);
      release.add(millisSince(acquiredAt));
    }
    return Map.of("acquireMs", acquire, "releaseMs", release);
  }

  private static Object heartbeats(Task task) throws Exception {
    var client = client(60);
    LockItem lock = acquire(client, task.key());
    List<Double> beats = new ArrayList<>();
    for (int at = 0; at < task.count(); at++) {
      long startedAt = System.nanoTime();
      client.sendHeartbeat(lock);
      beats.add(millisSince(startedAt));
    }
    client.releaseLock(lock);
    return Map.of("beatMs", beats);
  }

  private static double handoff(Task task, int at) throws Exception {
    String key = task.keys().get(at);
    var holder = client(task.ttlSeconds());
    var waiter = client(task.ttlSeconds());
    LockItem held = acquire(holder, key);
    Future<Long> waiting =
        THREADS.submit(
            () -> {
              LockItem granted = acquire(waiter, key);
              long grantedAt = System.nanoTime();
              waiter.releaseLock(granted);
              return grantedAt;
            });
    sleep(task.delaysMs().get(at));
    long releasedAt = System.nanoTime();
    holder.releaseLock(held);
    return (waiting.get() - releasedAt) / 1e6;
  }

  /** The holder crashes: nobody beats or releases. */
  private static double takeover(Task task, int at) throws Exception {
    String key = task.keys().get(at);
    acquire(client(task.ttlSeconds()), key);
    long grantedAt = System.nanoTime();
    sleep(task.arriveMs());
    var waiter = client(task.ttlSeconds());
    LockItem lock = acquire(waiter, key);
    double waited = millisSince(grantedAt) - task.ttlSeconds() * 1000.0;
    waiter.releaseLock(lock);
    return waited;
  }

  private static Object contend(Task task) throws Exception {
    AtomicInteger[] grants = new AtomicInteger[task.contenders()];
    List<Future<?>> running = new ArrayList<>();
    long startedAt = System.nanoTime();
    long endsAt = startedAt + (long) (task.ms() * 1e6);
    for (int contender = 0; contender < task.contenders(); contender++) {
      AtomicInteger own = grants[contender] = new AtomicInteger();
      var client = client(task.ttlSeconds());
      running.add(THREADS.submit(() -> turns(task, client, own, endsAt)));
    }
    for (Future<?> one : running) {
      try {
        one.get(Math.max(0, endsAt - System.nanoTime()), TimeUnit.NANOSECONDS);
      } catch (java.util.concurrent.TimeoutException stillWaiting) {
        break;
      }
    }
    double tookMs = millisSince(startedAt);
    return Map.of("grants", java.util.Arrays.stream(grants).map(AtomicInteger::get).toList(), "tookMs", tookMs);
  }

  private static Void turns(Task task, AmazonDynamoDBLockClient client, AtomicInteger own, long endsAt) throws Exception {
    while (System.nanoTime() < endsAt) {
      LockItem lock = acquire(client, task.key());
      sleep(task.holdMs());
      client.releaseLock(lock);
      own.incrementAndGet();
      if (task.once()) break;
    }
    return null;
  }

  private interface Work {
    double at(int index) throws Exception;
  }

  /** All at the same time. */
  private static List<Double> each(List<String> keys, Work work) throws Exception {
    List<Callable<Double>> calls = new ArrayList<>();
    for (int at = 0; at < keys.size(); at++) {
      int index = at;
      calls.add(() -> work.at(index));
    }
    List<Double> results = new ArrayList<>();
    for (Future<Double> result : THREADS.invokeAll(calls)) results.add(result.get());
    return results;
  }

  private static void sleep(double ms) throws InterruptedException {
    TimeUnit.NANOSECONDS.sleep((long) (ms * 1e6));
  }

  private static double millisSince(long nanoTime) {
    return (System.nanoTime() - nanoTime) / 1e6;
  }
}
