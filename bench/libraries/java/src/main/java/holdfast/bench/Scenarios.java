package holdfast.bench;

import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** Plays the scenarios. Reads and writes one JSON object on each line, as bench/contestants/scenarios.ts says. */
final class Scenarios {
  /** A way of taking locks. */
  interface Locks {
    /** A party with its own session. */
    Caller caller(long ttlSeconds) throws Exception;
  }

  interface Caller {
    /** Waits until it has the lock. A lock may belong to the thread that acquires it. */
    Held acquire(String key) throws Exception;
  }

  interface Held {
    void release() throws Exception;

    default void heartbeat() throws Exception {
      throw new UnsupportedOperationException("this library has no heartbeat");
    }

    /** Absent if the library has no fences. */
    default Long fence() throws Exception {
      return null;
    }

    /** Whether the library says that the lock is held. */
    default boolean isHeld() {
      return true;
    }
  }

  private static final Gson GSON = new Gson();
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(
          task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
          });

  /** So long that nothing expires during a measurement. */
  private static final long LONG_TTL_SECONDS = 60;

  /** After this many times the length of the measurement, it begins even if a contender has not had a turn. */
  private static final int SETTLED_WITHIN = 2;

  /** The time for the bench to break the network or the server, and the work between a check of the lock and the write. */
  private static final long HOLD_AFTER_MS = 200;

  private static final long WORK_MS = 50;

  /** The fields of a line. Each scenario uses some of them. */
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
      boolean oneTurnEach,
      boolean settled,
      String storeUrl,
      String writer) {}

  private final Locks locks;

  private Scenarios(Locks locks) {
    this.locks = locks;
  }

  /** Plays the tasks of standard input until it ends. */
  static void serve(Locks locks) throws Exception {
    var scenarios = new Scenarios(locks);
    say(Map.of("ready", true));
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = lines.readLine()) != null; ) say(scenarios.answer(line));
    System.exit(0);
  }

  private static synchronized void say(Map<String, ?> message) {
    System.out.println(GSON.toJson(message));
  }

  private Map<String, ?> answer(String line) {
    try {
      return Map.of("result", run(GSON.fromJson(line, Task.class)));
    } catch (Exception error) {
      return Map.of("error", String.valueOf(error));
    }
  }

  private Object run(Task task) throws Exception {
    return switch (task.scenario()) {
      case "cycles" -> cycles(task);
      case "heartbeats" -> heartbeats(task);
      case "handoff" -> Map.of("waitedMs", each(task.keys(), at -> handoff(task, at)));
      case "takeover" -> Map.of("waitedMs", each(task.keys(), at -> takeover(task, at)));
      case "contend" -> new Contention(task).run();
      case "hold" -> hold(task);
      default -> throw new IllegalArgumentException(task.scenario());
    };
  }

  private Object cycles(Task task) throws Exception {
    var caller = locks.caller(LONG_TTL_SECONDS);
    List<Double> acquire = new ArrayList<>();
    List<Double> release = new ArrayList<>();
    for (int at = 0; at < task.count(); at++) {
      long startedAt = System.nanoTime();
      Held lock = caller.acquire(task.keys().get(at % task.keys().size()));
      long acquiredAt = System.nanoTime();
      lock.release();
      acquire.add((acquiredAt - startedAt) / 1e6);
      release.add(millisSince(acquiredAt));
    }
    return Map.of("acquireMs", acquire, "releaseMs", release);
  }

  private Object heartbeats(Task task) throws Exception {
    Held lock = locks.caller(LONG_TTL_SECONDS).acquire(task.key());
    List<Double> beats = new ArrayList<>();
    for (int at = 0; at < task.count(); at++) {
      long startedAt = System.nanoTime();
      lock.heartbeat();
      beats.add(millisSince(startedAt));
    }
    lock.release();
    return Map.of("beatMs", beats);
  }

  private double handoff(Task task, int at) throws Exception {
    String key = task.keys().get(at);
    var waiter = locks.caller(task.ttlSeconds());
    Held held = locks.caller(task.ttlSeconds()).acquire(key);
    Future<Long> waiting =
        THREADS.submit(
            () -> {
              Held granted = waiter.acquire(key);
              long grantedAt = System.nanoTime();
              granted.release();
              return grantedAt;
            });
    sleep(task.delaysMs().get(at));
    long releasedAt = System.nanoTime();
    held.release();
    return (waiting.get() - releasedAt) / 1e6;
  }

  /** The holder crashes: it neither extends nor releases its lock. */
  private double takeover(Task task, int at) throws Exception {
    String key = task.keys().get(at);
    locks.caller(task.ttlSeconds()).acquire(key);
    long grantedAt = System.nanoTime();
    sleep(task.arriveMs());
    Held lock = locks.caller(task.ttlSeconds()).acquire(key);
    double waited = millisSince(grantedAt) - task.ttlSeconds() * 1000.0;
    lock.release();
    return waited;
  }

  /** Acquires, and writes to the store until the time has run out or the library says that the lock is lost. */
  private Object hold(Task task) throws Exception {
    var store = HttpClient.newHttpClient();
    var caller = locks.caller(task.ttlSeconds());
    say(Map.of("settled", true));
    sleep(HOLD_AFTER_MS);
    long startedAt = System.nanoTime();
    Held held = caller.acquire(task.key());
    Map<String, Object> result = new HashMap<>(Map.of("grantedMs", millisSince(startedAt)));
    Long fence = held.fence();
    Map<String, Object> write = new HashMap<>(Map.of("writer", task.writer()));
    if (fence != null) write.put("fence", fence);
    var request =
        HttpRequest.newBuilder(URI.create(task.storeUrl()))
            .POST(HttpRequest.BodyPublishers.ofString(GSON.toJson(write)))
            .build();
    long grantedAt = System.nanoTime();
    while (held.isHeld() && millisSince(grantedAt) < task.ms()) {
      sleep(WORK_MS);
      var answer = store.send(request, HttpResponse.BodyHandlers.discarding());
      if (answer.statusCode() >= 300) throw new IllegalStateException("the store answered " + answer.statusCode());
    }
    if (!held.isHeld()) {
      result.put("lostMs", millisSince(grantedAt));
      return result;
    }
    try {
      held.release();
    } catch (Exception error) {
      result.put("releaseError", String.valueOf(error));
    }
    return result;
  }

  private final class Contention {
    private final Task task;
    private final int[] grants;
    private final CountDownLatch settled = new CountDownLatch(1);
    private long startedAt;
    private boolean isSettled;
    private volatile boolean isOver;

    Contention(Task task) {
      this.task = task;
      grants = new int[task.contenders()];
      isSettled = !task.settled();
    }

    Object run() throws Exception {
      List<Caller> callers = new ArrayList<>();
      for (int contender = 0; contender < grants.length; contender++) callers.add(locks.caller(task.ttlSeconds()));
      List<Future<?>> running = new ArrayList<>();
      startedAt = System.nanoTime();
      for (int contender = 0; contender < grants.length; contender++) {
        int own = contender;
        running.add(THREADS.submit(() -> turns(callers.get(own), own)));
      }
      if (task.settled()) settled.await((long) (SETTLED_WITHIN * task.ms()), TimeUnit.MILLISECONDS);
      long endsAt = System.nanoTime() + (long) (task.ms() * 1e6);
      for (Future<?> one : running) {
        try {
          one.get(Math.max(0, endsAt - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (java.util.concurrent.TimeoutException stillWaiting) {
          break;
        }
      }
      isOver = true;
      synchronized (this) {
        return Map.of("grants", Arrays.stream(grants).boxed().toList(), "tookMs", millisSince(startedAt));
      }
    }

    private Void turns(Caller caller, int own) throws Exception {
      while (!isOver) {
        Held lock = caller.acquire(task.key());
        sleep(task.holdMs());
        lock.release();
        turn(own);
        if (task.oneTurnEach()) break;
      }
      return null;
    }

    private synchronized void turn(int own) {
      grants[own]++;
      if (isSettled || Arrays.stream(grants).anyMatch(count -> count == 0)) return;
      isSettled = true;
      Arrays.fill(grants, 0);
      startedAt = System.nanoTime();
      say(Map.of("settled", true));
      settled.countDown();
    }
  }

  private interface Work {
    double at(int index) throws Exception;
  }

  /** Runs all of them at the same time. */
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
