package diff

import "strings"

// A pair is an item of a merged list: its index in have and in want, or -1.
type pair struct{ have, want int }

// interleave merges two lists of distinct names as an API server does: items that only have has
// keep their position, and the others are in the order of want.
func interleave(have, want []string) []pair {
	inHave, inWant := positions(have), positions(want)
	var out []pair
	next := 0 // the next name in want that is also in have
	for h, w := 0, 0; h < len(have) || w < len(want); {
		for next < len(want) && (next < w || !contains(inHave, want[next])) {
			next++
		}
		at := -1
		if w < len(want) && contains(inHave, want[w]) {
			at = inHave[want[w]]
		}
		switch {
		case h < len(have) && !contains(inWant, have[h]):
			out = append(out, pair{h, -1})
			h++
		case h < len(have) && inWant[have[h]] != next:
			h++ // its position follows from the order of want
		default:
			out = append(out, pair{at, w})
			if at == h {
				h++
			}
			w++
		}
	}
	return out
}

func contains(names map[string]int, name string) bool {
	_, ok := names[name]
	return ok
}

func positions(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	return at
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
		return text(item)
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
		name.WriteString(text(v))
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

// keyDefaults are the defaults of keys that are not set.
var keyDefaults = map[string]any{"protocol": "TCP"}
