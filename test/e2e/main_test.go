// Package e2e tests gitfleet on real clusters and a real Git server: the parts
// that no fake can stand in for, and the built program as its users run it.
package e2e

import (
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.Options{Clusters: 3, Audit: true})
}
