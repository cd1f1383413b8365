package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/golden"
)

// A condition is a state in which an object may be when a commit wants it.
var conditions = []struct {
	name string
	// ours says that gitfleet applied it before, with the content that is wanted.
	ours bool
	// tamper brings it into that state; nil leaves it as it is.
	tamper func(ctx context.Context, s situation) error
}{
	{"absent", false, nil},
	{"foreign, equal", false, func(ctx context.Context, s situation) error { return s.create(ctx, "a", false) }},
	{"foreign, with extra fields", false, func(ctx context.Context, s situation) error { return s.create(ctx, "a", true) }},
	{"foreign, different", false, func(ctx context.Context, s situation) error { return s.create(ctx, "b", false) }},
	{"ours", true, nil},
	{"ours, drifted in a managed field", true, func(ctx context.Context, s situation) error { return s.edit(ctx, `{"data":{"key":"tampered"}}`) }},
	{"ours, with extra fields", true, func(ctx context.Context, s situation) error { return s.edit(ctx, `{"data":{"theirs":"1"}}`) }},
}

// A situation is one object of the table, and its namespace.
type situation struct {
	agent           *agent
	namespace, name string
}

// create creates the object as Helm would.
func (s situation) create(ctx context.Context, value string, extra bool) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Data: map[string]string{"key": value, "other": "same"}}
	if extra {
		cm.Data["theirs"] = "1"
	}
	_, err := s.agent.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, cm, metav1.CreateOptions{FieldManager: "helm"})
	return err
}

func (s situation) edit(ctx context.Context, patch string) error {
	_, err := s.agent.client.CoreV1().ConfigMaps(s.namespace).Patch(ctx, s.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	return err
}

// outcome describes the object in the end: its values and its owner.
func (s situation) outcome(ctx context.Context) string {
	cm, err := s.agent.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "absent"
	}
	if err != nil {
		return err.Error()
	}
	text := cm.Data["key"]
	if cm.Data["theirs"] != "" {
		text += " + theirs"
	}
	if cm.Labels[api.ManagedByLabel] == s.agent.fleet {
		text += ", ours"
	} else {
		text += ", not ours"
	}
	return text
}

// A row of the table is one strategy.
type row struct {
	strategy api.ApplyStrategy
	name     string // of its placement and objects
}

func rows() []row {
	var out []row
	for _, takeOver := range []api.WhenToTakeOver{api.TakeOverAlways, api.TakeOverIfNoDiff, api.TakeOverNever} {
		for _, comparison := range []api.ComparisonOption{api.PartialComparison, api.FullComparison} {
			for _, whenToApply := range []api.WhenToApply{api.ApplyAlways, api.ApplyIfNotDrifted} {
				out = append(out, row{
					strategy: api.ApplyStrategy{WhenToTakeOver: takeOver, ComparisonOption: comparison, WhenToApply: whenToApply},
					name:     strings.ToLower(fmt.Sprintf("%s-%s-%s", takeOver, comparison, whenToApply)),
				})
			}
		}
	}
	return out
}

func (r row) object(condition int) string { return fmt.Sprintf("%s-%d", r.name, condition) }

// works returns the placements of all strategies, with the objects of some conditions.
func works(namespace string, include func(condition int) bool, strategy func(row) api.ApplyStrategy) []*work.Work {
	var out []*work.Work
	for _, r := range rows() {
		w := workOf(r.name, "1")
		w.Strategy = strategy(r)
		for i := range conditions {
			if include(i) {
				w.Manifests = append(w.Manifests, configMap(namespace, r.object(i), "a"))
			}
		}
		out = append(out, w)
	}
	return out
}

// Every strategy is tried with every condition of an object, created by real managers on a real
// API server: the outcomes, and the number of requests, are in testdata/takeover.txt, for
// people to review.
func TestTakeOverByStrategy(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, ctx := fleet.Namespace(t), context.Background()
	if _, err := a.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.Set(works(ns, func(i int) bool { return conditions[i].ours }, func(row) api.ApplyStrategy { return api.ApplyStrategy{} }))
	for _, r := range rows() {
		a.applied(api.PlacementKey{Name: r.name}, "1")
	}
	a.stop()
	for _, r := range rows() {
		for i, c := range conditions {
			if c.tamper != nil {
				if err := c.tamper(ctx, situation{a, ns, r.object(i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	first := newFirstPass(a, len(rows()))
	a.adjust = append(a.adjust, first.watch)
	a.start()
	a.Set(works(ns, func(int) bool { return true }, func(r row) api.ApplyStrategy { return r.strategy }))
	seen, requests := first.wait(t)

	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, r := range rows() {
		fmt.Fprintf(tw, "\nwhenToTakeOver: %s, comparisonOption: %s, whenToApply: %s\n", r.strategy.WhenToTakeOver, r.strategy.ComparisonOption, r.strategy.WhenToApply)
		for i, c := range conditions {
			did := requests[r.object(i)]
			fmt.Fprintf(tw, "  %s\t%d %s\t%s\t%s\n", c.name, len(did), orNone(strings.Join(did, " ")),
				verdict(seen[api.PlacementKey{Name: r.name}], r.object(i)), situation{a, ns, r.object(i)}.outcome(ctx))
		}
	}
	tw.Flush()
	golden.File(t, "testdata/takeover.txt", `# What becomes of an object, and what it costs, by strategy and by how the
# object is found: requests, result, and the object afterwards. The manifest
# wants "a"; "theirs" is a field that it does not have.
`+text.String())
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// verdict returns the reported status of one object.
func verdict(w protocol.WorkSeen, name string) string {
	for _, e := range w.Exceptions {
		if e.ID.Name != name {
			continue
		}
		text := e.Applied.Reason
		var list []string
		for _, d := range e.Diffs {
			list = append(list, fmt.Sprintf("%s %q→%q", d.Path, d.ValueInHub, d.ValueInMember))
		}
		if len(list) > 0 {
			text += map[bool]string{true: ", drift ", false: ", diff "}[e.Drift] + strings.Join(list, ", ")
		}
		return text
	}
	return api.ManifestApplied
}

// A firstPass records an agent's reports and requests up to the end of its first pass. Later
// ones do not count.
type firstPass struct {
	agent *agent
	want  int

	mu       sync.Mutex
	seen     map[api.PlacementKey]protocol.WorkSeen
	requests map[string][]string // by object
	done     chan struct{}
}

func newFirstPass(a *agent, placements int) *firstPass {
	return &firstPass{agent: a, want: placements, seen: map[api.PlacementKey]protocol.WorkSeen{}, done: make(chan struct{})}
}

// watch observes an agent. Reports are called from the goroutine that does everything else too,
// so nothing happens during a call.
func (f *firstPass) watch(cfg *member.Config) {
	report := cfg.Report
	cfg.Report = func(o protocol.Observation) {
		if w, ok := o.(protocol.WorkSeen); ok && w.Done {
			f.take(w)
		}
		report(o)
	}
}

func (f *firstPass) take(w protocol.WorkSeen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests != nil {
		return
	}
	f.seen[w.Placement] = w
	if len(f.seen) < f.want {
		return
	}
	f.requests = map[string][]string{}
	for _, q := range f.agent.sent.Objects() {
		_, name, ok := strings.Cut(q.Path, "/configmaps/")
		if !ok {
			continue
		}
		verb := q.Method
		if q.Query.Get("dryRun") != "" {
			verb += "(dry-run)"
		}
		f.requests[name] = append(f.requests[name], verb)
	}
	close(f.done)
}

func (f *firstPass) wait(t *testing.T) (map[api.PlacementKey]protocol.WorkSeen, map[string][]string) {
	t.Helper()
	f.agent.eventually("through its first pass", func() (bool, error) {
		select {
		case <-f.done:
			return true, nil
		default:
			return false, nil
		}
	})
	return f.seen, f.requests
}

// Strategies that only compare write nothing, whatever they find: no field of an object, no
// label, no inventory, no namespace. They report what they find.
func TestReportDiffWritesNothing(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, ctx, key := fleet.Namespace(t), context.Background(), api.PlacementKey{Name: "look"}
	if _, err := a.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, c := range conditions {
		if !c.ours && c.tamper != nil {
			if err := c.tamper(ctx, situation{a, ns, fmt.Sprint("cm-", i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, takeOver := range []api.WhenToTakeOver{api.TakeOverAlways, api.TakeOverIfNoDiff, api.TakeOverNever} {
		for _, comparison := range []api.ComparisonOption{api.PartialComparison, api.FullComparison} {
			name := fmt.Sprintf("%s %s", takeOver, comparison)
			t.Run(name, func(t *testing.T) {
				w := workOf("look", name, namespaceOf(ns+"-absent"), configMap(ns+"-absent", "x", "a"))
				w.Strategy = api.ApplyStrategy{Type: api.ReportDiff, WhenToTakeOver: takeOver, ComparisonOption: comparison}
				for i, c := range conditions {
					if !c.ours {
						w.Manifests = append(w.Manifests, configMap(ns, fmt.Sprint("cm-", i), "a"))
					}
				}
				a.sent.Reset()
				a.Set([]*work.Work{w})
				seen := a.until(key, "compared", func(w protocol.WorkSeen) bool { return w.Done && w.Revision.Hash == name })
				for _, q := range a.sent.Objects() {
					if q.Method != http.MethodGet && q.Query.Get("dryRun") != "All" {
						t.Errorf("it wrote: %s", q)
					}
				}
				whole := `FoundDiff, diff / "(the whole object)"→""`
				want := map[string]string{"x": whole, ns + "-absent": whole, "cm-0": whole, "cm-1": api.NoDiffFound, "cm-2": api.NoDiffFound, "cm-3": `FoundDiff, diff /data/key "a"→"b"`}
				if comparison == api.FullComparison {
					want["cm-2"] = `FoundDiff, diff /data/theirs ""→"1"`
				}
				for name, want := range want {
					got := verdict(seen, name)
					if got == api.ManifestApplied {
						got = api.NoDiffFound // nothing to report
					}
					if got != want {
						t.Errorf("%s: %s, want %s", name, got, want)
					}
				}
				if !seen.Applied() {
					t.Error("a report of differences counts as failed")
				}
			})
		}
	}
	a.sent.Reset()
	a.Set([]*work.Work{{Placement: key, Remove: true, Strategy: api.ApplyStrategy{Type: api.ReportDiff}}})
	a.until(key, "gone", func(w protocol.WorkSeen) bool { return w.Removed })
	if got := a.writes(); len(got) > 0 {
		t.Errorf("when it went: %v", got)
	}
	if a.inventoryHas("") {
		t.Error("there is an inventory")
	}
}

// A placement that is switched to ReportDiff leaves everything as it is, including objects that
// Git does not have any more, and continues from there when it is switched back.
func TestSwitchedToReportDiff(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, key, ctx := fleet.Namespace(t), api.PlacementKey{Name: "web"}, context.Background()
	a.Set([]*work.Work{workOf("web", "1", many(ns, 3, "a")...)})
	a.applied(key, "1")
	a.eventually("inventory written", func() (bool, error) { return a.inventoryHas("c-1"), nil })

	look := workOf("web", "2", namespaceOf(ns), configMap(ns, "cm-000", "b"), configMap(ns, "cm-001", "a"))
	look.Strategy.Type = api.ReportDiff
	a.sent.Reset()
	a.Set([]*work.Work{look})
	seen := a.until(key, "compared", func(w protocol.WorkSeen) bool { return w.Done && w.Revision.Hash == "2" })
	if got := verdict(seen, "cm-000"); got != `FoundDiff, drift /data/key "b"→"a"` {
		t.Errorf("it says: %s", got)
	}
	for _, q := range a.sent.Objects() {
		if q.Method != http.MethodGet && q.Query.Get("dryRun") != "All" {
			t.Errorf("it wrote: %s", q)
		}
	}

	again := workOf("web", "3", namespaceOf(ns), configMap(ns, "cm-000", "b"), configMap(ns, "cm-001", "a"))
	a.sent.Reset()
	a.Set([]*work.Work{again})
	a.applied(key, "3")
	objects, _ := split(a.writes())
	slices.Sort(objects)
	path := "/api/v1/namespaces/" + ns + "/configmaps/"
	if want := []string{"DELETE " + path + "cm-002", "PATCH " + path + "cm-000"}; !slices.Equal(objects, want) {
		t.Errorf("switched back: %v, want %v", objects, want)
	}
	if _, err := a.client.CoreV1().ConfigMaps(ns).Get(ctx, "cm-001", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// Changes of an object that is left alone are reported at once, and so is their end: by the
// watch, without polling.
func TestChangesOfRefusedObjectsAreReported(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	ns, ctx := fleet.Namespace(t), context.Background()
	full, kept := workOf("full", "1", namespaceOf(ns), configMap(ns, "full", "a")), workOf("kept", "1", configMap(ns, "kept", "a"))
	full.Strategy.ComparisonOption = api.FullComparison
	kept.Strategy.WhenToApply = api.ApplyIfNotDrifted
	a.Set([]*work.Work{full, kept})
	a.applied(full.Placement, "1")
	a.applied(kept.Placement, "1")
	is := func(w *work.Work, name, want string) {
		t.Helper()
		a.until(w.Placement, want, func(seen protocol.WorkSeen) bool { return seen.Done && verdict(seen, name) == want })
	}
	edit := func(name, patch string) {
		t.Helper()
		if err := (situation{a, ns, name}).edit(ctx, patch); err != nil {
			t.Fatal(err)
		}
	}
	edit("full", `{"metadata":{"labels":{"theirs":"1"}}}`)
	is(full, "full", `Applied, drift /metadata/labels/theirs ""→"1"`)
	edit("full", `{"metadata":{"labels":{"theirs":null}}}`)
	is(full, "full", "Applied")

	edit("kept", `{"data":{"key":"theirs"}}`)
	is(kept, "kept", `FoundDrifts, drift /data/key "a"→"theirs"`)
	a.sent.Reset()
	edit("kept", `{"data":{"key":"a"}}`)
	is(kept, "kept", "Applied")
	if objects, _ := split(a.writes()); len(objects) > 2 { // a dry run, and one that makes gitfleet own the field again
		t.Errorf("to find that it is as it should be took %v", objects)
	}
}
