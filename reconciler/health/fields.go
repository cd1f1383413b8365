package health

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields reads fields of a live object and records the first one with an unexpected type, so
// that rules need no error checks.
type fields struct {
	live *unstructured.Unstructured
	err  error
	// unseen is the result of observed.
	unseen string
}

// first returns the health of an object. Its message is the first one that is not empty; if all
// are, the object is available. It must be called after all fields were read.
func (f *fields) first(missing ...string) Health {
	if f.err != nil {
		return Health{State: Failed, Message: f.err.Error(), Failure: "its status cannot be read: " + f.err.Error()}
	}
	if m := cmp.Or(missing...); m != "" {
		return Health{State: NotAvailableYet, Message: m, Unseen: m == f.unseen}
	}
	return Health{State: Available}
}

const unseen = "not yet seen by its controller"

// observed returns a message if the controller has not observed the newest spec, or "".
func (f *fields) observed() string {
	seen, generation := f.status("observedGeneration"), f.live.GetGeneration()
	if seen == 0 {
		f.unseen = messageIf(seen != generation, unseen)
	} else {
		f.unseen = messageIf(seen != generation, "generation %d "+unseen+", the last was %d", generation, seen)
	}
	return f.unseen
}

// replicas returns spec.replicas, or the default of 1.
func (f *fields) replicas() int64 {
	if _, set, _ := unstructured.NestedFieldNoCopy(f.live.Object, "spec", "replicas"); !set {
		return 1
	}
	return f.number("spec", "replicas")
}

// status returns a number in the status; a missing one is zero.
func (f *fields) status(name string) int64 { return f.number("status", name) }

// text returns a string in the status; a missing one is empty.
func (f *fields) text(name string) string { return get[string](f, "status", name) }

func (f *fields) number(path ...string) int64 {
	v, found, err := unstructured.NestedFieldNoCopy(f.live.Object, path...)
	f.recordError(err)
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		if n == float64(int64(n)) {
			return int64(n)
		}
	case nil:
		return 0
	}
	if found {
		f.recordError(fmt.Errorf(".%s is %v, want a whole number", strings.Join(path, "."), v))
	}
	return 0
}

// get reads a value that may be missing or null.
func get[T any](f *fields, path ...string) T {
	v, _, err := unstructured.NestedFieldNoCopy(f.live.Object, path...)
	f.recordError(err)
	t, ok := v.(T)
	if v != nil && !ok {
		f.recordError(fmt.Errorf(".%s is a %T, want a %T", strings.Join(path, "."), v, t))
	}
	return t
}

func (f *fields) recordError(err error) {
	if f.err == nil {
		f.err = err
	}
}

// messageIf returns a message if the condition holds, or "".
func messageIf(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
