package main

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// A stage is a fleet of which nothing is real but what thinks and tells: commits
// come, members speak, and a report says what became of it.
type stage struct {
	t      testing.TB
	now    time.Time
	in     plan.Input
	told   *status.Memo
	source status.Source
	last   *plan.Plan
	report *status.Report
}

func newStage(t testing.TB) *stage {
	s := &stage{
		t: t, now: noon, told: status.NewMemo(),
		in: plan.Input{Past: map[string]*hub.Snapshot{}, Ledger: ledger.New(), Memo: plan.NewMemo()},
	}
	s.source.Git = status.Git{URL: "https://git.example.com/fleet", Ref: "refs/heads/main"}
	return s
}

// commit puts a commit in force, made a minute before.
func (s *stage) commit(hash, author, subject, text string) {
	s.t.Helper()
	c := hub.Commit{Hash: hash, Author: author, Subject: subject, Time: s.now.Add(-time.Minute)}
	head, err := hub.Load(c, world.Files(s.t, text), hub.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.in.Head, s.in.Past[hash] = head, head
	s.source.InForce, s.source.Newest, s.source.Since = c, c, s.now
}

func (s *stage) seen(clusters ...string) {
	for _, c := range clusters {
		s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: c, At: s.now, Healthy: true, UID: "uid-" + c, Properties: map[string]string{
			"kubernetes-fleet.io/node-count": "3", "k8s.io/k8s-version": "v1.35.2", "resources.kubernetes-fleet.io/available-cpu": "7500m",
		}})
	}
}

func (s *stage) down(cluster, why string) {
	s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: cluster, At: s.now, Error: why})
}

// turn does what the loop does, after some time.
func (s *stage) turn(after time.Duration) {
	s.now = s.now.Add(after)
	s.in.Now = s.now
	s.last = plan.Resolve(s.in)
	s.last.UpdateLedger(s.in.Ledger)
	s.source.Git.LastPoll, s.source.Git.LastSuccess = s.now.Add(-4*time.Second), s.now.Add(-4*time.Second)
	s.report = status.Build(status.Input{Plan: s.last, Head: s.in.Head, Ledger: s.in.Ledger, Source: s.source, Now: s.now, Memo: s.told})
	s.report.UpdateLedger(s.in.Ledger)
}

// says has a member speak of a placement as it was last told: all is well but
// for what is given.
func (s *stage) says(cluster, placement string, more ...func(*ledger.WorkSeen)) {
	for _, w := range s.last.Works[cluster] {
		if w.Placement.Name != placement {
			continue
		}
		o := ledger.WorkSeen{Cluster: cluster, Placement: w.Placement, At: s.now, Revision: w.Revision, Done: true, Total: len(w.Manifests)}
		for _, m := range more {
			m(&o)
		}
		s.in.Ledger.Fold(o)
	}
}

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }

func cannotApply(name, why string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) {
		w.Exceptions = append(w.Exceptions, ledger.ObjectState{ID: configMap(name), Version: "v1", Applied: ledger.Verdict{Reason: api.ManifestApplyFailed, Message: why}})
	}
}

func doesNotWork(name, why string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) {
		w.Exceptions = append(w.Exceptions, ledger.ObjectState{ID: configMap(name), Version: "v1", Applied: ledger.Verdict{OK: true}, Available: ledger.Verdict{Reason: api.ManifestNotAvailableYet, Message: why}})
	}
}

// hasFailed is an object that is applied and will not work by itself.
func hasFailed(name, why string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) {
		doesNotWork(name, why)(w)
		w.Exceptions[len(w.Exceptions)-1].Failure = why
	}
}

// isContested is an object that somebody keeps changing.
func isContested(name, by string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) {
		actors := []api.Actor{{Manager: by, Operation: "Update", Time: w.At}}
		w.Drifts = append(w.Drifts, ledger.Drift{
			ID: configMap(name), Version: "v1", State: api.DriftContested, Count: 4, FirstSeen: w.At.Add(-time.Hour), LastSeen: w.At, By: actors,
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInMember: "9", ValueInHub: "2"}, By: actors}},
		})
	}
}

func cannotDelete(name, why string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) {
		w.DeletionErrors = append(w.DeletionErrors, ledger.DeletionError{ID: configMap(name), Message: why})
	}
}

func isRemoved(w *ledger.WorkSeen) { w.Removed = true }

// lingers is an object that was deleted and has a finalizer.
func lingers(name, finalizer string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) {
		w.Lingering = append(w.Lingering, configMap(name))
		w.Finalizing = append(w.Finalizing, ledger.Finalizing{ID: configMap(name), Finalizers: finalizer})
	}
}

func holdsBack(name, why string) func(*ledger.WorkSeen) {
	return func(w *ledger.WorkSeen) { w.Braked = append(w.Braked, ledger.Braked{ID: configMap(name), Why: why}) }
}

const (
	firstCommit  = "a1a1a1a1000000000000000000000000000000aa"
	secondCommit = "b2b2b2b2000000000000000000000000000000bb"
	badCommit    = "c3c3c3c3000000000000000000000000000000cc"
)

const fleetText = `
clusters ams/region=eu ber/region=eu chi/region=us dal/region=us
namespace web
configmap web/one %VALUE%
configmap web/two plain
namespace docks
envelope web/box holds docks/one
namespace tools
place web of web,docks unavailable 1
place tools of tools pick 2 near eu
place spare of tools pick 3 near us
`

// settledFleet is a fleet in which all is well but that one placement wants more
// clusters than there are.
func settledFleet(t testing.TB) *stage {
	s := newStage(t)
	s.seen("ams", "ber", "chi", "dal")
	s.commit(firstCommit, "Ada Lovelace <ada@example.com>", "Bring the web", replaceValue(fleetText, "1"))
	for range 4 {
		s.turn(10 * time.Second)
		for _, cluster := range []string{"ams", "ber", "chi", "dal"} {
			for _, placement := range []string{"web", "tools", "spare"} {
				s.says(cluster, placement)
			}
		}
	}
	s.now = s.now.Add(2 * time.Hour)
	s.seen("ams", "ber", "chi", "dal")
	s.turn(time.Second)
	return s
}

func replaceValue(text, value string) string {
	return string(bytes.ReplaceAll([]byte(text), []byte("%VALUE%"), []byte(value)))
}

// troubledFleet is the same fleet when much goes wrong at once: an update fails
// on its first cluster and stops, a member does not answer, somebody keeps
// changing an object, a deletion is held, and the newest commit is refused.
func troubledFleet(t testing.TB) *stage {
	s := settledFleet(t)
	s.now = s.now.Add(time.Minute)
	s.down("dal", "Get \"https://dal.example.com/readyz\": dial tcp 192.0.2.7:6443: connect: connection refused")
	s.commit(secondCommit, "Grace Hopper <grace@example.com>", "Say two, and take a rather long subject that does not fit into any line to do so", replaceValue(fleetText, "2")+"\noverride web/nothing to x on eu\n")
	s.turn(time.Second)
	s.turn(5 * time.Second)
	s.says("ams", "web", cannotApply("one", `Failed to apply the manifest (error: admission webhook "policy.example.com" denied the request: value 2 is not allowed)`))
	s.says("ams", "tools", isContested("two", "kubectl-edit"))
	s.says("ber", "tools", holdsBack("old", "12 of 30 objects of the cluster would go"))
	s.turn(10 * time.Minute)
	s.seen("ams", "ber", "chi")
	s.source.Newest = hub.Commit{Hash: badCommit, Author: "Edsger <edsger@example.com>", Subject: "Break it", Time: s.now.Add(-3 * time.Minute)}
	s.source.Problems = hub.Problems{
		{Origin: api.Origin{Path: "apps/web.yaml", Line: 3}, Field: "spec.replicas", Message: "must be a number", Severity: hub.Error},
		{Origin: api.Origin{Path: "apps/web.yaml", Line: 17}, Field: "spec.template", Message: "missing", Severity: hub.Error},
	}
	s.source.Git.Failures, s.source.Git.Error = 3, "dial tcp: lookup git.example.com: no such host"
	s.turn(time.Minute)
	s.report.Source.Git.LastSuccess = s.now.Add(-2 * time.Minute)
	return s
}

// awayFleet is the same fleet after an update that does not reach one member, on which
// permissions are missing; another may not answer.
func awayFleet(t testing.TB, unreachable bool) *stage {
	s := settledFleet(t)
	s.in.Ledger.Fold(ledger.ClusterSeen{Cluster: "dal", At: s.now, Forbidden: []string{"list configmaps"}})
	clusters := []string{"ams", "ber", "chi"}
	if unreachable {
		s.down("chi", "connection refused")
		clusters = clusters[:2]
	}
	s.commit(secondCommit, "Grace Hopper <grace@example.com>", "Say two", replaceValue(fleetText, "2"))
	for range 4 {
		s.turn(10 * time.Second)
		for _, cluster := range clusters {
			s.says(cluster, "web")
		}
	}
	s.turn(time.Second)
	return s
}

func cluster(name string, ready bool) *api.MemberCluster {
	healthy := api.Healthy
	if !ready {
		healthy = "!" + healthy
	}
	return &api.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     api.MemberClusterStatus{AgentStatus: []api.AgentStatus{{Type: api.MemberAgent, Conditions: are(healthy)}}},
	}
}
