//! The Rust crate dynamodb-lease as a contestant. It reads and writes one JSON object on each line, as bench/contestants/scenarios.ts says.
use anyhow::{Result, anyhow};
use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use dynamodb_lease::{Client, Lease};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::{sleep, sleep_until};

#[derive(Deserialize)]
#[serde(tag = "scenario", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Scenario {
    Cycles { keys: Vec<String>, count: usize },
    Handoff { keys: Vec<String>, ttl_seconds: u32, delays_ms: Vec<f64> },
    Takeover { keys: Vec<String>, ttl_seconds: u32, arrive_ms: f64 },
    Contend { key: String, contenders: usize, ttl_seconds: u32, ms: f64, hold_ms: f64, one_turn_each: bool },
    Work { keys: Vec<String>, holder: String, log: String, at_once: usize, ttl_seconds: u32, ms: f64 },
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    say(&json!({ "ready": true }))?;
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(scenario) => runtime.block_on(run(scenario)),
            Err(error) => Err(anyhow!(error)),
        };
        say(&answer.map_or_else(|error| json!({ "error": format!("{error:#}") }), |result| json!({ "result": result })))?;
    }
    Ok(())
}

fn say(value: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

async fn run(scenario: Scenario) -> Result<Value> {
    match scenario {
        Scenario::Cycles { keys, count } => cycles(keys, count).await,
        Scenario::Handoff { keys, ttl_seconds, delays_ms } => {
            let waits = keys.iter().zip(delays_ms).map(|(key, delay)| handoff(key, ttl_seconds, delay));
            Ok(json!({ "waitedMs": try_join_all(waits).await? }))
        }
        Scenario::Takeover { keys, ttl_seconds, arrive_ms } => {
            let waits = keys.iter().map(|key| takeover(key, ttl_seconds, arrive_ms));
            Ok(json!({ "waitedMs": try_join_all(waits).await? }))
        }
        Scenario::Contend { key, contenders, ttl_seconds, ms, hold_ms, one_turn_each } => {
            contend(key, contenders, ttl_seconds, ms, hold_ms, one_turn_each).await
        }
        Scenario::Work { keys, holder, log, at_once, ttl_seconds, ms } => {
            let log = Arc::new(OpenOptions::new().append(true).create(true).open(log)?);
            let ends_at = Instant::now() + duration(ms);
            let uses = (0..at_once).map(|nth| work(&keys, nth, &holder, log.clone(), ttl_seconds, ends_at));
            Ok(json!({ "uses": try_join_all(uses).await?.iter().sum::<u64>() }))
        }
    }
}

/// Each caller has its own client, because callers of one client wait for each other without DynamoDB.
async fn client(ttl_seconds: u32) -> Result<Client> {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("bench", "bench", None, None, "bench"))
        .endpoint_url(std::env::var("AWS_ENDPOINT_URL_DYNAMODB")?)
        .build();
    Client::builder()
        .table_name(std::env::var("PEER_TABLE")?)
        .lease_ttl_seconds(ttl_seconds)
        .build_and_check_db(aws_sdk_dynamodb::Client::from_conf(config))
        .await
}

async fn cycles(keys: Vec<String>, count: usize) -> Result<Value> {
    let client = client(60).await?;
    let (mut acquire, mut release) = (Vec::new(), Vec::new());
    for key in keys.iter().cycle().take(count) {
        let started_at = Instant::now();
        let lease = client.acquire(key.as_str()).await?;
        let acquired_at = Instant::now();
        lease.release().await?;
        acquire.push(millis(acquired_at - started_at));
        release.push(millis(acquired_at.elapsed()));
    }
    Ok(json!({ "acquireMs": acquire, "releaseMs": release }))
}

async fn handoff(key: &str, ttl_seconds: u32, delay_ms: f64) -> Result<f64> {
    let lease = client(ttl_seconds).await?.acquire(key).await?;
    let waiter = client(ttl_seconds).await?;
    let waiting_for = key.to_owned();
    let waiting = tokio::spawn(async move {
        let lease = waiter.acquire(waiting_for).await?;
        anyhow::Ok((lease, Instant::now()))
    });
    sleep(duration(delay_ms)).await;
    let released_at = Instant::now();
    lease.release().await?;
    let (lease, granted_at) = waiting.await??;
    lease.release().await?;
    Ok(millis(granted_at - released_at))
}

async fn takeover(key: &str, ttl_seconds: u32, arrive_ms: f64) -> Result<f64> {
    let holder_key = key.to_owned();
    let granted_at = tokio::task::spawn_blocking(move || crash_holding(&holder_key, ttl_seconds)).await??;
    let waiter = client(ttl_seconds).await?;
    sleep_until((granted_at + duration(arrive_ms)).into()).await;
    let lease = waiter.acquire(key).await?;
    let waited = millis(granted_at.elapsed()) - f64::from(ttl_seconds) * 1000.0;
    lease.release().await?;
    Ok(waited)
}

/// Acquires in its own runtime, which is then shut down, so that nothing extends the lease any more.
fn crash_holding(key: &str, ttl_seconds: u32) -> Result<Instant> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let lease: Lease = runtime.block_on(async { client(ttl_seconds).await?.acquire(key).await })?;
    let granted_at = Instant::now();
    runtime.shutdown_background();
    std::mem::forget(lease);
    Ok(granted_at)
}

async fn contend(key: String, contenders: usize, ttl_seconds: u32, ms: f64, hold_ms: f64, one_turn_each: bool) -> Result<Value> {
    let mut clients = Vec::new();
    for _ in 0..contenders {
        clients.push(client(ttl_seconds).await?);
    }
    let grants: Arc<Vec<AtomicU64>> = Arc::new((0..contenders).map(|_| AtomicU64::new(0)).collect());
    let started_at = Instant::now();
    let ends_at = started_at + duration(ms);
    let all = try_join_all(clients.into_iter().enumerate().map(|(contender, client)| {
        let (key, grants) = (key.clone(), grants.clone());
        tokio::spawn(async move {
            while Instant::now() < ends_at {
                let lease = client.acquire(key.as_str()).await?;
                sleep(duration(hold_ms)).await;
                lease.release().await?;
                grants[contender].fetch_add(1, Ordering::Relaxed);
                if one_turn_each {
                    break;
                }
            }
            anyhow::Ok(())
        })
    }));
    if let Ok(ended) = tokio::time::timeout_at(ends_at.into(), all).await {
        ended?.into_iter().collect::<Result<Vec<()>>>()?;
    }
    let took_ms = millis(started_at.elapsed());
    let grants: Vec<u64> = grants.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    Ok(json!({ "grants": grants, "tookMs": took_ms }))
}

/// Works under leases, as verification/client/worker.ts does. The crate has no fences, so the moment of the grant stands for one.
async fn work(keys: &[String], nth: usize, holder: &str, log: Arc<File>, ttl_seconds: u32, ends_at: Instant) -> Result<u64> {
    let client = client(ttl_seconds).await?;
    let mut uses = 0;
    for turn in nth.. {
        if Instant::now() >= ends_at {
            break;
        }
        let key = &keys[turn * 7 % keys.len()];
        let Some(lease) = client.try_acquire(key.as_str()).await? else {
            sleep(duration(100.0 + (turn * 37 % 200) as f64)).await;
            continue;
        };
        let fence = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let until = Instant::now() + duration((100 + turn * 113 % 900) as f64);
        while Instant::now() < until {
            let step = json!({ "type": "step", "key": key, "fence": fence, "holder": holder, "at": monotonic_ms() });
            (&*log).write_all(format!("{step}\n").as_bytes())?;
            sleep(duration(40.0)).await;
        }
        lease.release().await?;
        uses += 1;
    }
    Ok(uses)
}

/// The clock that all processes of the machine share.
fn monotonic_ms() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec that lives until the call has returned.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as f64 * 1000.0 + now.tv_nsec as f64 / 1e6
}

fn duration(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1000.0)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
