package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The steps of the takeover tutorial, as a user walks them: a commit says Never,
// and the status lists what would be taken over; IfNoDiff takes what is equal and
// shows how the rest differs; Always takes all of it. Nothing is changed before a
// commit says so.
func TestTakeOverTutorial(t *testing.T) {
	d := newDaemon(t)
	ctx := context.Background()
	member := d.clients["member-2"]
	if _, err := member.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.name, Labels: map[string]string{"app": d.name}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"value": "theirs", "more": "x"}}
	if _, err := member.CoreV1().ConfigMaps(d.name).Create(ctx, theirs, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	placement := func(whenToTakeOver string) map[string]string {
		return map[string]string{"placement.yaml": `apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata:
  name: web-2-crp
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, labelSelector: {matchLabels: {app: ` + d.name + `}}}
  policy: {placementType: PickAll}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 100%, unavailablePeriodSeconds: 1}
    applyStrategy: {whenToTakeOver: ` + whenToTakeOver + `}
`}
	}
	d.repo.Commit(t, "main", map[string]string{
		"app.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + d.name + "\n  labels: {app: " + d.name + "}\n---\n" + yamlConfigMap(d.name, "one", "ours"),
	})
	step := d.repo.Commit(t, "main", placement("Never"))
	d.start()
	inForce := func(r *status.Report) bool { return r.Source.InForce.Hash == step && len(r.Placements) == 1 }
	said := func(r *status.Report, cluster string) (failed, differing []string) {
		for _, c := range r.Placements[0].Status.PlacementStatuses {
			if c.ClusterName != cluster {
				continue
			}
			for _, f := range c.FailedPlacements {
				failed = append(failed, fmt.Sprintf("%s %s %s: %s", f.Kind, f.Name, f.Condition.Reason, f.Condition.Message))
			}
			for _, f := range c.DiffedPlacements {
				for _, o := range f.ObservedDiffs {
					differing = append(differing, fmt.Sprintf("%s %s %s hub=%s member=%s", f.Kind, f.Name, o.Path, o.ValueInHub, o.ValueInMember))
				}
			}
		}
		slices.Sort(failed)
		return failed, differing
	}
	value := func() string {
		cm, err := member.CoreV1().ConfigMaps(d.name).Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %s %t", cm.Data["value"], cm.Data["more"], cm.Labels[api.ManagedByLabel] == d.name)
	}
	expect := func(what string, wantFailed, wantDiffering []string, wantValue string) {
		t.Helper()
		var failed, differing []string
		d.until(what, func(r *status.Report) bool {
			if !inForce(r) {
				return false
			}
			failed, differing = said(r, "member-2")
			return slices.Equal(failed, wantFailed) && slices.Equal(differing, wantDiffering)
		})
		if got := value(); got != wantValue {
			t.Errorf("%s: on the member: %s, want %s", what, got, wantValue)
		}
	}

	const notOurs = "NotTakenOver: Failed to apply the manifest (error: no ownership of the object in the member cluster; takeover is needed)"
	expect("Never: what is there is listed and untouched",
		[]string{"ConfigMap one " + notOurs, "Namespace " + d.name + " " + notOurs}, nil, "theirs x false")
	d.eventually("applied where nothing was", func() bool {
		return d.configMap("member-1", "one")["value"] == "ours" && d.configMap("member-3", "one")["value"] == "ours"
	})

	step = d.repo.Commit(t, "main", placement("IfNoDiff"))
	expect("IfNoDiff: what is equal is taken, the rest is shown",
		[]string{"ConfigMap one FailedToTakeOver: Failed to apply the manifest (error: cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster)"},
		[]string{"ConfigMap one /data/value hub=ours member=theirs"}, "theirs x false")
	if ns, err := member.CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{}); err != nil || ns.Labels[api.ManagedByLabel] != d.name {
		t.Errorf("the namespace, which is equal, was not taken over: %v", err)
	}

	step = d.repo.Commit(t, "main", placement("Always"))
	expect("Always: all is taken", nil, nil, "ours x true")
	d.applied(step)
}
