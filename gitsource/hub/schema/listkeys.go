package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// listKeyLines has a line for each list of built-in types whose items are identified: the Go
// type, the field with the list, and the fields of its items, with their defaults. It is made
// from the schema that server-side apply uses.
//
//go:embed listkeys.txt
var listKeyLines string

// listKeys returns the keys of lists by Go type and field.
var listKeys = sync.OnceValue(func() map[string]map[string]itemKey {
	keys := map[string]map[string]itemKey{}
	for line := range strings.Lines(listKeyLines) {
		words := strings.Fields(line)
		if keys[words[0]] == nil {
			keys[words[0]] = map[string]itemKey{}
		}
		key := itemKey{}
		for _, word := range words[2:] {
			name, byDefault, _ := strings.Cut(word, "=")
			key = append(key, keyField{name, byDefault})
		}
		keys[words[0]][words[1]] = key
	}
	return keys
})

// declaredKey returns the key of a list that a CustomResourceDefinition declares; nil if its
// items are not identified.
func declaredKey(list, items map[string]any) itemKey {
	switch list["x-kubernetes-list-type"] {
	case "set":
		return itemKey{}
	case "map":
	default:
		return nil
	}
	key := itemKey{}
	names, _ := list["x-kubernetes-list-map-keys"].([]any)
	fields, _ := items["properties"].(map[string]any)
	for _, n := range names {
		f := keyField{name: fmt.Sprint(n)}
		if field, ok := fields[f.name].(map[string]any); ok && field["default"] != nil {
			f.byDefault = fmt.Sprint(field["default"])
		}
		key = append(key, f)
	}
	return key
}

// of returns the key of an item in words; empty if it has none. missing is the first field that
// the item needs and does not have.
func (k itemKey) of(item any) (key, missing string) {
	if len(k) == 0 {
		data, err := json.Marshal(item)
		if err != nil {
			return "", ""
		}
		return string(data), ""
	}
	m, isMap := item.(map[string]any)
	if !isMap {
		return "", ""
	}
	words := make([]string, len(k))
	for i, f := range k {
		switch v := m[f.name].(type) {
		case nil:
			if f.byDefault == "" {
				return "", f.name
			}
			words[i] = f.name + " " + f.byDefault
		case string:
			words[i] = f.name + " " + v
		case int64, float64, bool:
			words[i] = fmt.Sprint(f.name, " ", v)
		default:
			return "", ""
		}
	}
	return strings.Join(words, ", "), ""
}

// distinct reports the items of a list that have no key, or that of an earlier item.
func (c *comparison) distinct(items []any, by itemKey, p *document.FieldPath) {
	first := make(map[string]int, len(items))
	for i, item := range items {
		if c.full() {
			return
		}
		key, missing := by.of(item)
		earlier, taken := first[key]
		switch {
		case missing != "":
			c.report(p.At(i), "has no "+missing+", which identifies the items of this list; add it")
		case key == "":
		case !taken:
			first[key] = i
		case len(by) == 0:
			c.report(p.At(i), fmt.Sprintf("is the same as item %d, and API servers refuse a list that has an item twice; remove one of them", earlier))
		default:
			c.report(p.At(i), fmt.Sprintf("has the same %s as item %d, and API servers refuse two items that are identified by the same %s; remove one of them",
				key, earlier, by.names()))
		}
	}
}

func (k itemKey) names() string {
	names := make([]string, len(k))
	for i, f := range k {
		names[i] = f.name
	}
	return strings.Join(names, " and ")
}
