package status

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Equal lists are shared. Lists that differ, or are written differently, are reported
// unchanged, however many there are.
func TestUsagesThatSayTheSameAreShared(t *testing.T) {
	var all usages
	list := func(cpu string) api.ResourceList { return api.ResourceList{"cpu": resource.MustParse(cpu)} }
	one := api.ResourceUsage{Capacity: list("4"), Allocatable: list("4"), Available: list("1500m")}
	all.share(&one)
	two := api.ResourceUsage{Capacity: list("4"), Allocatable: list("4Gi"), Available: list("1500m")}
	all.share(&two)
	marked := func(l api.ResourceList) bool { return len(l) > 1 }
	one.Capacity["marked"] = resource.Quantity{}
	if !marked(two.Capacity) || !marked(one.Allocatable) || marked(two.Allocatable) || marked(two.Available) {
		t.Errorf("shared: %v, %v", one, two)
	}
	delete(one.Capacity, "marked")
	for i := range 100 {
		text := fmt.Sprint(i)
		u := api.ResourceUsage{Capacity: list(text), Available: list(text + "Gi")}
		all.share(&u)
		if !maps.EqualFunc(u.Capacity, list(text), sameQuantity) || !maps.EqualFunc(u.Available, list(text+"Gi"), sameQuantity) || u.Allocatable != nil {
			t.Errorf("%s: told as %v", text, u)
		}
	}
}
