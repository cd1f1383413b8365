package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/gitfleet/gitfleet/placement/api"
)

// PolicyHash identifies the policy that selected a cluster. It is the SHA-256 of the policy's
// canonical JSON, in hexadecimal digits. Defaults are set and empty fields omitted, so that it
// does not matter whether a default is written out; nil is PickAll. The number of clusters is
// not included: another number scales the placement and does not schedule the rest again.
func PolicyHash(p *api.PlacementPolicy) string {
	data, err := json.Marshal(canonical(p))
	if err != nil {
		panic("placement: a policy is not JSON: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// canonical returns a copy with defaults, without the number of clusters, and with nil for
// fields that require nothing.
func canonical(p *api.PlacementPolicy) api.PlacementPolicy {
	if p == nil {
		p = &api.PlacementPolicy{}
	}
	c := *p
	c.PlacementType = p.Type()
	c.NumberOfClusters = nil
	c.Affinity = canonicalAffinity(p.Affinity)
	c.TopologySpreadConstraints = slices.Clone(p.TopologySpreadConstraints)
	for i := range c.TopologySpreadConstraints {
		t := &c.TopologySpreadConstraints[i]
		skew := maxSkew(*t)
		t.MaxSkew = &skew
		t.WhenUnsatisfiable = cmp.Or(t.WhenUnsatisfiable, api.DoNotSchedule)
	}
	c.Tolerations = slices.Clone(p.Tolerations)
	for i := range c.Tolerations {
		t := &c.Tolerations[i]
		t.Operator = cmp.Or(t.Operator, api.TolerationEqual)
	}
	return c
}

func canonicalAffinity(a *api.Affinity) *api.Affinity {
	if a == nil {
		return nil
	}
	c := *a
	if a.ClusterAffinity != nil {
		clusters := *a.ClusterAffinity
		if clusters.Required != nil && len(clusters.Required.ClusterSelectorTerms) == 0 {
			clusters.Required = nil
		}
		c.ClusterAffinity = &clusters
		if clusters.Required == nil && len(clusters.Preferred) == 0 {
			c.ClusterAffinity = nil
		}
	}
	if c.ClusterAffinity == nil && len(c.PlacementAffinity) == 0 && len(c.PlacementAntiAffinity) == 0 {
		return nil
	}
	return &c
}

func maxSkew(t api.TopologySpreadConstraint) int32 {
	if t.MaxSkew == nil {
		return 1
	}
	return *t.MaxSkew
}

// rules are a compiled policy, with parsed selectors and quantities, and with defaults.
type rules struct {
	kind placementType
	// hash is the PolicyHash.
	hash string
	// n is the number of clusters of PickN, and hasNumber says that the policy sets it.
	n         int
	hasNumber bool
	// names are the clusters that PickFixed names, each once, and listed has the same names.
	names  []string
	listed map[string]bool
	// namespace is that of a ResourcePlacement; empty for a ClusterResourcePlacement.
	namespace string

	// required are the terms of which a cluster must match one; every cluster matches if there
	// are none.
	required    []requiredTerm
	preferred   []preference
	constraints []constraint
	tolerations []api.Toleration
	together    []otherPlacement
	apart       []otherPlacement

	// usedProperties are the properties that the policy uses.
	usedProperties []string
	// notes are warnings about the policy.
	notes []string
}

// An otherPlacement is another placement and the clusters it holds.
type otherPlacement struct {
	name  string
	known bool
	holds map[string]bool
}

func compile(r Request) *rules {
	p := canonical(r.Policy)
	compiled := &rules{
		kind:        typeOf(&p),
		hash:        PolicyHash(r.Policy),
		namespace:   r.Key.Namespace,
		tolerations: p.Tolerations,

		usedProperties: ReferencedProperties(r.Policy),
	}
	if r.Policy != nil && r.Policy.NumberOfClusters != nil {
		compiled.n, compiled.hasNumber = max(0, int(*r.Policy.NumberOfClusters)), true
	}
	compiled.listed = make(map[string]bool, len(p.ClusterNames))
	for _, name := range p.ClusterNames {
		if !compiled.listed[name] {
			compiled.listed[name] = true
			compiled.names = append(compiled.names, name)
		}
	}
	compiled.constraints = compileSpread(p.TopologySpreadConstraints)
	if a := p.Affinity; a != nil {
		compiled.compileAffinity(a.ClusterAffinity)
		compiled.together = compiled.others(a.PlacementAffinity, "placementAffinity", r)
		compiled.apart = compiled.others(a.PlacementAntiAffinity, "placementAntiAffinity", r)
	}
	return compiled
}

func (r *rules) addNote(text string) { r.notes = append(r.notes, text) }

func (r *rules) others(refs []api.PlacementReference, field string, request Request) []otherPlacement {
	var all []otherPlacement
	for _, ref := range refs {
		clusters, known := request.Others[ref.Name]
		o := otherPlacement{name: ref.Name, known: known, holds: make(map[string]bool, len(clusters))}
		for _, name := range clusters {
			o.holds[name] = true
		}
		if !known {
			r.addNote("spec.policy.affinity." + field + ": there is no placement " + quote(ref.Name) + ", so it holds no cluster")
		}
		all = append(all, o)
	}
	return all
}
