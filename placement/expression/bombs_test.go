package expression

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// largeObject returns an object with a string of 500 KB and a list of a thousand elements.
func largeObject() map[string]any {
	items := make([]any, 1000)
	for i := range items {
		items[i] = map[string]any{"name": fmt.Sprintf("item-%d", i), "ready": true}
	}
	return map[string]any{
		"data": map[string]any{"large": strings.Repeat("aaaaaaaaab", 50_000), "digits": strings.Repeat("1", 500_000)},
		"spec": map[string]any{"items": items},
	}
}

const ten = "[0,1,2,3,4,5,6,7,8,9]"

// bombs are expressions that would take very much memory or time if they were evaluated
// completely.
var bombs = map[string]string{
	"concatenation in nested loops": ten + `.map(a, ` + ten + `.map(b, ` + ten + `.map(c, ` + ten + `.map(d, object.data.large + object.data.large + string(a)))))` + `.size() > 0`,
	"a string that doubles":         `[object.data.large]` + strings.Repeat(`.map(s, s + s)`, 15) + `.size() > 0`,
	"a list that doubles":           `[object.spec.items]` + strings.Repeat(`.map(l, l + l)`, 13) + `.size() > 0`,
	"a list that doubles, compared": `[object.spec.items]` + strings.Repeat(`.map(l, l + l)`, 13) + `.all(l, l == l)`,
	"a list of itself, compared":    `[object.spec.items]` + strings.Repeat(`.map(l, [l, l])`, 13) + `.all(l, l == l)`,
	"a map of itself, compared":     `[object]` + strings.Repeat(`.map(m, {"a": m, "b": m})`, 13) + `.all(m, m == m)`,
	"a list of itself, searched":    `[object.spec.items]` + strings.Repeat(`.map(l, [l, l])`, 13) + `.all(l, object in l)`,
	"bytes that double":             `[bytes(object.data.large)]` + strings.Repeat(`.map(s, s + s)`, 15) + `.size() > 0`,
	"the list of a loop":            `object.spec.items.map(a, object.spec.items.map(b, object.spec.items)).size() > 0`,
	"a filter in a filter":          `object.spec.items.filter(a, object.spec.items.filter(b, a != b).size() > 0).size() > 0`,
	"an object compared":            `object.spec.items.all(a, object == object)`,
	"a text compared":               `object.spec.items.all(a, object.data.large <= object.data.large)`,
	"a text searched":               `object.spec.items.all(a, !object.data.large.contains("aaaaaaaaaaaaaaaaaaaac"))`,
	"a text measured":               `object.spec.items.all(a, size(object.data.large) > 0)`,
	"a text converted":              `object.spec.items.all(a, size(bytes(object.data.large)) > 0)`,
	"a number of many digits":       `object.spec.items.all(a, double(object.data.digits) > 0.0)`,
	"a map of the object":           `object.spec.items.all(a, !has({"x": object, "y": [object]}.z))`,
	"a pattern over a large text":   `object.data.large.matches("(a?){90}(a|aa)+c")`,
	"a pattern in a loop":           `object.spec.items.all(a, !a.name.matches("(i?t?e?m?-?[0-9]?){100}c"))`,
	"a message of the object":       `object.spec.items.all(a, google.protobuf.Struct{fields: {"a": object.data.large}} == {})`,
	"time zones":                    ten + `.all(a, ` + ten + `.all(b, ` + ten + `.all(c, ` + ten + `.all(d, timestamp("2026-01-01T00:00:00Z").getHours("Europe/Paris") >= 0))))`,
	"optional values":               `[optional.of(object)]` + strings.Repeat(`.map(o, [o, o])`, 13) + `.all(o, o == o)`,
	"all in a conditional":          `object.spec.items.all(a, (a.ready ? object.data.large : "") + (a.ready ? object.data.large : "") != "")`,
}

// allocated returns how many MiB a function allocates, including memory that was freed again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20
}

// The memory and time of an evaluation are limited for every expression.
func TestBombsAreDefused(t *testing.T) {
	object := largeObject()
	for name, text := range bombs {
		t.Run(name, func(t *testing.T) {
			e, err := Compile(text)
			if err != nil {
				if !strings.Contains(err.Error(), "it costs") {
					t.Fatal(err)
				}
				return
			}
			took := allocated(func() { _, err = e.Holds(object) })
			if err == nil || !strings.Contains(err.Error(), "it costs more than") {
				t.Errorf("%v, want that it costs too much", err)
			}
			if took > 64 {
				t.Errorf("it took %d MiB", took)
			}
		})
	}
}

// Expressions that would be expensive to compile are refused before they are compiled.
func TestBombsAreNotCompiled(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a chain of optional values":   {`object.?a` + strings.Repeat(`.optMap(x, x)`, 100) + `.hasValue()`, "it uses optMap and optFlatMap 100 times, more than 4"},
		"a pattern of many states":     {`object.a.matches("(((a|b){10}c){10}d){10}")`, "the pattern has more than 2000 states"},
		"a pattern that is no pattern": {`object.a.matches("(")`, "line 1, column 18: error parsing regexp: missing closing )"},
		"a pattern from the object":    {`object.a.matches(object.b)`, "line 1, column 24: the pattern of matches must be written out in quotes"},
		"a pattern that is made":       {`matches(object.a, "a" + "b")`, "the pattern of matches must be written out in quotes"},
		"lists in lists":               {strings.Repeat("[", 240) + "object.a" + strings.Repeat("]", 240) + " == []", "it has more than 64 lists and maps"},
		"lists in lists in loops":      {`[[1]]` + strings.Repeat(`.map(l, {"a": [[[[[l]]]]]})`, 16) + `.size() > 0`, "it has more than 64 lists and maps"},
		"maps of themselves":           {`[[1]]` + strings.Repeat(`.map(l, {l: l})`, 9) + `.size() > 0`, "the key of a map must be a constant"},
		"loops in loops":               {strings.Repeat(`[1].map(l, `, 20) + "1" + strings.Repeat(")", 20) + ".size() > 0", "it has more than 16 loops"},
		"parentheses":                  {strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000), "recursion limit exceeded"},
		"a sum of many":                {"object.a" + strings.Repeat("+object.a", 400) + "==1", "recursion depth exceeded"},
		"what always costs too much": {
			ten + `.map(a, ` + ten + `.map(b, ` + ten + `.map(c, ` + ten + `.map(d, ` + ten + `.map(e, a + b + c + d + e)))))` + `.size() > 0`,
			"it costs at least ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			if took := allocated(func() { _, err = Compile(test.text) }); took > 16 {
				t.Errorf("it took %d MiB", took)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Typical expressions can be evaluated, also for large objects.
func TestOrdinaryExpressionsAreNoBombs(t *testing.T) {
	object := largeObject()
	object["status"] = map[string]any{
		"phase":      "Running",
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "True"}},
	}
	for _, text := range []string{
		`object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`,
		`object.status.conditions.filter(c, c.type in ["Ready", "Synced"]).all(c, c.status == "True")`,
		`object.spec.items.all(i, i.ready && i.name.startsWith("item-"))`,
		`object.spec.items.map(i, i.name).exists(n, n == "item-999")`,
		`object.spec.items.filter(i, !i.ready).size() == 0`,
		`object.status.phase.matches("^(Running|Succeeded)$")`,
		`object.spec.items[0].name.matches("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")`,
		`object.?status.?phase.optMap(p, p.lowerAscii == "x" || true).orValue(true) || object.status.phase == "Running"`,
		`size(object.data.large) == 500000`,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if holds, err := e.Holds(object); err != nil || !holds {
			t.Errorf("%s: %t, %v", text, holds, err)
		}
		if w := e.Warning(); w != "" {
			t.Errorf("%s: %s", text, w)
		}
	}
}

// There is a warning about an expression that can be evaluated only for small objects.
func TestWarning(t *testing.T) {
	for text, want := range map[string]bool{
		`object.a.all(x, object.b.all(y, x.name != y.name))`:                           false,
		`object.a.all(x, object.b.all(y, object.c.all(z, x.name != y.name + z.name)))`: true,
		`object.a.map(x, object.a.map(y, object.a.map(z, x + y + z))).size() > 1`:      true,
		`object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`:  false,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := e.Warning() != ""; got != want {
			t.Errorf("%s: %q (%d)", text, e.Warning(), e.likely)
		}
	}
}

// An expression is not evaluated for an object that exceeds the limit.
func TestALargeObjectIsRefused(t *testing.T) {
	e, err := Compile(`object.a == "b"`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Holds(map[string]any{"a": "b", "large": strings.Repeat("x", LargestObject)})
	if err == nil || !strings.Contains(err.Error(), "the object is larger than 8 MiB") {
		t.Error(err)
	}
}
