package simulated

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// list serves one page of a list. Each page is of the state at the time of its request.
func (q *request) list(c *Cluster) (any, error) {
	chosen, err := q.chosen()
	if err != nil {
		return nil, err
	}
	query := q.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	after, err := base64.RawURLEncoding.DecodeString(query.Get("continue"))
	if err != nil {
		return nil, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	var all []*object
	for _, o := range c.list(q.kind, q.namespace) {
		if position(o) > string(after) && chosen(o) {
			all = append(all, o)
		}
	}
	if limit <= 0 || len(all) <= limit {
		return q.page(c, all, "", 0), nil
	}
	return q.page(c, all[:limit], base64.RawURLEncoding.EncodeToString([]byte(position(all[limit-1]))), len(all)-limit), nil
}

// position returns the sort key of an object in a list.
func position(o *object) string { return o.namespace + "\x00" + o.name }

func (q *request) page(c *Cluster, list []*object, next string, remaining int) any {
	meta := map[string]any{"resourceVersion": strconv.FormatUint(c.version, 10)}
	if next != "" {
		meta["continue"], meta["remainingItemCount"] = next, int64(remaining)
	}
	out := map[string]any{"apiVersion": q.kind.GroupVersion().String(), "kind": q.kind.Kind + "List", "metadata": meta}
	if q.metadataOnly() {
		out["apiVersion"], out["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	items := make([]any, 0, len(list))
	for _, o := range list {
		item := q.shown(o)
		if whole := item.(map[string]any); !q.metadataOnly() && !q.kind.custom {
			delete(whole, "apiVersion") // items of built-in kinds have neither kind nor apiVersion
			delete(whole, "kind")
		}
		items = append(items, item)
	}
	out["items"] = items
	return out
}

// chosen returns whether an object matches the selectors of the request.
func (q *request) chosen() (func(*object) bool, error) {
	query := q.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o *object) bool {
		return (byLabel.Empty() || byLabel.Matches(o.labels())) && (byField.Empty() || byField.Matches(readable{o.coded()}))
	}, nil
}

// readable gives access to fields by their paths, such as spec.nodeName.
type readable struct{ object map[string]any }

// Has returns true: every field can be selected by.
func (r readable) Has(string) bool { return true }

// Get returns the value of a field; empty if it is not set.
func (r readable) Get(path string) string {
	var at any = r.object
	for _, part := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = m[part]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}

// since returns the changes of a kind after a version, and the version up to which they are
// complete. The error is 410 Gone if some have been dropped. The lock must be held.
func (c *Cluster) since(version uint64, k *kind, namespace string) ([]event, uint64, error) {
	if version < c.forgot {
		return nil, 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, c.forgot))
	}
	at, _ := slices.BinarySearchFunc(c.history, version+1, func(e event, v uint64) int { return int(int64(e.version) - int64(v)) })
	var out []event
	for _, e := range c.history[at:] {
		o := e.after
		if o == nil {
			o = e.before
		}
		if e.kind().resource() == k.resource() && (namespace == "" || o.namespace == namespace) {
			out = append(out, e)
		}
	}
	return out, c.version, nil
}
