package holdfast.bench;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import java.net.URI;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/** amazon-dynamodb-lock-client as a contestant, with its defaults except for the lease, and without a heartbeat thread. */
public final class Contestant {
  private static final DynamoDbClient DYNAMODB =
      DynamoDbClient.builder()
          .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_DYNAMODB")))
          .region(Region.US_EAST_1)
          .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("bench", "bench")))
          .build();

  public static void main(String[] arguments) throws Exception {
    Scenarios.serve(Contestant::caller);
  }

  private static Scenarios.Caller caller(long ttlSeconds) {
    var client =
        new AmazonDynamoDBLockClient(
            AmazonDynamoDBLockClientOptions.builder(DYNAMODB, System.getenv("PEER_TABLE"))
                .withOwnerName(UUID.randomUUID().toString())
                .withTimeUnit(TimeUnit.SECONDS)
                .withLeaseDuration(ttlSeconds)
                .withHeartbeatPeriod(Math.max(1, ttlSeconds / 3))
                .withCreateHeartbeatBackgroundThread(false)
                .build());
    return key -> held(client, acquire(client, key));
  }

  private static LockItem acquire(AmazonDynamoDBLockClient client, String key) throws InterruptedException {
    return client.acquireLock(
        AcquireLockOptions.builder(key)
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withRefreshPeriod(1000L) // the default, in milliseconds
            .withAdditionalTimeToWaitForLock(3_600_000L)
            .build());
  }

  private static Scenarios.Held held(AmazonDynamoDBLockClient client, LockItem lock) {
    return new Scenarios.Held() {
      @Override
      public void release() {
        client.releaseLock(lock);
      }

      @Override
      public void heartbeat() {
        client.sendHeartbeat(lock);
      }
    };
  }
}
