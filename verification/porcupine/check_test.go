package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	linear    = porcupine.Ok
	notLinear = porcupine.Illegal
)

type example struct {
	title  string
	result porcupine.CheckResult
	facts  string
	calls  []string
}

// call is a line of a history; answered 0 stands for no answer.
func call(object, name string, called, answered int, outcome, input, output, more string) string {
	end := "null"
	if answered > 0 {
		end = fmt.Sprint(answered)
	}
	return fmt.Sprintf(`{"type":"operation","object":%q,"key":"k","id":%d,"client":"c","name":%q,"called":%d,"answered":%s,"outcome":%q,"input":{%s},"output":{%s}%s}`,
		object, called, name, called, end, outcome, input, output, more)
}

const (
	struck = `,"struck":true`
	stray  = `,"struck":true,"strays":1`
)

func checked(t *testing.T, one example) porcupine.CheckResult {
	t.Helper()
	facts := one.facts
	if facts == "" {
		facts = `"withinBound":true,"spreadMs":490,"protocol":"dynamo"`
	}
	text := fmt.Sprintf("{\"type\":\"history\",\"seed\":1,%s}\n%s\n", facts, strings.Join(one.calls, "\n"))
	histories, err := readHistories(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := check(histories[0], 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(verdicts) != 1 {
		t.Fatalf("%d objects instead of one", len(verdicts))
	}
	return verdicts[0].Result
}

func all(t *testing.T, examples []example) {
	for _, one := range examples {
		t.Run(one.title, func(t *testing.T) {
			if result := checked(t, one); result != one.result {
				t.Errorf("%s instead of %s", result, one.result)
			}
		})
	}
}

func TestLeases(t *testing.T) {
	at := func(ms int) string {
		return time.UnixMilli(1767225600000 + int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	grant := func(holder, id string, from, until, fence int, more, struck string) string {
		output := fmt.Sprintf(`"leaseId":%q,"fence":%d,"acquiredAt":%q,"expiresAt":%q%s`, id, fence, at(from), at(from+5000), more)
		return call("lease", "acquire", from, until, "ok", fmt.Sprintf(`"holder":%q`, holder), output, struck)
	}
	first := grant("a", "a1", 10, 20, 1, "", "")
	release := func(id string, from, until int, released bool) string {
		return call("lease", "release", from, until, "ok", fmt.Sprintf(`"leaseId":%q`, id), fmt.Sprintf(`"released":%t`, released), "")
	}
	beat := func(id string, from, until, expires int, outcome, struck string) string {
		output := fmt.Sprintf(`"leaseId":%q,"fence":1,"expiresAt":%q`, id, at(expires))
		return call("lease", "heartbeat", from, until, outcome, fmt.Sprintf(`"leaseId":%q`, id), output, struck)
	}
	held := func(by string, fence, from, until, expires int) string {
		output := fmt.Sprintf(`"holder":%q,"fence":%d,"expiresAt":%q,"retryAfterMs":4000`, by, fence, at(expires))
		return call("lease", "acquire", from, until, "LeaseHeld", fmt.Sprintf(`"holder":"x%d"`, from), output, "")
	}
	broken := func(from, until int) string {
		return call("lease", "breakLease", from, until, "ok", `"fence":1`, `"fence":1`, "")
	}
	lost := call("lease", "acquire", 10, 0, "", `"holder":"a"`, "", "")
	foreign := `"withinBound":true,"spreadMs":490,"foreignLeases":true`
	rust := func(name string, from, until int, input, output string) string {
		return call("lease", name, from, until, "ok", input, output, "")
	}
	all(t, []example{
		{"one holder after the other", linear, "", []string{first, held("a", 1, 21, 22, 5010), beat("a1", 1000, 1010, 6000, "ok", ""),
			release("a1", 2000, 2010, true), grant("b", "b1", 2020, 2030, 2, "", ""), beat("a1", 2040, 2050, 0, "LeaseLost", ""), grant("c", "c1", 9000, 9010, 3, "", "")}},
		{"two holders at a time", notLinear, "", []string{first, grant("b", "b1", 30, 40, 2, "", "")}},
		{"a fence that does not rise", notLinear, "", []string{first, release("a1", 30, 40, true), grant("b", "b1", 50, 60, 1, "", "")}},
		{"a lease revived after its release", notLinear, "", []string{first, release("a1", 30, 40, true), beat("a1", 50, 60, 6000, "ok", "")}},
		{"a heartbeat that shortens", notLinear, "", []string{first, beat("a1", 30, 40, 4000, "ok", "")}},
		{"a release of another's lease", notLinear, "", []string{first, release("z", 30, 40, true)}},
		{"a release of another's lease, refused", linear, "", []string{first, release("z", 30, 40, false)}},
		{"a late duplicate that leases again", notLinear, "", []string{first, release("a1", 30, 40, true), grant("a", "a2", 50, 60, 2, "", "")}},
		{"a repeat", linear, "", []string{first, grant("a", "a1", 10, 30, 1, `,"repeated":true`, "")}},
		{"a repeat of nothing", notLinear, "", []string{grant("a", "a1", 10, 20, 1, `,"repeated":true`, "")}},
		{"a repeat of its own first try", linear, "", []string{grant("a", "a1", 10, 20, 1, `,"repeated":true`, struck)}},
		{"an acquisition nobody was told of that holds", linear, "", []string{lost, held("a", 1, 20, 30, 5000)}},
		{"an acquisition nobody was told of that does not", linear, "", []string{lost, grant("b", "b1", 20, 30, 2, "", "")}},
		{"a wait that ended when nobody had the lease", linear, "", []string{first, release("a1", 30, 40, true),
			call("lease", "acquire", 25, 60, "LeaseHeld", `"holder":"b","waitSeconds":1`, `"holder":null,"fence":3`, "")}},
		{"a wait that ended when somebody had it", notLinear, "", []string{first,
			call("lease", "acquire", 25, 60, "LeaseHeld", `"holder":"b","waitSeconds":1`, `"holder":null,"fence":3`, ""), beat("a1", 70, 80, 6000, "ok", "")}},
		{"a holder who never asked", notLinear, "", []string{held("nobody", 1, 20, 30, 5000)}},
		{"a heartbeat that landed before the lease was lost", linear, "", []string{first, held("a", 1, 50, 60, 7000), broken(70, 80), beat("a1", 40, 90, 0, "LeaseLost", struck)}},
		{"an expiry that nobody set", notLinear, "", []string{first, held("a", 1, 50, 60, 7000), broken(70, 80), beat("a1", 40, 90, 0, "LeaseLost", "")}},
		{"a stray that is granted after its refusal", linear, "", []string{first,
			call("lease", "acquire", 30, 40, "LeaseHeld", `"holder":"b"`, fmt.Sprintf(`"holder":"a","fence":1,"expiresAt":%q,"retryAfterMs":4000`, at(5010)), stray),
			release("a1", 50, 60, true), held("b", 2, 70, 80, 6000)}},
		{"a stray that is granted twice", notLinear, "", []string{grant("a", "a1", 10, 20, 1, "", stray), release("a1", 30, 40, true), held("a", 1, 50, 60, 5010)}},
		{"a client of the Rust crate in between", linear, foreign, []string{first, release("a1", 30, 40, true),
			rust("rustAcquire", 50, 60, `"lease":"r"`, `"version":"v1"`), rust("rustExtend", 70, 80, `"lease":"r","version":"v1"`, `"version":"v2"`),
			rust("rustRelease", 90, 100, `"lease":"r","version":"v2"`, `"released":true`), grant("b", "b1", 110, 120, 2, "", "")}},
		{"a lease taken from a client of the Rust crate", notLinear, foreign, []string{
			rust("rustAcquire", 50, 60, `"lease":"r"`, `"version":"v1"`), beat("a1", 70, 80, 6000, "ok", "")}},
		{"a client of the Rust crate that is told of its second try", linear, foreign, []string{
			call("lease", "rustAcquire", 10, 20, "ok", `"lease":"r"`, "", struck), call("lease", "readLeases", 30, 40, "ok", "", `"state":"held","holder":null`, "")}},
		{"a client of the Rust crate that comes back when its lease is over, and the line was cleared away", linear, foreign, []string{
			rust("rustAcquire", 10, 20, `"lease":"r"`, `"version":"v1"`), rust("rustRelease", 30, 40, `"lease":"r","version":"v1"`, `"released":false,"isOver":true`),
			call("lease", "readLeases", 50, 60, "ok", "", `"state":"expired","holder":null`, "")}},
		{"a client of the Rust crate that lost its lease before it was over", notLinear, foreign, []string{
			rust("rustAcquire", 10, 20, `"lease":"r"`, `"version":"v1"`), rust("rustRelease", 30, 40, `"lease":"r","version":"v1"`, `"released":false,"isOver":false`),
			call("lease", "readLeases", 50, 60, "ok", "", `"state":"held","holder":null`, "")}},
		{"a client of the Rust crate that holds what it was refused", notLinear, foreign, []string{
			rust("rustAcquire", 10, 20, `"lease":"r"`, ""), call("lease", "readLeases", 30, 40, "ok", "", `"state":"held","holder":null`, "")}},
		{"a record that was cleaned up", linear, "", []string{first, release("a1", 30, 40, true),
			call("lease", "clean", 80000, 80010, "ok", "", `"deleted":true`, ""), grant("a", "a2", 90000, 90010, 2, "", "")}},
	})
}

func TestCommits(t *testing.T) {
	put := func(id, expected string, from, until int, outcome, output, more string) string {
		precondition := `"ifNoneMatch":"*"`
		if expected != "" {
			precondition = fmt.Sprintf(`"ifMatch":%q`, etagOf(expected))
		}
		return call("commit", "commit", from, until, outcome, fmt.Sprintf(`%s,"body":%q,"commitId":%q`, precondition, id, id), output, more)
	}
	ok := func(id string) string { return fmt.Sprintf(`"etag":%q,"commitId":%q,"repeated":false`, etagOf(id), id) }
	seen := func(id string, from, until int) string {
		if id == "" {
			return call("commit", "readCommit", from, until, "ok", "", `"etag":null,"commitId":null,"fence":null`, "")
		}
		return call("commit", "readCommit", from, until, "ok", "", fmt.Sprintf(`"etag":%q,"commitId":%q,"fence":null`, etagOf(id), id), "")
	}
	fenced := func(id, expected string, token, from, until int, outcome, output string) string {
		precondition := ""
		if expected != "" {
			precondition = fmt.Sprintf(`"ifMatch":%q,`, etagOf(expected))
		}
		input := fmt.Sprintf(`%s"body":%q,"commitId":%q,"fence":{"key":"k","token":%d}`, precondition, id, id, token)
		return call("commit", "commit", from, until, outcome, input, output, "")
	}
	rust := func(id, expected string, from, until int) string {
		return call("commit", "rustPut", from, until, "ok", fmt.Sprintf(`"ifMatch":%q,"body":%q`, etagOf(expected), id), fmt.Sprintf(`"etag":%q`, etagOf(id)), "")
	}
	reset := func(expected string, seen, from, until int, outcome, output string) string {
		input := fmt.Sprintf(`"ifMatch":%q,"expectedFence":{"key":"k","token":%d},"fence":{"key":"k","token":7},"commitId":"r%d"`, expected, seen, from)
		return call("commit", "resetFence", from, until, outcome, input, output, "")
	}
	landed := fmt.Sprintf(`"etag":%q,"repeated":false`, etagInParts(etagOf("a")))
	foreign := `"withinBound":true,"protocol":"dynamo","foreignCommits":true`
	first := put("a", "", 1, 2, "ok", ok("a"), "")
	all(t, []example{
		{"one after the other", linear, "", []string{first, put("b", "", 3, 4, "PreconditionFailed", fmt.Sprintf(`"etag":%q`, etagOf("a")), ""),
			put("c", "a", 5, 6, "ok", ok("c"), ""), seen("c", 7, 8), put("a", "", 9, 10, "ok", `"etag":null,"commitId":"a","repeated":true`, "")}},
		{"two winners for one precondition", notLinear, "", []string{first, put("b", "", 1, 4, "ok", ok("b"), "")}},
		{"an acknowledged commit that is gone", notLinear, "", []string{first, put("b", "a", 3, 4, "ok", ok("b"), ""), seen("a", 5, 6)}},
		{"a refused commit that landed", notLinear, "", []string{put("a", "", 1, 2, "Unavailable", "", ""), seen("a", 3, 4)}},
		{"an unknown commit that lands late", linear, "", []string{put("a", "", 1, 0, "", "", ""), seen("", 3, 4), seen("a", 5, 6)}},
		{"an unknown commit that vanishes", notLinear, "", []string{put("a", "", 1, 0, "", "", ""), seen("a", 3, 4), seen("", 5, 6)}},
		{"a commit that lands twice", notLinear, "", []string{first, put("b", "a", 3, 4, "ok", ok("b"), ""), put("a", "b", 5, 6, "ok", ok("a"), "")}},
		{"a stale fence", notLinear, "", []string{fenced("a", "", 9, 1, 2, "ok", ok("a")), fenced("b", "a", 8, 3, 4, "ok", ok("b"))}},
		{"a stale fence, refused", linear, "", []string{fenced("a", "", 9, 1, 2, "ok", ok("a")), fenced("b", "a", 8, 3, 4, "FenceRejected", `"highest":9`)}},
		{"a stale fence, once it is set back", linear, "", []string{fenced("a", "", 9, 1, 2, "ok", ok("a")), reset(etagOf("a"), 9, 3, 4, "ok", landed),
			call("commit", "commit", 5, 6, "ok", fmt.Sprintf(`"ifMatch":%q,"body":"b","commitId":"b","fence":{"key":"k","token":8}`, etagInParts(etagOf("a"))), ok("b"), "")}},
		{"a fence that was not as it was seen", notLinear, "", []string{fenced("a", "", 9, 1, 2, "ok", ok("a")), reset(etagOf("a"), 8, 3, 4, "ok", landed)}},
		{"a fence that is set back twice", notLinear, "", []string{fenced("a", "", 9, 1, 2, "ok", ok("a")), reset(etagOf("a"), 9, 3, 4, "ok", landed), reset(etagInParts(etagOf("a")), 7, 5, 6, "ok", landed)}},
		{"a second reset, refused", linear, "", []string{fenced("a", "", 9, 1, 2, "ok", ok("a")), reset(etagOf("a"), 9, 3, 4, "ok", landed), reset(etagInParts(etagOf("a")), 7, 5, 6, "PreconditionFailed", fmt.Sprintf(`"etag":%q`, etagInParts(etagOf("a"))))}},
		{"a foreign writer's overwrite", notLinear, foreign, []string{first, put("b", "a", 3, 4, "ok", ok("b"), ""), rust("r", "a", 5, 6)}},
		{"a foreign writer in its turn", linear, foreign, []string{first, rust("r", "a", 3, 4), put("b", "r", 5, 6, "ok", ok("b"), "")}},
		{"a wait for nobody", notLinear, "", []string{put("a", "", 1, 2, "CommitInProgress", "", "")}},
	})
}

func TestRefs(t *testing.T) {
	publish := func(object string, from, until int, outcome, input, output, more string) string {
		return call(object, "publish", from, until, outcome, input, output, more)
	}
	created := func(object string) string {
		return publish(object, 1, 2, "ok", `"op":"initLedger"`, `"outcome":"updated","created":true`, "")
	}
	commit := func(t, from, until int, outcome, output string) string {
		return publish("commitRef", from, until, outcome, fmt.Sprintf(`"op":"publishCommit","address":"c%d","t":%d`, t, t), output, "")
	}
	look := func(object string, address string, t, from, until int) string {
		value := fmt.Sprintf(`{"address":%q,"t":%d}`, address, t)
		if t == 0 {
			value = `{"address":null,"t":0}`
		}
		return call(object, "readNames", from, until, "ok", "", fmt.Sprintf(`"commit":%s,"index":%s`, value, value), "")
	}
	const updated = `"outcome":"updated"`
	back := func(from, until, t, to int) string {
		input := fmt.Sprintf(`"op":"resetRef","ref":"commit","expected":{"address":"c%d","t":%d},"next":{"address":"b%d","t":%d}`, t, t, to, to)
		return call("commitRef", "repairNames", from, until, "ok", input, "", "")
	}
	swap := func(from, until int, before, after, outcome, output, more string) string {
		input := fmt.Sprintf(`"op":"compareAndSetRef","ref":"index","expected":{"address":%q,"t":5},"next":{"address":%q,"t":5}`, before, after)
		return publish("indexRef", from, until, outcome, input, output, more)
	}
	index := func(address string, from, until int, more string) string {
		return publish("indexRef", from, until, "ok", fmt.Sprintf(`"op":"publishIndex","address":%q,"t":5,"allowEqual":true`, address), updated, more)
	}
	all(t, []example{
		{"one after the other", linear, "", []string{created("commitRef"), commit(2, 3, 4, "ok", updated),
			commit(1, 5, 6, "ok", `"outcome":"stale","current":{"address":"c2","t":2}`), look("commitRef", "c2", 2, 7, 8)}},
		{"a t that goes down", notLinear, "", []string{created("commitRef"), commit(2, 3, 4, "ok", updated), commit(1, 5, 6, "ok", updated)}},
		{"a lost publish", notLinear, "", []string{created("commitRef"), commit(2, 3, 4, "ok", updated), look("commitRef", "", 0, 5, 6)}},
		{"an unknown publish that lands late", linear, "", []string{created("commitRef"), commit(5, 3, 0, "", ""), look("commitRef", "", 0, 5, 6), look("commitRef", "c5", 5, 7, 8)}},
		{"an unknown publish that lands below", notLinear, "", []string{created("commitRef"), commit(5, 3, 0, "", ""), commit(7, 4, 5, "ok", updated), look("commitRef", "c5", 5, 7, 8)}},
		{"a ref that an administrator sets back", linear, "", []string{created("commitRef"), commit(5, 3, 4, "ok", updated), back(5, 6, 5, 2), look("commitRef", "b2", 2, 7, 8)}},
		{"a ref that is set back from what is not there", notLinear, "", []string{created("commitRef"), commit(5, 3, 4, "ok", updated), back(5, 6, 4, 2)}},
		{"a ref that is set forward", notLinear, "", []string{created("commitRef"), commit(5, 3, 4, "ok", updated), back(5, 6, 5, 7)}},
		{"two ledgers created", notLinear, "", []string{created("commitRef"), publish("commitRef", 3, 4, "ok", `"op":"initLedger"`, `"outcome":"updated","created":true`, "")}},
		{"a compare-and-set of what is not there", notLinear, "", []string{created("indexRef"), index("x", 3, 4, ""), swap(5, 6, "y", "z", "ok", updated, "")}},
		{"an index that is set, and set back", linear, "", []string{created("indexRef"), index("x", 3, 4, ""), swap(5, 6, "x", "y", "ok", updated, stray), swap(7, 8, "y", "x", "ok", updated, ""), look("indexRef", "x", 5, 9, 10)}},
		{"an index that a late first try sets again", notLinear, "", []string{created("indexRef"), index("x", 3, 4, ""), swap(5, 6, "x", "y", "ok", updated, stray), swap(7, 8, "y", "x", "ok", updated, ""), look("indexRef", "y", 5, 9, 10)}},
		{"an index that a late first try publishes again", notLinear, "", []string{created("indexRef"), index("x", 3, 4, stray), index("y", 5, 6, ""), look("indexRef", "x", 5, 9, 10)}},
	})
}

func TestObjectsAreCheckedEachOnItsOwn(t *testing.T) {
	text := `{"type":"history","seed":7}
{"type":"operation","object":"commit","key":"p","id":1,"name":"readCommit","called":1,"answered":2,"outcome":"ok","output":{"etag":null}}
{"type":"operation","object":"lease","key":"k","id":2,"name":"readLeases","called":3,"answered":4,"outcome":"ok","output":{"state":"held","holder":"a","fence":1}}
`
	histories, err := readHistories(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := check(histories[0], time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(verdicts) != 2 || verdicts[0].Result != linear || verdicts[1].Result != notLinear {
		t.Errorf("%+v", verdicts)
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{"{", `{"type":"operation"}`, `{"type":"else"}`} {
		if _, err := readHistories(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	unknown := History{Calls: []Call{{Object: "else"}}}
	if _, err := check(unknown, time.Second); err == nil {
		t.Error("an object of an unknown kind was checked")
	}
}

func TestExitStatus(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		place := filepath.Join(folder, name)
		if err := os.WriteFile(place, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return place
	}
	good := write("1.jsonl", "{\"type\":\"history\",\"seed\":1}\n")
	if status, err := run([]string{good}, time.Second); status != 0 || err != nil {
		t.Errorf("%d, %v for a good history", status, err)
	}
	bad := call("commitRef", "readNames", 1, 2, "ok", "", `"commit":{"address":"x","t":1}`, "")
	write("2.jsonl", "{\"type\":\"history\",\"seed\":2}\n"+bad+"\n")
	if status, err := run([]string{folder}, time.Second); status != 1 || err != nil {
		t.Errorf("%d, %v for a folder with a bad history", status, err)
	}
	if status, err := run([]string{t.TempDir()}, time.Second); status != 2 || err == nil {
		t.Errorf("%d, %v for an empty folder", status, err)
	}
}
