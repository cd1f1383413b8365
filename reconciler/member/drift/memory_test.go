package drift

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

func driftOf(name string, state api.DriftState, seen int) protocol.Drift {
	at := time.Date(2026, 11, 20, 12, 0, seen, 0, time.UTC)
	return protocol.Drift{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, State: state, Count: 1, FirstSeen: at, LastSeen: at}
}

// If there are very many objects, those that still differ are kept first, and then the newest.
func TestMemoryIsBounded(t *testing.T) {
	m, p := memory{}, api.PlacementKey{Name: "web"}
	m.put(p, driftOf("standing", api.DriftStanding, 0))
	for i := range 2 * maxDrifts {
		m.put(p, driftOf(fmt.Sprintf("cm-%03d", i), api.DriftRepaired, i+1))
	}
	list := m.list(p)
	if len(list) != maxDrifts {
		t.Fatalf("%d objects are remembered, want %d", len(list), maxDrifts)
	}
	if first, last := list[0].ID.Name, list[maxDrifts-1].ID.Name; first != fmt.Sprintf("cm-%03d", maxDrifts+1) || last != "standing" {
		t.Errorf("from %s to %s are remembered", first, last)
	}
}

// Of a drift little is kept, however long the names of fields and of field managers are, and however many managers there are. Two
// that differ only in what is dropped are not the same.
func TestADriftIsShort(t *testing.T) {
	live := func(key string) *unstructured.Unstructured {
		var managers []any
		for i := range 50 {
			managers = append(managers, map[string]any{
				"manager": strings.Repeat("m", 1<<10) + fmt.Sprint(i), "operation": "Apply", "time": "2026-11-20T12:00:00Z",
				"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:data": map[string]any{"f:" + key: map[string]any{}}},
			})
		}
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{key: "theirs"}, "metadata": map[string]any{"managedFields": managers}}}
	}
	var kept []protocol.Drift
	for _, end := range []string{"a", "b"} {
		key := strings.Repeat("k", 1<<16) + end
		m, p, of := memory{}, api.PlacementKey{Name: "web"}, wanting("one")
		found := diff.Differences(live(key), api.FieldManager, []api.PatchDetail{{Path: "/data/" + key, ValueInHub: "ours", ValueInMember: "theirs"}})
		m.record(p, of, api.DriftHeld, protocol.Drift{Paths: found, By: diff.Actors(found)}, true)
		d := m[p][of.ID]
		if text, err := json.Marshal(d); err != nil || len(text) > 20<<10 || len(d.By) == 0 {
			t.Errorf("a drift takes %d bytes, %d actors: %v", len(text), len(d.By), err)
		}
		kept = append(kept, d)
	}
	if a, b := protocol.Fingerprint(kept[0].Paths, kept[0].Digest), protocol.Fingerprint(kept[1].Paths, kept[1].Digest); a == b {
		t.Error("two drifts of different fields count as the same")
	}
}

// Held objects, which wait for a decision, are kept in addition to the others. Beyond their
// limit, the oldest are kept.
func TestHeldObjectsAreRemembered(t *testing.T) {
	m, p := memory{}, api.PlacementKey{Name: "web"}
	for i := range maxHeld + 20 {
		m.put(p, driftOf(fmt.Sprintf("held-%04d", i), api.DriftHeld, i))
	}
	for i := range 2 * maxDrifts {
		m.put(p, driftOf(fmt.Sprintf("repaired-%03d", i), api.DriftRepaired, i))
	}
	list := m.list(p)
	if len(list) != maxHeld+maxDrifts {
		t.Fatalf("%d objects are remembered, want %d", len(list), maxHeld+maxDrifts)
	}
	if first, last := list[0].ID.Name, list[maxHeld-1].ID.Name; first != "held-0000" || last != fmt.Sprintf("held-%04d", maxHeld-1) {
		t.Errorf("from %s to %s are held", first, last)
	}
}

// A drift that begins after an earlier one of the object has ended has its own beginning.
func TestADriftIsSinceItsOwnBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, of := memory{}, wanting("one")
		begin, web := time.Now(), api.PlacementKey{Name: "web"}
		change := func(state api.DriftState, anew bool, want time.Duration) {
			t.Helper()
			memory.record(web, of, state, protocol.Drift{}, anew)
			if d := memory[web][of.ID]; d.Since.Sub(begin) != want || !d.FirstSeen.Equal(begin) {
				t.Errorf("since %s, first seen %s", d.Since, d.FirstSeen)
			}
			time.Sleep(time.Hour)
		}
		change(api.DriftHeld, true, 0)
		change(api.DriftHeld, false, 0)
		change(api.DriftRepaired, false, 0)
		change(api.DriftHeld, true, 3*time.Hour)
		change(api.DriftIgnored, false, 3*time.Hour)
		change(api.DriftIgnored, false, 3*time.Hour)
		change(api.DriftHeld, true, 6*time.Hour)
		memory.end(web, memory[web][of.ID])
		change(api.DriftHeld, true, 7*time.Hour)
	})
}

// The drift of objects that a placement no longer has is forgotten, unless its objects are not
// known.
func TestMemoryGoesWithTheObject(t *testing.T) {
	tests := map[string]struct {
		work *work.Work
		want int
	}{
		"it has both":       {&work.Work{Manifests: []*work.Manifest{wanting("one"), wanting("two")}}, 2},
		"it has one":        {&work.Work{Manifests: []*work.Manifest{wanting("two")}}, 1},
		"nobody says":       {&work.Work{Keep: true}, 2},
		"it is removed":     {&work.Work{Remove: true}, 0},
		"it is not told of": {nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := api.PlacementKey{Name: "web"}
			m := memory{}
			for _, d := range []protocol.Drift{driftOf("one", api.DriftRepaired, 1), driftOf("two", api.DriftStanding, 2)} {
				m.put(p, d)
			}
			m.forget(func(api.PlacementKey) (*work.Work, bool) { return test.work, test.work != nil })
			if got := m.list(p); len(got) != test.want {
				t.Errorf("remembered: %v", got)
			}
		})
	}
}

func wanting(name string) *work.Manifest {
	return &work.Manifest{Object: &api.Object{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, Content: &unstructured.Unstructured{}}}
}

// Long values and long lists are shortened to what a user needs, since a record of the ledger
// is written often.
func TestRememberedDifferencesAreShort(t *testing.T) {
	var long []api.Difference
	for i := range 40 {
		long = append(long, api.Difference{PatchDetail: api.PatchDetail{Path: fmt.Sprint("/data/", i), ValueInHub: strings.Repeat("é", 5000), ValueInMember: "x"}})
	}
	got := Shorten(long)
	if len(got) != maxPaths || len(got[0].ValueInHub) > 2*maxValue || got[0].ValueInMember != "x" {
		t.Errorf("%d differences, the first %+v", len(got), got[0])
	}
	if last := got[maxPaths-1]; last.Path != "/data/11 and 28 more" || last.ValueInHub != "(omitted)" {
		t.Errorf("the last: %+v", last)
	}
	if len(long[0].ValueInHub) != 10000 || Shorten(nil) != nil {
		t.Error("what was given is changed")
	}
}

// Changes that differ only in what is not remembered of them have other fingerprints: after the
// beginning of a long value, and in fields beyond the first ones.
func TestChangesThatDifferInWhatIsNotRemembered(t *testing.T) {
	fingerprint := func(paths ...api.Difference) string {
		m, p, of := memory{}, api.PlacementKey{Name: "web"}, wanting("one")
		m.record(p, of, api.DriftHeld, protocol.Drift{Paths: paths}, true)
		d := m[p][of.ID]
		return protocol.Fingerprint(d.Paths, d.Digest)
	}
	value := func(path, value string) api.Difference {
		return api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInHub: "a", ValueInMember: value}}
	}
	many := func(last string) []api.Difference {
		var list []api.Difference
		for i := range maxPaths {
			list = append(list, value(fmt.Sprintf("/data/%02d", i), "x"))
		}
		return append(list, value("/data/last", last))
	}
	long := strings.Repeat("x", 10*maxValue)
	for name, pair := range map[string][2]string{
		"a long value": {fingerprint(value("/data/a", long+"1")), fingerprint(value("/data/a", long+"2"))},
		"many fields":  {fingerprint(many("1")...), fingerprint(many("2")...)},
	} {
		if pair[0] == pair[1] {
			t.Errorf("%s: the fingerprints are the same", name)
		}
	}
	// What is remembered whole has the fingerprint that it has without a digest.
	whole := []api.Difference{value("/data/a", "1")}
	if fingerprint(whole...) != protocol.Fingerprint(whole, "") {
		t.Error("the fingerprint of a change that is remembered whole has a digest in it")
	}
}
