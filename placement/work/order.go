package work

import (
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// Sorted returns the manifests in canonical order.
func Sorted(manifests []*Manifest) []*Manifest {
	return placement.Sorted(manifests, func(m *Manifest) *api.Object { return m.Object })
}
