package diff

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// A pair is an item of a merged list: its index in have and in want, or -1.
type pair struct{ have, want int }

// interleave merges two lists of distinct names as an API server does: items that only have has
// keep their position, and the others are in the order of want.
func interleave(have, want []string) []pair {
	inWant, inHave := sets.New(want...), make(map[string]int, len(have))
	for i, name := range have {
		inHave[name] = i
	}
	position := func(name string) int {
		if i, ok := inHave[name]; ok {
			return i
		}
		return -1
	}
	out := make([]pair, 0, len(want))
	h := 0
	keepUntil := func(end int) {
		for ; h < end; h++ {
			if !inWant.Has(have[h]) {
				out = append(out, pair{h, -1})
			}
		}
	}
	next := 0 // the first of the remaining names that is in both lists
	for w, name := range want {
		for next = max(next, w); next < len(want) && position(want[next]) < 0; {
			next++
		}
		end := len(have)
		if next < len(want) && position(want[next]) >= h {
			end = position(want[next])
		}
		keepUntil(end)
		at := position(name)
		if out = append(out, pair{at, w}); at >= 0 && at == h {
			h++
		}
	}
	keepUntil(len(have))
	return out
}

// names returns a name for each item of a list. ok is false if an item has none, or two items
// have the same.
func (m merging) names(list []any) (names []string, ok bool) {
	taken := make(map[string]bool, len(list))
	for _, item := range list {
		name := m.name(item)
		if name == "" || taken[name] {
			return nil, false
		}
		taken[name] = true
		names = append(names, name)
	}
	return names, true
}

// name returns a text for the keys of an item, or for its value; "" if one is missing.
func (m merging) name(item any) string {
	if m.set {
		return Text(item)
	}
	fields, _ := item.(map[string]any)
	var name strings.Builder
	for _, key := range m.keys {
		v, ok := fields[key]
		if !ok {
			v, ok = keyDefaults[key]
		}
		if !ok || !scalar(v) {
			return ""
		}
		name.WriteString(Text(v))
		name.WriteByte(0)
	}
	return name.String()
}

// listKeys are the merge keys of lists in built-in kinds. If there are several, the first one
// that all items have is used.
var listKeys = map[string][]merging{
	"conditions":                {by("type")},
	"containers":                {by("name")},
	"env":                       {by("name")},
	"ephemeralContainers":       {by("name")},
	"hostAliases":               {by("ip")},
	"imagePullSecrets":          {by("name")},
	"initContainers":            {by("name")},
	"ports":                     {by("containerPort", "protocol"), by("port", "protocol")},
	"resourceClaims":            {by("name")},
	"secrets":                   {by("name")},
	"topologySpreadConstraints": {by("topologyKey", "whenUnsatisfiable")},
	"volumeDevices":             {by("devicePath")},
	"volumeMounts":              {by("mountPath")},
	"volumes":                   {by("name")},
	"webhooks":                  {by("name")},
}

func by(keys ...string) merging { return merging{keys: keys} }
