// The etcd contestant: concurrency.Mutex with the defaults of its documentation, and a session for each caller. It
// reads and writes one JSON object on each line, as bench/contestants/scenarios.ts says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

type task struct {
	Scenario    string
	Key         string
	Keys        []string
	Count       int
	Contenders  int
	TtlSeconds  int
	DelaysMs    []float64
	Ms          float64
	HoldMs      float64
	OneTurnEach bool
	Settled     bool
	StoreUrl    string
	Writer      string
}

// So long that nothing expires during a measurement.
const longTtlSeconds = 60

// After this many times the length of the measurement, it begins even if a contender has not had a turn.
const settledWithin = 2

func say(message map[string]any) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func main() {
	say(map[string]any{"ready": true})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var asked task
		err := json.Unmarshal(lines.Bytes(), &asked)
		var result map[string]any
		if err == nil {
			result, err = run(asked)
		}
		if err != nil {
			say(map[string]any{"error": err.Error()})
		} else {
			say(map[string]any{"result": result})
		}
	}
}

func run(asked task) (map[string]any, error) {
	switch asked.Scenario {
	case "cycles":
		return cycles(asked)
	case "handoff":
		return handoffs(asked)
	case "contend":
		return contend(asked)
	case "hold":
		return hold(asked)
	}
	return nil, fmt.Errorf("no scenario %s", asked.Scenario)
}

type caller struct{ session *concurrency.Session }

// All callers share a connection, as clients of the AWS SDK do.
var client = sync.OnceValues(func() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:   []string{os.Getenv("SERVER")},
		DialTimeout: 5 * time.Second,
		Logger:      zap.NewNop(),
	})
})

func newCaller(ttlSeconds int) (caller, error) {
	client, err := client()
	if err != nil {
		return caller{}, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttlSeconds))
	return caller{session}, err
}

func (own caller) acquire(key string) (*concurrency.Mutex, error) {
	mutex := concurrency.NewMutex(own.session, "/bench/"+key)
	return mutex, mutex.Lock(context.Background())
}

func millisSince(at time.Time) float64 { return float64(time.Since(at)) / 1e6 }
func millis(ms float64) time.Duration  { return time.Duration(ms * 1e6) }

func cycles(asked task) (map[string]any, error) {
	own, err := newCaller(longTtlSeconds)
	if err != nil {
		return nil, err
	}
	defer own.session.Close()
	acquireMs, releaseMs := []float64{}, []float64{}
	for at := 0; at < asked.Count; at++ {
		startedAt := time.Now()
		mutex, err := own.acquire(asked.Keys[at%len(asked.Keys)])
		if err != nil {
			return nil, err
		}
		acquireMs = append(acquireMs, millisSince(startedAt))
		acquiredAt := time.Now()
		if err := mutex.Unlock(context.Background()); err != nil {
			return nil, err
		}
		releaseMs = append(releaseMs, millisSince(acquiredAt))
	}
	return map[string]any{"acquireMs": acquireMs, "releaseMs": releaseMs}, nil
}

func handoffs(asked task) (map[string]any, error) {
	waitedMs := make([]float64, len(asked.Keys))
	errors := make([]error, len(asked.Keys))
	var all sync.WaitGroup
	for at := range asked.Keys {
		all.Go(func() { waitedMs[at], errors[at] = handoff(asked, at) })
	}
	all.Wait()
	for _, err := range errors {
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"waitedMs": waitedMs}, nil
}

func handoff(asked task, at int) (float64, error) {
	holder, err := newCaller(asked.TtlSeconds)
	if err != nil {
		return 0, err
	}
	defer holder.session.Close()
	waiter, err := newCaller(asked.TtlSeconds)
	if err != nil {
		return 0, err
	}
	defer waiter.session.Close()
	held, err := holder.acquire(asked.Keys[at])
	if err != nil {
		return 0, err
	}
	type granted struct {
		mutex *concurrency.Mutex
		at    time.Time
		err   error
	}
	waiting := make(chan granted, 1)
	go func() {
		mutex, err := waiter.acquire(asked.Keys[at])
		waiting <- granted{mutex, time.Now(), err}
	}()
	time.Sleep(millis(asked.DelaysMs[at]))
	releasedAt := time.Now()
	if err := held.Unlock(context.Background()); err != nil {
		return 0, err
	}
	next := <-waiting
	if next.err != nil {
		return 0, next.err
	}
	return float64(next.at.Sub(releasedAt)) / 1e6, next.mutex.Unlock(context.Background())
}

// The state that all contenders share.
type contention struct {
	sync.Mutex
	grants    []int
	startedAt time.Time
	isSettled bool
	settled   chan struct{}
}

// Counts a turn. With settled, the count begins when each contender has had one.
func (shared *contention) turn(contender int) {
	shared.Lock()
	defer shared.Unlock()
	shared.grants[contender]++
	if shared.isSettled {
		return
	}
	for _, count := range shared.grants {
		if count == 0 {
			return
		}
	}
	shared.isSettled = true
	clear(shared.grants)
	shared.startedAt = time.Now()
	say(map[string]any{"settled": true})
	close(shared.settled)
}

func contend(asked task) (map[string]any, error) {
	callers := make([]caller, asked.Contenders)
	for at := range callers {
		own, err := newCaller(asked.TtlSeconds)
		if err != nil {
			return nil, err
		}
		callers[at] = own
	}
	shared := &contention{
		grants:    make([]int, asked.Contenders),
		startedAt: time.Now(),
		isSettled: !asked.Settled,
		settled:   make(chan struct{}),
	}
	var isOver atomic.Bool
	finished := make(chan error, asked.Contenders)
	for at, own := range callers {
		go func() { finished <- turns(asked, own, at, shared, &isOver) }()
	}
	if asked.Settled {
		select {
		case <-shared.settled:
		case <-time.After(millis(settledWithin * asked.Ms)):
		}
	}
	// Contenders that still wait at the end are left waiting, because the process is stopped.
	over := time.After(millis(asked.Ms))
	for left := asked.Contenders; left > 0; left-- {
		select {
		case err := <-finished:
			if err != nil {
				return nil, err
			}
			continue
		case <-over:
		}
		break
	}
	isOver.Store(true)
	shared.Lock()
	defer shared.Unlock()
	grants := append([]int{}, shared.grants...)
	return map[string]any{"grants": grants, "tookMs": millisSince(shared.startedAt)}, nil
}

func turns(asked task, own caller, at int, shared *contention, isOver *atomic.Bool) error {
	for !isOver.Load() {
		mutex, err := own.acquire(asked.Key)
		if err != nil {
			return err
		}
		time.Sleep(millis(asked.HoldMs))
		if err := mutex.Unlock(context.Background()); err != nil {
			return err
		}
		shared.turn(at)
		if asked.OneTurnEach {
			return nil
		}
	}
	return nil
}
