package status_test

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/scenario"
	"github.com/gitfleet/gitfleet/test/world"
)

// TestScenes runs the scenes in testdata. Each file of an archive is a command, and its content
// is the input or the output of the command:
//
//	commit v1              the new head, in the short text of package world
//	hub v1                 the same in YAML
//	documented             sets status.conditions to documented
//	seen east west         the clusters answer
//	down east              the cluster does not answer
//	forbidden east PERMISSION…  it answers, and a permission is missing
//	refuses east PERMISSION…    the same, and it cannot be used
//	member east web        the member's report about a placement, one line each:
//	                         applying
//	                         fails KIND NAMESPACE/NAME REASON MESSAGE…
//	                         unavailable KIND NAMESPACE/NAME MESSAGE…
//	                         unlisted KIND NAMESPACE/NAME
//	                         drifts KIND NAMESPACE/NAME PATH MEMBER HUB
//	                         differs KIND NAMESPACE/NAME PATH MEMBER HUB
//	                         untrackable 2
//	                         repaired KIND NAMESPACE/NAME TIMES PATH MEMBER HUB MANAGER
//	                         ended KIND NAMESPACE/NAME
//	                         blocked KIND NAME WHY…
//	                         removed
//	                       and no line if everything is available
//	turn                   plan, report, and save the ledger
//	restart                only the ledger is kept
//	tick 1m                time passes
//	status web             prints the status
//	mirror web             prints the status in the namespace
//	conditions web         prints only the conditions of the placement
//	cluster east           prints a member cluster
//	drifts                 prints all drift, present and past
//	events                 prints the events since the last such command
//	explain crp/web [east] prints the explanation of a placement
//	tree crp/web [east]    prints a placement with its objects on clusters
//	trace ConfigMap web/one east  prints where an object comes from
//	trace drifts           prints where the objects of all drift come from
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		golden.Steps(t, archive, newScene(t).do)
	})
}

// A scene is a fleet with real plans and reports; everything else is simulated.
type scene struct {
	t          testing.TB
	now        time.Time
	loader     *hub.Loader
	store      ledger.Store
	in         plan.Input
	memo       *status.Memo
	source     status.Source
	conditions status.Conditions
	asked      map[status.EventKey]int32 // counts of the events when they were last printed
	last       *plan.Plan
	report     *status.Report
	built      *status.Report // the same as it was built
}

func newScene(t testing.TB) *scene {
	return &scene{
		t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), loader: hub.NewLoader(hub.Options{}), store: ledger.Memory(),
		in: plan.Input{Past: map[string]*hub.Snapshot{}, Ledger: ledger.New(), Memo: plan.NewMemo()}, memo: status.NewMemo(),
		asked: map[status.EventKey]int32{},
	}
}

func (s *scene) do(words []string, data string) (out string, answers bool) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	args := words[1:]
	switch words[0] {
	case "commit":
		s.commit(args[0], world.Files(s.t, data))
	case "hub":
		s.commit(args[0], fstest.MapFS{"hub.yaml": {Data: []byte(data)}})
	case "documented":
		s.conditions = status.DocumentedConditions
	case "seen":
		for _, c := range args {
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: c, At: s.now, Healthy: true, UID: "uid-" + c, Properties: map[string]string{
				"kubernetes-fleet.io/node-count": "3", "resources.kubernetes-fleet.io/total-cpu": "12",
			}})
		}
	case "down":
		s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: args[0], At: s.now, Error: "dial tcp: connection refused"})
	case "forbidden", "refuses":
		seen := protocol.ClusterSeen{Cluster: args[0], At: s.now, Healthy: words[0] == "forbidden", Forbidden: []string{strings.Join(args[1:], " ")}}
		if !seen.Healthy {
			seen.Error = (&ledger.Cluster{ClusterSeen: seen}).Denied()
		}
		s.in.Ledger.Fold(seen)
	case "member":
		s.member(args[0], args[1], data)
	case "turn":
		s.turn()
	case "restart":
		s.restart()
	case "tick":
		s.now = s.now.Add(s.duration(args[0]))
	case "status":
		return s.yaml(s.status(args[0])), true
	case "mirror":
		i := slices.IndexFunc(s.report.PlacementStatuses, func(m *api.ClusterResourcePlacementStatus) bool { return m.Name == args[0] })
		return s.yaml(s.report.PlacementStatuses[i]), true
	case "conditions":
		return s.yaml(s.status(args[0]).Conditions), true
	case "drifts":
		return s.yaml(s.report.Drifts), true
	case "events":
		return s.events(), true
	case "explain":
		return s.answer(s.report.Explain(args[0], strings.Join(args[1:], ""))), true
	case "tree":
		return s.answer(s.report.Tree(args[0], strings.Join(args[1:], ""))), true
	case "trace":
		return s.trace(args), true
	case "cluster":
		i := slices.IndexFunc(s.report.Clusters, func(c *api.MemberCluster) bool { return c.Name == args[0] })
		return s.yaml(s.report.Clusters[i].Status), true
	default:
		s.t.Fatalf("unknown step %s", words[0])
	}
	return "", false
}

// answer prints a value, or why there is none.
func (s *scene) answer(v any, err error) string {
	s.t.Helper()
	if err != nil {
		return err.Error() + "\n"
	}
	return s.yaml(v)
}

func (s *scene) trace(args []string) string {
	s.t.Helper()
	if args[0] == "drifts" {
		var all []*status.Trace
		for i := range s.report.Drifts {
			trace, _ := s.report.TraceDrift(&s.report.Drifts[i])
			all = append(all, trace)
		}
		return s.yaml(all)
	}
	namespace, name, _ := strings.Cut(args[1], "/")
	trace, _, err := s.report.Trace(api.ObjectName{Kind: args[0], Namespace: namespace, Name: name}, args[2])
	return s.answer(trace, err)
}

func (s *scene) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scene) commit(name string, files fstest.MapFS) {
	s.t.Helper()
	head, err := s.loader.Load(hub.Commit{Hash: name, Time: s.now}, files)
	if err != nil {
		s.t.Fatalf("commit %s: %v", name, err)
	}
	s.in.InForce = head
	s.in.Past[name] = head
}

// turn does what the loop does in a turn.
func (s *scene) turn() {
	s.t.Helper()
	s.in.Now = s.now
	s.last = plan.Resolve(s.in)
	s.last.UpdateLedger(s.in.Ledger)
	s.source.InForce, s.source.Newest = s.in.InForce.Commit, s.in.InForce.Commit
	before := ""
	if s.built != nil {
		before = s.yaml(s.built.Whole().Details)
	}
	in := status.Input{Plan: s.last, InForce: s.in.InForce, Ledger: s.in.Ledger, Source: s.source, Now: s.now, Conditions: s.conditions}
	built := s.memo.Build(in)
	s.report = built.Whole()
	scenario.CheckReport(s.t, s.report)
	s.report.UpdateLedger(s.in.Ledger)
	// an empty Memo must give the same report
	if again := status.Build(in).Whole(); !equality.Semantic.DeepEqual(again.Placements, s.report.Placements) || len(again.Transitions) > 0 {
		s.t.Errorf("with an empty memo:\n%s\n%v\nwith the memo:\n%s", s.yaml(again.Placements), again.Transitions, s.yaml(s.report.Placements))
	} else if s.yaml(again.Details) != s.yaml(s.report.Details) {
		s.t.Errorf("details with an empty memo:\n%s\nwith the memo:\n%s", s.yaml(again.Details), s.yaml(s.report.Details))
	}
	if s.built != nil && s.yaml(s.built.Whole().Details) != before {
		s.t.Errorf("the report before was changed: it said\n%s\nand says\n%s", before, s.yaml(s.built.Whole().Details))
	}
	for i, p := range s.report.Placements {
		is, want := built.OnDemand(api.PlacementKey{Name: p.Name}).Outline(), status.OutlineOf(&s.report.Placements[i].Status)
		if is != want {
			s.t.Errorf("outline of %s: %+v, want that of its status: %+v", p.Name, is, want)
		}
	}
	if got, want := judged(built), judged(s.report); got != want {
		s.t.Errorf("one after the other, placements are judged as\n%s\nand all together as\n%s", got, want)
	}
	s.watched(built)
	s.built = built
}

// judged returns what summaries say of the placements of a report.
func judged(r *status.Report) string {
	var out strings.Builder
	members := status.MemberStatesOf(r)
	for _, goal := range []status.Goal{status.ToBeAvailable, status.ToBeApplied} {
		judge := status.NewJudge(r, goal)
		for d, s := range r.Each() {
			tally, verdicts := judge.Placement(d, s)
			on := status.PerCluster(s)
			fmt.Fprintln(&out, d.Placement, tally, on[""] != nil, status.ScheduleProblem(d, s))
			for i, c := range d.Clusters {
				c.Deferral = nil // each has its own
				fmt.Fprintf(&out, "  %+v: %s %+v %s\n", c, status.StateOf(&c, on[c.Cluster], members), verdicts[i], status.FailureOf(&c, on[c.Cluster]))
			}
		}
	}
	return out.String()
}

// watched checks that a placement is another object than in the report before exactly if it says something else, also of clusters.
func (s *scene) watched(now *status.Report) {
	s.t.Helper()
	before := map[string]*api.ClusterResourcePlacement{}
	if s.built != nil {
		for i, p := range slices.Collect(s.built.EachClusterResourcePlacement()) {
			before[p.Name] = p
			before["whole "+p.Name] = s.built.Whole().Placements[i]
		}
	}
	for i, p := range slices.Collect(now.EachClusterResourcePlacement()) {
		was, whole := before[p.Name], now.Whole().Placements[i]
		if was != nil && (was == p) != equality.Semantic.DeepEqual(whole, before["whole "+p.Name]) {
			s.t.Errorf("%s is another object: %v; it said\n%s\nand says\n%s", p.Name, was != p, s.yaml(before["whole "+p.Name]), s.yaml(whole))
		}
	}
}

func (s *scene) restart() {
	s.t.Helper()
	err := s.store.Save(s.in.Ledger)
	if err == nil {
		s.in.Ledger, err = s.store.Load()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.in.Memo, s.memo, s.built = plan.NewMemo(), status.NewMemo(), nil
}

func (s *scene) status(name string) *api.PlacementStatus {
	s.t.Helper()
	for _, p := range s.report.Placements {
		if p.Name == name {
			return &p.Status
		}
	}
	for _, p := range s.report.ResourcePlacements {
		if p.Name == name {
			return &p.Status
		}
	}
	s.t.Fatalf("the report has no placement %s", name)
	return nil
}

func (s *scene) yaml(v any) string {
	s.t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// member makes a cluster report about its last work.
func (s *scene) member(cluster, name, lines string) {
	s.t.Helper()
	works := s.last.Works[cluster]
	i := slices.IndexFunc(works, func(w *work.Work) bool { return w.Placement.Name == name })
	if i < 0 {
		s.t.Fatalf("%s was not sent %s", cluster, name)
	}
	w := works[i]
	o := protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: s.now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests)}}
	in := protocol.Incidents{}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		switch words[0] {
		case "applying":
			o.Done = false
		case "untrackable":
			o.Untrackable, _ = strconv.Atoi(words[1])
		case "removed":
			o.Removed = true
		case "blocked":
			in.BlockedDeletions = append(in.BlockedDeletions, protocol.BlockedDeletion{ID: api.ID{Kind: words[1], Name: words[2]}, Why: strings.Join(words[3:], " ")})
		case "repaired", "ended", "altered":
			in.Drifts = append(in.Drifts, s.remembered(w, words))
		default:
			if words[0] == "drifts" {
				in.Drifts = append(in.Drifts, s.remembered(w, words))
			}
			o.Exceptions = append(o.Exceptions, s.exception(w, words))
		}
	}
	o.Incidents = in.OrNil()
	slices.SortFunc(o.Exceptions, func(a, b protocol.ObjectState) int { return a.ID.Compare(b.ID) })
	s.in.Ledger.Fold(o)
}

// manifest returns the manifest that the second and third word identify.
func (s *scene) manifest(w *work.Work, words []string) *work.Manifest {
	s.t.Helper()
	namespace, name, namespaced := strings.Cut(words[2], "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	i := slices.IndexFunc(w.Manifests, func(m *work.Manifest) bool {
		return m.ID.Kind == words[1] && m.ID.Namespace == namespace && m.ID.Name == name
	})
	if i < 0 {
		s.t.Fatalf("the work of %s has no %s %s", w.Placement, words[1], words[2])
	}
	return w.Manifests[i]
}

// remembered returns the drift of an object and what was done about it.
func (s *scene) remembered(w *work.Work, words []string) protocol.Drift {
	s.t.Helper()
	m := s.manifest(w, words)
	d := protocol.Drift{
		ID: m.ID, Version: m.Object.Content.GroupVersionKind().Version, Envelope: m.Envelope,
		State: api.DriftStanding, Count: 1, FirstSeen: s.now, LastSeen: s.now, Generation: 2,
	}
	details := words[3:]
	switch words[0] {
	case "ended":
		d.State = api.DriftEnded
	case "altered":
		d.State, d.Message, d.Count = api.DriftAltered, "a webhook changes it", 0
	case "repaired":
		times, err := strconv.Atoi(words[3])
		if err != nil {
			s.t.Fatal(err)
		}
		d.State, d.Count, d.FirstSeen = api.DriftRepaired, times, s.now.Add(-time.Hour)
		d.By = []api.Actor{{Manager: words[7], Operation: "Update", Time: s.now}}
		details = words[4:]
	}
	if len(details) > 2 {
		d.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: details[0], ValueInMember: details[1], ValueInHub: details[2]}, By: d.By}}
	}
	return d
}

func (s *scene) exception(w *work.Work, words []string) protocol.ObjectState {
	s.t.Helper()
	m := s.manifest(w, words)
	o := protocol.ObjectState{
		ID: m.ID, Version: m.Object.Content.GroupVersionKind().Version, Envelope: m.Envelope, Generation: 2,
		Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{OK: true},
	}
	switch words[0] {
	case "fails", "waits":
		o.Applied = protocol.Verdict{Reason: words[3], Cause: strings.Join(words[4:], " ")}
		o.Available, o.Generation, o.Pending = protocol.Verdict{}, 0, words[0] == "waits"
	case "unavailable":
		o.Available = protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: strings.Join(words[3:], " ")}
	case "unlisted":
		o.Available, o.Generation, o.Pending = protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "not seen on the cluster yet"}, 0, true
	case "drifts", "differs":
		o.Diffs = []api.Difference{{PatchDetail: api.PatchDetail{Path: words[3], ValueInMember: words[4], ValueInHub: words[5]}}}
		o.Drift, o.FirstSeen, o.LastSeen = words[0] == "drifts", s.now, s.now
	default:
		s.t.Fatalf("unknown line %q in a report of a member", words[0])
	}
	return o
}

// events returns the events since the last call, one line for each.
func (s *scene) events() string {
	s.t.Helper()
	var out strings.Builder
	for i := range s.report.Events {
		e := &s.report.Events[i]
		if s.asked[e.Key()] == e.Count {
			continue
		}
		s.asked[e.Key()] = e.Count
		fmt.Fprintf(&out, "%s %s %s/%s %s", e.Last.Format(time.TimeOnly), e.Type, e.Kind, path.Join(e.Namespace, e.Name), e.Reason)
		if e.Count > 1 {
			fmt.Fprintf(&out, " x%d since %s", e.Count, e.First.Format(time.TimeOnly))
		}
		fmt.Fprintf(&out, "\n    %s\n", strings.TrimSpace(strings.Join([]string{cmp.Or(e.Cluster, "-"), cmp.Or(e.Commit, "-"), e.Message}, " ")))
	}
	return out.String()
}
