// Package reports makes reports of fleets for tests of what shows them.
package reports

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/test/world"
)

// Revised returns a settled fleet that has just got its second commit.
func Revised(t *testing.T) *Fleet {
	s := Settled(t)
	s.Seen("ams", "ber", "chi", "dal")
	s.Commit(SecondCommit, "Grace Hopper", "Say two", WithValue(Manifests, "2"))
	return s
}

// A Fleet is a fleet without a repository and members: commits and observations are given, and
// planned and reported as the loop does.
type Fleet struct {
	t      testing.TB
	Now    time.Time
	In     plan.Input
	memo   *status.Memo
	source status.Source
	last   *plan.Plan
	Report *status.Report
}

// New returns a fleet without a commit.
func New(t testing.TB) *Fleet {
	s := &Fleet{
		t: t, Now: Noon, memo: status.NewMemo(),
		In: plan.Input{Past: map[string]*hub.Snapshot{}, Ledger: ledger.New(), Memo: plan.NewMemo()},
	}
	s.source.Git = status.Git{URL: "https://git.example.com/fleet", Ref: "refs/heads/main"}
	return s
}

// Commit puts a commit in force, made a minute before.
func (s *Fleet) Commit(hash, author, subject, text string) {
	s.t.Helper()
	c := hub.Commit{Hash: hash, Author: author, Subject: subject, Time: s.Now.Add(-time.Minute)}
	head, err := hub.NewLoader(hub.Options{}).Load(c, world.Files(s.t, text))
	if err != nil {
		s.t.Fatal(err)
	}
	s.In.InForce, s.In.Past[hash] = head, head
	s.source.InForce, s.source.Newest, s.source.Since = c, c, s.Now
}

// Seen records that clusters are healthy.
func (s *Fleet) Seen(clusters ...string) {
	for _, c := range clusters {
		s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: c, At: s.Now, Healthy: true, UID: "uid-" + c, Properties: map[string]string{
			"kubernetes-fleet.io/node-count": "3", "k8s.io/k8s-version": "v1.35.2", "resources.kubernetes-fleet.io/available-cpu": "7500m",
		}})
	}
}

// Down records that a cluster does not answer.
func (s *Fleet) Down(cluster, why string) {
	s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: cluster, At: s.Now, Error: why})
}

// Turn plans and reports, after some time.
func (s *Fleet) Turn(after time.Duration) {
	s.Now = s.Now.Add(after)
	s.In.Now = s.Now
	was, is := ledger.RepositoryOf(s.In.Ledger), ledger.Repository{InForce: s.source.InForce.Hash, Why: s.source.Problems.Summary()}.Polled(s.source.Git.Error, s.source.Git.Refused)
	if is.Why != "" {
		is.Refused = s.source.Newest.Hash
	}
	ledger.SetRepository(s.In.Ledger, is)
	happened := append(occurrence.OfPolls(was, is), occurrence.OfCommit(s.source.Newest, was, is))
	s.In.Ledger.AddEvents(event.Of(happened, s.In.Ledger, s.Now))
	s.last = plan.Resolve(s.In)
	s.last.UpdateLedger(s.In.Ledger)
	s.source.Git.LastPoll, s.source.Git.LastSuccess = s.Now.Add(-4*time.Second), s.Now.Add(-4*time.Second)
	s.Report = s.memo.Build(status.Input{Plan: s.last, InForce: s.In.InForce, Ledger: s.In.Ledger, Source: s.source, Now: s.Now}).Whole()
	s.Report.UpdateLedger(s.In.Ledger)
}

// Says records that a placement on a cluster is as it was last assigned, and available, but
// for what is given.
func (s *Fleet) Says(cluster, placement string, more ...func(*protocol.WorkSeen)) {
	for _, w := range s.last.Works[cluster] {
		if w.Placement.Name != placement {
			continue
		}
		o := protocol.WorkSeen{Cluster: cluster, Placement: w.Placement, At: s.Now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests)}}
		for _, m := range more {
			m(&o)
		}
		s.In.Ledger.Fold(o)
	}
}

// SaysAll records that everything is available, until nothing is left to assign.
func (s *Fleet) SaysAll() {
	for range 6 {
		s.Turn(10 * time.Second)
		for _, c := range s.In.InForce.Clusters {
			for _, placement := range []string{"web", "tools", "spare"} {
				s.Says(c.Name, placement)
			}
		}
	}
	s.Turn(time.Second)
}

// ConfigMap is an object of the namespace web.
func ConfigMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }

// NotApplied is an object that cannot be applied.
func NotApplied(name, why string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		w.Exceptions = append(w.Exceptions, protocol.ObjectState{ID: ConfigMap(name), Version: "v1", Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Sentence: api.SaysNotApplied, Cause: why}})
	}
}

// NotAvailable is an object that is not available yet.
func NotAvailable(name, why string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		w.Exceptions = append(w.Exceptions, protocol.ObjectState{ID: ConfigMap(name), Version: "v1", Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: why}})
	}
}

// Failed is an object that is applied and will not work by itself.
func Failed(name, why string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		NotAvailable(name, why)(w)
		w.Exceptions[len(w.Exceptions)-1].Failure = why
	}
}

// Contested is an object that somebody keeps changing.
func Contested(name, by string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		actors := []api.Actor{{Manager: by, Operation: "Update", Time: w.At}}
		in := w.Unusual()
		in.Drifts = append(in.Drifts, protocol.Drift{
			ID: ConfigMap(name), Version: "v1", State: api.DriftContested, Count: 4, FirstSeen: w.At.Add(-time.Hour), LastSeen: w.At, By: actors,
			Paths: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/value", ValueInMember: "9", ValueInHub: "2"}, By: actors}},
		})
		w.Incidents = &in
	}
}

// NotDeleted is an object whose deletion is refused.
func NotDeleted(name, why string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		of := w.Unusual()
		of.DeletionErrors = append(of.DeletionErrors, protocol.DeletionError{ID: ConfigMap(name), Message: why})
		w.Incidents = &of
	}
}

// Removed says that a placement is removed from a cluster.
func Removed(w *protocol.WorkSeen) { w.Removed = true }

// Lingering is an object that was deleted and has a finalizer.
func Lingering(name, finalizer string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		of := w.Unusual()
		of.Lingering = append(of.Lingering, ConfigMap(name))
		of.Finalizing = append(of.Finalizing, protocol.Finalizing{ID: ConfigMap(name), Finalizers: finalizer})
		w.Incidents = &of
	}
}

// Held is an object whose deletion is blocked.
func BlockedDeletion(name, why string) func(*protocol.WorkSeen) {
	return func(w *protocol.WorkSeen) {
		in := w.Unusual()
		in.BlockedDeletions = append(in.BlockedDeletions, protocol.BlockedDeletion{ID: ConfigMap(name), Why: why})
		w.Incidents = &in
	}
}

// The commits of the fleets; the bad one is refused.
const (
	FirstCommit  = "a1a1a1a1000000000000000000000000000000aa"
	SecondCommit = "b2b2b2b2000000000000000000000000000000bb"
	BadCommit    = "c3c3c3c3000000000000000000000000000000cc"
)

// Manifests is the content of the fleets, with a value to replace.
const Manifests = `
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

// Settled is a fleet in which all is well but that one placement wants more
// clusters than there are.
func Settled(t testing.TB) *Fleet {
	s := New(t)
	s.Seen("ams", "ber", "chi", "dal")
	s.Commit(FirstCommit, "Ada Lovelace <ada@example.com>", "Bring the web", WithValue(Manifests, "1"))
	for range 4 {
		s.Turn(10 * time.Second)
		for _, cluster := range []string{"ams", "ber", "chi", "dal"} {
			for _, placement := range []string{"web", "tools", "spare"} {
				s.Says(cluster, placement)
			}
		}
	}
	s.Now = s.Now.Add(2 * time.Hour)
	s.Seen("ams", "ber", "chi", "dal")
	s.Turn(time.Second)
	return s
}

// WithValue replaces the value in manifests.
func WithValue(text, value string) string {
	return string(bytes.ReplaceAll([]byte(text), []byte("%VALUE%"), []byte(value)))
}

// Troubled is the same fleet with many failures at once: an update fails
// on its first cluster and stops, a member does not answer, somebody keeps
// changing an object, a deletion is blocked, and the newest commit is refused.
func Troubled(t testing.TB) *Fleet {
	s := Settled(t)
	s.Now = s.Now.Add(time.Minute)
	s.Down("dal", "Get \"https://dal.example.com/readyz\": dial tcp 192.0.2.7:6443: connect: connection refused")
	s.Commit(SecondCommit, "Grace Hopper <grace@example.com>", "Say two, and take a rather long subject that does not fit into any line to do so", WithValue(Manifests, "2")+"\noverride web/nothing to x on eu\n")
	s.Turn(time.Second)
	s.Turn(5 * time.Second)
	s.Says("ams", "web", NotApplied("one", `admission webhook "policy.example.com" denied the request: value 2 is not allowed`))
	s.Says("ams", "tools", Contested("two", "kubectl-edit"))
	s.Says("ber", "tools", BlockedDeletion("old", "12 of 30 objects of the cluster would go"))
	s.Turn(10 * time.Minute)
	s.Seen("ams", "ber", "chi")
	s.source.Newest = hub.Commit{Hash: BadCommit, Author: "Edsger <edsger@example.com>", Subject: "Break it", Time: s.Now.Add(-3 * time.Minute)}
	s.source.Problems = problem.List{
		{Origin: api.Origin{Path: "apps/web.yaml", Line: 3}, Field: "spec.replicas", Message: "must be a number", Severity: problem.Error},
		{Origin: api.Origin{Path: "apps/web.yaml", Line: 17}, Field: "spec.template", Message: "missing", Severity: problem.Error},
	}
	s.source.Git.Failures, s.source.Git.Error = 3, "dial tcp: lookup git.example.com: no such host"
	s.Turn(time.Minute)
	s.Report.Source.Git.LastSuccess = s.Now.Add(-2 * time.Minute)
	return s
}

// Away is the same fleet after an update that does not reach one member, on which
// permissions are missing; another may not answer.
func Away(t testing.TB, unreachable bool) *Fleet {
	s := Settled(t)
	s.In.Ledger.Fold(protocol.ClusterSeen{Cluster: "dal", At: s.Now, Forbidden: []string{"list configmaps"}})
	clusters := []string{"ams", "ber", "chi"}
	if unreachable {
		s.Down("chi", "connection refused")
		clusters = clusters[:2]
	}
	s.Commit(SecondCommit, "Grace Hopper <grace@example.com>", "Say two", WithValue(Manifests, "2"))
	for range 4 {
		s.Turn(10 * time.Second)
		for _, cluster := range clusters {
			s.Says(cluster, "web")
		}
	}
	s.Turn(time.Second)
	return s
}

// MemberCluster is a member that answers, or does not.
func MemberCluster(name string, ready bool) *api.MemberCluster {
	healthy := api.Healthy
	if !ready {
		healthy = "!" + healthy
	}
	return &api.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     api.MemberClusterStatus{AgentStatus: []api.AgentStatus{{Type: api.MemberAgent, Conditions: Conditions(healthy)}}},
	}
}

// Noon is when fleets begin.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Ago is a time before Noon.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(-d)) }

// Conditions are conditions of some types; a type that begins with ! is false.
func Conditions(types ...string) []metav1.Condition {
	var out []metav1.Condition
	for _, typ := range types {
		c := metav1.Condition{Type: strings.TrimPrefix(typ, "!"), Status: metav1.ConditionTrue, Reason: "Because", Message: "all is well", LastTransitionTime: Ago(time.Hour)}
		if strings.HasPrefix(typ, "!") {
			c.Status, c.Message = metav1.ConditionFalse, c.Type+" is not true yet"
		}
		out = append(out, c)
	}
	return out
}

// Sample is a report with a bit of everything.
func Sample() *status.Report {
	web := &api.ClusterResourcePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourcePlacement"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3, CreationTimestamp: Ago(50 * time.Hour)},
		Spec:       api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: new(int32(3))}},
		Status: api.PlacementStatus{
			ObservedResourceIndex: "7", Conditions: Conditions("ClusterResourcePlacementScheduled", "!ClusterResourcePlacementApplied"),
			PlacementStatuses: []api.PerClusterPlacementStatus{
				{ClusterName: "east", Conditions: Conditions(api.Scheduled, api.Applied, api.Available)},
				{ClusterName: "west", Conditions: Conditions(api.Scheduled, "!"+api.Applied), FailedPlacements: []api.FailedResourcePlacement{{
					ResourceIdentifier: api.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
					Condition:          metav1.Condition{Type: api.Applied, Status: metav1.ConditionFalse, Reason: api.NotTakenOver, Message: "somebody else's"},
				}}},
				{Conditions: Conditions("!" + api.Scheduled)},
			},
		},
	}
	idle := &api.ClusterResourcePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ClusterResourcePlacement"},
		ObjectMeta: metav1.ObjectMeta{Name: "idle", Generation: 1},
	}
	db := &api.ResourcePlacement{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.PlacementGroup + "/v1beta1", Kind: "ResourcePlacement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db", Generation: 1, CreationTimestamp: Ago(90 * time.Second)},
		Spec:       api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickFixed, ClusterNames: []string{"east"}}},
		Status: api.PlacementStatus{
			ObservedResourceIndex: "0", Conditions: Conditions("ResourcePlacementScheduled"),
			PlacementStatuses: []api.PerClusterPlacementStatus{{ClusterName: "east", Conditions: Conditions(api.Scheduled, api.Applied, "!"+api.Available)}},
		},
	}
	east := &api.MemberCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.kubernetes-fleet.io/v1beta1", Kind: "MemberCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"region": "eu", "env": "prod", api.MemberNameLabel: "east"}},
		Status: api.MemberClusterStatus{
			Conditions:    Conditions(api.Joined),
			Properties:    map[string]api.PropertyValue{"kubernetes-fleet.io/node-count": {Value: "3"}, "k8s.io/k8s-version": {Value: "v1.35.2"}},
			ResourceUsage: api.ResourceUsage{Available: api.ResourceList{"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("7Gi")}},
			AgentStatus:   []api.AgentStatus{{Type: api.MemberAgent, Conditions: Conditions(api.Healthy), LastReceivedHeartbeat: Ago(4 * time.Second)}},
		},
	}
	west := &api.MemberCluster{
		TypeMeta:   east.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: "west"},
		Status: api.MemberClusterStatus{
			Conditions:  Conditions("!" + api.Joined),
			AgentStatus: []api.AgentStatus{{Type: api.MemberAgent, Conditions: Conditions("!" + api.Healthy), LastReceivedHeartbeat: Ago(3 * time.Hour)}},
		},
	}
	return &status.Report{
		At:         Noon,
		Source:     status.Source{InForce: hub.Commit{Hash: "0123456789abcdef"}, Newest: hub.Commit{Hash: "0123456789abcdef"}},
		Placements: []*api.ClusterResourcePlacement{idle, web}, ResourcePlacements: []*api.ResourcePlacement{db},
		Clusters: []*api.MemberCluster{east, west},
		Details: []*status.Detail{
			{Placement: "crp/idle"},
			{Placement: "crp/web", Clusters: []status.ClusterDetail{{Cluster: "east", Commit: "0123456789abcdef"}, {Cluster: "west", Commit: "fedcba9876543210"}}},
			{Placement: "rp/team/db", Clusters: []status.ClusterDetail{{Cluster: "east", Commit: "0123456789abcdef"}}},
		},
	}
}
