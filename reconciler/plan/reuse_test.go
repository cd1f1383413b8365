package plan

import (
	"errors"
	"reflect"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Plans for a cluster that differ in any field are not equal.
func TestEqualPlansForACluster(t *testing.T) {
	content := work.Rendered{Hash: "1", Manifests: manifestsOf("a")}
	changes := map[string]func(*OnCluster){
		"Binding":          func(c *OnCluster) { c.Binding.AssignedAt = noon },
		"Entry":            func(c *OnCluster) { c.Entry = &ledger.Entry{} },
		"Latest":           func(c *OnCluster) { c.Latest = placement.Revision{Commit: "v2"} },
		"Content":          func(c *OnCluster) { c.Content = content },
		"Err":              func(c *OnCluster) { c.Err = errors.New("no") },
		"provenContent":    func(c *OnCluster) { c.provenContent = &content },
		"Waits":            func(c *OnCluster) { c.Waits = "waits" },
		"Failure":          func(c *OnCluster) { c.Failure = "failed" },
		"TimedOut":         func(c *OnCluster) { c.TimedOut = true },
		"Suspended":        func(c *OnCluster) { c.Suspended = "suspended" },
		"Foreign":          func(c *OnCluster) { c.Foreign = "foreign" },
		"DeleteAllowed":    func(c *OnCluster) { c.DeleteAllowed = true },
		"work":             func(c *OnCluster) { c.work = &work.Work{Keep: true} },
		"suspendedObjects": func(c *OnCluster) { c.suspendedObjects = []work.SuspendedObject{{}} },
		"driftRule":        func(c *OnCluster) { c.driftRule = "Report" },
		"Claims":           func(c *OnCluster) { c.Claims.Early = []api.ID{configMap("a")} },
		"Yielded":          func(c *OnCluster) { c.Yielded = []Yielded{{}} },
		"previousContent":  func(c *OnCluster) { c.previousContent = &content },
		"contentLoading":   func(c *OnCluster) { c.contentLoading = true },
		"notRenderable":    func(c *OnCluster) { c.notRenderable = true },
	}
	for i := range reflect.TypeFor[OnCluster]().NumField() {
		name := reflect.TypeFor[OnCluster]().Field(i).Name
		t.Run(name, func(t *testing.T) {
			change := changes[name]
			if change == nil {
				t.Fatal("equal does not compare the field")
			}
			var a, b OnCluster
			change(&a)
			if !a.equal(&a) || a.equal(&b) || b.equal(&a) {
				t.Error("equal ignores the field")
			}
		})
	}
}
