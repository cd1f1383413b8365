// Package e2e tests gitfleet on real clusters and a real Git server: what no fake can replace,
// and the built binary as its users run it.
//
// Tests share the clusters and run in parallel: each has a namespace, a fleet name, a repository
// and a daemon of its own, and counts only the requests of these. A test that stops a cluster, or
// that creates something of a fixed name on it, has no t.Parallel: it runs before the others, alone.
package e2e

import (
	"testing"

	"github.com/gitfleet/gitfleet/test/fleet"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.Options{Clusters: 3, Audit: true})
}
