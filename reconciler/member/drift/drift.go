// Package drift says whether an object still is as it was applied, and remembers the objects that are not.
//
// Of is the only place where that is decided. Its callers pass what they know of the object, the cheapest first:
//
//   - The metadata that a watch has reported, at no cost. It shows whether others have changed or removed a field that
//     gitfleet owns.
//   - The object as it was read, if others have written it since: values can change under gitfleet's own field manager, which
//     metadata does not show. Hashes of the values would, but most watches deliver metadata only.
//   - A dry run of an apply, if values differ: admission webhooks take part in it, so that what they change is no drift. The
//     answer is Unknown until there is one.
//
// What is done about an object that has drifted is decided elsewhere: decide.Apply chooses the step of a pass,
// driftRecorder.holds of package member says whether the drift is held, and diff.Decide whether the strategy of the placement
// lets an apply overwrite it.
//
// A State has what is recorded of drift, and what was decided about it. Each of its methods records one thing that has happened. The
// driftRecorder of a session has the only State; the other parts have a View, and nothing that they read from it can be changed.
package drift

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// An Answer says whether an object has drifted.
type Answer string

// The answers.
const (
	// Unknown: values differ from what was applied, and no dry run has shown yet whether an apply would change them.
	Unknown Answer = ""
	// Untouched: an apply would change nothing.
	Untouched Answer = "untouched"
	// Drifted: an apply would change the object, or create it.
	Drifted Answer = "drifted"
)

// Applied is what gitfleet has applied.
type Applied struct {
	// Fleet is the value of the managed-by label, and Managed the diff.ApplyHash of the object after that.
	Fleet, Managed string
	// Manifest is the content. It is needed together with Actual.Live.
	Manifest *unstructured.Unstructured
	// Ignore are JSON pointers to fields that are not compared.
	Ignore []string
	// Altered are the fields that the server is known to store differently from what is applied, as View.Altered
	// returns them.
	Altered []api.PatchDetail
}

// Actual is what is known of the object on the cluster. The zero value is an object that does not exist.
type Actual struct {
	Exists         bool
	Fleet, Managed string
	// Live is the object; nil if only its metadata is known.
	Live *unstructured.Unstructured
	// DryRun is what an apply of the manifest would make of Live; nil if it was not requested. Refused says that the
	// server refuses dry runs of the object.
	DryRun  *unstructured.Unstructured
	Refused bool
}

// Seen returns what a watch has reported of an object; l is nil if it does not exist.
func Seen(l *observed.Object) Actual {
	if l == nil {
		return Actual{}
	}
	return Actual{Exists: true, Fleet: l.Fleet, Managed: l.Managed}
}

// Marked returns what the metadata of an object shows.
func Marked(o metav1.Object) Actual {
	return Actual{Exists: true, Fleet: o.GetLabels()[api.ManagedByLabel], Managed: diff.ApplyHash(o.GetManagedFields(), api.FieldManager)}
}

// Read returns what an object shows that was read.
func Read(live *unstructured.Unstructured) Actual {
	if live == nil {
		return Actual{}
	}
	a := Marked(live)
	a.Live = live
	return a
}

// A Finding is the answer about one object.
type Finding struct {
	Answer Answer
	// Fields are the differences between what was applied and the live object, as far as they are known, in the order of
	// their paths. Without a dry run they are structural, and may miss some. Values of Secrets are masked.
	Fields []api.PatchDetail
	// Altered are the fields that the server stores differently from what is applied, which is no drift.
	Altered []api.PatchDetail
}

// Of says whether an object that was applied has drifted.
func Of(applied Applied, actual Actual) Finding {
	marked := actual.Fleet == applied.Fleet && actual.Managed == applied.Managed
	switch {
	case !actual.Exists, actual.Live == nil && !marked:
		return Finding{Answer: Drifted}
	case actual.Live == nil:
		return Finding{Answer: Untouched}
	}
	fields := diff.Compare(applied.Manifest, actual.Live, diff.Options{Structural: true, Ignore: applied.Ignore})
	switch {
	case !marked:
		return Finding{Answer: Drifted, Fields: withLabel(fields, applied.Fleet, actual.Fleet)}
	case len(fields) == 0:
		return Finding{Answer: Untouched}
	case actual.Refused && SameValues(fields, applied.Altered):
		return Finding{Answer: Untouched, Altered: applied.Altered}
	case actual.Refused:
		return Finding{Drifted, fields, applied.Altered}
	case actual.DryRun == nil:
		return Finding{Answer: Unknown, Fields: fields}
	}
	altered := diff.Altered(applied.Manifest, actual.DryRun, nil)
	repairable := diff.Repairable(diff.Compare(actual.DryRun, actual.Live, diff.Options{}), altered, applied.Altered)
	if len(repairable) == 0 {
		return Finding{Untouched, nil, altered}
	}
	return Finding{Drifted, repairable, altered}
}

// withLabel adds the managed-by label to differences, if it has changed.
func withLabel(fields []api.PatchDetail, applied, actual string) []api.PatchDetail {
	if applied == actual {
		return fields
	}
	return append(fields, api.PatchDetail{Path: "/metadata/labels/" + api.EscapeKey(api.ManagedByLabel), ValueInHub: applied, ValueInMember: actual})
}
