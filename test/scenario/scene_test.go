package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/world"
)

// TestScenes runs the scenes of testdata in virtual time. Each file of an archive is a command,
// with its output as content, except for a commit, whose content is the commit:
//
//	commit v1              push it; the content is in the format of package world
//	broken v2              push a commit that does not load
//	down east, up east     a cluster stops answering, or answers again
//	slow east 10m          every work takes that long there
//	late east 20s          its agent connects that long after a start
//	fail web east          no object of the placement can be applied there
//	heal web east          they can be applied again
//	store fails            the ledger cannot be saved
//	store works            it can be saved again
//	suspend crp/web east 10m, resume crp/web
//	                       as a user does; prints the response
//	resume crp/web stopped resume a stopped rollout
//	stop, crash            the daemon ends; a crash saves nothing more
//	start                  the daemon starts
//	forget                 the ledger is lost, while the daemon is stopped
//	lose v1, mend v1       a commit cannot be read any more, or can again
//	tick 30s               time passes
//	plan                   print the state of every placement on every cluster, and
//	                       the actions there since the last plan
//	deletions              print the events of deleted objects
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		synctest.Test(t, func(t *testing.T) { play(t, archive) })
	})
}

func play(t *testing.T, archive *txtar.Archive) {
	s := newScene(t)
	s.start()
	defer s.stop()
	golden.Steps(t, archive, func(words []string, text string) (string, bool) {
		if words[0] == "commit" {
			s.source.push(words[1], "", world.Files(t, text))
			synctest.Wait()
			return "", false
		}
		return s.do(words), true
	})
}

// A scene is a simulated fleet with the real loop in virtual time.
type scene struct {
	t        *testing.T
	source   *source
	store    *store
	clusters map[string]*cluster

	end  context.CancelFunc
	done chan error

	mu        sync.Mutex
	report    *status.Report
	reports   int
	metrics   *reconciler.Metrics
	log       *strings.Builder
	published func()
	// member creates the agent of a cluster.
	member func(*agent) reconciler.Member
	loop   *reconciler.Reconciler
}

func newScene(t *testing.T) *scene {
	return &scene{
		t: t, source: newSource(), store: &store{Store: ledger.Memory()}, clusters: map[string]*cluster{}, metrics: reconciler.NewMetrics(),
		log: &strings.Builder{}, published: func() {}, member: func(a *agent) reconciler.Member { return a },
	}
}

func (s *scene) cluster(name string) *cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusters[name] == nil {
		s.clusters[name] = newCluster(name)
	}
	return s.clusters[name]
}

func (s *scene) start() {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.end, s.done = cancel, make(chan error, 1)
	s.loop = reconciler.New(reconciler.Config{
		Source: s.source, Loader: hub.NewLoader(hub.Options{}), Past: hub.NewLoader(hub.Options{}), Store: s.store,
		Member: func(c *hub.Cluster, report func(protocol.Observation)) reconciler.Member {
			return s.member(newAgent(s.cluster(c.Name), report))
		},
		Since: s.source.since, Metrics: s.metrics,
		Publish: s.publish, Log: slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	go func(loop *reconciler.Reconciler) { s.done <- loop.Run(ctx) }(s.loop)
	synctest.Wait()
}

// Write records the log.
func (s *scene) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// logged returns the log so far.
func (s *scene) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *scene) publish(r *status.Report) {
	r = r.Whole()
	CheckReport(s.t, r)
	s.mu.Lock()
	s.report = r
	s.reports++
	published := s.published
	s.mu.Unlock()
	published()
}

// count returns how many reports there were.
func (s *scene) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reports
}

// onPublish sets a function that is called with every report, on the goroutine of the loop.
func (s *scene) onPublish(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = f
}

// stop ends the daemon, if it runs, and waits until it has ended.
func (s *scene) stop() {
	s.t.Helper()
	if s.end == nil {
		return
	}
	s.end()
	if err := <-s.done; err != nil {
		s.t.Errorf("the loop ended: %v", err)
	}
	s.end = nil
}

func (s *scene) do(words []string) string {
	s.t.Helper()
	out := ""
	switch args := words[1:]; words[0] {
	case "broken":
		files := world.Files(s.t, "namespace web")
		files["bad.yaml"] = &fstest.MapFile{Data: []byte("kind: [\n")}
		s.source.push(args[0], "", files)
	case "down", "up":
		c := s.cluster(args[0])
		c.set(func() { c.down = words[0] == "down" })
	case "slow":
		c := s.cluster(args[0])
		c.set(func() { c.slow = s.duration(args[1]) })
	case "late":
		c := s.cluster(args[0])
		c.set(func() { c.late = s.duration(args[1]) })
	case "fail", "heal":
		c := s.cluster(args[1])
		c.set(func() { c.failing[args[0]] = words[0] == "fail" })
	case "store":
		s.store.fail(args[0] == "fails")
	case "suspend", "resume":
		out = s.order(words[0], args)
	case "stop":
		s.stop()
	case "crash":
		s.store.fail(true)
		s.stop()
		s.store.fail(false)
	case "start":
		s.start()
	case "forget":
		s.store.Store = ledger.Memory()
	case "lose":
		s.source.lose(args[0])
	case "mend":
		s.source.mend(args[0])
	case "tick":
		time.Sleep(s.duration(args[0])) // in virtual time
	case "plan":
		synctest.Wait()
		out = s.plan()
	case "deletions":
		synctest.Wait()
		out = s.deletions()
	default:
		s.t.Fatalf("%s is no part of a scene", words[0])
	}
	synctest.Wait()
	return out
}

// order suspends or resumes SUBJECT [CLUSTER [DURATION]] as a user does; an object is
// KIND/NAMESPACE/NAME.
func (s *scene) order(what string, args []string) string {
	o := reconciler.Order{Subject: args[0], By: "alice", Reason: "an incident"}
	if kind, rest, _ := strings.Cut(args[0], "/"); kind != "crp" && strings.Contains(rest, "/") {
		namespace, name, _ := strings.Cut(rest, "/")
		o.Subject, o.Namespace = kind+"/"+name, namespace
	}
	switch {
	case len(args) > 1 && args[1] == "stopped":
		o.Stopped = true
	case len(args) > 1 && args[1] != "everywhere":
		o.Cluster = args[1]
	}
	if len(args) > 2 {
		o.For.Duration = s.duration(args[2])
	}
	do := s.loop.Suspend
	if what == "resume" {
		do = s.loop.Resume
	}
	said, err := do(s.t.Context(), o)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	return said + "\n"
}

func (s *scene) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// plan returns the state of all placements on all clusters.
func (s *scene) plan() string {
	var b strings.Builder
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	switch {
	case len(r.Source.Problems) > 0:
		fmt.Fprintf(&b, "%s is refused: %s\n", r.Source.Newest.Hash, r.Source.Problems.Err())
	case r.Source.LoadError != "":
		fmt.Fprintf(&b, "%s is refused: %s\n", r.Source.Newest.Hash, r.Source.LoadError)
	}
	for _, d := range r.Details {
		s.writePlacement(&b, d)
	}
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		for _, line := range s.clusters[name].history() {
			fmt.Fprintf(&b, "%s %s\n", name, line)
		}
	}
	return b.String()
}

// deletions returns the events of deleted objects.
func (s *scene) deletions() string {
	var b strings.Builder
	for _, e := range s.report.Events {
		if e.Reason == api.ObjectsDeleted {
			fmt.Fprintf(&b, "%s %s by %s, %d times: %s\n", e.About(), e.Cluster, e.Commit, e.Count, e.Message)
		}
	}
	return b.String()
}

func (s *scene) writePlacement(b *strings.Builder, d *status.Detail) {
	ps := s.statusOf(d.Placement)
	if ps != nil && ps.Conditions[0].Status != "True" {
		fmt.Fprintf(b, "%s: %s\n", d.Placement, ps.Conditions[0].Message)
	}
	for _, c := range d.Clusters {
		fmt.Fprintf(b, "%s %s %s\n", d.Placement, c.Cluster, strings.TrimSpace(c.Commit+" "+stateOf(&c, ps)))
	}
}

func (s *scene) statusOf(name string) *api.PlacementStatus {
	for _, p := range s.report.Placements {
		if "crp/"+p.Name == name {
			return &p.Status
		}
	}
	return nil
}

// stateOf describes the progress of a placement on a cluster, and what it waits for.
func stateOf(c *status.ClusterDetail, ps *api.PlacementStatus) string {
	if c.Removing {
		return "is being removed"
	}
	if c.Waits != "" {
		return "waits: " + c.Waits
	}
	if ps == nil {
		return ""
	}
	for _, e := range ps.PlacementStatuses {
		if e.ClusterName != c.Cluster {
			continue
		}
		last := e.Conditions[len(e.Conditions)-1]
		if last.Status == "True" {
			return "is " + strings.ToLower(last.Type)
		}
		text := fmt.Sprintf("is not %s: %s", strings.ToLower(last.Type), last.Message)
		for _, f := range e.FailedPlacements {
			text += fmt.Sprintf("\n    %s %s: %s", f.Kind, strings.TrimPrefix(f.Namespace+"/"+f.Name, "/"), f.Condition.Message)
		}
		return text
	}
	return ""
}
