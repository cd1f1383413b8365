package ledger

import (
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A recordKey identifies a stored record. As text it consists of the kind and the parts that
// its kind has, separated by NUL, which no name contains.
type recordKey struct {
	kind      string
	placement api.PlacementKey
	object    api.ID
	cluster   string
	effect    string
	event     string // the Number of an EventKey
}

// kinds are the kinds of records, the names that they have in backups, and the parts of their
// keys. In records the commit in force is the head.
var kinds = map[string]struct {
	name                              string
	placement, object, cluster, event bool
	effect                            bool
}{
	headKey:          {name: "head"},
	fleetKey:         {name: "fleet"},
	clusterRecord:    {name: "cluster", cluster: true},
	placementRecord:  {name: "placement", placement: true},
	entryRecord:      {name: "binding", placement: true, cluster: true},
	suspensionRecord: {name: "suspension", placement: true, object: true, cluster: true},
	effectRecord:     {name: "effect", placement: true, cluster: true, effect: true},
	declaredRecord:   {name: "declared", object: true},
	eventRecord:      {name: "event", event: true},
}

const (
	// Of the commit in force and the fleet there is one record each, whose key is the kind.
	headKey, fleetKey = "h", "f"

	clusterRecord, placementRecord, entryRecord   = "c", "p", "e"
	suspensionRecord, declaredRecord, eventRecord = "s", "o", "v"
	// Suspensions with another effect than that nothing is written have keys of their own, which a
	// version that does not know them refuses instead of taking them for suspensions.
	effectRecord = "x"
)

func clusterKey(name string) string {
	return recordKey{kind: clusterRecord, cluster: name}.String()
}

func placementKey(k api.PlacementKey) string {
	return recordKey{kind: placementRecord, placement: k}.String()
}

func entryKey(k api.PlacementKey, cluster string) string {
	return recordKey{kind: entryRecord, placement: k, cluster: cluster}.String()
}

func declaredKey(id api.ID) string {
	return recordKey{kind: declaredRecord, object: id}.String()
}

// maxParts is the number of parts of which kinds have some.
const maxParts = 9

// parts are the parts that the kind has, n in all. An array lets the key stay on the stack.
func (k *recordKey) parts() (all [maxParts]*string, n int) {
	has := kinds[k.kind]
	for _, part := range [maxParts]struct {
		has bool
		at  *string
	}{
		{has.placement, &k.placement.Namespace}, {has.placement, &k.placement.Name},
		{has.object, &k.object.Group}, {has.object, &k.object.Kind}, {has.object, &k.object.Namespace}, {has.object, &k.object.Name},
		{has.cluster, &k.cluster}, {has.effect, &k.effect}, {has.event, &k.event},
	} {
		if part.has {
			all[n] = part.at
			n++
		}
	}
	return all, n
}

func (k recordKey) String() string {
	text := [1 + maxParts]string{k.kind}
	parts, n := k.parts()
	for i, part := range parts[:n] {
		text[i+1] = *part
	}
	return strings.Join(text[:n+1], "\x00")
}

func parseKey(key string) (recordKey, error) {
	kind, rest, more := strings.Cut(key, "\x00")
	k := recordKey{kind: kind}
	parts, n := k.parts()
	if kinds[kind].name == "" || strings.Count(key, "\x00") != n {
		return k, fmt.Errorf("there is no record %q", key)
	}
	for i := 0; more; i++ {
		*parts[i], rest, more = strings.Cut(rest, "\x00")
	}
	return k, nil
}
