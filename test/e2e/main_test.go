// Package e2e tests gitfleet on real clusters and a real Git server: what no fake can replace,
// and the built binary as its users run it.
package e2e

import (
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.Options{Clusters: 3, Audit: true})
}
