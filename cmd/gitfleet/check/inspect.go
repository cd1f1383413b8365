package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/overlay"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// inspect returns the findings that need a plan. The plan is that of a fleet in which
// everything is healthy.
func inspect(s *hub.Snapshot, p *plan.Plan) []finding {
	i := &inspector{Snapshot: s, plan: p, declared: map[string]api.Origin{}, lines: map[api.Origin]hub.Lines{}, open: offline.UnknownSelections(p), idle: map[api.Origin]bool{}}
	for _, o := range s.ClusterOverrides {
		i.declared[fmt.Sprintf("%s %q", "ClusterResourceOverride", o.Name)] = o.Origin
		i.lines[o.Origin] = o.Lines
	}
	for _, o := range s.Overrides {
		i.declared[fmt.Sprintf("%s %q", "ResourceOverride", o.Namespace+"/"+o.Name)] = o.Origin
		i.lines[o.Origin] = o.Lines
	}
	for _, p := range s.Placements {
		i.lines[p.Origin] = p.Lines
	}
	if len(s.Placements) > 0 {
		i.overrides()
	}
	for pl := range p.Placements.Values() {
		i.placement(pl)
	}
	for _, w := range p.Warnings {
		i.warn(w.Origin, w.Field, w.Message)
	}
	switch {
	case len(s.Placements) == 0:
		i.warn(api.Origin{}, "", "there is no placement, so nothing is placed; add a ClusterResourcePlacement or a ResourcePlacement")
	case len(s.Clusters) == 0:
		i.warn(api.Origin{}, "", "there is no MemberCluster, so nothing is placed; add one for each member")
	default:
		i.clusters()
	}
	if len(s.Placements) > 0 {
		i.files()
	}
	return i.found
}

// overridden returns the position of the override with which a warning begins.
func (i *inspector) overridden(warning string, otherwise api.Origin) api.Origin {
	if parts := strings.SplitN(warning, `"`, 3); len(parts) == 3 {
		if at, ok := i.declared[parts[0]+`"`+parts[1]+`"`]; ok {
			return at
		}
	}
	return otherwise
}

func (i *inspector) placement(p *plan.Placement) {
	at := p.Spec.Origin
	if p.Selection.Invalid != "" {
		i.fail(at, p.Selection.InvalidField, p.Selection.Invalid)
		return
	}
	for _, w := range p.Warnings {
		if !i.isReported(p, w) {
			i.add(i.ruleOf(p, w), problem.Warning, i.overridden(w.Message, at), w.Field, w.Message)
		}
	}
	if len(p.Selection.Objects) == 0 && len(p.Selection.Warnings) == 0 {
		i.warn(at, "spec.resourceSelectors", "selects nothing that may be placed")
	}
	if !i.open[p.Key] && len(i.Clusters) > 0 {
		i.checkSelection(p)
	}
	i.checkContents(p)
}

// isReported reports whether a warning is covered by another finding, or is about clusters that
// are not known here.
func (i *inspector) isReported(p *plan.Placement, w problem.Problem) bool {
	at := i.overridden(w.Message, api.Origin{})
	idle := at != api.Origin{} && w.Origin == i.lines[at].At(at, w.Field)
	return idle && i.idle[at] || i.open[p.Key] && (idle || slices.Contains(p.Schedule.Notes, w.Message))
}

// ruleOf returns the rule of a warning: one for parts that have no effect, or one for parts that
// are probably mistakes.
func (i *inspector) ruleOf(p *plan.Placement, w problem.Problem) *rule {
	nowhere := api.Origin{}
	if i.overridden(w.Message, nowhere) != nowhere {
		return dead
	}
	for _, s := range p.Selection.Warnings {
		if s.Message == w.Message {
			return dead
		}
	}
	return doubtful
}

// checkSelection warns of a placement that selects no cluster, or too few. The loader warns of names of clusters that do not exist.
func (i *inspector) checkSelection(p *plan.Placement) {
	const field = "spec.policy"
	out := p.Schedule
	lacks := func(name string) bool {
		return p.On(name) == nil && slices.ContainsFunc(i.Clusters, func(c *hub.Cluster) bool { return c.Name == name })
	}
	switch names := p.Spec.Spec.Policy.ClusterNames; {
	case len(names) > 0 && !slices.ContainsFunc(names, lacks):
	case out.Found == 0:
		i.warn(p.Spec.Origin, field, "selects no cluster: "+objections(out.Decisions))
	case !out.Fulfilled && out.Found == len(out.Decisions):
		i.warn(p.Spec.Origin, field, fmt.Sprintf("selects %d of the %d clusters it asks for: there are no more; declare more, or lower numberOfClusters", out.Found, out.Wanted))
	case !out.Fulfilled:
		i.warn(p.Spec.Origin, field, fmt.Sprintf("selects %d of the %d clusters it asks for: %s", out.Found, out.Wanted, objections(out.Decisions)))
	}
}

// objections returns why clusters are not selected, the most frequent first.
func objections(ds []placement.Decision) string {
	clusters := map[string][]string{}
	for _, d := range ds {
		if !d.Selected {
			why := strings.TrimPrefix(d.Reason, "ClusterUnschedulable, ")
			clusters[why] = append(clusters[why], d.Cluster)
		}
	}
	reasons := slices.SortedFunc(maps.Keys(clusters), func(a, b string) int {
		return cmp.Or(len(clusters[b])-len(clusters[a]), strings.Compare(a, b))
	})
	var texts []string
	for _, why := range reasons[:min(len(reasons), shown)] {
		texts = append(texts, why+" ("+forecast.FewOf(clusters[why])+")")
	}
	if n := len(reasons) - shown; n > 0 {
		texts = append(texts, output.Count(n, "other reason"))
	}
	return strings.Join(texts, "; ")
}

// shown is the maximum number of reasons in a message.
const shown = 3

// checkContents reports content that could not be sent to the selected clusters.
func (i *inspector) checkContents(p *plan.Placement) {
	failing := map[string][]string{}
	first := map[string]error{}
	for _, c := range p.Clusters {
		if c.Err != nil {
			text := cmp.Or(i.unbuilt(p, c.Binding.Cluster), c.Err.Error())
			failing[text] = append(failing[text], c.Binding.Cluster)
			first[text] = cmp.Or(first[text], c.Err)
		}
		for _, refused := range c.Content.Refused {
			i.fail(refused.Origin, "", objectName(refused.Manifest)+": "+refused.Message())
		}
		for _, m := range c.Content.Manifests {
			if m.Encrypted != nil && m.Overridden { // else reported for the file
				i.fail(m.Origin, "", objectName(m)+", as overrides change it: "+m.Encrypted.Message())
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(failing)) {
		at, field, ok := forecast.FailingOverride(i.Snapshot, first[text])
		if !ok {
			at = p.Spec.Origin
		}
		i.fail(at, field, fmt.Sprintf("%s would not be updated on %s: %s", p.Key, forecast.FewOf(failing[text]), text))
	}
}

// unbuilt says which overlay of a placement has a directory for a cluster that cannot be built, which is reported as well; empty if
// there is none.
func (i *inspector) unbuilt(p *plan.Placement, cluster string) string {
	at := slices.IndexFunc(i.plan.Clusters, func(c placement.Cluster) bool { return c.Name == cluster })
	for _, o := range p.Selection.Objects {
		if o.Overlay == nil || o.Overlay.Chart != nil || at < 0 {
			continue
		}
		keys, _ := overlay.BuildsFor(o.Overlay, overlay.Cluster{Name: cluster, Labels: i.plan.Clusters[at].Labels, Properties: o.Overlay.Properties[cluster]})
		if slices.ContainsFunc(keys, func(key string) bool { return o.Overlay.Builds[key].Err != "" }) {
			return fmt.Sprintf("what %s (%s) has there cannot be built, for a reason that is reported as well", o.ID, o.Overlay.At)
		}
	}
	return ""
}
