package store

import (
	"bytes"
	"errors"
	"io"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A watch sees an object that begins or ceases to match its selector as added or deleted.
func TestEventsOfAWatch(t *testing.T) {
	selector := func(text string) labels.Selector {
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	red := Query{Labels: selector("color=red")}
	const since = 10
	at := func(born, relabeled uint64, before, now string, deleted bool) *entry {
		return &entry{
			born: born, relabeled: relabeled, before: map[string]string{"color": before}, deleted: deleted,
			object: &Object{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"color": now}}},
		}
	}
	for name, test := range map[string]struct {
		query Query
		entry *entry
		want  watch.EventType
	}{
		"new":                              {Query{}, at(11, 0, "", "red", false), watch.Added},
		"changed":                          {Query{}, at(9, 0, "", "red", false), watch.Modified},
		"deleted":                          {Query{}, at(9, 0, "", "red", true), watch.Deleted},
		"new and deleted":                  {Query{}, at(11, 0, "", "red", true), ""},
		"in another namespace":             {Query{Namespace: "other"}, at(9, 0, "", "red", false), ""},
		"of another name":                  {Query{Fields: fields.OneTermEqualSelector("metadata.name", "b")}, at(9, 0, "", "red", false), ""},
		"of the name":                      {Query{Fields: fields.OneTermEqualSelector("metadata.name", "a")}, at(9, 0, "", "red", false), watch.Modified},
		"matches as before":                {red, at(9, 0, "", "red", false), watch.Modified},
		"still does not match":             {red, at(9, 0, "", "blue", false), ""},
		"begins to match":                  {red, at(9, 11, "blue", "red", false), watch.Added},
		"no longer matches":                {red, at(9, 11, "red", "blue", false), watch.Deleted},
		"did not match, and was deleted":   {red, at(9, 0, "", "blue", true), ""},
		"matched before it was deleted":    {red, at(9, 11, "red", "blue", true), watch.Deleted},
		"the labels changed before that":   {red, at(9, 10, "blue", "red", false), watch.Modified},
		"new, with labels that changed":    {red, at(11, 12, "blue", "red", false), watch.Added},
		"new, and does not match any more": {red, at(11, 12, "red", "blue", false), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.query.event(test.entry, test.entry.read(), since); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Only an event with the whole object in JSON is written without the encoder.
func TestEventsInJSONAreWrittenWithoutTheEncoder(t *testing.T) {
	o := &Object{Content: func(metav1.ObjectMeta) (any, error) { return map[string]string{"kind": "Thing"}, nil }}
	for id, want := range map[runtime.Identifier]string{
		`{"name":"watch","embeddedEncoder":"gitfleet/json","encoder":"gitfleet/json","eventType":"ADDED"}`: `{"type":"ADDED","object":{"kind":"Thing"}}` + "\n",
		`{"name":"watch","embeddedEncoder":"table","encoder":"gitfleet/json","eventType":"ADDED"}`:         "encoded",
		`{"name":"watch","embeddedEncoder":"gitfleet/json","encoder":"yaml","eventType":"ADDED"}`:          "encoded",
		`{"name":"get","embeddedEncoder":"gitfleet/json","encoder":"gitfleet/json","eventType":"ADDED"}`:   "encoded",
		JSON: "encoded",
	} {
		var out bytes.Buffer
		err := o.CacheEncode(id, func(_ runtime.Object, w io.Writer) error { _, err := io.WriteString(w, "encoded"); return err }, &out)
		if err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", id, &out, err, want)
		}
	}
}

// An object is encoded once, also for another version, and an error is returned each time.
func TestObjectsAreEncodedOnce(t *testing.T) {
	calls := 0
	o := &Object{Content: func(meta metav1.ObjectMeta) (any, error) { calls++; return map[string]string{"name": meta.Name}, nil }}
	o.Name = "a"
	for range 3 {
		if raw, err := o.JSON(); err != nil || string(raw) != `{"name":"a"}` {
			t.Errorf("%s, %v", raw, err)
		}
	}
	if calls != 1 {
		t.Errorf("encoded %d times", calls)
	}
	conversions := 0
	convert := func(o *Object) *Object { conversions++; return o.copy() }
	o.version = 7
	if first := o.As("v1", convert); first != o.As("v1", convert) || first == o.As("v2", convert) || first.version != 7 || conversions != 2 {
		t.Errorf("converted %d times", conversions)
	}
	broken := &Object{Content: func(metav1.ObjectMeta) (any, error) { return nil, errors.New("broken") }}
	for range 2 {
		if _, err := broken.JSON(); err == nil {
			t.Error("no error")
		}
	}
}

// Every object can be selected by its name and namespace, and by the fields of its kind.
func TestSelectableFields(t *testing.T) {
	o := &Object{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	typed := &Object{ObjectMeta: o.ObjectMeta, Field: func(name string) (string, bool) { return "Normal", name == "type" }}
	for _, test := range []struct {
		object *Object
		field  string
		has    bool
		value  string
	}{
		{o, "metadata.name", true, "a"}, {o, "metadata.namespace", true, "ns"}, {o, "type", false, ""},
		{typed, "metadata.name", true, "a"}, {typed, "type", true, "Normal"}, {typed, "reason", false, "Normal"},
	} {
		if has, value := test.object.Selectable().Has(test.field), test.object.Selectable().Get(test.field); has != test.has || value != test.value {
			t.Errorf("%s: %t %q", test.field, has, value)
		}
	}
}

// A list has the objects that match all parts of a query, after a given one, up to a limit.
func TestLists(t *testing.T) {
	s := New(began)
	fill(s, nil, map[string]string{"a": "red", "b": "blue", "c": "red", "d": "red"})
	red, _ := labels.Parse("color=red")
	for name, test := range map[string]struct {
		query Query
		after string
		limit int
		want  string
		left  int
		more  bool
	}{
		"all":                      {Query{Kind: things}, "", 0, "abcd", 0, false},
		"of a label":               {Query{Kind: things, Labels: red}, "", 0, "acd", 0, false},
		"of a name":                {Query{Kind: things, Fields: fields.OneTermEqualSelector("metadata.name", "b")}, "", 0, "b", 0, false},
		"of a namespace":           {Query{Kind: things, Namespace: "ns"}, "", 0, "abcd", 0, false},
		"of another namespace":     {Query{Kind: things, Namespace: "other"}, "", 0, "", 0, false},
		"of an unknown kind":       {Query{}, "", 0, "", 0, false},
		"the first two":            {Query{Kind: things}, "", 2, "ab", 2, true},
		"two after one":            {Query{Kind: things}, "a", 2, "bc", 1, true},
		"after one that is gone":   {Query{Kind: things}, "bb", 2, "cd", 0, false},
		"a page of a label":        {Query{Kind: things, Labels: red}, "", 1, "a", 0, true},
		"the last page of a label": {Query{Kind: things, Labels: red}, "c", 1, "d", 0, false},
		"after the last":           {Query{Kind: things}, "d", 2, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			page := s.List(test.query, "ns", test.after, test.limit)
			got := ""
			for _, o := range page.Objects {
				got += o.Name
			}
			if got != test.want || page.Left != test.left || page.More != test.more || page.Version != s.Version() {
				t.Errorf("%q, %d left (%t) at %d; want %q, %d left (%t)", got, page.Left, page.More, page.Version, test.want, test.left, test.more)
			}
		})
	}
	if s.Get(things, "ns", "x") != nil || s.Get(things, "other", "a") != nil || s.Get(things, "ns", "a") == nil {
		t.Error("Get returns another object")
	}
}
