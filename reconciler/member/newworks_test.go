package member_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

const plainConfig = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {v: "%d"}}`

// Only the placements whose works have changed are reported again.
func TestNewWorksReportWhatTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControlled(t)
		works := func(v int) []*work.Work {
			return []*work.Work{placed(t, "still", fmt.Sprintf(plainConfig, "still", 0)), placed(t, "moved", fmt.Sprintf(plainConfig, "moved", v))}
		}
		c.start(works(0)...)
		defer c.stop()
		c.settle()
		c.takeReports()
		c.set(works(1)...)
		if reports := c.takeReports(); len(reports) != 1 || len(reports[api.PlacementKey{Name: "moved"}].Exceptions) > 0 {
			t.Errorf("reports: %+v", reports)
		}
	})
}

// What new works lead to is what an agent does with them that starts anew, and so reconciles everything.
func TestNewWorksLeaveNothingUndone(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				running, restarted := newControlled(t), newControlled(t)
				running.limit.Percent, restarted.limit.Percent = 10, 10
				f := newWanted(random)
				for step := range 12 {
					works := f.next(t)
					if step == 0 {
						running.start(works...)
						defer running.stop()
					} else {
						running.agent.Set(works)
					}
					restarted.start(works...)
					restarted.settle()
					running.settle()
					restarted.stop()
					if got, want := running.objects(), restarted.objects(); !reflect.DeepEqual(got, want) {
						t.Fatalf("step %d: objects %q, after a restart %q\nworks: %s", step, got, want, describe(works))
					}
					if got, want := running.states(), restarted.states(); !reflect.DeepEqual(got, want) {
						t.Fatalf("step %d: reported %q, after a restart %q\nworks: %s", step, got, want, describe(works))
					}
				}
			})
		})
	}
}

// objects returns the data and the placement of each ConfigMap, by name.
func (c *controlled) objects() map[string]string {
	c.t.Helper()
	list, err := c.of("", "v1", "configmaps").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]string{}
	for _, o := range list.Items {
		out[o.GetName()] = fmt.Sprint(o.Object["data"], " ", o.GetAnnotations()[api.PlacementAnnotation])
	}
	return out
}

// states returns what was last reported of each placement that is still there.
func (c *controlled) states() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]string{}
	for p, w := range c.reports {
		if w.Removed {
			continue
		}
		text := fmt.Sprint(w.Revision.Hash, " done ", w.Done, " of ", w.Total)
		for _, e := range w.Exceptions {
			text += fmt.Sprint("; ", e.ID, " ", e.Applied.Reason, " ", e.Available.Reason)
		}
		for _, b := range w.Unusual().BlockedDeletions {
			text += fmt.Sprint("; held ", b.ID)
		}
		out[p.String()] = text
	}
	return out
}

// takeReports returns the reports that have arrived since the last call.
func (c *controlled) takeReports() map[api.PlacementKey]protocol.WorkSeen {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := maps.Clone(c.reports)
	clear(c.reports)
	return taken
}

// A randomWanted is what some placements want, which changes at random.
type randomWanted struct {
	random *rand.Rand
	// owners has the placement of each object, and versions its content.
	owners   map[string]string
	versions map[string]int
	// awaited has the placement that waits for an object of another one.
	awaited            map[string]string
	suspended, removed map[string]bool
	allowed            bool
}

var randomPlacements = []string{"a", "b", "c"}

func newWanted(random *rand.Rand) *randomWanted {
	f := &randomWanted{random: random, owners: map[string]string{}, versions: map[string]int{}, awaited: map[string]string{}, suspended: map[string]bool{}, removed: map[string]bool{}}
	for i := range 6 {
		f.owners[fmt.Sprint("cm-", i)] = randomPlacements[i%3]
	}
	return f
}

// next changes something and returns the works.
func (f *randomWanted) next(t *testing.T) []*work.Work {
	p, object := randomPlacements[f.random.IntN(3)], fmt.Sprint("cm-", f.random.IntN(6))
	switch f.random.IntN(8) {
	case 0, 1:
		f.versions[object]++
	case 2:
		f.owners[object] = p
	case 3:
		f.owners[object] = ""
	case 4:
		f.awaited[object] = p
	case 5:
		delete(f.awaited, object)
	case 6:
		f.suspended[p] = !f.suspended[p]
	case 7:
		f.removed[p] = !f.removed[p]
	}
	f.allowed = f.random.IntN(4) > 0
	var works []*work.Work
	for _, p := range randomPlacements {
		w := placed(t, p)
		if !f.removed[p] {
			w = placed(t, p, f.manifests(f.owners, p)...)
		}
		w.Remove, w.AllowDelete = f.removed[p], f.allowed
		if awaited := placed(t, p, f.manifests(f.awaited, p)...); !w.Remove {
			w.Awaited = awaited.Manifests
		}
		if f.suspended[p] {
			w.Suspended = "a user has suspended it"
		}
		works = append(works, w)
	}
	return works
}

func (f *randomWanted) manifests(of map[string]string, p string) (out []string) {
	for _, object := range slices.Sorted(maps.Keys(of)) {
		if of[object] == p {
			out = append(out, fmt.Sprintf(plainConfig, object, f.versions[object]))
		}
	}
	return out
}

func describe(works []*work.Work) string {
	var out []string
	for _, w := range works {
		text := fmt.Sprintf("%s removed %t, allowed %t, suspended %q:", w.Placement, w.Remove, w.AllowDelete, w.Suspended)
		for _, m := range w.Manifests {
			text += " " + m.ID.Name
		}
		for _, m := range w.Awaited {
			text += " waits for " + m.ID.Name
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}
