package member

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Every field of an item is kept; a new field that is not packed would be lost.
func TestItemsAreKeptWhole(t *testing.T) {
	for _, uid := range []types.UID{"", "0b5f9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "of another form"} {
		var it item
		for i := range reflect.TypeFor[item]().NumField() {
			reflect.ValueOf(&it).Elem().Field(i).SetString("some " + reflect.TypeFor[item]().Field(i).Name)
		}
		it.UID = uid
		held := items{}
		held.put(it)
		gvk, _ := held.gvk(it.id())
		if got := held.of(it.id()); got == nil || *got != it || !held.has(it.id()) || gvk != it.gvk() {
			t.Errorf("kept %+v, want %+v", got, it)
		}
		for got := range held.all() {
			if got != it {
				t.Errorf("listed %+v, want %+v", got, it)
			}
		}
		held.Drop(it.id())
		if len(held.Map) > 0 {
			t.Errorf("left: %v", held)
		}
	}
}
