package observed

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The last writer of an object is taken from its managed fields, without our own field manager
// and those of status writes.
func TestWriterOfAnObject(t *testing.T) {
	at := func(s int) *metav1.Time { return &metav1.Time{Time: time.Unix(int64(s), 0)} }
	entry := func(manager string, op metav1.ManagedFieldsOperationType, sub string, t *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, Subresource: sub, Time: t}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	tests := map[string]struct {
		in   []metav1.ManagedFieldsEntry
		want string
	}{
		"nobody":             {nil, ""},
		"only we":            {[]metav1.ManagedFieldsEntry{entry(api.FieldManager, apply, "", at(9))}, ""},
		"the last":           {[]metav1.ManagedFieldsEntry{entry("kubectl-edit", update, "", at(5)), entry("helm", update, "", at(3)), entry(api.FieldManager, apply, "", at(9))}, "kubectl-edit"},
		"through scale":      {[]metav1.ManagedFieldsEntry{entry("helm", update, "", at(3)), entry("hpa", update, "scale", at(4))}, "hpa"},
		"a status":           {[]metav1.ManagedFieldsEntry{entry("helm", update, "", at(3)), entry("kubelet", update, "status", at(4))}, "helm"},
		"no time":            {[]metav1.ManagedFieldsEntry{entry("helm", update, "", nil)}, ""},
		"our name, updating": {[]metav1.ManagedFieldsEntry{entry(api.FieldManager, update, "", at(3))}, api.FieldManager},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := writer(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Changes by others change the ownership state of an object; our applies and changes of the
// status do not.
func TestOwnershipStateOfAnObject(t *testing.T) {
	entry := func(manager, sub, fields string, second int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: sub,
			Time: &metav1.Time{Time: time.Unix(second, 0)}, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	ours := entry(api.FieldManager, "", `{"f:data":{"f:a":{}}}`, 1)
	ours.Operation = metav1.ManagedFieldsOperationApply
	oursLater := entry(api.FieldManager, "", `{"f:data":{"f:b":{}}}`, 2)
	oursLater.Operation = metav1.ManagedFieldsOperationApply
	helm := entry("helm", "", `{"f:data":{"f:x":{}}}`, 1)
	base := othersOf([]metav1.ManagedFieldsEntry{ours, helm})
	tests := map[string]struct {
		in   []metav1.ManagedFieldsEntry
		same bool
	}{
		"we applied something else": {[]metav1.ManagedFieldsEntry{oursLater, helm}, true},
		"a status":                  {[]metav1.ManagedFieldsEntry{ours, helm, entry("kubelet", "status", `{"f:status":{}}`, 3)}, true},
		"one more field":            {[]metav1.ManagedFieldsEntry{ours, entry("helm", "", `{"f:data":{"f:x":{},"f:y":{}}}`, 2)}, false},
		"another value":             {[]metav1.ManagedFieldsEntry{ours, entry("helm", "", `{"f:data":{"f:x":{}}}`, 2)}, false},
		"one more manager":          {[]metav1.ManagedFieldsEntry{ours, helm, entry("hpa", "scale", `{"f:spec":{}}`, 2)}, false},
		"one manager less":          {[]metav1.ManagedFieldsEntry{ours}, false},
		"another manager":           {[]metav1.ManagedFieldsEntry{ours, entry("flux", "", `{"f:data":{"f:x":{}}}`, 1)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := othersOf(test.in) == base; got != test.same {
				t.Errorf("the same state: %t, want %t", got, test.same)
			}
		})
	}
}
