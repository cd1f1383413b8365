package ledger

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// What is equal in many entries is in memory once also after a restart: the texts, and the times of conditions.
func TestLoadedEntriesShareWhatIsEqual(t *testing.T) {
	const placements, clusters = 50, 50
	store, l := Memory(), New()
	for p := range placements {
		key := api.PlacementKey{Name: fmt.Sprintf("placement-%04d", p)}
		l.SetPlacement(key, Placement{})
		revision := placement.Revision{Commit: strings.Repeat("c", 40), Hash: strings.Repeat(fmt.Sprintf("%04d", p), 16)}
		for c := range clusters {
			name := fmt.Sprintf("cluster-%04d", c)
			l.Bind(key, placement.Binding{Cluster: name, Policy: strings.Repeat("p", 64), Reason: "Successfully scheduled resources for placement in " + name, Assigned: revision})
			l.Fold(protocol.WorkSeen{Cluster: name, Placement: key, At: at(c % 5), WorkState: protocol.WorkState{Revision: revision, Done: true}})
			transitions := map[string]Transition{}
			for _, typ := range []string{api.Scheduled, api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available} {
				transitions[typ] = Transition{Status: "True", Time: at(c % 5)}
			}
			l.SetTransitions(key, name, transitions)
		}
	}
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	before := heap()
	loaded, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	each := (heap() - before) / placements / clusters
	for _, kept := range []any{loaded, l, store} {
		runtime.KeepAlive(kept)
	}
	if t.Logf("%d bytes for an entry", each); each > 1100 {
		t.Errorf("an entry takes %d bytes, want at most 1100", each)
	}
}

// heap returns how much memory is in use, once collecting garbage frees no more: what earlier tests have left, such as in pools
// and with finalizers, takes several collections.
func heap() int64 {
	var m runtime.MemStats
	for before := uint64(math.MaxUint64); ; before = m.HeapAlloc {
		runtime.GC()
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapAlloc+1<<10 >= before {
			return int64(m.HeapAlloc)
		}
	}
}
