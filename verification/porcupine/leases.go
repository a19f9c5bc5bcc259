package main

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// lease is a lock with fences, as callers can know it. An empty id, or a zero, stands for what nobody was told.
type lease struct {
	held    bool
	foreign bool
	holder  string
	// id is the lease id; of a foreign client's lease, its version.
	id      string
	fence   int64
	expires int64
	// unclaimed: of a call that waited. Before its claim the grant lasted for the window, and it may have ended with that.
	unclaimed bool
	// How the last lease of this service ended, while the record remembers it.
	ended ended
	// highest is the highest fence so far.
	highest int64
	// forgotten: the record that remembered it has gone.
	forgotten bool
}

type ended struct {
	known  bool
	holder string
	id     string
	fence  int64
	broken bool
}

type leaseInput struct {
	Holder      string `json:"holder"`
	LeaseID     string `json:"leaseId"`
	Fence       int64  `json:"fence"`
	WaitSeconds *int   `json:"waitSeconds"`
	Fair        *bool  `json:"fair"`
	// Of a client of the Rust crate.
	Lease   string `json:"lease"`
	Version string `json:"version"`
}

type leaseOutput struct {
	Holder       string  `json:"holder"`
	LeaseID      string  `json:"leaseId"`
	Fence        int64   `json:"fence"`
	AcquiredAt   string  `json:"acquiredAt"`
	ExpiresAt    string  `json:"expiresAt"`
	RetryAfterMs float64 `json:"retryAfterMs"`
	Repeated     bool    `json:"repeated"`
	Released     bool    `json:"released"`
	Cancelled    bool    `json:"cancelled"`
	Reason       string  `json:"reason"`
	State        string  `json:"state"`
	Version      string  `json:"version"`
	// IsOver: a foreign client's lease was over by then.
	IsOver  bool `json:"isOver"`
	Deleted bool `json:"deleted"`
	Actual  struct {
		Fence int64 `json:"fence"`
	} `json:"actual"`
}

const clockSkewMs = 500

// waits: whether the call stood in line.
func (in leaseInput) waits() bool {
	return in.WaitSeconds != nil && *in.WaitSeconds > 0 && (in.Fair == nil || *in.Fair)
}

// inLine: an acquire that stood in line. Where it failed, it has left its ticket there, and may still be granted the window.
func inLine(call Call) bool {
	if call.Name != "acquire" {
		return false
	}
	var in leaseInput
	decode(call.Input, &in)
	return in.waits()
}

func leaseSteps(call Call, facts Facts) []step {
	heard, unheard := step{call, false}, step{call, true}
	switch {
	case call.Name == "readLeases" && (call.isUnknown() || call.saysNothing()):
		return nil
	case call.Name == "clean":
		var out leaseOutput
		decode(call.Output, &out)
		if call.Outcome == "ok" && out.Deleted {
			return []step{heard}
		}
		return []step{unheard}
	case call.saysNothing() && call.Strays == 0 && !inLine(call):
		return nil
	case call.saysNothing():
		return []step{unheard}
	case call.isUnknown():
		return []step{heard}
	}
	if hasUnheardEffect(call, facts) {
		return []step{heard, unheard}
	}
	return []step{heard}
}

// hasUnheardEffect: a try that got no answer may have done what the caller was then told it had not.
func hasUnheardEffect(call Call, facts Facts) bool {
	var out leaseOutput
	decode(call.Output, &out)
	switch call.Name {
	case "acquire":
		var in leaseInput
		decode(call.Input, &in)
		// It may have had a grant before that it did not claim in time.
		if in.waits() {
			return true
		}
		if call.Outcome == "ok" {
			// Its fence keeps a late try out, unless the record that has it is gone.
			return call.shownBefore || call.Strays > 0 && (facts.ForeignLeases || facts.Sweeps)
		}
		refused := call.Outcome == "LeaseLost" || call.Outcome == "LeaseHeld"
		return call.Strays > 0 || (refused && call.Struck)
	case "heartbeat":
		return call.Outcome == "LeaseLost" && call.Struck
	case "release":
		return out.Reason == "unknown" && call.Struck
	case "rustAcquire", "rustExtend", "rustRelease":
		// Its SDK tells a second try that failed on the first one as lost, and nothing keeps late ones out.
		return call.Struck
	}
	return false
}

// markShownBefore: the fence of a late grant is raised before its call is answered, and others may see the fence from before.
func markShownBefore(calls []Call) {
	outputs := make([]leaseOutput, len(calls))
	for index, call := range calls {
		decode(call.Output, &outputs[index])
	}
	for index := range calls {
		call := &calls[index]
		var in leaseInput
		decode(call.Input, &in)
		for other, shown := range outputs {
			isLower := shown.Holder == in.Holder && shown.Fence != 0 && shown.Fence < outputs[index].Fence
			isMeanwhile := calls[other].Answered != nil && *calls[other].Answered > call.Called
			mayBeSame := isMeanwhile && fits(shown.LeaseID, outputs[index].LeaseID)
			if call.Name == "acquire" && call.Outcome == "ok" && isLower && mayBeSame {
				call.shownBefore = true
			}
		}
	}
}

func leaseModel(facts Facts) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{lease{}} },
		Step: func(state, input, _ any) []any {
			now, taken := state.(lease), input.(step)
			after := leaseAfter(now, taken, facts)
			// What nobody claimed has ended with its window, and the record has forgotten it.
			if now.held && now.unclaimed && now.id == "" {
				lapsed := cleared(now)
				lapsed.ended = ended{}
				after = append(after, leaseAfter(lapsed, taken, facts)...)
			}
			if taken.isUnknown() {
				after = append(after, now)
			}
			states := make([]any, len(after))
			for index, one := range after {
				states[index] = one
			}
			return states
		},
	}
}

// leaseAfter are the states that may follow; none where the call could not have been answered as it was.
func leaseAfter(now lease, taken step, facts Facts) []lease {
	call, unknown := taken.call, taken.isUnknown()
	var in leaseInput
	var out leaseOutput
	decode(call.Input, &in)
	decode(call.Output, &out)
	here := []lease{now}
	when := func(holds bool, after ...lease) []lease {
		if holds {
			return after
		}
		return nil
	}
	isOurs := now.held && !now.foreign
	switch call.Name {
	case "acquire":
		if unknown {
			return acquiredUnheard(now, call, in, out, facts)
		}
		switch call.Outcome {
		case "ok":
			return acquired(now, call, in, out, facts)
		case "LeaseHeld":
			if !now.held && in.waits() && out.Holder == "" {
				return []lease{cameTooLate(now, out)}
			}
			// Nobody is locked out by his own request, but for the margin after its end.
			return when(out.Holder != in.Holder || out.RetryAfterMs <= clockSkewMs+1, standing(now, out, facts)...)
		case "LeaseLost":
			if out.Reason == "cancelled" {
				return here
			}
			return when(!now.held && now.ended.known && now.ended.holder == in.Holder, here...)
		}
	case "heartbeat":
		isHeld := isOurs && fits(now.id, in.LeaseID)
		switch {
		case unknown:
			extended := now
			extended.expires = 0
			return when(isHeld, extended)
		case call.Outcome == "LeaseLost":
			return when(!now.held || now.id != in.LeaseID, here...)
		case call.Outcome == "ok" && isHeld:
			expires := epochMs(out.ExpiresAt)
			told := now
			told.id, told.fence, told.expires = out.LeaseID, out.Fence, 0
			var after []lease
			for _, one := range agreeing(now, told, facts) {
				one.expires, one.unclaimed = expires, false
				after = append(after, one)
			}
			return when(now.expires == 0 || expires >= now.expires, after...)
		}
	case "release":
		isHeld := isOurs && fits(now.id, in.LeaseID)
		switch {
		case unknown:
			return when(isHeld, over(now, false))
		case call.Outcome != "ok":
			return nil
		case !out.Released:
			return when(!now.held || now.id != in.LeaseID, here...)
		case isHeld:
			known := now
			known.id = in.LeaseID
			return []lease{over(known, false)}
		default:
			return when(!now.held && now.ended.known && !now.ended.broken && fits(now.ended.id, in.LeaseID), here...)
		}
	case "withdraw":
		isOwn := isOurs && now.holder == in.Holder
		switch {
		case !unknown && call.Outcome != "ok":
			return nil
		case !isOwn:
			return here
		case unknown || !out.Cancelled:
			return []lease{now, over(now, false)}
		}
		return []lease{over(now, false)}
	case "breakLease":
		isHeld := isOurs && now.fence <= in.Fence
		switch {
		case unknown:
			return when(isHeld, over(now, true))
		case call.Outcome == "ok" && isHeld:
			told := now
			told.fence = in.Fence
			var after []lease
			for _, one := range agreeing(now, told, facts) {
				after = append(after, over(one, true))
			}
			return after
		case call.Outcome == "ok":
			same := now.ended.fence <= in.Fence
			return when(!now.held && now.ended.known && now.ended.broken && same, here...)
		case call.Outcome == "NotFound":
			return when(!now.held, here...)
		case call.Outcome == "Conflict":
			return when(now.held && out.Actual.Fence != in.Fence && (now.foreign || now.fence <= out.Actual.Fence), here...)
		}
	case "readLeases":
		if out.State == "held" || out.State == "expired" {
			return standing(now, out, facts)
		}
		return when(!now.held, here...)
	case "clean":
		gone := now
		gone.held, gone.ended = false, ended{}
		gone = cleared(gone)
		gone.forgotten = now.forgotten || !facts.WithinBound
		return []lease{gone}
	default:
		return foreignAfter(now, taken, in, out)
	}
	return nil
}

// foreignAfter: clients of the Rust crate know no fences, and leave none.
func foreignAfter(now lease, taken step, in leaseInput, out leaseOutput) []lease {
	unknown := taken.isUnknown()
	isHeld := now.held && now.foreign && fits(now.id, in.Version)
	lost := []lease{now}
	if now.held && now.id == in.Version {
		lost = nil
		// It still stands in the record, and a call that clears the line away gives it another version.
		if now.foreign && out.IsOver {
			moved := now
			moved.id = "of no client"
			lost = []lease{moved}
		}
	}
	switch taken.call.Name {
	case "rustAcquire":
		if unknown || out.Version != "" {
			return []lease{{held: true, foreign: true, holder: in.Lease, id: out.Version, highest: now.highest, forgotten: true}}
		}
		if now.held {
			return []lease{now}
		}
	case "rustExtend":
		extended := now
		extended.id = out.Version
		switch {
		case unknown || out.Version != "":
			if isHeld {
				return []lease{extended}
			}
		default:
			return lost
		}
	case "rustRelease":
		switch {
		case unknown || out.Released:
			if isHeld {
				return []lease{{highest: now.highest, forgotten: true}}
			}
		default:
			return lost
		}
	}
	return nil
}

func acquiredUnheard(now lease, call Call, in leaseInput, out leaseOutput, facts Facts) []lease {
	fence := int64(0)
	// A call that waits sends more than one request, each with a fence of its own.
	if call.Outcome == "ok" && in.WaitSeconds == nil && !call.shownBefore {
		fence = out.Fence
	}
	if fence != 0 && !rises(now, fence, facts) {
		return nil
	}
	// A request whose grant has ended is not granted again.
	if !now.held && now.ended.known && now.ended.holder == in.Holder {
		return nil
	}
	return []lease{granted(now, lease{holder: in.Holder, fence: fence, unclaimed: in.waits()})}
}

func acquired(now lease, call Call, in leaseInput, out leaseOutput, facts Facts) []lease {
	told := lease{holder: in.Holder, id: out.LeaseID, fence: out.Fence, expires: epochMs(out.ExpiresAt), unclaimed: in.waits()}
	if in.waits() {
		told.expires = 0 // others may have seen the end of its window
	}
	var after []lease
	isRaised := now.fence != 0 && out.Fence > now.fence
	if (out.Repeated || isRaised) && now.held && !now.foreign && now.holder == in.Holder {
		after = agreeing(now, told, facts)
	}
	// What a call is told to repeat may have been its own first try.
	mayBeNew := !out.Repeated || call.Struck
	isOver := !now.held || now.expires == 0 || now.expires < epochMs(out.AcquiredAt)
	wasOwn := !now.held && now.ended.known && now.ended.holder == in.Holder
	if mayBeNew && isOver && !wasOwn && rises(now, out.Fence, facts) {
		after = append(after, granted(now, told))
	}
	return after
}

func rises(now lease, fence int64, facts Facts) bool {
	if now.forgotten {
		return float64(fence) > float64(now.highest)-facts.SpreadMs-1
	}
	return fence > now.highest
}

func granted(now, grant lease) lease {
	grant.held = true
	grant.highest = max(now.highest, grant.fence)
	grant.forgotten = grant.fence == 0 && now.forgotten
	return grant
}

func over(now lease, broken bool) lease {
	after := cleared(now)
	after.held = false
	after.ended = ended{true, now.holder, now.id, now.fence, broken}
	return after
}

// cleared has nothing of the grant.
func cleared(now lease) lease {
	return lease{ended: now.ended, highest: now.highest, forgotten: now.forgotten}
}

// agreeing: the held lease is the one that was told, and what was not known of it is from now on.
func agreeing(now, told lease, facts Facts) []lease {
	// The call that wrote a late grant raises its fence. Others may have been shown the fence from before.
	if !now.held || !fits(now.id, told.id) || told.fence < now.fence {
		return nil
	}
	if now.expires != 0 && told.expires != 0 && now.expires != told.expires {
		return nil
	}
	after := now
	after.id, after.fence = told.id, told.fence
	if told.expires != 0 && !now.unclaimed {
		after.expires = told.expires
	}
	if now.fence == 0 && told.fence != 0 {
		if !rises(now, told.fence, facts) {
			return nil
		}
		after.forgotten = false
	}
	after.highest = max(now.highest, told.fence)
	return []lease{after}
}

// standing is somebody else's view of the lease that is held.
// cameTooLate: a wait ended in the moment in which nobody had the lease. Nobody else may have been told of the fence that its record shows.
func cameTooLate(now lease, out leaseOutput) lease {
	now.highest = max(now.highest, out.Fence)
	return now
}

func standing(now lease, out leaseOutput, facts Facts) []lease {
	switch {
	case !now.held:
		return nil
	case now.foreign || out.Fence == 0:
		if now.foreign && out.Fence == 0 {
			return []lease{now}
		}
		return nil
	case now.holder != out.Holder:
		return nil
	}
	told := now
	told.fence, told.expires = out.Fence, epochMs(out.ExpiresAt)
	return agreeing(now, told, facts)
}

func fits(known, told string) bool { return known == "" || known == told }

func epochMs(instant string) int64 {
	if instant == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil {
		panic(err)
	}
	return at.UnixMilli()
}
