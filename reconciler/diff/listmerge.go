package diff

import (
	"slices"
	"strings"
)

// A pair is an item of a merged list: where it was in have and in want, or -1.
type pair struct{ have, want int }

// interleave puts two lists of distinct names together as a server does when
// it merges want into have: what only have has stays where it is, the rest
// comes in the order of want.
func interleave(have, want []string) []pair {
	var out []pair
	for h, w := 0, 0; h < len(have) || w < len(want); {
		switch {
		case h < len(have) && !slices.Contains(want, have[h]):
			out = append(out, pair{h, -1})
			h++
		case h < len(have) && slices.Contains(want[:w], have[h]), h < len(have) && have[h] != nextShared(have, want[w:]):
			h++ // it has been, or will be, put in by its place in want
		default:
			at := slices.Index(have, want[w])
			if h < len(have) && at == h {
				h++
			}
			out = append(out, pair{at, w})
			w++
		}
	}
	return out
}

// nextShared returns the first of want that is in have too.
func nextShared(have, want []string) string {
	i := slices.IndexFunc(want, func(id string) bool { return slices.Contains(have, id) })
	if i < 0 {
		return ""
	}
	return want[i]
}

// identities returns the names of a list's items by their keys, or by their
// value if there are no keys. It is not ok if an item has no name, or two have
// the same.
func identities(list []any, keys []string) (ids []string, ok bool) {
	for _, item := range list {
		id := text(item)
		if keys != nil {
			id = identity(item, keys)
		}
		if id == "" || slices.Contains(ids, id) {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// identity returns a text for the keys of an item, or "" if it lacks one.
func identity(item any, keys []string) string {
	m, _ := item.(map[string]any)
	var id strings.Builder
	for _, key := range keys {
		v, ok := m[key]
		if !ok {
			v, ok = keyDefaults[key]
		}
		if !ok || !scalar(v) {
			return ""
		}
		id.WriteString(text(v))
		id.WriteByte(0)
	}
	return id.String()
}

// listKeys are the keys of the lists in Kubernetes' own kinds that are merged
// by key. Of several, the first that fits all items counts.
var listKeys = map[string][][]string{
	"conditions":                {{"type"}},
	"containers":                {{"name"}},
	"env":                       {{"name"}},
	"ephemeralContainers":       {{"name"}},
	"hostAliases":               {{"ip"}},
	"imagePullSecrets":          {{"name"}},
	"initContainers":            {{"name"}},
	"ports":                     {{"containerPort", "protocol"}, {"port", "protocol"}},
	"resourceClaims":            {{"name"}},
	"secrets":                   {{"name"}},
	"topologySpreadConstraints": {{"topologyKey", "whenUnsatisfiable"}},
	"volumeDevices":             {{"devicePath"}},
	"volumeMounts":              {{"mountPath"}},
	"volumes":                   {{"name"}},
	"webhooks":                  {{"name"}},
}

// keyDefaults are what an API server fills in for a key that is not written.
var keyDefaults = map[string]any{"protocol": "TCP"}
