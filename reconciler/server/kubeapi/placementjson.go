package kubeapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A placementJSON is a placement that is encoded to JSON without reflection, many times faster than
// by encoding/json. Nearly all of its size is the statuses on its clusters, of which a list of all
// placements may have some hundred thousand.
type placementJSON struct {
	// object is the placement without statuses, and its last field the status.
	object   any
	statuses []api.PerClusterPlacementStatus
}

// emptyStatus is the end of an object with an empty status.
var emptyStatus = []byte(`"status":{}}`)

// MarshalObject implements store.Marshaler.
func (p placementJSON) MarshalObject() ([]byte, error) {
	raw, err := json.Marshal(p.object)
	if err != nil || len(p.statuses) == 0 {
		return raw, err
	}
	const each = 1500 // the size of a status on a healthy cluster
	out := make([]byte, 0, len(raw)+each*len(p.statuses))
	out = append(out, raw[:len(raw)-len("}}")]...)
	if !bytes.HasSuffix(raw, emptyStatus) {
		out = append(out, ',')
	}
	out = append(out, `"placementStatuses":[`...)
	for i := range p.statuses {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendStatus(out, &p.statuses[i]); err != nil {
			return nil, err
		}
	}
	return append(out, "]}}"...), nil
}

// appendStatus appends a status as encoding/json does. It writes only statuses that have
// nothing but conditions by itself; most are of that kind.
func appendStatus(out []byte, s *api.PerClusterPlacementStatus) ([]byte, error) {
	rest := *s
	rest.ClusterName, rest.ObservedResourceIndex, rest.Conditions = "", "", nil
	if !reflect.ValueOf(&rest).Elem().IsZero() || s.ClusterName == "" || s.ObservedResourceIndex == "" || len(s.Conditions) == 0 {
		raw, err := json.Marshal(s)
		return append(out, raw...), err
	}
	out = appendText(append(out, `{"clusterName":`...), s.ClusterName)
	out = appendText(append(out, `,"observedResourceIndex":`...), s.ObservedResourceIndex)
	out = append(out, `,"conditions":[`...)
	for i := range s.Conditions {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendCondition(out, &s.Conditions[i])
	}
	return append(out, "]}"...), nil
}

func appendCondition(out []byte, c *metav1.Condition) []byte {
	out = appendText(append(out, `{"type":`...), c.Type)
	out = appendText(append(out, `,"status":`...), string(c.Status))
	if c.ObservedGeneration != 0 {
		out = strconv.AppendInt(append(out, `,"observedGeneration":`...), c.ObservedGeneration, 10)
	}
	out = append(out, `,"lastTransitionTime":`...)
	if c.LastTransitionTime.IsZero() {
		out = append(out, "null"...)
	} else {
		out = append(c.LastTransitionTime.UTC().AppendFormat(append(out, '"'), time.RFC3339), '"')
	}
	out = appendText(append(out, `,"reason":`...), c.Reason)
	out = appendText(append(out, `,"message":`...), c.Message)
	return append(out, '}')
}

// appendText appends a JSON string.
func appendText(out []byte, s string) []byte {
	for i := range len(s) {
		if !unescaped[s[i]] {
			raw, _ := json.Marshal(s) // encoding a string cannot fail
			return append(out, raw...)
		}
	}
	out = append(append(out, '"'), s...)
	return append(out, '"')
}

// unescaped are the bytes that are not escaped in a JSON string.
var unescaped = func() (out [256]bool) {
	for b := byte(' '); b < 0x7f; b++ {
		out[b] = b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
	}
	return out
}()
