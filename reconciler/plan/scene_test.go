package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/world"
)

// TestScenes runs the scenes in testdata. Each file of an archive is a command, and its content
// is what the command prints, except for a commit, whose content is hub.yaml:
//
//	commit v1 [crp/web]    the new head; it allows deletions of the named placements
//	seen east west         the clusters answer and are ready
//	down east              the cluster does not answer
//	done [web] [east]      the members apply their last works
//	fail web east          the first object there cannot be applied
//	slow web east          the first object there is not available yet
//	stuck web east         the first object there will not become available
//	load v1                a needed commit has been loaded
//	lose v1                a needed commit cannot be loaded
//	restart                only the ledger is kept
//	forget                 the ledger is lost; members that answer report
//	                       their inventories now, the others when they answer
//	panic web              planning a placement panics until mend
//	answer web Good why    the gates of its runs that are asked now get this
//	freeze [crp/web] [1h]  new content waits, for that long
//	unfreeze [crp/web]
//	wait 30s
//	members                prints the objects on the members, and the held
//	                       deletions there
//	proven web             prints the last commit that was available everywhere
//	plan                   prints the works of each cluster, waiting clusters,
//	                       failures, warnings and needed commits
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		s := newScene(t)
		golden.Steps(t, archive, func(words []string, text string) (string, bool) {
			if words[0] == "commit" {
				s.commit(words[1], words[2:], []byte(text))
				return "", false
			}
			return s.do(words), true
		})
	})
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A scene is a fleet in virtual time.
type scene struct {
	t       testing.TB
	in      Input
	store   ledger.Store
	loader  *hub.Loader
	commits map[string]*hub.Snapshot
	last    *Plan
	// broken are the placements whose planning panics.
	broken []api.PlacementKey
	// holds are the revisions that the members have reported, by cluster.
	holds map[string]map[api.PlacementKey]placement.Revision
	// objects are the objects on the members with their owners, by cluster.
	objects map[string]map[api.ID]api.PlacementKey
}

func newScene(t testing.TB) *scene {
	return &scene{
		t: t, store: ledger.Memory(), loader: hub.NewLoader(hub.Options{}), commits: map[string]*hub.Snapshot{},
		in: Input{
			Past: map[string]*hub.Snapshot{}, Lost: map[string]error{}, Ledger: ledger.New(), Memo: NewMemo(), Now: noon, AvailableTimeout: 10 * time.Minute, RepairAfter: 30 * time.Second,
		},
		holds: map[string]map[api.PlacementKey]placement.Revision{}, objects: map[string]map[api.ID]api.PlacementKey{},
	}
}

func (s *scene) freeze(on bool, args []string) {
	f := ledger.Suspension{Subject: ledger.Subject{Effect: ledger.Freezes}, By: "alice", Reason: "release week", Since: s.in.Now}
	for _, a := range args {
		if key, err := api.ParsePlacement(a); err == nil {
			f.Placement = key
		} else if a == "overrun" {
			f.Overrun = true
		} else if d, err := time.ParseDuration(a); err == nil {
			f.Until = s.in.Now.Add(d)
		}
	}
	if on {
		s.in.Ledger.Suspend(f)
	} else {
		s.in.Ledger.Resume(f.Subject, s.in.Now)
	}
}

func (s *scene) commit(name string, allowed []string, data []byte) {
	s.t.Helper()
	message := "a change"
	if len(allowed) > 0 {
		message += "\n\n" + api.AllowTrailer + ": " + strings.Join(allowed, ", ")
	}
	snapshot, err := s.loader.Load(hub.Commit{Hash: name, Time: s.in.Now, Message: message}, world.Files(s.t, string(data)))
	if err != nil {
		s.t.Fatalf("commit %s: %v", name, err)
	}
	s.commits[name] = snapshot
	if s.in.InForce != nil {
		s.in.Past[s.in.InForce.Commit.Hash] = s.in.InForce // as in the loop until the next turn is over
	}
	s.in.InForce = snapshot
}

func (s *scene) do(words []string) string {
	s.t.Helper()
	s.in.Now = s.in.Now.Add(time.Second)
	args := words[1:]
	switch words[0] {
	case "seen":
		for _, c := range args {
			s.in.Ledger.Fold(s.answer(c))
		}
	case "down":
		for _, c := range args {
			s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: c, At: s.in.Now, Error: "no answer"})
		}
	case "done":
		s.done(args)
	case "fail":
		s.except(args[0], args[1], protocol.ObjectState{Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "no"}})
	case "slow", "stuck":
		o := protocol.ObjectState{Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "0 of 1 replicas available"}}
		if words[0] == "stuck" {
			o.Failure = "the image cannot be pulled"
		}
		s.except(args[0], args[1], o)
	case "freeze", "unfreeze":
		s.freeze(words[0] == "freeze", args)
	case "answer":
		s.answerGates(api.PlacementKey{Name: args[0]}, placement.GateVerdict(args[1]), strings.Join(args[2:], " "))
	case "load":
		s.in.Past[args[0]] = s.commits[args[0]]
	case "lose":
		s.in.Lost[args[0]] = errors.New("it is gone")
	case "restart":
		s.in.Memo, s.in.Past = NewMemo(), map[string]*hub.Snapshot{}
		s.in.Ledger = reloaded(s.t, s.store, s.in.Ledger)
	case "forget":
		s.forget()
	case "wait":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.in.Now = s.in.Now.Add(d)
	case "panic":
		s.broken = append(s.broken, api.PlacementKey{Name: args[0]})
	case "mend":
		s.broken = nil
		s.in.Memo = NewMemo()
	case "plan":
		return describe(s.resolve())
	case "members":
		return s.members()
	case "proven":
		return s.in.Ledger.Placement(api.PlacementKey{Name: args[0]}).Proven.Commit + "\n"
	default:
		s.t.Fatalf("%s is not a command", words[0])
	}
	return ""
}

// reloaded returns a ledger after a restart.
func reloaded(t testing.TB, store ledger.Store, l *ledger.Ledger) *ledger.Ledger {
	t.Helper()
	err := store.Save(l)
	if err == nil {
		l, err = store.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (s *scene) resolve() *Plan {
	s.t.Helper()
	s.in.Memo.setInForce(s.in.InForce)
	for _, key := range s.broken {
		s.in.Memo.prepare(s.in.InForce, key)
		s.in.Memo.inForce.placements[key] = &prepared{} // without a renderer, which rendering dereferences
	}
	p := Resolve(s.in)
	s.check(p)
	s.last = p
	p.UpdateLedger(s.in.Ledger)
	s.in.Rebuilt, s.in.FirstPlan = false, false
	for hash := range s.in.Past {
		if !p.Commits[hash] {
			delete(s.in.Past, hash)
		}
	}
	return p
}

// check checks the invariants of a plan.
func (s *scene) check(p *Plan) {
	s.t.Helper()
	for cluster, works := range p.Works {
		owner := map[api.ID]api.PlacementKey{}
		for _, w := range works {
			for _, m := range w.Manifests {
				if other, taken := owner[m.ID]; taken {
					s.t.Errorf("on %s both %s and %s own %s", cluster, other, w.Placement, m.ID)
				}
				owner[m.ID] = w.Placement
			}
			if w.Remove && len(w.Manifests) > 0 {
				s.t.Errorf("on %s %s is removed and has %d objects", cluster, w.Placement, len(w.Manifests))
			}
		}
	}
	s.checkAwaited(p)
	for pl := range p.Placements.Values() {
		record := s.in.Ledger.Placement(pl.Key)
		if record == nil || pl.Forget || len(p.Renames) > 0 {
			continue // it is not the record that the placement was planned with
		}
		if differs := !bytes.Equal(asJSON(s.t, record), asJSON(s.t, &pl.Record)); differs != pl.RecordChanged {
			s.t.Errorf("the record of %s differs from that in the ledger: %t, and it would be saved: %t", pl.Key, differs, pl.RecordChanged)
		}
	}
	if len(s.broken) > 0 || len(s.in.Lost) > 0 || len(p.Commits) > 0 {
		return
	}
	// With an empty Memo the plan is the same.
	fresh := s.in
	fresh.Memo = NewMemo()
	fresh.Past = maps.Clone(s.commits)
	if again := Resolve(fresh); describe(again) != describe(p) {
		s.t.Errorf("with an empty memo:\n%s\nwith the memo:\n%s", describe(again), describe(p))
	}
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// checkAwaited checks that wherever a cluster does not get the newest content yet, the works
// list the objects that must not be deleted until then.
func (s *scene) checkAwaited(p *Plan) {
	s.t.Helper()
	for pl := range p.Placements.Values() {
		if pl.Spec == nil || pl.Spec.Spec.Strategy.ReportsDiff() {
			continue
		}
		for _, c := range pl.Clusters {
			if c.Binding.Unscheduled || c.Binding.Removing {
				continue
			}
			named := map[api.ID]bool{}
			for _, w := range p.Works[c.Binding.Cluster] {
				for _, m := range slices.Concat(w.Manifests, w.Awaited) {
					named[m.ID] = named[m.ID] || w.Placement == pl.Key
				}
			}
			for _, m := range c.Content.Manifests {
				if !named[m.ID] {
					s.t.Errorf("on %s no work keeps %s for %s, whose latest content has it", c.Binding.Cluster, m.ID, pl.Key)
				}
			}
		}
	}
}

// done makes members apply their works: the given members, for the given placements.
func (s *scene) done(args []string) {
	named := func(name string) bool { return len(args) == 0 || slices.Contains(args, name) }
	for cluster, works := range s.last.Works {
		for _, w := range works {
			if !named(cluster) && !named(w.Placement.Name) || len(args) == 2 && !(named(cluster) && named(w.Placement.Name)) {
				continue
			}
			s.in.Ledger.Fold(s.apply(cluster, w))
			if s.holds[cluster] == nil {
				s.holds[cluster] = map[api.PlacementKey]placement.Revision{}
			}
			if s.holds[cluster][w.Placement] = w.Revision; w.Remove && len(s.heldOn(cluster, w)) == 0 {
				delete(s.holds[cluster], w.Placement)
			}
		}
	}
}

// apply makes a member apply a work, and returns its report.
func (s *scene) apply(cluster string, w *work.Work) protocol.WorkSeen {
	objects := s.objects[cluster]
	if objects == nil {
		objects = map[api.ID]api.PlacementKey{}
		s.objects[cluster] = objects
	}
	for _, m := range w.Manifests {
		objects[m.ID] = w.Placement
	}
	held := s.heldOn(cluster, w)
	maps.DeleteFunc(objects, func(id api.ID, by api.PlacementKey) bool {
		keeps := func(m *work.Manifest) bool { return m.ID == id }
		isHeld := slices.ContainsFunc(held, func(b protocol.BlockedDeletion) bool { return b.ID == id })
		return by == w.Placement && !w.Keep && !isHeld && !slices.ContainsFunc(w.Manifests, keeps)
	})
	o := report(cluster, w, s.in.Now)
	o.Incidents, o.Removed = protocol.Incidents{BlockedDeletions: held}.OrNil(), w.Remove && len(held) == 0
	return o
}

// heldOn returns the held deletions of a work on a cluster.
func (s *scene) heldOn(cluster string, w *work.Work) []protocol.BlockedDeletion {
	goes := maps.Clone(s.objects[cluster])
	maps.DeleteFunc(goes, func(id api.ID, by api.PlacementKey) bool {
		return by != w.Placement || slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID == id })
	})
	var held []protocol.BlockedDeletion
	for id, by := range s.objects[cluster] {
		wanted := slices.ContainsFunc(w.Manifests, func(m *work.Manifest) bool { return m.ID == id })
		if why := w.DeletionBlocked(id, slices.Collect(maps.Keys(goes))); by == w.Placement && !wanted && why != "" {
			held = append(held, protocol.BlockedDeletion{ID: id, Why: why})
		}
	}
	slices.SortFunc(held, func(a, b protocol.BlockedDeletion) int { return a.ID.Compare(b.ID) })
	return held
}

// report returns the report of a member that has applied a work.
func report(cluster string, w *work.Work, at time.Time) protocol.WorkSeen {
	return protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: at, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Removed: w.Remove, Compared: w.Strategy.Type == api.ReportDiff, Total: len(w.Manifests)}}
}

// members formats the objects on the members.
func (s *scene) members() string {
	var b strings.Builder
	for _, cluster := range slices.Sorted(maps.Keys(s.objects)) {
		for _, id := range slices.SortedFunc(maps.Keys(s.objects[cluster]), api.ID.Compare) {
			by := s.objects[cluster][id]
			fmt.Fprintf(&b, "%s has %s of %s", cluster, id, by)
			for _, w := range s.last.Works[cluster] {
				for _, held := range s.heldOn(cluster, w) {
					if held.ID == id {
						fmt.Fprintf(&b, ", blocked: %s", held.Why)
					}
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// except makes a member report a state of the first object of a placement.
func (s *scene) except(name, cluster string, state protocol.ObjectState) {
	for _, w := range s.last.Works[cluster] {
		if w.Placement.Name == name {
			o := report(cluster, w, s.in.Now)
			state.ID, state.Version = w.Manifests[0].ID, "v1"
			o.Exceptions = []protocol.ObjectState{state}
			s.in.Ledger.Fold(o)
		}
	}
}

// forget loses the ledger, and makes the members that answer report their inventories.
func (s *scene) forget() {
	old := s.in.Ledger
	s.in.Ledger, s.in.Memo, s.in.Past, s.store = ledger.New(), NewMemo(), map[string]*hub.Snapshot{}, ledger.Memory()
	for _, name := range old.Clusters() {
		if old.Cluster(name).Healthy {
			s.in.Ledger.Fold(s.answer(name))
		}
	}
	s.in.FirstPlan, s.in.Rebuilt = true, len(s.in.Ledger.Placements()) > 0
}

// answer returns the report of a cluster that is ready; the first one has its inventories.
func (s *scene) answer(cluster string) protocol.ClusterSeen {
	o := protocol.ClusterSeen{Cluster: cluster, At: s.in.Now, Healthy: true, Properties: map[string]string{}}
	if known := s.in.Ledger.Cluster(cluster); known == nil || known.Joined.IsZero() {
		for _, key := range slices.SortedFunc(maps.Keys(s.holds[cluster]), api.PlacementKey.Compare) {
			o.Inventories = append(o.Inventories, protocol.InventorySeen{Placement: key, Revision: s.holds[cluster][key]})
		}
	}
	return o
}

// describe formats a plan.
func describe(p *Plan) string {
	var b strings.Builder
	for _, cluster := range slices.Sorted(maps.Keys(p.Works)) {
		fmt.Fprintf(&b, "%s\n", cluster)
		for _, w := range p.Works[cluster] {
			fmt.Fprintf(&b, "  %s\n", describeWork(w, claimsOf(p, w.Placement, cluster)))
		}
	}
	for pl := range p.Placements.Values() {
		for _, c := range pl.Clusters {
			if c.Waits != "" {
				fmt.Fprintf(&b, "%s waits on %s: %s\n", pl.Key, c.Binding.Cluster, c.Waits)
			}
			if c.Unusual().Failure != "" {
				fmt.Fprintf(&b, "%s failed on %s: %s\n", pl.Key, c.Binding.Cluster, c.Unusual().Failure)
			}
		}
		if pl.Selection.Invalid != "" {
			fmt.Fprintf(&b, "%s is invalid: %s\n", pl.Key, pl.Selection.Invalid)
		}
		if pl.InternalError != "" {
			fmt.Fprintf(&b, "%s: %s\n", pl.Key, pl.InternalError)
		}
		for _, w := range pl.Warnings {
			fmt.Fprintf(&b, "%s: %v\n", pl.Key, w)
		}
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "%v\n", w)
	}
	for _, commit := range slices.Sorted(maps.Keys(p.Commits)) {
		fmt.Fprintf(&b, "needs commit %s\n", commit)
	}
	return b.String()
}

func claimsOf(p *Plan, key api.PlacementKey, cluster string) *OnCluster {
	for pl := range p.Placements.Values() {
		if pl.Key == key {
			return pl.On(cluster)
		}
	}
	return nil
}

func describeWork(w *work.Work, c *OnCluster) string {
	out := []string{w.Placement.String()}
	if w.Revision.Commit != "" {
		out = append(out, "at", w.Revision.Commit)
	}
	switch {
	case w.Remove && w.Abandon:
		return strings.Join(append(out, "gives up all"), " ")
	case w.Remove:
		return strings.Join(append(out, "removes all"), " ")
	case w.Unreleased():
		return strings.Join(append(out, "waits"), " ")
	case w.Keep:
		out = append(out, "keeps what it has")
	}
	var names []string
	for _, m := range w.Manifests {
		name := title(m)
		if c != nil && slices.Contains(c.Unusual().Deviation.Early, m.ID) {
			name += " (early)"
		}
		names = append(names, name)
	}
	text := strings.Join(out, " ") + ": " + strings.Join(names, ", ")
	if c != nil {
		for _, y := range c.Unusual().Yielded {
			text += fmt.Sprintf("\n    leaves %s to %s", title(y.Manifest), y.To)
			if y.Passing {
				text += " for now"
			}
		}
	}
	return text
}

func title(m *work.Manifest) string {
	text := m.ID.Kind + " " + strings.TrimPrefix(m.ID.Namespace+"/"+m.ID.Name, "/")
	if m.Envelope != nil {
		text += " in " + m.Envelope.Name
	}
	return text
}
