package holdfast.bench;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's InterProcessMutex as a contestant, with the retries of its documentation. Callers with the same ttl share a session, because a
 * mutex belongs to a thread. The fence is the id of the transaction that created the node of the lock.
 */
public final class CuratorContestant {
  /** A session counts as suspended from the first loss of its connection, as the documentation recommends, until it is seen to go on. */
  private static final class Session {
    final CuratorFramework framework;
    final AtomicBoolean isLost = new AtomicBoolean();
    volatile boolean isSuspended;

    Session(long ttlSeconds) throws InterruptedException {
      framework =
          CuratorFrameworkFactory.builder()
              .connectString(System.getenv("SERVER"))
              .sessionTimeoutMs((int) (ttlSeconds * 1000))
              .retryPolicy(new ExponentialBackoffRetry(1000, 3))
              .build();
      framework
          .getConnectionStateListenable()
          .addListener(
              (client, state) -> {
                isSuspended = state == ConnectionState.SUSPENDED;
                if (state == ConnectionState.LOST) isLost.set(true);
              });
      framework.start();
      framework.blockUntilConnected();
    }
  }

  private static final java.util.Map<Long, Session> SESSIONS = new java.util.HashMap<>();

  private static synchronized Session session(long ttlSeconds) throws InterruptedException {
    Session session = SESSIONS.get(ttlSeconds);
    if (session == null) SESSIONS.put(ttlSeconds, session = new Session(ttlSeconds));
    return session;
  }

  public static void main(String[] arguments) throws Exception {
    Scenarios.serve(CuratorContestant::caller);
  }

  private static Scenarios.Caller caller(long ttlSeconds) throws InterruptedException {
    Session session = session(ttlSeconds);
    return key -> {
      var mutex = new Mutex(session.framework, "/bench/" + key.replace('/', ' '));
      mutex.acquire();
      return new Scenarios.Held() {
        @Override
        public void release() throws Exception {
          mutex.release();
        }

        @Override
        public Long fence() throws Exception {
          return session.framework.checkExists().forPath(mutex.node()).getCzxid();
        }

        @Override
        public boolean isHeld() {
          return !session.isLost.get() && !session.isSuspended;
        }
      };
    };
  }

  /** Gives access to the node of the lock. */
  private static final class Mutex extends InterProcessMutex {
    Mutex(CuratorFramework framework, String path) {
      super(framework, path);
    }

    String node() {
      return getLockPath();
    }
  }
}
