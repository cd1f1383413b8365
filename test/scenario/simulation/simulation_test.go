package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	scenarios = flag.Int("scenarios", 20_000, "number of scenarios; the race detector, with which each takes six times as long, runs every tenth")
	soak      = flag.Duration("soak", 0, "run scenarios of random seeds for this time instead")
)

// TestInvariantsHoldInRandomFleets runs many short scenarios, with the same seeds every time.
// SEED=4711 in the environment runs that one only, and prints its log.
func TestInvariantsHoldInRandomFleets(t *testing.T) {
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		printLog(t, NewScenario(seed))
		return
	}
	n := *scenarios
	if testing.Short() {
		n = min(n, 300)
	}
	var next atomic.Uint64
	runScenarios(t, NewScenario, func() (uint64, bool) {
		seed := next.Add(step)
		return seed, seed <= uint64(n)
	})
}

// gcPercent is the GOGC value for scenarios. With the default, their small heap would be collected too often.
const gcPercent = 400

// runScenarios runs the scenarios of the seeds from next, on all processors, until one violates an
// invariant. Then it shrinks that scenario and prints its log.
func runScenarios(t *testing.T, scenario func(seed uint64) Scenario, next func() (seed uint64, ok bool)) (steps int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	var total atomic.Int64
	var failed atomic.Bool
	t.Run("scenarios", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				t.Parallel()
				with := NewLoaders()
				for seed, ok := next(); ok && !failed.Load(); seed, ok = next() {
					sc := scenario(seed)
					out := sc.Run(t, with, false)
					total.Add(int64(out.Steps))
					if out.Violation != nil && !failed.Swap(true) {
						printLog(t, sc.Shrink(t, out.Violation.Invariant))
					}
				}
			})
		}
	})
	return total.Load()
}

// printLog runs a scenario once more, and prints its log.
func printLog(t *testing.T, sc Scenario) {
	t.Helper()
	out := sc.Run(t, NewLoaders(), true)
	t.Logf("the log of seed %d, with %d of its steps; %s=%d runs all of them:\n%s", sc.Seed, len(sc.Steps), map[bool]string{true: "make soak STAGED_SEED", false: "make soak SEED"}[sc.Staged], sc.Seed, out.Log)
	if out.Violation != nil {
		t.Errorf("seed %d: %s", sc.Seed, out.Violation)
	}
}

// The invariants also hold with the ledger in a real file that a crash leaves truncated or with
// half-written pages.
func TestTornLedgerIsReadWhollyOrRefused(t *testing.T) {
	with, refused, undone := NewLoaders(), 0, 0
	n := uint64(60)
	if testing.Short() {
		n = 40
	}
	for seed := uint64(1); seed <= n; seed++ {
		sc := NewScenario(seed)
		if sc.Replicas {
			continue // their ledger is not in a file
		}
		sc.Dir = t.TempDir()
		for i := range sc.Steps {
			if i%2 == 1 {
				sc.Steps[i].kind = killStep
			}
		}
		out := sc.Run(t, with, true)
		if out.Violation != nil {
			t.Fatalf("seed %d: %s\n%s", seed, out.Violation, out.Log)
		}
		refused += strings.Count(out.Log, "the ledger is refused")
		undone += strings.Count(out.Log, "the last save is undone")
	}
	if refused == 0 || undone == 0 {
		t.Errorf("%d ledgers were refused, %d saves undone", refused, undone)
	}
	t.Log(refused, "ledgers were refused,", undone, "saves undone")
}

// TestSoak runs scenarios of random seeds for a given time, and prints its progress every half
// minute.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("run by make soak")
	}
	began, printed := time.Now(), atomic.Int64{}
	var count atomic.Int64
	steps := runScenarios(t, NewScenario, func() (uint64, bool) {
		n, passed := count.Add(1), time.Since(began)
		if last := printed.Load(); int64(passed/(30*time.Second)) > last && printed.CompareAndSwap(last, last+1) {
			fmt.Printf("%s: %d scenarios, %.0f a second\n", passed.Round(time.Second), n-1, float64(n-1)/passed.Seconds())
		}
		return rand.Uint64(), passed < *soak
	})
	fmt.Printf("%d scenarios, %.0f steps a second\n", count.Load(), float64(steps)/time.Since(began).Seconds())
}

// A scenario is deterministic: two runs give the same log.
func TestSimulationIsDeterministic(t *testing.T) {
	with := NewLoaders()
	for seed := uint64(1); seed <= 40; seed++ {
		first, second := NewScenario(seed).Run(t, with, true), NewScenario(seed).Run(t, NewLoaders(), true)
		if first.Log != second.Log {
			t.Fatalf("seed %d:\n%s\nand then:\n%s", seed, first.Log, second.Log)
		}
	}
}

// A scenario that violates an invariant is reduced to the steps that are needed for that.
func TestFailingSimulationIsShrunk(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		sc := NewScenario(seed)
		sc.Mutant = mutants[invariantDelete]
		out := sc.Run(t, NewLoaders(), false)
		if out.Violation == nil || len(sc.Steps) < 8 {
			continue
		}
		short := sc.Shrink(t, out.Violation.Invariant)
		again := short.Run(t, NewLoaders(), false)
		if len(short.Steps) > 3 || again.Violation == nil || again.Violation.Invariant != out.Violation.Invariant {
			t.Errorf("of %d steps %d are left, and then %v, not %v", len(sc.Steps), len(short.Steps), again.Violation, out.Violation)
		}
		return
	}
	t.Error("no scenario of 50 violates the invariant")
}
