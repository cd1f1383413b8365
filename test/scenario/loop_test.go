package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// simple returns a healthy fleet.
func healthyFleet(t *testing.T, clusters string) *scene {
	s := newScene(t)
	s.source.push("v1", "", world.Files(t, "clusters "+clusters+"\nnamespace web\nplace web\n"))
	return s
}

// Observations that arrive while the loop is busy are handled together in one turn.
func TestBurstOfEventsCausesOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east west")
		var report func(protocol.Observation)
		s.member = func(a *agent) reconciler.Member { report = a.report; return a }
		s.start()
		defer s.stop()

		busy, goOn := make(chan bool), make(chan bool)
		s.onPublish(func() { busy <- true; <-goOn })
		s.source.push("v2", "", world.Files(t, "clusters east west\nnamespace web\nconfigmap web/one\nplace web\n"))
		<-busy
		synctest.Wait() // members have applied their works
		before := s.count()
		for i := range 1000 {
			report(protocol.ClusterSeen{Cluster: "west", At: time.Now(), Healthy: i%2 == 0, Error: "no answer"})
		}
		goOn <- true
		<-busy
		s.onPublish(func() {})
		goOn <- true
		synctest.Wait()
		if turns := s.count() - before; turns != 1 {
			t.Errorf("a thousand observations took %d turns", turns)
		}
	})
}

// A probe with the same result as before causes no turn.
func TestRepeatedProbeCausesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east west")
		s.start()
		defer s.stop()
		time.Sleep(time.Minute)
		before := s.count()
		time.Sleep(10 * time.Minute) // 120 probes, and a turn every half minute
		if turns := s.count() - before; turns < 15 || turns > 25 {
			t.Errorf("ten quiet minutes took %d turns", turns)
		}
	})
}

// Works are sent only after the ledger was saved.
func TestWorksAreSentAfterTheLedgerIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east west")
		sent := map[string]string{}
		s.member = func(a *agent) reconciler.Member {
			a.onSet = func(works []*work.Work) {
				kept, err := s.store.Load()
				if err != nil {
					t.Error(err)
				}
				for _, w := range works {
					e := kept.Placement(w.Placement).Entry(a.name)
					if e == nil || e.Binding.Assigned != w.Revision {
						t.Errorf("%s is sent %s of %s, which is not saved", a.name, w.Revision.Commit, w.Placement)
					}
					sent[a.name] = w.Revision.Commit
				}
			}
			return a
		}
		s.start()
		defer s.stop()
		if want := "map[east:v1 west:v1]"; fmt.Sprint(sent) != want {
			t.Fatalf("sent %v, want %s", sent, want)
		}
		s.store.fail(true)
		s.source.push("v2", "", world.Files(t, "clusters east west\nnamespace web\nconfigmap web/one\nplace web unavailable 2\n"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := "map[east:v1 west:v1]"; fmt.Sprint(sent) != want {
			t.Errorf("while the store fails, sent %v", sent)
		}
		if !strings.Contains(s.logged(), errStore.Error()) {
			t.Errorf("the error is not logged:\n%s", s.logged())
		}
		s.store.fail(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := "map[east:v2 west:v2]"; fmt.Sprint(sent) != want {
			t.Errorf("once the store works again, sent %v", sent)
		}
	})
}

// Observations are reported at once and saved a moment later, many at a time. No works are sent
// before.
func TestObservationsAreSavedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east west")
		var report func(protocol.Observation)
		s.member = func(a *agent) reconciler.Member { report = a.report; return a }
		s.start()
		defer s.stop()
		time.Sleep(time.Minute)
		synctest.Wait()

		seen := func(name string) bool {
			kept, err := s.store.Load()
			if err != nil {
				t.Fatal(err)
			}
			return !kept.Cluster(name).Healthy
		}
		turns, saves := s.count(), s.store.count()
		for _, name := range []string{"east", "west"} {
			report(protocol.ClusterSeen{Cluster: name, At: time.Now(), Error: "no answer"})
			synctest.Wait()
		}
		if s.count() != turns+2 || s.store.count() != saves {
			t.Errorf("two observations were reported %d times and saved %d times", s.count()-turns, s.store.count()-saves)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := s.store.count() - saves; n != 1 || !seen("east") || !seen("west") {
			t.Errorf("two seconds later there were %d saves; is it known of east %t, of west %t", n, seen("east"), seen("west"))
		}
	})
}

// A member that ends slowly delays no other, and the next one for the same cluster waits for it.
func TestMemberThatEndsSlowlyDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east west")
		var mu sync.Mutex
		running := map[string]int{}
		count := func(name string, n int) {
			mu.Lock()
			defer mu.Unlock()
			if running[name] += n; running[name] > 1 {
				t.Errorf("two agents at %s at one time", name)
			}
		}
		s.member = func(a *agent) reconciler.Member { return &lingering{a, count} }
		s.start()
		defer s.stop()
		// With other credentials for east its agent ends, and another one starts.
		files := world.Files(t, "clusters east west\nnamespace web\nconfigmap web/one\nplace web unavailable 2\n")
		files["cluster-east.yaml"].Data = []byte(strings.Replace(string(files["cluster-east.yaml"].Data), "name: east,", "name: east, annotations: {"+api.ContextAnnotation+": other},", 1))
		s.source.push("v2", "", files)
		time.Sleep(time.Second)
		if did := s.cluster("west").history(); len(did) != 2 {
			t.Errorf("west waits for the end of an agent of east: %v", did)
		}
		time.Sleep(2 * time.Minute)
		if did := s.cluster("east").history(); len(did) != 2 {
			t.Errorf("east did %v", did)
		}
	})
}

// lingering is an agent that runs for a minute after it was cancelled.
type lingering struct {
	*agent
	count func(name string, n int)
}

func (l *lingering) Run(ctx context.Context) {
	l.count(l.name, 1)
	defer l.count(l.name, -1)
	l.agent.Run(ctx)
	time.Sleep(time.Minute)
}

// A loop that cannot read its ledger does not start.
func TestUnreadableLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east")
		s.store.Store = unreadable{}
		s.start()
		if err := <-s.done; err != errStore {
			t.Errorf("it ended with %v", err)
		}
		s.end()
		if s.count() != 0 || len(s.clusters) != 0 {
			t.Error("it did something all the same")
		}
	})
}

// An idle loop verifies what is saved, and reports what is missing.
func TestSavedLedgerIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east")
		s.start()
		defer s.stop()
		time.Sleep(5 * time.Minute)
		if strings.Contains(s.logged(), "were deleted") {
			t.Errorf("of what is whole it is logged:\n%s", s.logged())
		}
		s.store.lose("segment-1-0-0")
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(s.logged(), "parts of the saved ledger were deleted") || !strings.Contains(s.logged(), "segment-1-0-0") {
			t.Errorf("logged:\n%s", s.logged())
		}
	})
}

type unreadable struct{ ledger.Store }

func (unreadable) Load() (*ledger.Ledger, error) { return nil, errStore }

// When a source ends, the loop ends with its error and with everything that it started.
func TestSourceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := healthyFleet(t, "east")
		s.start()
		s.source.end <- errStore
		if err := <-s.done; err == nil || !strings.Contains(err.Error(), "follow the repository: "+errStore.Error()) {
			t.Errorf("it ended with %v", err)
		}
		s.end()
	})
}
