package main

import (
	"fmt"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind says how the calls on one sort of object are checked.
type kind struct {
	// steps are the operations that a call may have been: none, itself, or itself and a request of it that came late.
	steps func(Call, Facts) []step
	model func(Facts) porcupine.NondeterministicModel
}

var kinds = map[string]kind{
	"lease":     {leaseSteps, leaseModel},
	"commit":    {commitSteps, commitModel},
	"commitRef": {refSteps, refModel},
	"indexRef":  {refSteps, refModel},
}

// Verdict on one object of a history.
type Verdict struct {
	Seed        int64
	Object, Key string
	Calls       []Call
	Result      porcupine.CheckResult
}

// check asks Porcupine for each object of the history on its own, which linearizability allows.
func check(history History, patience time.Duration) ([]Verdict, error) {
	type name struct{ object, key string }
	objects := map[name][]Call{}
	for _, call := range history.Calls {
		of := name{call.Object, call.Key}
		objects[of] = append(objects[of], call)
	}
	names := make([]name, 0, len(objects))
	for of := range objects {
		names = append(names, of)
	}
	sort.Slice(names, func(a, b int) bool {
		return names[a].object+names[a].key < names[b].object+names[b].key
	})
	verdicts := make([]Verdict, 0, len(names))
	for _, of := range names {
		kind, known := kinds[of.object]
		if !known {
			return nil, fmt.Errorf("history %d: no model for objects of kind %q", history.Facts.Seed, of.object)
		}
		var operations []porcupine.Operation
		if of.object == "lease" {
			markShownBefore(objects[of])
		}
		for _, call := range objects[of] {
			for _, one := range kind.steps(call, history.Facts) {
				operations = append(operations, one.operation())
			}
		}
		nondeterministic := kind.model(history.Facts)
		result := porcupine.CheckOperationsTimeout(nondeterministic.ToModel(), operations, patience)
		verdicts = append(verdicts, Verdict{history.Facts.Seed, of.object, of.key, objects[of], result})
	}
	return verdicts, nil
}
