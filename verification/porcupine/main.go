// Checks histories of leases, commits and refs with Porcupine, a linearizability checker that this project did not write.
//
//	go run . FILE_OR_FOLDER...
//
// reads what `npm run verify -- faults --write FOLDER` has written, and exits with 1 where some object's answers have no order that
// explains them, and with 2 where it could not tell.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"
)

func main() {
	patience := flag.Duration("patience", 30*time.Second, "how long to search for an order of one object's calls")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "go run . [-patience DURATION] FILE_OR_FOLDER...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	status, err := run(flag.Args(), *patience)
	if err != nil {
		fmt.Fprintln(os.Stderr, "porcupine:", err)
	}
	os.Exit(status)
}

func run(places []string, patience time.Duration) (int, error) {
	files, err := filesIn(places)
	if err != nil {
		return 2, err
	}
	histories, objects, calls := 0, map[string]int{}, 0
	broken, undecided := 0, 0
	for _, file := range files {
		found, err := readFile(file)
		if err != nil {
			return 2, err
		}
		for _, history := range found {
			histories++
			calls += len(history.Calls)
			verdicts, err := check(history, patience)
			if err != nil {
				return 2, err
			}
			for _, verdict := range verdicts {
				objects[verdict.Object]++
				switch verdict.Result {
				case porcupine.Illegal:
					broken++
					report(verdict)
				case porcupine.Unknown:
					undecided++
					fmt.Printf("not decided within %s: %s %s of seed %d\n", patience, verdict.Object, verdict.Key, verdict.Seed)
				}
			}
		}
	}
	if histories == 0 {
		return 2, fmt.Errorf("no histories in %v", places)
	}
	fmt.Printf("%d histories, %d calls: %d leases, %d commit paths, %d commit refs and %d index refs checked; %d not linearizable, %d not decided\n",
		histories, calls, objects["lease"], objects["commit"], objects["commitRef"], objects["indexRef"], broken, undecided)
	switch {
	case broken > 0:
		return 1, nil
	case undecided > 0:
		return 2, nil
	}
	return 0, nil
}

func report(verdict Verdict) {
	fmt.Printf("not linearizable: %s %s of seed %d\n", verdict.Object, verdict.Key, verdict.Seed)
	for _, call := range verdict.Calls {
		fmt.Println(" ", describe(call))
	}
}

func filesIn(places []string) ([]string, error) {
	var files []string
	for _, place := range places {
		info, err := os.Stat(place)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, place)
			continue
		}
		within, err := filepath.Glob(filepath.Join(place, "*.jsonl"))
		if err != nil {
			return nil, err
		}
		files = append(files, within...)
	}
	return files, nil
}

func readFile(name string) ([]History, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	histories, err := readHistories(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return histories, nil
}
