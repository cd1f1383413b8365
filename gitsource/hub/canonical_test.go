package hub

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestObjectsAreHashedAsTheJSONOfEveryoneElse(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<a href=\"x\">&", "\u2028\x7f", "tab\tline\n", "\\", "ünï", "\xff"}))
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Just[any](nil), text.AsAny(), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(),
		}
		if depth > 0 {
			below := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
			kinds = append(kinds, rapid.SliceOfN(below, 0, 4).AsAny(), rapid.MapOfN(text, below, 0, 20).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		got, err := appendJSON(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func TestWhatIsNoJSONIsAnError(t *testing.T) {
	for _, v := range []any{func() {}, map[string]any{"a": []any{make(chan int)}}} {
		if got, err := appendJSON(nil, v); err == nil {
			t.Errorf("%T became %s", v, got)
		}
	}
}
