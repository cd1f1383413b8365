package status

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// threeClusters is a report of crp/web on ams and ber, rp/shop/web on ber, and chi, which has nothing.
func threeClusters() *Report {
	status := func(clusters ...string) api.PlacementStatus {
		s := api.PlacementStatus{SelectedResources: []api.ResourceIdentifier{{Kind: "Namespace"}}}
		for _, c := range append(clusters, "") {
			s.PlacementStatuses = append(s.PlacementStatuses, api.PerClusterPlacementStatus{ClusterName: c})
		}
		return s
	}
	r := &Report{
		At:                 time.Unix(1000, 0),
		Placements:         []*api.ClusterResourcePlacement{{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: status("ams", "ber")}},
		ResourcePlacements: []*api.ResourcePlacement{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: status("ber")}},
		Details: []*Detail{
			{Placement: "crp/web", Clusters: []ClusterDetail{{Cluster: "ams"}, {Cluster: "ber"}}}, {Placement: "rp/shop/web", Clusters: []ClusterDetail{{Cluster: "ber"}}},
		},
		Drifts: []Drift{{Placement: "crp/web", Cluster: "ams"}, {Placement: "rp/shop/web", Cluster: "ber"}},
		Events: []Event{
			{Kind: "ClusterResourcePlacement", Name: "web", Reason: "all"}, {Kind: "ClusterResourcePlacement", Name: "web", Cluster: "ams", Reason: "on ams"},
			{Kind: "MemberCluster", Name: "ams", Reason: "ams"}, {Kind: "ResourcePlacement", Namespace: "shop", Name: "web", Cluster: "ber", Reason: "on ber"},
		},
		Suspensions: []Suspension{
			{Subject: "everything"}, {Subject: "ams", Cluster: "ams"}, {Subject: "chi", Cluster: "chi"}, {Subject: "crp", Placement: "crp/web"},
			{Subject: "crp on ber", Placement: "crp/web", Cluster: "ber"}, {Subject: "rp", Placement: "rp/shop/web"},
		},
	}
	for _, name := range []string{"ams", "ber", "chi"} {
		r.Clusters = append(r.Clusters, &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return r
}

// contents lists what a report has.
func contents(r *Report) []string {
	var out []string
	for _, p := range r.Placements {
		out = append(out, "crp/"+p.Name)
	}
	for _, p := range r.ResourcePlacements {
		out = append(out, "rp/"+p.Namespace+"/"+p.Name)
	}
	for _, d := range r.Details {
		for _, c := range d.Clusters {
			out = append(out, "details of "+d.Placement+" on "+c.Cluster)
		}
	}
	for _, c := range r.Clusters {
		out = append(out, c.Name)
	}
	for _, d := range r.Drifts {
		out = append(out, "drift of "+d.Placement+" on "+d.Cluster)
	}
	for _, e := range r.Events {
		out = append(out, "event "+e.Reason)
	}
	for _, s := range r.Suspensions {
		out = append(out, "suspended "+s.Subject)
	}
	return out
}

// A part of a report has all that is about one placement, or one cluster, and nothing else.
func TestReportOfOnePlacementOrCluster(t *testing.T) {
	for name, test := range map[string]struct {
		placement, cluster string
		want               []string
		missing            *UnknownError
	}{
		"a placement": {"crp/web", "", []string{
			"crp/web", "details of crp/web on ams", "details of crp/web on ber", "ams", "ber", "drift of crp/web on ams",
			"event all", "event on ams", "suspended everything", "suspended ams", "suspended crp", "suspended crp on ber",
		}, nil},
		"one of a namespace": {"rp/shop/web", "", []string{
			"rp/shop/web", "details of rp/shop/web on ber", "ber", "drift of rp/shop/web on ber", "event on ber", "suspended everything", "suspended rp",
		}, nil},
		"a cluster": {"", "ams", []string{
			"crp/web", "details of crp/web on ams", "ams", "drift of crp/web on ams", "event on ams", "event ams", "suspended everything", "suspended ams", "suspended crp",
		}, nil},
		"a cluster without placements": {"", "chi", []string{"chi", "suspended everything", "suspended chi"}, nil},
		"no such placement":            {"crp/api", "", nil, &UnknownError{What: "placement", Name: "crp/api", Exist: []string{"crp/web", "rp/shop/web"}}},
		"no such cluster":              {"", "dal", nil, &UnknownError{What: "cluster", Name: "dal", Exist: []string{"ams", "ber", "chi"}}},
	} {
		t.Run(name, func(t *testing.T) {
			whole := threeClusters()
			var part *Report
			var err error
			if test.cluster != "" {
				part, err = whole.On(test.cluster)
			} else {
				part, err = whole.Only(test.placement)
			}
			if test.missing != nil {
				var unknown *UnknownError
				if !errors.As(err, &unknown) || !reflect.DeepEqual(unknown, test.missing) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(part); !slices.Equal(got, test.want) {
				t.Errorf("%q\nwant %q", got, test.want)
			}
			if !part.At.Equal(whole.At) {
				t.Errorf("it is of %s", part.At)
			}
			if !reflect.DeepEqual(whole, threeClusters()) {
				t.Error("the whole report is changed")
			}
		})
	}
	part, err := threeClusters().On("ams")
	if err != nil {
		t.Fatal(err)
	}
	if s := part.Placements[0].Status; len(s.PlacementStatuses) != 1 || s.PlacementStatuses[0].ClusterName != "ams" || s.SelectedResources != nil {
		t.Errorf("the status on ams: %+v", s)
	}
}

// The outstanding condition is the first, in the order of progress, that is not true of the newest
// spec.
func TestOutstandingCondition(t *testing.T) {
	const crp, rp = api.PlacementPrefix, api.ResourcePlacementPrefix
	all := []string{api.Scheduled, api.RolloutStarted, api.Overridden, api.WorkSynchronized, api.Applied, api.Available}
	conditions := func(prefix string, n int, generation int64, next ...metav1.Condition) []metav1.Condition {
		var out []metav1.Condition
		for _, typ := range all[:n] {
			out = append(out, metav1.Condition{Type: prefix + typ, Status: metav1.ConditionTrue, ObservedGeneration: generation})
		}
		return append(out, next...)
	}
	compared := api.PlacementSpec{Strategy: api.RolloutStrategy{ApplyStrategy: &api.ApplyStrategy{Type: api.ReportDiff}}}
	for name, test := range map[string]struct {
		namespace  string
		spec       api.PlacementSpec
		conditions []metav1.Condition
		want       Outstanding
	}{
		"nothing yet":        {"", api.PlacementSpec{}, nil, Outstanding{crp + api.Scheduled, "nil", "nil"}},
		"some are reached":   {"", api.PlacementSpec{}, conditions(crp, 4, 2), Outstanding{crp + api.Applied, "nil", "nil"}},
		"one is not true":    {"", api.PlacementSpec{}, conditions(crp, 4, 2, metav1.Condition{Type: crp + api.Applied, Status: "False", Reason: "Why", ObservedGeneration: 2}), Outstanding{crp + api.Applied, "False", "Why"}},
		"of an older spec":   {"", api.PlacementSpec{}, conditions(crp, 6, 1), Outstanding{crp + api.Scheduled, "nil", "nil"}},
		"all are":            {"", api.PlacementSpec{}, conditions(crp, 6, 2), Outstanding{Completed, "True", Completed}},
		"of another prefix":  {"shop", api.PlacementSpec{}, conditions(crp, 6, 2), Outstanding{rp + api.Scheduled, "nil", "nil"}},
		"all of a namespace": {"shop", api.PlacementSpec{}, conditions(rp, 6, 2), Outstanding{Completed, "True", Completed}},
		"only compared":      {"", compared, conditions(crp, 4, 2), Outstanding{crp + api.DiffReported, "nil", "nil"}},
		"compared":           {"", compared, conditions(crp, 4, 2, metav1.Condition{Type: crp + api.DiffReported, Status: "True", ObservedGeneration: 2}), Outstanding{Completed, "True", Completed}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OutstandingOf(&metav1.ObjectMeta{Namespace: test.namespace, Generation: 2}, &test.spec, test.conditions); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func configMap(name string) *work.Manifest {
	return &work.Manifest{Object: &api.Object{
		ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, Content: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
	}}
}

// The state of an object is what the member said of the assigned content.
func TestStateOfAnObjectInTheTree(t *testing.T) {
	one := configMap("one")
	done, begun := &protocol.WorkState{Done: true}, &protocol.WorkState{}
	ok := protocol.Verdict{OK: true}
	for name, test := range map[string]struct {
		c     plan.OnCluster
		seen  *protocol.WorkState
		state *protocol.ObjectState
		want  TreeState
		says  string
	}{
		"not mentioned when all is done": {plan.OnCluster{}, done, nil, ObjectAvailable, ""},
		"not mentioned before that":      {plan.OnCluster{}, begun, nil, ObjectPending, ""},
		"nothing is reported":            {plan.OnCluster{}, nil, nil, ObjectPending, ""},
		"not applied yet":                {plan.OnCluster{}, begun, &protocol.ObjectState{Pending: true, Applied: protocol.Verdict{Cause: "soon"}}, ObjectProgressing, "soon"},
		"refused":                        {plan.OnCluster{}, done, &protocol.ObjectState{Applied: protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "no"}}, ObjectFailed, "no"},
		"not available yet":              {plan.OnCluster{}, done, &protocol.ObjectState{Applied: ok, Available: protocol.Verdict{Cause: "1 of 2"}}, ObjectProgressing, "1 of 2"},
		"not available in time":          {plan.OnCluster{TimedOut: true}, done, &protocol.ObjectState{Applied: ok, Available: protocol.Verdict{Cause: "1 of 2"}}, ObjectFailed, "1 of 2"},
		"it will not be available":       {plan.OnCluster{}, done, &protocol.ObjectState{Applied: ok, Available: protocol.Verdict{Cause: "1 of 2"}, Failure: "no such image"}, ObjectFailed, "no such image"},
		"available and mentioned":        {plan.OnCluster{}, done, &protocol.ObjectState{Applied: ok, Available: ok}, ObjectAvailable, ""},
		"left to another": {
			plan.OnCluster{Circumstances: &plan.Circumstances{Yielded: []plan.Yielded{{Manifest: one, To: api.PlacementKey{Name: "api"}}}}}, done, &protocol.ObjectState{}, ObjectYielded, "the placement crp/api has it on this cluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := treeObject(&test.c, one, test.seen, test.state); got.State != test.want || got.Message != test.says {
				t.Errorf("%s, %q; want %s, %q", got.State, got.Message, test.want, test.says)
			}
		})
	}
}

// Holders of an object are where the commit in force puts it, reached by the rollout or not.
func TestHoldersOf(t *testing.T) {
	one := configMap("one")
	bound := func(cluster string, change func(*plan.OnCluster)) *plan.OnCluster {
		c := &plan.OnCluster{Binding: &placement.Binding{Cluster: cluster}, Content: &work.Rendered{Hash: "h", Manifests: []*work.Manifest{one}}}
		if change != nil {
			change(c)
		}
		return c
	}
	web, free := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "free"}
	r := &Report{plan: &plan.Plan{Placements: sharedlist.Of(
		&plan.Placement{Key: web, Clusters: []*plan.OnCluster{
			bound("ber", nil), bound("ams", nil),
			bound("removed", func(c *plan.OnCluster) { c.Binding.Removing = true }),
			bound("unscheduled", func(c *plan.OnCluster) { c.Binding.Unscheduled = true }),
			bound("without", func(c *plan.OnCluster) { c.Content.Manifests = []*work.Manifest{configMap("two")} }),
			bound("failing", func(c *plan.OnCluster) { c.Err = errors.New("no") }),
			bound("unknown", func(c *plan.OnCluster) { c.Content = &work.Rendered{} }),
			bound("yields", func(c *plan.OnCluster) {
				c.Circumstances = &plan.Circumstances{Yielded: []plan.Yielded{{Manifest: one, To: free}}}
			}),
		}},
		&plan.Placement{Key: free, Clusters: []*plan.OnCluster{bound("yields", nil), bound("ams", nil)}},
		&plan.Placement{Key: api.PlacementKey{Name: "other"}, Clusters: []*plan.OnCluster{bound("failing too", func(c *plan.OnCluster) { c.Err = errors.New("no") })}},
	)}}
	holders, unknown := r.HoldersOf(one.ID)
	if want := []Holder{{"ams", free}, {"ams", web}, {"ber", web}, {"yields", free}}; !slices.Equal(holders, want) {
		t.Errorf("%v\nwant %v", holders, want)
	}
	if want := []string{"failing", "unknown"}; !slices.Equal(unknown, want) {
		t.Errorf("unknown are %q, want %q", unknown, want)
	}
	if holders, unknown := (&Report{}).HoldersOf(one.ID); holders != nil || unknown != nil {
		t.Errorf("without a plan: %v, %v", holders, unknown)
	}
}

// The details of a fleet without placements are an empty list in JSON, not null.
func TestDetailsWithoutPlacements(t *testing.T) {
	if r := Build(Input{Ledger: ledger.New(), Plan: &plan.Plan{}}); r.Details == nil {
		t.Error("the details are nil")
	}
}
