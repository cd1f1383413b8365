package plan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// patience is how long a cluster may be out of reach before it is not eligible
// for new placements.
const patience = 5 * time.Minute

// staleness is how long an observed property is believed.
const staleness = 15 * time.Minute

// Stale reports whether what was observed of a cluster is too old to be
// believed: then it is unknown.
func Stale(seen *ledger.Cluster, now time.Time) bool {
	return seen != nil && now.Sub(seen.Observed) > staleness
}

// StaleFrom is when what was observed of a cluster became, or becomes, too old.
func StaleFrom(seen *ledger.Cluster) time.Time { return seen.Observed.Add(staleness) }

// fresh leaves out what is stale: it is unknown.
func fresh(seen *ledger.Cluster, now time.Time) *ledger.Cluster {
	if !Stale(seen, now) {
		return seen
	}
	out := *seen
	out.Properties, out.Namespaces = nil, nil
	return &out
}

// Cluster is what scheduling knows of a member, but for its eligibility.
func Cluster(c *hub.Cluster, seen *ledger.Cluster) placement.Cluster {
	out := placement.Cluster{Name: c.Name, Labels: c.Labels, Taints: c.Spec.Taints, Properties: map[string]resource.Quantity{}}
	if seen != nil {
		for name, value := range seen.Properties {
			out.SetProperty(name, value)
		}
		if seen.Namespaces != nil {
			out.Namespaces = make(map[string]bool, len(seen.Namespaces))
			for _, n := range seen.Namespaces {
				out.Namespaces[n] = true
			}
		}
	}
	// What Git declares outranks what was seen.
	for name, value := range c.Annotations {
		if property, ok := strings.CutPrefix(name, api.PropertyAnnotationPrefix); ok {
			out.SetProperty(property, value)
		}
	}
	return out
}

// ineligible says why a cluster takes nothing new, and if it still does, until
// when at the most.
func ineligible(seen *ledger.Cluster, now time.Time) (string, time.Time) {
	denied := seen.Denied()
	switch {
	case denied != "" && seen.Joined.IsZero():
		return "cluster is not connected to the fleet: " + denied, time.Time{}
	case seen == nil || seen.Joined.IsZero():
		return "cluster is not connected to the fleet: it has not answered yet", time.Time{}
	case seen.Healthy:
		return "", time.Time{}
	}
	if limit := seen.Since.Add(patience); !now.After(limit) {
		return "", limit.Add(time.Second)
	}
	if denied != "" {
		return "cluster is not connected to the fleet: " + denied, time.Time{}
	}
	// The time, not how long ago it is: a text that moves would be news at every
	// turn.
	return "cluster is not connected to the fleet: no recent heartbeat signals (last received at " + seen.LastSeen.UTC().Format(time.RFC3339) + ")", time.Time{}
}
