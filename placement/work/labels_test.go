package work

import (
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A revision has the labels that overrides use, whether they match or not, and no others. With
// these labels the renderer gives the same content.
func TestLabelsDecideAboutContent(t *testing.T) {
	eu := patching("selects", map[string]string{"region": "eu"}, "2")
	variable := patching("asks", nil, `"${MEMBER-CLUSTER-LABEL-KEY-zone}"`)
	name := patching("names", nil, `"${MEMBER-CLUSTER-NAME}"`)
	tests := map[string]struct {
		overrides []*api.ResourceOverride
		cluster   placement.Cluster
		want      string
	}{
		"no override":       {nil, named("east", "region=eu"), ""},
		"a selector":        {[]*api.ResourceOverride{eu}, named("east", "region=eu", "zone=a"), "region=eu"},
		"one that misses":   {[]*api.ResourceOverride{eu}, named("east", "region=us"), "region=us"},
		"a label it lacks":  {[]*api.ResourceOverride{eu}, named("east"), ""},
		"a variable":        {[]*api.ResourceOverride{variable}, named("east", "region=eu", "zone=a"), "zone=a"},
		"a missing value":   {[]*api.ResourceOverride{variable}, named("east", "region=eu"), ""},
		"both, in order":    {[]*api.ResourceOverride{variable, eu}, named("east", "zone=a", "region=eu"), "region=eu,zone=a"},
		"the name is known": {[]*api.ResourceOverride{name}, named("east", "zone=a"), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := renderer(t, test.overrides...)
			got := r.Labels(test.cluster)
			if got != test.want {
				t.Fatalf("it depends on %q, not on %q", got, test.want)
			}
			then, _ := r.For(test.cluster)
			again, _ := r.For(WithLabels(named("east", "region=asia", "zone=z"), placement.Revision{Labels: got}))
			if then.Hash != again.Hash {
				t.Error("with the labels it remembers the content is another")
			}
		})
	}
}
