package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
)

// A commitCache has what was computed from one commit.
type commitCache struct {
	*hub.Snapshot
	specs      map[api.PlacementKey]*hub.Placement
	index      *placement.Index
	cros       []*api.ClusterResourceOverride
	ros        []*api.ResourceOverride
	placements map[api.PlacementKey]*prepared
	runs       map[api.PlacementKey][]*hub.StagedRun
	// runTexts are the runs as texts, which are equal if the runs are.
	runTexts map[api.PlacementKey]string
	// evictions and budgets are those of a placement, and evictionTexts both as texts.
	evictions     map[api.PlacementKey][]*hub.Eviction
	budgets       map[api.PlacementKey]*hub.Budget
	evictionTexts map[api.PlacementKey]string
	// unused are the warnings about overrides that select nothing; nil until they are needed.
	unused *problem.List
}

func newCommitCache(s *hub.Snapshot) *commitCache {
	c := &commitCache{Snapshot: s, specs: make(map[api.PlacementKey]*hub.Placement, len(s.Placements)), placements: map[api.PlacementKey]*prepared{}}
	for _, p := range s.Placements {
		c.specs[p.Key] = p
	}
	for _, r := range s.Runs {
		if c.runs == nil {
			c.runs, c.runTexts = map[api.PlacementKey][]*hub.StagedRun{}, map[api.PlacementKey]string{}
		}
		c.runs[r.Placement] = append(c.runs[r.Placement], r)
		stages, _ := json.Marshal([]any{r.Stages, r.Gates})
		c.runTexts[r.Placement] += fmt.Sprintln(r.Name, r.State, r.Strategy, r.Unmatched, r.OnFailure, r.UnreachablePerStage, r.UnreachablePerRun, r.FailedPerStage, r.FailedPerRun, r.Index, r.Origin, string(stages), hashesOf(r), historyOf(s, r))
	}
	c.readEvictions(s)
	for _, o := range s.ClusterOverrides {
		c.cros = append(c.cros, o.ClusterResourceOverride)
	}
	for _, o := range s.Overrides {
		c.ros = append(c.ros, o.ResourceOverride)
	}
	return c
}

// hashesOf are the hashes of the manifests of a run and its approval requests.
func hashesOf(r *hub.StagedRun) (out []string) {
	if r.Manifest != nil {
		out = append(out, r.Manifest.Hash)
	}
	for _, m := range r.Requests {
		out = append(out, m.ID.Name, m.Hash)
	}
	return out
}

// historyOf returns the history of a run; nil if it was not read.
func historyOf(s *hub.Snapshot, r *hub.StagedRun) []any {
	if s.RunHistory == nil && s.RunHistoryErr == nil || r.Manifest == nil {
		return nil
	}
	h := s.RunHistory[r.Manifest.ID]
	return []any{h.Appeared.Hash, h.Started.Hash, s.RunHistoryErr}
}

// readEvictions sets the evictions and budgets of each placement.
func (c *commitCache) readEvictions(s *hub.Snapshot) {
	if len(s.Evictions)+len(s.Budgets) == 0 {
		return
	}
	c.evictions, c.budgets, c.evictionTexts = map[api.PlacementKey][]*hub.Eviction{}, map[api.PlacementKey]*hub.Budget{}, map[api.PlacementKey]string{}
	for _, e := range s.Evictions {
		key := api.PlacementKey{Name: e.Spec.PlacementName}
		c.evictions[key] = append(c.evictions[key], e)
		c.evictionTexts[key] += fmt.Sprintln(e.Name, e.SpecHash, e.Origin)
	}
	for _, b := range s.Budgets {
		key := api.PlacementKey{Name: b.Name}
		c.budgets[key] = b
		c.evictionTexts[key] += b.SpecHash
	}
}

// unusedOverrideWarnings warns of overrides without a placement that select nothing anywhere. While the selectors of a
// placement are invalid, it is not known what it would select, and nothing is reported. The loader warns of overrides
// bound to a placement that does not exist.
func (c *commitCache) unusedOverrideWarnings() problem.List {
	if c.unused == nil {
		warnings := c.findUnusedOverrides()
		c.unused = &warnings
	}
	return *c.unused
}

func (c *commitCache) findUnusedOverrides() (warnings problem.List) {
	if len(c.placements) == 0 {
		return nil
	}
	var renderers []*work.Renderer
	for _, p := range c.placements {
		if p.renderer == nil {
			return nil
		}
		renderers = append(renderers, p.renderer)
	}
	for _, name := range work.Unused(c.cros, c.ros, renderers) {
		warnings = append(warnings, c.overrideWarning(name, "", "selects nothing that any placement holds"))
	}
	return warnings
}

// overrideWarning returns a warning about an override of the commit.
func (c *commitCache) overrideWarning(name api.NamespacedName, field, why string) problem.Problem {
	text := fmt.Sprintf("ClusterResourceOverride %q", name.Name)
	if name.Namespace != "" {
		text = fmt.Sprintf("ResourceOverride %q", name.Namespace+"/"+name.Name)
	}
	return problem.Problem{Origin: c.OverrideField(name, field), Field: field, Severity: problem.Warning, Message: text + " " + why}
}

// prepared has the objects that a placement selects at one commit, ready to be rendered.
type prepared struct {
	key         api.PlacementKey
	selection   placement.Selection
	renderer    *work.Renderer // nil if the selection is invalid
	fingerprint string         // fingerprint of the content with overrides; empty until it is needed
	cros        []*api.ClusterResourceOverride
	ros         []*api.ResourceOverride
	variables   *api.Variables
	substitutes bool // whether the placement asks for variables to be replaced
}

// equal reports whether two valid selections render the same content. Then the older one is reused, with everything its
// renderer has cached.
func (p *prepared) equal(o *prepared) bool {
	return p.key == o.key && slices.Equal(p.selection.Objects, o.selection.Objects) && slices.Equal(p.cros, o.cros) && slices.Equal(p.ros, o.ros) &&
		p.substitutes == o.substitutes && p.renderer.SameVariables(o.variables) &&
		slices.Equal(p.selection.Warnings, o.selection.Warnings) && slices.Equal(p.selection.Unmatched, o.selection.Unmatched)
}

func (p *prepared) fingerprintOf() string {
	if p.fingerprint == "" {
		p.fingerprint = p.renderer.Fingerprint()
	}
	return p.fingerprint
}

// renderedWithHash renders the content for a cluster with its current labels or those of a revision, and returns it if
// it has the hash of the revision.
func (p *prepared) renderedWithHash(c placement.Cluster, r placement.Revision) (content *work.Rendered, known bool) {
	rendered, err := p.renderer.For(c)
	if rendered.Hash != r.Hash && p.renderer.Labels(c) != r.Labels {
		rendered, err = p.renderer.For(work.WithLabels(c, r))
	}
	switch {
	case rendered.Hash != r.Hash:
		return nil, false
	case err != nil:
		return nil, true
	}
	return rendered, true
}

// Substitutes reports whether a placement asks for the variables in all its objects to be replaced.
func Substitutes(p *hub.Placement) bool {
	return p.Annotations[api.SubstituteAnnotation] == api.SubstituteEnabled
}

// Scope returns whether a kind is namespaced: built-in kinds, and those defined in the commit.
func Scope(s *hub.Snapshot) func(api.GroupKind) (namespaced, known bool) {
	return func(gk api.GroupKind) (bool, bool) {
		if namespaced, known := api.Namespaced(gk); known {
			return namespaced, true
		}
		namespaced, known := s.Namespaced[gk]
		return namespaced, known
	}
}
