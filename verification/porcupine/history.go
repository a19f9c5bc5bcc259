package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Facts are what a checker must know of the world that a history comes from.
type Facts struct {
	Seed int64 `json:"seed"`
	// WithinBound: the service's clocks agreed within CLOCK_SKEW_MS.
	WithinBound bool `json:"withinBound"`
	// SpreadMs: the furthest that any two of them stood apart.
	SpreadMs       float64 `json:"spreadMs"`
	Protocol       string  `json:"protocol"`
	ForeignLeases  bool    `json:"foreignLeases"`
	ForeignCommits bool    `json:"foreignCommits"`
	Sweeps         bool    `json:"sweeps"`
}

// Call is one operation on one object, as its caller saw it.
type Call struct {
	ID int64 `json:"id"`
	// Object is lease, commit, commitRef or indexRef.
	Object string `json:"object"`
	Key    string `json:"key"`
	Client string `json:"client"`
	Name   string `json:"name"`
	Called int64  `json:"called"`
	// Answered is absent where no answer came.
	Answered *int64          `json:"answered"`
	Outcome  string          `json:"outcome"`
	Input    json.RawMessage `json:"input"`
	Output   json.RawMessage `json:"output"`
	// Struck: whether any fault struck its requests.
	Struck bool `json:"struck"`
	// Strays: how many of its requests may have reached the store after the caller was answered.
	Strays int `json:"strays"`
	// shownBefore: others were shown its grant with a lower fence than that of its answer.
	shownBefore bool
}

// History is all that happened in one world.
type History struct {
	Facts Facts
	Calls []Call
}

type line struct {
	Type string `json:"type"`
	Facts
	Call
}

// readHistories takes JSON lines: one of type history, followed by its operations.
func readHistories(from io.Reader) ([]History, error) {
	var found []History
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for number := 1; lines.Scan(); number++ {
		var read line
		if err := json.Unmarshal(lines.Bytes(), &read); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		switch {
		case read.Type == "history":
			found = append(found, History{Facts: read.Facts})
		case read.Type == "operation" && len(found) > 0:
			last := &found[len(found)-1]
			last.Calls = append(last.Calls, read.Call)
		default:
			return nil, fmt.Errorf("line %d: an operation belongs after its history, and there is no type %q", number, read.Type)
		}
	}
	return found, lines.Err()
}

// isUnknown: the call may have taken effect at any time after it was sent, or never.
func (c Call) isUnknown() bool {
	return c.Answered == nil || c.Outcome == "OutcomeUnknown" || c.Outcome == "Error"
}

// saysNothing: nothing came of the call, and it says nothing about the state.
func (c Call) saysNothing() bool {
	return c.Outcome == "Throttled" || c.Outcome == "Unavailable"
}

// step is what Porcupine gives to a model: the call, or what a request of it did that its caller was not told of.
type step struct {
	call    Call
	unheard bool
}

func (s step) isUnknown() bool { return s.unheard || s.call.isUnknown() }

func (s step) operation() porcupine.Operation {
	returned := int64(math.MaxInt64)
	if !s.isUnknown() {
		returned = *s.call.Answered
	}
	return porcupine.Operation{Input: s, Output: nil, Call: s.call.Called, Return: returned}
}

func decode(raw json.RawMessage, into any) {
	if len(raw) == 0 {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		panic(fmt.Sprintf("%s: %v", raw, err))
	}
}

func describe(c Call) string {
	outcome := c.Outcome
	if outcome == "" {
		outcome = "no answer"
	}
	return strings.Join([]string{fmt.Sprint(c.ID), c.Client, c.Name, string(c.Input), "->", outcome, string(c.Output)}, " ")
}
