package expression

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Every limit of an expression accepts its maximum and refuses one more.
func TestLimitsOfCompile(t *testing.T) {
	padded := func(n int) string { return "true" + strings.Repeat(" ", n-len("true")) }
	loops := func(n int) string { return strings.TrimSuffix(strings.Repeat("object.a.all(x, true) && ", n), " && ") }
	lists := func(n int) string { return strings.TrimSuffix(strings.Repeat("object.a == [] && ", n), " && ") }
	maps := func(n int) string { return strings.TrimSuffix(strings.Repeat("object.a == {} && ", n), " && ") }
	flat := func(n int) string {
		return "optional.of(true)" + strings.Repeat(".optFlatMap(x, optional.of(x))", n) + ".hasValue()"
	}
	pattern := func(n int) string { return `object.a.matches("` + strings.Repeat("s", n) + `")` }
	tests := map[string]struct {
		text func(n int) string
		most int
		want string
	}{
		"length":           {padded, Longest, "it has 4097 bytes, more than 4096"},
		"loops":            {loops, maxLoops, "line 1, column 413: it has more than 16 loops, such as map or all"},
		"lists":            {lists, maxLiterals, "line 1, column 1165: it has more than 64 lists and maps, those that macros make included"},
		"maps":             {maps, maxLiterals, "line 1, column 1165: it has more than 64 lists and maps, those that macros make included"},
		"optFlatMap":       {flat, maxOptMaps, "it uses optMap and optFlatMap 5 times, more than 4"},
		"pattern's states": {pattern, LargestPattern - 1, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(test.text(test.most)); err != nil {
				t.Errorf("%d: %v", test.most, err)
			}
			_, err := Compile(test.text(test.most + 1))
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("%d: %v, want %q", test.most+1, err, test.want)
			}
		})
	}
	const want = "line 1, column 18: the pattern has more than 2000 states; repeat less in it"
	if _, err := Compile(pattern(LargestPattern + 1)); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// The number of states of a pattern depends on what it repeats and how often.
func TestStatesOfAPattern(t *testing.T) {
	for pattern, want := range map[string]int{
		"": 1, "a": 1, "abc": 3, "(abc)": 4, "a*": 2, "[a-z]": 1, "abc|xyz": 7,
		"a{10}": 22, "a{2,10}": 20, "a{3,}": 8, "(a{10}){10}": 264, "((a{10}){10}){10}": LargestPattern + 1,
	} {
		got, err := statesIn(pattern)
		if want > LargestPattern {
			if err == nil {
				t.Errorf("%q has %d states, want an error", pattern, got)
			}
		} else if err != nil || got != want {
			t.Errorf("%q has %d states, %v, want %d", pattern, got, err, want)
		}
	}
}

// cost returns what an evaluation cost.
func cost(t *testing.T, text string, object map[string]any) uint64 {
	t.Helper()
	e, err := Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	_, details, err := e.program.Eval(map[string]any{"object": object})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return *details.ActualCost()
}

// A call costs one unit for each ten bytes that it reads or makes, unless it takes the same time
// for every size.
func TestCostGrowsWithTheSizeThatIsRead(t *testing.T) {
	object := func(n int) map[string]any {
		return map[string]any{"text": strings.Repeat("1", n), "list": []any{strings.Repeat("x", n), "b"}, "map": map[string]any{"a": strings.Repeat("x", n)}}
	}
	const smaller, larger = 10, 10_010
	for text, want := range map[string]uint64{ // the additional units for ten thousand bytes
		`object.text == "a"`:                       1000,
		`object.text != object.text`:               2000,
		`object.text + object.text == "a"`:         6000, // twice read and once made, which is compared
		`object.text.contains("2")`:                1000,
		`object.text.startsWith("2")`:              1000,
		`size(object.text) == 1`:                   1000,
		`bytes(object.text) == b"a"`:               3000,
		`object.list == []`:                        1000,
		`"b" in object.list`:                       1000,
		`object.text in object.map`:                1000, // the text and not the map
		`"b" in object.map`:                        0,
		`size(object.list) == 2`:                   0,
		`size(object.map) == 1`:                    0,
		`object.list[1] == "b"`:                    0,
		`object.?map.?a.hasValue()`:                0,
		`object.map.?b.orValue("c") == "c"`:        0,
		`has(object.map.a)`:                        0,
		`type(object.text) == string`:              0,
		`[object.text].size() == 1`:                1000,
		`{"a": object.text}.size() == 1`:           1000,
		`object.list.map(x, x).size() == 2`:        2000, // a list of one element, which is added
		`object.list.all(x, true)`:                 0,
		`object.text.matches("^[a-z]$")`:           500, // of four states, and one for the match
		`matches(object.text, "2{9}")`:             2100,
		`optional.of(object.text).hasValue()`:      0,
		`optional.of(object.text) == object.?list`: 2000,
		`object.text == "a" && object.map == {}`:   1000, // the second operand is not evaluated
		`true ? true : object.text == "a"`:         0,
	} {
		if got := cost(t, text, object(larger)) - cost(t, text, object(smaller)); got != want {
			t.Errorf("%s costs %d more for a larger object, want %d", text, got, want)
		}
	}
	utc, zone := cost(t, `timestamp("2026-01-01T00:00:00Z").getHours() == 0`, nil), cost(t, `timestamp("2026-01-01T00:00:00Z").getHours("UTC") == 0`, nil)
	if got := zone - utc; got != timeZoneCost {
		t.Errorf("a time zone costs %d", got)
	}
}

// An evaluation may cost exactly the maximum, and takes the same decision each time.
func TestCostliestEvaluation(t *testing.T) {
	const text = `object.text.contains("2")`
	base := cost(t, text, map[string]any{"text": ""})
	longest := int(Costliest-base+1)*bytesPerUnit - 2 // the 1 for the "2", and one less than a unit
	e, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	const tooMuch = "it costs more than 100000 to evaluate for this object; loop over fewer lists within each other, and compare fields instead of whole objects"
	var all sync.WaitGroup
	for range 4 { // an Expression is safe for concurrent use
		all.Go(func() {
			if _, err := e.Holds(map[string]any{"text": strings.Repeat("1", longest)}); err != nil {
				t.Errorf("%d bytes: %v", longest, err)
			}
			if _, err := e.Holds(map[string]any{"text": strings.Repeat("1", longest+1)}); err == nil || err.Error() != tooMuch {
				t.Errorf("%d bytes: %v, want %q", longest+1, err, tooMuch)
			}
		})
	}
	all.Wait()
}

// The size of a value includes everything in it, and an object may have exactly the maximum.
func TestSizeOfAValue(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  uint64
	}{
		"a number": {int64(7), 0}, "nothing": {nil, 0}, "a text": {"abc", 3}, "bytes": {[]byte("abcd"), 4},
		"a list":           {[]any{"abc", int64(1)}, 2*elementBytes + 3},
		"a map":            {map[string]any{"key": "value"}, elementBytes + 8},
		"one in another":   {map[string]any{"a": []any{map[string]any{"b": "c"}}}, 3*elementBytes + 3},
		"an empty object":  {map[string]any{}, 0},
		"more than enough": {[]any{strings.Repeat("x", 1000), strings.Repeat("x", 1000)}, elementBytes + 1000},
	} {
		if got := size(types.DefaultTypeAdapter.NativeToValue(test.value), 500); got != test.want {
			t.Errorf("%s has %d bytes, want %d", name, got, test.want)
		}
	}
	for value, want := range map[ref.Val]uint64{types.OptionalNone: 0, types.OptionalOf(types.String("abc")): 3} {
		if got := size(value, 500); got != want {
			t.Errorf("%v has %d bytes, want %d", value, got, want)
		}
	}
	e, err := Compile(`object.kind == "Gadget"`)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"kind": "Gadget", "data": ""}
	rest := LargestObject - 2*elementBytes - len("kindGadgetdata")
	object["data"] = strings.Repeat("x", rest)
	if holds, err := e.Holds(object); err != nil || !holds {
		t.Errorf("of exactly the maximum: %t, %v", holds, err)
	}
	const tooLarge = "the object is larger than 8 MiB, the most that an expression is evaluated for"
	object["data"] = strings.Repeat("x", rest+1)
	if _, err := e.Holds(object); err == nil || err.Error() != tooLarge {
		t.Errorf("%v, want %q", err, tooLarge)
	}
}
