package forecast

import (
	"strings"
	"testing"
)

// A commit warns of content that waits for a run which nobody has committed, and says what to commit.
func TestMissingRunsAreWarnedOf(t *testing.T) {
	fleet := func(annotations string) string {
		return "clusters a b\nnamespace web\n" +
			`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: web, annotations: {` + annotations + `}}, spec: {strategy: {type: External}, policy: {placementType: PickAll}, resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]}}` + "\n" +
			`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: slow}, spec: {stages: [{name: all, labelSelector: {}}]}}` + "\n"
	}
	const run = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: r}, spec: {placementName: web, stagedRolloutStrategyName: slow, state: Initialize}}` + "\n"
	for name, test := range map[string]struct{ text, want string }{
		"no run":           {fleet(""), "crp/web waits on a, b for a staged update run, and the commit has none; commit a ClusterStagedUpdateRun with placementName: web, stagedRolloutStrategyName: slow and state: Run, or annotate the placement with gitfleet.dev/staged-update-strategy: slow"},
		"a run":            {fleet("") + run, ""},
		"an automatic run": {fleet("gitfleet.dev/staged-update-strategy: slow"), ""},
	} {
		o, err := Of(Input{Snapshot: snapshot(t, "v1", test.text), Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range o.Warnings {
			if strings.Contains(w.Message, "staged update run") {
				got += w.Message
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
