package main

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// object is a register with compare-and-swap by ETag that only ever takes writes of its fence.
type object struct {
	// etag is empty where there is no object.
	etag  string
	fence commitFence
	// isReset: the last write replaced the fence alone.
	isReset bool
	// landed are the commits in their order, each followed by a separator; a foreign writer's is foreignCommit.
	landed string
}

type commitFence struct {
	Key   string `json:"key"`
	Token int64  `json:"token"`
}

type commitInput struct {
	Body     string      `json:"body"`
	IfMatch  string      `json:"ifMatch"`
	CommitID string      `json:"commitId"`
	Fence    commitFence `json:"fence"`
	// ExpectedFence is a reset's.
	ExpectedFence commitFence `json:"expectedFence"`
}

type commitOutput struct {
	Etag      *string      `json:"etag"`
	CommitID  string       `json:"commitId"`
	Repeated  bool         `json:"repeated"`
	Fence     *commitFence `json:"fence"`
	Highest   int64        `json:"highest"`
	Error     string       `json:"error"`
	RetryWith struct {
		CommitID string `json:"commitId"`
	} `json:"retryWith"`
}

const (
	separator     = "\x00"
	foreignCommit = "\x01foreign"
	untold        = "\x01call "
	// chain is how many commits an object remembers.
	chain = 8
)

func commitSteps(call Call, _ Facts) []step {
	if call.saysNothing() || (call.Name == "readCommit" && call.isUnknown()) {
		return nil
	}
	return []step{{call, false}}
}

func commitModel(facts Facts) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Init: func() []any { return []any{object{}} },
		Step: func(state, input, _ any) []any {
			now, taken := state.(object), input.(step)
			var after []any
			for _, one := range commitAfter(now, taken, facts) {
				after = append(after, one)
			}
			if taken.isUnknown() {
				after = append(after, now)
			}
			return after
		},
	}
}

func commitAfter(now object, taken step, facts Facts) []object {
	var in commitInput
	var out commitOutput
	decode(taken.call.Input, &in)
	decode(taken.call.Output, &out)
	switch taken.call.Name {
	case "commit":
		return committed(now, taken, in, out, facts)
	case "resetFence":
		return fenceReset(now, taken, in, out, facts)
	case "readCommit":
		if now.isAsRead(out) {
			return []object{now}
		}
	case "rustPut":
		return rustPut(now, taken, in, out)
	}
	return nil
}

func committed(now object, taken step, in commitInput, out commitOutput, facts Facts) []object {
	call, id := taken.call, commitID(taken.call, in, out)
	etag := etagOf(in.Body)
	hasLanded := now.has(id)
	var landed []object
	if !hasLanded && now.etag == in.IfMatch && now.admits(in.Fence) {
		landed = []object{{etag: etag, fence: in.Fence, landed: now.landed + id + separator}}
	}
	if taken.isUnknown() {
		return landed
	}
	told := ""
	if out.Etag != nil {
		told = *out.Etag
	}
	here := []object{now}
	// Where there is no record, or it was cleaned up, the chain alone remembers.
	hasNoRecord := facts.Protocol == "native" || facts.Sweeps
	mayRefuse := !hasLanded || (hasNoRecord && now.mayHaveForgotten(id))
	switch call.Outcome {
	case "ok":
		if hasLanded {
			isTold := (told == "" && now.etag != etag) || (told == etag && now.etag == etag)
			if isTold && (out.Repeated || call.Struck) {
				return here
			}
			return nil
		}
		// A commit that others came after, before its own caller found it, is told without its ETag.
		isTold := told == etag || (told == "" && call.Struck)
		if isTold && (!out.Repeated || call.Struck) {
			return landed
		}
	case "PreconditionFailed":
		if mayRefuse && told == now.etag && now.etag != in.IfMatch {
			return here
		}
	case "FenceRejected":
		if mayRefuse && now.fence != (commitFence{}) && !now.admits(in.Fence) && out.Highest == now.fence.Token {
			return here
		}
	case "CommitInProgress":
		if facts.ForeignCommits {
			return here
		}
	}
	return nil
}

// fenceReset is a commit of the bytes that are there, which only the very fence that was seen admits, and once for each commit.
func fenceReset(now object, taken step, in commitInput, out commitOutput, facts Facts) []object {
	call, id := taken.call, commitID(taken.call, in, out)
	hasLanded := now.has(id)
	isOpen := now.etag == in.IfMatch && now.fence == in.ExpectedFence && !now.isReset
	etag := etagInParts(in.IfMatch)
	var landed []object
	if isOpen && !hasLanded {
		landed = []object{{etag: etag, fence: in.Fence, isReset: true, landed: now.landed + id + separator}}
	}
	if taken.isUnknown() {
		return landed
	}
	told := ""
	if out.Etag != nil {
		told = *out.Etag
	}
	switch {
	case call.Outcome == "ok" && hasLanded:
		all := now.all()
		isLatest := all[len(all)-1] == id
		isTold := (isLatest && told == now.etag) || (!isLatest && told == "")
		if isTold && (out.Repeated || call.Struck) {
			return []object{now}
		}
	case call.Outcome == "ok":
		isTold := told == etag || (told == "" && call.Struck)
		if isTold && (!out.Repeated || call.Struck) {
			return landed
		}
	case call.Outcome == "PreconditionFailed":
		hasNoRecord := facts.Protocol == "native" || facts.Sweeps
		mayRefuse := !hasLanded || (hasNoRecord && now.mayHaveForgotten(id))
		isFence := out.Fence == nil || *out.Fence == now.fence
		if mayRefuse && !isOpen && told == now.etag && isFence {
			return []object{now}
		}
	}
	return nil
}

// rustPut has no condition of S3: that it is one all the same is what the records are for.
func rustPut(now object, taken step, in commitInput, out commitOutput) []object {
	matches := now.etag == in.IfMatch
	switch {
	case taken.isUnknown() || out.Etag != nil:
		if matches {
			return []object{{etag: etagOf(in.Body), landed: now.landed + foreignCommit + separator}}
		}
	case out.Error == "Generic" || !matches:
		return []object{now}
	}
	return nil
}

func (o object) admits(given commitFence) bool {
	return o.fence == (commitFence{}) || (given.Key == o.fence.Key && given.Token >= o.fence.Token)
}

func (o object) all() []string {
	return strings.Split(strings.TrimSuffix(o.landed, separator), separator)
}

func (o object) has(id string) bool {
	for _, one := range o.all() {
		if one == id {
			return true
		}
	}
	return false
}

// mayHaveForgotten: so many came after it, or a foreign writer, who breaks the chain.
func (o object) mayHaveForgotten(id string) bool {
	all := o.all()
	for index, one := range all {
		if one != id {
			continue
		}
		later := all[index+1:]
		return len(later) >= chain || strings.Contains(strings.Join(later, separator), foreignCommit)
	}
	return false
}

func (o object) isAsRead(out commitOutput) bool {
	etag, fence := "", commitFence{}
	if out.Etag != nil {
		etag = *out.Etag
	}
	if out.Fence != nil {
		fence = *out.Fence
	}
	all := o.all()
	last := all[len(all)-1]
	isLast := last == out.CommitID || (last == foreignCommit && out.CommitID == "") ||
		// The service made the id, and nobody was told it.
		(strings.HasPrefix(last, untold) && out.CommitID != "")
	return etag == o.etag && fence == o.fence && isLast
}

// commitID is told by every answer, and by the error that asks for a repeat.
func commitID(call Call, in commitInput, out commitOutput) string {
	for _, id := range []string{in.CommitID, out.CommitID, out.RetryWith.CommitID} {
		if id != "" {
			return id
		}
	}
	return untold + fmt.Sprint(call.ID)
}

// etagInParts is that of the same bytes, copied in one part.
func etagInParts(etag string) string {
	ofPart, err := hex.DecodeString(strings.Trim(etag, "\""))
	if err != nil {
		return "no ETag of one piece: " + etag
	}
	return fmt.Sprintf("\"%x-1\"", md5.Sum(ofPart))
}

func etagOf(body string) string {
	return fmt.Sprintf("\"%x\"", md5.Sum([]byte(body)))
}
