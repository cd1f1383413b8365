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

// unreachableGrace is how long a cluster may be unreachable before it is no longer eligible for
// new placements.
const unreachableGrace = 5 * time.Minute

// propertyMaxAge is how long observed properties are valid.
const propertyMaxAge = 15 * time.Minute

// Stale reports whether the observed properties of a cluster are too old to be used. They then
// count as unknown.
func Stale(seen *ledger.Cluster, now time.Time) bool {
	return seen != nil && now.Sub(seen.Observed) > propertyMaxAge
}

// StaleFrom returns the time from which the observed properties of a cluster are stale.
func StaleFrom(seen *ledger.Cluster) time.Time { return seen.Observed.Add(propertyMaxAge) }

// withoutStale leaves out stale properties and namespaces.
func withoutStale(seen *ledger.Cluster, now time.Time) *ledger.Cluster {
	if !Stale(seen, now) {
		return seen
	}
	out := *seen
	out.Properties, out.Namespaces = nil, nil
	return &out
}

// Cluster returns a member cluster in the form that the scheduler uses, without its
// eligibility.
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
	// Declared properties override observed ones.
	for name, value := range c.Annotations {
		if property, ok := strings.CutPrefix(name, api.PropertyAnnotationPrefix); ok {
			out.SetProperty(property, value)
		}
	}
	return out
}

// ineligibleReason returns why a cluster gets no new placements, and the time at which that
// could change; empty if it does get them.
func ineligibleReason(seen *ledger.Cluster, now time.Time) (string, time.Time) {
	denied := seen.Denied()
	switch {
	case denied != "" && seen.Joined.IsZero():
		return "cluster is not connected to the fleet: " + denied, time.Time{}
	case seen == nil || seen.Joined.IsZero():
		return "cluster is not connected to the fleet: it has not answered yet", time.Time{}
	case seen.Healthy:
		return "", time.Time{}
	}
	if limit := seen.Since.Add(unreachableGrace); !now.After(limit) {
		return "", limit.Add(time.Second)
	}
	if denied != "" {
		return "cluster is not connected to the fleet: " + denied, time.Time{}
	}
	// The message has the time and not the age, since a changing text would change the status
	// in every turn.
	return "cluster is not connected to the fleet: no recent heartbeat signals (last received at " + seen.LastSeen.UTC().Format(time.RFC3339) + ")", time.Time{}
}
