package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// The time for the bench to break the network or the server, and the work between a check of the lock and the write.
const (
	holdAfter = 200 * time.Millisecond
	work      = 50 * time.Millisecond
)

// Acquires, and writes to the store until the time has run out or the session says that it has ended. The fence is the
// revision in which the lock was acquired.
func hold(asked task) (map[string]any, error) {
	own, err := newCaller(asked.TtlSeconds)
	if err != nil {
		return nil, err
	}
	defer own.session.Close() // as in the example of the documentation, even if Lock fails
	say(map[string]any{"settled": true})
	time.Sleep(holdAfter)
	startedAt := time.Now()
	mutex, err := own.acquire(asked.Key)
	if err != nil {
		return nil, err
	}
	grantedMs := millisSince(startedAt)
	fence := mutex.Header().Revision
	grantedAt := time.Now()
	isHeld := func() bool {
		select {
		case <-own.session.Done():
			return false
		default:
			return true
		}
	}
	for isHeld() && millisSince(grantedAt) < asked.Ms {
		time.Sleep(work)
		if err := write(asked, fence); err != nil {
			return nil, err
		}
	}
	result := map[string]any{"grantedMs": grantedMs}
	if !isHeld() {
		result["lostMs"] = millisSince(grantedAt)
		return result, nil
	}
	timeout, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := mutex.Unlock(timeout); err != nil {
		result["releaseError"] = err.Error()
	}
	return result, nil
}

func write(asked task, fence int64) error {
	body, err := json.Marshal(map[string]any{"writer": asked.Writer, "fence": fence})
	if err != nil {
		return err
	}
	answer, err := http.Post(asked.StoreUrl, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		err = fmt.Errorf("the store answered %s", answer.Status)
	}
	answer.Body.Close()
	return err
}
