package inventory

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Every field of an item is kept; a new field that is not packed would be lost.
func TestItemsAreKeptWhole(t *testing.T) {
	for _, uid := range []types.UID{"", "0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "of another form"} {
		var it Item
		for i := range reflect.TypeFor[Item]().NumField() {
			reflect.ValueOf(&it).Elem().Field(i).SetString("some " + reflect.TypeFor[Item]().Field(i).Name)
		}
		it.UID = uid
		held := Items{}
		held.Put(it)
		gvk, _ := held.GroupVersionKind(it.ID())
		if got := held.Of(it.ID()); got == nil || *got != it || !held.Has(it.ID()) || gvk != it.GroupVersionKind() {
			t.Errorf("kept %+v, want %+v", got, it)
		}
		for got := range held.All() {
			if got != it {
				t.Errorf("listed %+v, want %+v", got, it)
			}
		}
		held.Drop(it.ID())
		if held.Len() > 0 {
			t.Errorf("left: %v", held)
		}
	}
}
