package main

import "github.com/anishathalye/porcupine"

// ref is one of the two refs of an alias: a register with compare-and-set whose t never goes down.
type ref struct {
	// exists: so does the alias.
	exists  bool
	address string
	t       int64
}

type pointer struct {
	Address *string `json:"address"`
	T       int64   `json:"t"`
}

func (p pointer) ref() ref {
	if p.Address == nil {
		return ref{true, "", p.T}
	}
	return ref{true, *p.Address, p.T}
}

type refInput struct {
	Op         string   `json:"op"`
	Ref        string   `json:"ref"`
	Address    *string  `json:"address"`
	T          int64    `json:"t"`
	AllowEqual bool     `json:"allowEqual"`
	Expected   *pointer `json:"expected"`
	Next       pointer  `json:"next"`
}

type refOutput struct {
	Outcome  string   `json:"outcome"`
	Created  bool     `json:"created"`
	Repeated bool     `json:"repeated"`
	Current  *pointer `json:"current"`
	Actual   *pointer `json:"actual"`
	// Of a read.
	Commit pointer `json:"commit"`
	Index  pointer `json:"index"`
}

func refSteps(call Call, _ Facts) []step {
	if call.saysNothing() || (call.Name == "readNames" && call.isUnknown()) {
		return nil
	}
	heard := step{call, false}
	if call.isUnknown() {
		return []step{heard}
	}
	var out refOutput
	decode(call.Output, &out)
	// A try that got no answer may have landed before something newer did, and stale is the answer all the same. What was refused
	// may find later, delivered twice, what it did not find the first time. What took effect does so once.
	isStale := out.Outcome == "stale"
	if (isStale && call.Struck) || (call.Strays > 0 && (call.Outcome != "ok" || isStale)) {
		return []step{heard, {call, true}}
	}
	return []step{heard}
}

func refModel(_ Facts) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{ref{}} },
		Step: func(state, input, _ any) []any {
			now, taken := state.(ref), input.(step)
			var after []any
			for _, one := range refAfter(now, taken) {
				after = append(after, one)
			}
			if taken.isUnknown() {
				after = append(after, now)
			}
			return after
		},
	}
}

func refAfter(now ref, taken step) []ref {
	var in refInput
	var out refOutput
	decode(taken.call.Input, &in)
	decode(taken.call.Output, &out)
	if taken.call.Name == "readNames" {
		return refRead(now, taken.call, out)
	}
	isIndex := taken.call.Object == "indexRef"
	switch {
	case in.Op == "publishCommit" && !isIndex:
		return raised(now, taken, in, out, in.T > now.t)
	case in.Op == "publishIndex" && isIndex:
		isReindex := in.AllowEqual && in.T == now.t && in.Address != nil && *in.Address != now.address
		return raised(now, taken, in, out, in.T > now.t || isReindex)
	case in.Op == "compareAndSetRef" && (in.Ref == "index") == isIndex:
		return comparedAndSet(now, taken, in, out, isIndex)
	case in.Op == "resetRef" && (in.Ref == "index") == isIndex:
		return setBack(now, taken, in, out)
	case in.Op == "fastForwardCommit" && !isIndex:
		return fastForwarded(now, taken, in, out)
	default:
		return createdBy(now, taken, out)
	}
}

func refRead(now ref, call Call, out refOutput) []ref {
	seen := out.Commit
	if call.Object == "indexRef" {
		seen = out.Index
	}
	if (call.Outcome == "NotFound" && !now.exists) || (call.Outcome == "ok" && now.exists && seen.ref() == now) {
		return []ref{now}
	}
	return nil
}

// createdBy is what a call that may create an alias does to a ref that it is not about.
func createdBy(now ref, taken step, out refOutput) []ref {
	var fresh, here []ref
	if now.exists {
		here = []ref{now}
	} else {
		fresh = []ref{{exists: true}}
	}
	switch {
	case taken.isUnknown() || (taken.call.Outcome == "ok" && out.Created):
		return fresh
	case taken.call.Outcome == "ok" && out.Repeated && taken.call.Struck:
		return append(here, fresh...)
	}
	// It met an alias that was there, whether it was told so or refused.
	return here
}

func raised(now ref, taken step, in refInput, out refOutput, rises bool) []ref {
	call := taken.call
	if !now.exists {
		if !taken.isUnknown() && call.Outcome == "NotFound" {
			return []ref{now}
		}
		return nil
	}
	next := pointer{in.Address, in.T}.ref()
	switch {
	case taken.isUnknown():
		if rises {
			return []ref{next}
		}
	case call.Outcome != "ok":
	case out.Outcome == "stale":
		if !rises && out.Current != nil && out.Current.ref() == now {
			return []ref{now}
		}
	default:
		return settled(now, taken, out, next, rises, true, false)
	}
	return nil
}

func comparedAndSet(now ref, taken step, in refInput, out refOutput, isIndex bool) []ref {
	creates := in.Expected == nil
	matches := creates && !now.exists
	if !creates {
		rises := in.Next.T > in.Expected.T || (isIndex && in.Next.T == in.Expected.T)
		matches = rises && now == in.Expected.ref()
	}
	return swapped(now, taken, out, swap{in.Next.ref(), matches, creates})
}

// setBack is an administrator's: a compare-and-set that may go back, and brings nothing into being.
func setBack(now ref, taken step, in refInput, out refOutput) []ref {
	if !taken.isUnknown() && taken.call.Outcome == "NotFound" {
		if now.exists {
			return nil
		}
		return []ref{now}
	}
	matches := in.Expected != nil && in.Next.T <= in.Expected.T && now == in.Expected.ref()
	return swapped(now, taken, out, swap{in.Next.ref(), matches, false})
}

type swap struct {
	next    ref
	matches bool
	creates bool
}

func swapped(now ref, taken step, out refOutput, to swap) []ref {
	switch {
	case taken.isUnknown():
		if to.matches {
			return []ref{to.next}
		}
	case taken.call.Outcome == "Conflict":
		if !to.matches && isTold(now, out.Actual) {
			return []ref{now}
		}
	case taken.call.Outcome == "ok":
		return settled(now, taken, out, to.next, to.matches, true, to.creates)
	}
	return nil
}

func fastForwarded(now ref, taken step, in refInput, out refOutput) []ref {
	next := pointer{in.Address, in.T}.ref()
	rises := !now.exists || next.t > now.t
	switch {
	case taken.isUnknown():
		if rises {
			return []ref{next}
		}
	case taken.call.Outcome == "Conflict":
		if !rises && isTold(now, out.Actual) {
			return []ref{now}
		}
	case taken.call.Outcome == "ok":
		return settled(now, taken, out, next, rises, out.Created != now.exists, true)
	}
	return nil
}

// settled: a success is the write itself, or the repeat of one that stands there.
func settled(now ref, taken step, out refOutput, next ref, mayWrite, isTrue, creates bool) []ref {
	if !out.Repeated {
		if mayWrite && isTrue {
			return []ref{next}
		}
		return nil
	}
	var after []ref
	// The repeat of a creation is told what stands there now.
	if now == next || (creates && now.exists && out.Current != nil && out.Current.ref() == now) {
		after = append(after, now)
	}
	if mayWrite && taken.call.Struck {
		after = append(after, next)
	}
	return after
}

func isTold(now ref, actual *pointer) bool {
	if actual == nil {
		return !now.exists
	}
	return now.exists && actual.ref() == now
}
