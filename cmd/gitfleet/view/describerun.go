package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/placement/api"
)

// describeRun requests a staged update run of a kind, called NAME or NAMESPACE/NAME, and describes it.
func (s *description) describeRun(ctx context.Context, c *client.Client, kind, name string) error {
	r, err := c.Report(ctx, client.Subject{})
	if err != nil {
		return err
	}
	runs := slices.DeleteFunc(slices.Clone(r.UpdateRuns), func(u *api.ClusterStagedUpdateRun) bool { return u.Kind != kind })
	var names []string
	for _, u := range runs {
		names = append(names, strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"))
	}
	if err := lookup.Name("staged update run", name, names); err != nil {
		return err
	}
	s.now = r.At
	s.run(runs[slices.Index(names, name)])
	return nil
}

// run describes a staged update run.
func (s *description) run(u *api.ClusterStagedUpdateRun) {
	s.field("Name", strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"))
	s.field("Placement", api.PlacementKey{Namespace: u.Namespace, Name: u.Spec.PlacementName}.String())
	s.field("Strategy", u.Spec.StrategyName)
	s.field("State", string(u.Spec.State))
	s.field("Revision", u.Status.ResourceSnapshotIndexUsed)
	s.field("Declared in", u.Annotations[api.PathAnnotation])
	s.heading("Conditions")
	s.conditions(1, u.Status.Conditions)
	stages := u.Status.StagesStatus
	if d := u.Status.DeletionStageStatus; d != nil && len(d.Clusters) > 0 {
		stages = append(slices.Clone(stages), *d)
	}
	if len(stages) > 0 {
		s.heading("Stages")
	}
	for i := range stages {
		s.stage(&stages[i])
	}
}

// stage describes a stage of a run, with its tasks and clusters.
func (s *description) stage(of *api.StageUpdatingStatus) {
	state := "its turn has not come"
	if c := lastCondition(of.Conditions); c != nil {
		state = c.Reason + " for " + s.since(c.LastTransitionTime.Time)
	}
	s.text(1, of.StageName+": "+state)
	for _, t := range of.BeforeStageTaskStatus {
		s.text(2, "before: "+s.task(&t))
	}
	for _, t := range of.AfterStageTaskStatus {
		s.text(2, "after: "+s.task(&t))
	}
	for i := range of.Clusters {
		c := &of.Clusters[i]
		text := c.ClusterName + ": not started"
		if last := lastCondition(c.Conditions); last != nil {
			text = fmt.Sprintf("%s: %s %s ago", c.ClusterName, last.Reason, s.since(last.LastTransitionTime.Time))
		}
		s.text(2, text)
	}
}

// task says what a task of a stage is, and what has become of it.
func (s *description) task(t *api.StageTaskStatus) string {
	text := string(t.Type)
	if t.ApprovalRequestName != "" {
		text += " " + t.ApprovalRequestName
	}
	if t.GateName != "" {
		text += " " + t.GateName
	}
	c := lastCondition(t.Conditions)
	if c == nil {
		return text + ": not due yet"
	}
	if c.Type == api.RequestCreated && !meta.IsStatusConditionTrue(t.Conditions, api.RequestApproved) {
		return text + ": missing for " + s.since(c.LastTransitionTime.Time)
	}
	return fmt.Sprintf("%s: %s for %s: %s", text, c.Reason, s.since(c.LastTransitionTime.Time), c.Message)
}

// lastCondition returns the last condition, which says where something is; nil if there is none.
func lastCondition(all []metav1.Condition) *metav1.Condition {
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}
