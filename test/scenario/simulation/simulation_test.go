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
	lives = flag.Int("lives", 20_000, "how many lives to lead; the race detector, with which each takes six times as long, leads every tenth of them")
	soak  = flag.Duration("soak", 0, "lead lives of random seeds for that long instead")
)

// TestEveryLifeKeepsTheLaws runs many short lives with the same seeds every time. SEED=4711 in
// the environment runs that one only, and prints its story.
func TestEveryLifeKeepsTheLaws(t *testing.T) {
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		printStory(t, NewLife(seed))
		return
	}
	n := *lives
	if testing.Short() {
		n = min(n, 300)
	}
	var next atomic.Uint64
	runLives(t, func() (uint64, bool) {
		seed := next.Add(step)
		return seed, seed <= uint64(n)
	})
}

// runLives runs the lives of the seeds from next, on all processors, until one breaks a law.
// Then it looks for the shortest life that does the same.
func runLives(t *testing.T, next func() (seed uint64, ok bool)) (steps int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // lives are short, and there is enough memory
	var total atomic.Int64
	var failed atomic.Bool
	t.Run("lives", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
				t.Parallel()
				with := NewLoaders()
				for seed, ok := next(); ok && !failed.Load(); seed, ok = next() {
					l := NewLife(seed)
					out := l.Lead(t, with, false)
					total.Add(int64(out.Steps))
					if out.Broken != nil && !failed.Swap(true) {
						printStory(t, l.Shrink(t, out.Broken.Law))
					}
				}
			})
		}
	})
	return total.Load()
}

// printStory runs a life once more, and prints its story.
func printStory(t *testing.T, l Life) {
	t.Helper()
	out := l.Lead(t, NewLoaders(), true)
	t.Logf("the story of seed %d, with %d of its steps; make soak SEED=%d leads all of it again:\n%s", l.Seed, len(l.Steps), l.Seed, out.Story)
	if out.Broken != nil {
		t.Errorf("seed %d: %s", l.Seed, out.Broken)
	}
}

// The laws also hold with the ledger in a real file that a crash leaves truncated or with
// half-written pages.
func TestATornLedgerIsReadWholeOrNotAtAll(t *testing.T) {
	with, refused, undone := NewLoaders(), 0, 0
	n := uint64(60)
	if testing.Short() {
		n = 40
	}
	for seed := uint64(1); seed <= n; seed++ {
		l := NewLife(seed)
		if l.Replicas {
			continue // their ledger is not in a file
		}
		l.Dir = t.TempDir()
		for i := range l.Steps {
			if i%2 == 1 {
				l.Steps[i].kind = killStep
			}
		}
		out := l.Lead(t, with, true)
		if out.Broken != nil {
			t.Fatalf("seed %d: %s\n%s", seed, out.Broken, out.Story)
		}
		refused += strings.Count(out.Story, "the ledger is refused")
		undone += strings.Count(out.Story, "the last save is undone")
	}
	if refused == 0 || undone == 0 {
		t.Errorf("%d ledgers were refused, %d saves undone", refused, undone)
	}
	t.Log(refused, "ledgers were refused,", undone, "saves undone")
}

// TestSoak runs lives of random seeds for a given time, and prints its progress every half
// minute.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("run by make soak")
	}
	began, told := time.Now(), atomic.Int64{}
	var count atomic.Int64
	steps := runLives(t, func() (uint64, bool) {
		n, passed := count.Add(1), time.Since(began)
		if last := told.Load(); int64(passed/(30*time.Second)) > last && told.CompareAndSwap(last, last+1) {
			fmt.Printf("%s: %d lives, %.0f a second\n", passed.Round(time.Second), n-1, float64(n-1)/passed.Seconds())
		}
		return rand.Uint64(), passed < *soak
	})
	fmt.Printf("%d lives, %.0f steps a second\n", count.Load(), float64(steps)/time.Since(began).Seconds())
}

// A life is deterministic: two runs give the same story.
func TestALifeIsTheSameEveryTime(t *testing.T) {
	with := NewLoaders()
	for seed := uint64(1); seed <= 40; seed++ {
		first, second := NewLife(seed).Lead(t, with, true), NewLife(seed).Lead(t, NewLoaders(), true)
		if first.Story != second.Story {
			t.Fatalf("seed %d:\n%s\nand then:\n%s", seed, first.Story, second.Story)
		}
	}
}

// A life that breaks a law is reduced to the steps that are needed for that.
func TestALifeShrinks(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		l := NewLife(seed)
		l.Mutant = mutants[lawDelete]
		out := l.Lead(t, NewLoaders(), false)
		if out.Broken == nil || len(l.Steps) < 8 {
			continue
		}
		short := l.Shrink(t, out.Broken.Law)
		again := short.Lead(t, NewLoaders(), false)
		if len(short.Steps) > 3 || again.Broken == nil || again.Broken.Law != out.Broken.Law {
			t.Errorf("of %d steps %d are left, and then %v, not %v", len(l.Steps), len(short.Steps), again.Broken, out.Broken)
		}
		return
	}
	t.Error("no life of 50 breaks the law")
}
