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
