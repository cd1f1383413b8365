package status

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
)

// noon is the time of the reports in the tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var (
	oldContent = placement.Revision{Commit: "v1", Hash: "h1"}
	newContent = placement.Revision{Commit: "v2", Hash: "h2"}
)

// box is an envelope.
var box = &api.EnvelopeIdentifier{Name: "box", Namespace: "web", Type: api.ResourceEnvelopeType}

// newBuilder returns a builder for crp/web on some clusters.
func newBuilder(clusters ...*plan.OnCluster) *builder {
	p := &plan.Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{Key: api.PlacementKey{Name: "web"}}, Clusters: clusters}
	p.Record = ledger.Placement{Generation: 2, Created: noon.Add(-time.Hour), Index: 3}
	return &builder{in: Input{Plan: &plan.Plan{Placements: sharedlist.Of(p)}, InForce: &hub.Snapshot{}, Ledger: ledger.New(), Now: noon}, p: p, shared: &sharedTransitions{}}
}

// strategy sets the type of the rollout or of applying.
func (b *builder) strategy(rollout api.RolloutStrategyType, apply api.ApplyStrategyType) *builder {
	b.p.Spec.Spec.Strategy = api.RolloutStrategy{Type: rollout, ApplyStrategy: &api.ApplyStrategy{Type: apply}}
	return b
}

// assigned returns a cluster with the newest content and what the member has reported about it;
// nil for nothing.
func assigned(cluster string, seen *protocol.WorkState) *plan.OnCluster {
	c := &plan.OnCluster{
		Binding: &placement.Binding{Cluster: cluster, Assigned: newContent, AssignedAt: noon.Add(-time.Minute), Index: 3},
		Content: &work.Rendered{Hash: newContent.Hash}, Entry: &ledger.Entry{},
	}
	c.SetLatest(newContent)
	if seen != nil {
		out := *seen
		out.Revision = newContent
		c.Entry.Seen = &out
	}
	c.Entry.Binding = *c.Binding
	c.Entry.SetTimes(ledger.Times{ledger.SeenAt: noon})
	return c
}

// change changes a cluster.
func change(c *plan.OnCluster, by func(c *plan.OnCluster)) *plan.OnCluster {
	by(c)
	return c
}

var (
	yes       = protocol.Verdict{OK: true}
	refused   = protocol.Verdict{Reason: api.ManifestApplyFailed, Cause: "admission webhook denied"}
	notReady  = protocol.Verdict{Reason: api.ManifestNotAvailableYet, Cause: "1 of 2 replicas"}
	objectOne = api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}
)

// done is the report that everything is applied and available, except for some objects.
func done(exceptions ...protocol.ObjectState) *protocol.WorkState {
	return &protocol.WorkState{Done: true, Total: 3, Exceptions: exceptions}
}

func objectState(name string, applied, available protocol.Verdict) protocol.ObjectState {
	return protocol.ObjectState{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: name}, Version: "v1", Applied: applied, Available: available}
}

func inEnvelope(o protocol.ObjectState) protocol.ObjectState {
	o.Envelope = box
	return o
}

func textOf(c *metav1.Condition) string {
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// Each condition on a cluster has the reason and the message of its cause, and conditions after the
// first that is not true are absent.
func TestConditionsOnCluster(t *testing.T) {
	overrideError := &work.OverrideError{Override: api.NamespacedName{Name: "bigger"}, Object: objectOne, Err: errors.New("no such path")}
	const undecided = "Unknown RolloutStartedUnknown: In the process of deciding whether to roll out some version of the resources or not"
	unreleased := func(held string) *plan.OnCluster {
		return change(assigned("east", nil), func(c *plan.OnCluster) { c.Binding.Assigned, c.Waits = placement.Revision{}, held })
	}
	onOldContent := func(held string) *plan.OnCluster {
		return change(assigned("east", nil), func(c *plan.OnCluster) { c.Binding.Assigned, c.Waits = oldContent, held })
	}
	refusedManifest := func(envelope *api.EnvelopeIdentifier) *plan.OnCluster {
		return change(assigned("east", done()), func(c *plan.OnCluster) {
			c.Content.Refused = []work.Refused{{Manifest: &work.Manifest{Object: configMap("two").Object, Envelope: envelope}, Reason: api.Duplicated}}
		})
	}
	yielded := func(envelope *api.EnvelopeIdentifier) *plan.OnCluster {
		return change(assigned("east", done()), func(c *plan.OnCluster) {
			c.Circumstances = &plan.Circumstances{Yielded: []plan.Yielded{{Manifest: &work.Manifest{Object: configMap("two").Object, Envelope: envelope}, To: api.PlacementKey{Name: "api"}}}}
		})
	}
	const boxWork = "web-work-envelope-7d9ce9960ad95c4d"
	tests := map[string]struct {
		cluster *plan.OnCluster
		change  func(b *builder)
		typ     string // the last condition unless it is true
		want    string
	}{
		"nothing is assigned":                {unreleased(""), nil, api.RolloutStarted, undecided},
		"the rollout waits":                  {unreleased("maxSurge 1 reached"), nil, api.RolloutStarted, "False RolloutNotStartedYet: The rollout is being blocked by the rollout strategy: maxSurge 1 reached"},
		"the rollout waits with old content": {onOldContent("maxUnavailable 1 reached"), nil, api.RolloutStarted, "False RolloutNotStartedYet: The rollout is being blocked by the rollout strategy: maxUnavailable 1 reached"},
		"old content and invalid selectors":  {onOldContent(""), func(b *builder) { b.p.Selection.Invalid = "no such kind" }, api.RolloutStarted, undecided + ": no such kind"},
		"old content and an internal error":  {onOldContent(""), func(b *builder) { b.p.InternalError = "panic" }, api.RolloutStarted, undecided + ": An internal error kept the placement from being decided; it keeps what it holds. The log has the details"},
		"old content and missing clusters":   {onOldContent(""), func(b *builder) { b.p.Schedule.Wanted = 2 }, api.RolloutStarted, undecided},
		"external, nothing is assigned":      {unreleased(""), func(b *builder) { b.strategy(api.External, "") }, api.RolloutStarted, undecided + ": the strategy is External"},
		"external, waits":                    {unreleased("no update run"), func(b *builder) { b.strategy(api.External, "") }, api.RolloutStarted, undecided + ": no update run"},
		"external with old content":          {onOldContent(""), func(b *builder) { b.strategy(api.External, "") }, api.RolloutStarted, "True RolloutStarted: Detected the new changes on the resources and started the rollout process"},
		"the newest content is assigned":     {assigned("east", done()), nil, api.RolloutStarted, "True RolloutStarted: Detected the new changes on the resources and started the rollout process"},
		"no override applies":                {assigned("east", done()), nil, api.Overridden, "True NoOverrideSpecified: No override rules are configured for the selected resources"},
		"a ClusterResourceOverride applies":  {change(assigned("east", done()), func(c *plan.OnCluster) { c.Content.ClusterOverrides = []string{"x"} }), nil, api.Overridden, "True OverriddenSucceeded: Successfully applied the override rules on the resources"},
		"a ResourceOverride applies":         {change(assigned("east", done()), func(c *plan.OnCluster) { c.Content.Overrides = []api.NamespacedName{{Name: "x"}} }), nil, api.Overridden, "True OverriddenSucceeded: Successfully applied the override rules on the resources"},
		"an override fails":                  {change(assigned("east", nil), func(c *plan.OnCluster) { c.Err = overrideError }), nil, api.Overridden, "False OverriddenFailed: Failed to apply the override rules on the resources: " + overrideError.Error()},
		"an envelope is invalid":             {change(assigned("east", nil), func(c *plan.OnCluster) { c.Err = &work.EnvelopeError{Problems: []error{errors.New("box: not YAML")}} }), nil, api.WorkSynchronized, "False SyncWorkFailed: Failed to synchronize the work to the latest: box: not YAML"},
		"another fleet holds the cluster": {change(assigned("east", done()), func(c *plan.OnCluster) {
			c.Circumstances = &plan.Circumstances{Refusal: "another fleet holds this cluster"}
		}), nil, api.WorkSynchronized, "False SyncWorkFailed: Failed to synchronize the work to the latest: another fleet holds this cluster"},
		"the member has not reported": {assigned("east", nil), nil, api.WorkSynchronized, "Unknown WorkSynchronizedUnknown: In the process of creating or updating the work object(s) in the hub cluster"},
		"the member is unreachable": {assigned("east", nil), func(b *builder) {
			b.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "east", At: noon, Error: "connection refused"})
		}, api.WorkSynchronized, "Unknown WorkSynchronizedUnknown: In the process of creating or updating the work object(s) in the hub cluster; the cluster does not answer: connection refused"},
		"a reachable member has not reported":  {assigned("east", nil), func(b *builder) { b.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "east", At: noon, Healthy: true}) }, api.WorkSynchronized, "Unknown WorkSynchronizedUnknown: In the process of creating or updating the work object(s) in the hub cluster"},
		"the member has reported":              {assigned("east", done()), nil, api.WorkSynchronized, "True AllWorkSynced: All of the works are synchronized to the latest"},
		"objects are being applied":            {assigned("east", &protocol.WorkState{}), nil, api.Applied, "False ApplyInProgress: Resources are being applied"},
		"an object is refused":                 {assigned("east", done(objectState("one", refused, protocol.Verdict{}))), nil, api.Applied, "False NotAllWorkHaveBeenApplied: Work object web-work has failed to apply"},
		"an object in an envelope is refused":  {assigned("east", done(objectState("a", yes, notReady), inEnvelope(objectState("one", refused, protocol.Verdict{})))), nil, api.Applied, "False NotAllWorkHaveBeenApplied: Work object " + boxWork + " has failed to apply"},
		"an object cannot be sent":             {refusedManifest(nil), nil, api.Applied, "False NotAllWorkHaveBeenApplied: Work object web-work has failed to apply"},
		"an enveloped object cannot be sent":   {refusedManifest(box), nil, api.Applied, "False NotAllWorkHaveBeenApplied: Work object " + boxWork + " has failed to apply"},
		"another placement owns an object":     {yielded(nil), nil, api.Applied, "False NotAllWorkHaveBeenApplied: Work object web-work has failed to apply"},
		"another owns an enveloped object":     {yielded(box), nil, api.Applied, "False NotAllWorkHaveBeenApplied: Work object " + boxWork + " has failed to apply"},
		"of a namespaced placement":            {refusedManifest(nil), func(b *builder) { b.p.Key.Namespace = "shop" }, api.Applied, "False NotAllWorkHaveBeenApplied: Work object shop.web-work has failed to apply"},
		"all objects are applied":              {assigned("east", done(objectState("one", yes, notReady))), nil, api.Applied, "True AllWorkHaveBeenApplied: All corresponding work objects are applied"},
		"an object is not available":           {assigned("east", done(objectState("one", yes, notReady))), nil, api.Available, "False NotAllWorkAreAvailable: Work object web-work is not yet available"},
		"an enveloped object is not available": {assigned("east", done(objectState("a", yes, yes), inEnvelope(objectState("one", yes, notReady)))), nil, api.Available, "False NotAllWorkAreAvailable: Work object " + boxWork + " is not yet available"},
		"an object has no health check":        {assigned("east", &protocol.WorkState{Done: true, Untrackable: 1}), nil, api.Available, "True NotAllWorkAreAvailabilityTrackable: The availability of work object web-work is not trackable"},
		"all objects are available":            {assigned("east", done(objectState("one", yes, yes))), nil, api.Available, "True AllWorkAreAvailable: All corresponding work objects are available"},
		"differences are not known yet":        {assigned("east", &protocol.WorkState{}), func(b *builder) { b.strategy("", api.ReportDiff) }, api.DiffReported, "False DiffReportInProgress: Diff reporting on resources is in progress"},
		"an object cannot be compared":         {assigned("east", done(objectState("one", refused, protocol.Verdict{}))), func(b *builder) { b.strategy("", api.ReportDiff) }, api.DiffReported, "False NotAllWorkHaveDiffReported: Work object web-work has failed to report diff"},
		"all objects are compared":             {assigned("east", done()), func(b *builder) { b.strategy("", api.ReportDiff) }, api.DiffReported, "True AllWorkHaveDiffReported: All corresponding work objects have reported diff"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(test.cluster)
			if test.change != nil {
				test.change(b)
			}
			lineBuilder{b}.noteUnanswered(test.cluster)
			s := b.cluster(0, placement.Decision{Cluster: "east", Selected: true, Reason: "picked"}, "3")
			if first := textOf(&s.Conditions[0]); first != "True Scheduled: picked" {
				t.Errorf("the first condition is %s", first)
			}
			i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == test.typ })
			if i < 0 {
				t.Fatalf("no condition %s in %v", test.typ, s.Conditions)
			}
			if got := textOf(&s.Conditions[i]); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !strings.HasPrefix(test.want, "True ") && i != len(s.Conditions)-1 {
				t.Errorf("conditions follow one that is not true: %v", s.Conditions[i+1:])
			}
		})
	}
}

// The overrides of a cluster are reported once it has the content that they apply to.
func TestApplicableOverridesAreReportedWithTheContent(t *testing.T) {
	overridden := func(c *plan.OnCluster) {
		c.Content.ClusterOverrides, c.Content.Overrides = []string{"all"}, []api.NamespacedName{{Namespace: "web", Name: "one"}}
	}
	current := change(assigned("east", nil), overridden)
	outdated := change(change(assigned("west", nil), overridden), func(c *plan.OnCluster) { c.Binding.Assigned = oldContent })
	b := newBuilder(current, outdated)
	s := b.cluster(0, placement.Decision{Reason: "picked"}, "3")
	if !slices.Equal(s.ApplicableClusterResourceOverrides, []string{"all"}) || !slices.Equal(s.ApplicableResourceOverrides, []api.NamespacedName{{Namespace: "web", Name: "one"}}) {
		t.Errorf("overrides of a cluster with the newest content: %+v", s)
	}
	s = b.cluster(1, placement.Decision{Reason: "picked"}, "3")
	if s.ApplicableClusterResourceOverrides != nil || s.ApplicableResourceOverrides != nil {
		t.Errorf("overrides of a cluster with old content: %+v", s)
	}
}

// With an external rollout, a cluster has the index of the content that it holds.
func TestExternalRolloutReportsTheHeldIndex(t *testing.T) {
	for name, test := range map[string]struct {
		cluster *plan.OnCluster
		want    string
	}{
		"nothing assigned": {change(assigned("east", nil), func(c *plan.OnCluster) { c.Binding.Assigned = placement.Revision{} }), ""},
		"old content":      {change(assigned("east", nil), func(c *plan.OnCluster) { c.Binding.Assigned, c.Binding.Index = oldContent, 1 }), "1"},
		"newest content":   {assigned("east", nil), "3"},
	} {
		t.Run(name, func(t *testing.T) {
			before := *test.cluster
			b := newBuilder(test.cluster).strategy(api.External, "")
			if got := b.cluster(0, placement.Decision{Reason: "picked"}, "3").ObservedResourceIndex; got != test.want {
				t.Errorf("index %q, want %q", got, test.want)
			}
			if !reflect.DeepEqual(before, *test.cluster) {
				t.Error("the plan was changed")
			}
		})
	}
}

// With an external rollout, the placement has the content that all its clusters hold, and the
// condition RolloutStarted says what is missing if they do not hold the same.
func TestExternalRolloutOfAPlacement(t *testing.T) {
	held := func(indexes ...int) (out []*plan.OnCluster) {
		for _, index := range indexes {
			out = append(out, change(assigned("east", nil), func(c *plan.OnCluster) {
				if c.Binding.Index = int32(index); index < 0 {
					c.Binding.Assigned = placement.Revision{}
				} else if index != 3 {
					c.Binding.Assigned = oldContent
				}
			}))
		}
		return append(out, change(assigned("west", nil), func(c *plan.OnCluster) { c.Binding.Index = 9 })) // not selected
	}
	started := conditions.True(api.RolloutStartedReason, "All 2 cluster(s) start rolling out the latest resource")
	const prefix = "Unknown RolloutControlledByExternalController: Rollout is controlled by an external controller and "
	for name, test := range map[string]struct {
		clusters  []*plan.OnCluster
		namespace string
		index     string
		selected  bool
		want      string
	}{
		"the newest on all":    {held(3, 3), "", "3", true, "True RolloutStarted: All 2 cluster(s) start rolling out the latest resource"},
		"an older one on all":  {held(2, 2), "", "2", false, "True RolloutStarted: All 2 cluster(s) start rolling out the latest resource"},
		"different ones":       {held(2, 3), "", "", false, prefix + "different resource snapshot versions are observed across clusters"},
		"none":                 {held(-1, -1), "", "", false, prefix + "no resource snapshot name is observed across clusters. To determine rollout status, check the ClusterStagedUpdateRun resources with spec.placementName matching this placement"},
		"none, in a namespace": {held(-1), "shop", "", false, prefix + "no resource snapshot name is observed across clusters. To determine rollout status, check the StagedUpdateRun resources with spec.placementName matching this placement"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(test.clusters...).strategy(api.External, "")
			b.p.Key.Namespace, b.lines = test.namespace, sharedlist.List[line]{}.Edit(len(test.clusters))
			for i := range test.clusters[1:] {
				b.lines.Set(i, line{selected: true})
			}
			s := api.PlacementStatus{ObservedResourceIndex: "3", SelectedResources: []api.ResourceIdentifier{{Kind: "Namespace"}}}
			b.useCommonContent(&s)
			if s.ObservedResourceIndex != test.index || (s.SelectedResources != nil) != test.selected {
				t.Errorf("index %q with %v, want %q", s.ObservedResourceIndex, s.SelectedResources, test.index)
			}
			v := b.externalRolloutStarted(started)
			if got := string(v.Status) + " " + v.Reason + ": " + v.Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
