package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/discovery"
	"github.com/gitfleet/gitfleet/reconciler/member/immutable"
)

// AsksForRecreation reports whether the manifest requests that the object is deleted and
// created again if the server refuses to change an immutable field.
func AsksForRecreation(m *work.Manifest) bool {
	return m.Object.Content.GetAnnotations()[api.RecreateAnnotation] == api.RecreateEnabled && api.Recreatable(m.ID.GroupKind())
}

// IsImmutable reports whether a server refused an object only because something cannot be changed,
// by its message or by the rules of the definition or policy that refused it. unread is why these
// could not be read, so that it is not known. The object was applied before.
func (x *Executor) IsImmutable(ctx context.Context, t Task, err error) (is bool, unread error) {
	if err == nil || immutable.Says(err) {
		return err != nil, nil
	}
	if policy := immutable.Policy(err); policy != "" {
		found, readErr := x.Conn.Read(ctx, admissionPolicies, api.ID{Group: admissionPolicies.Group, Kind: "ValidatingAdmissionPolicy", Name: policy})
		return readErr == nil && found != nil && immutable.Broken(err, immutable.RulesOfPolicy(found)), readErr
	}
	if _, builtin := api.Namespaced(t.Manifest.ID.GroupKind()); builtin || !apierrors.IsInvalid(err) || immutable.ByAdmission(err) {
		return false, nil
	}
	definition, readErr := x.Conn.Read(ctx, discovery.CustomResourceDefinitions, api.ID{Group: discovery.Definitions.Group, Kind: discovery.Definitions.Kind, Name: t.Res.GroupResource().String()})
	return readErr == nil && definition != nil && immutable.Broken(err, immutable.RulesOf(definition, t.Res.Version)), readErr
}

// admissionPolicies is the resource of the policies of an API server.
var admissionPolicies = connection.Resource{GroupVersionResource: schema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
}}

// adviceToRecreate is appended to the cause of an object that was refused because of
// immutable fields.
const adviceToRecreate = "; to have gitfleet delete the object and create it anew, give it in Git the annotation " +
	api.RecreateAnnotation + `: "` + api.RecreateEnabled + `"`

// noRecreation is appended to the cause of an object that asks for recreation, and was refused for
// another reason.
const noRecreation = "; it is not deleted to be created anew, since it was not refused only because something is immutable"

// notAppliedBefore is appended to the cause of an object that asks for recreation, and cannot be taken over because of immutable fields.
const notAppliedBefore = "; it is not deleted to be created anew, since this placement has not applied it before; " +
	"delete it yourself, or leave the immutable fields in Git as they are on the cluster"

// ExplainRecreation appends to the cause of a refused object how to have it recreated, or why it is
// not although it asks for that. If the result would be too long, the server's message is shortened
// and the rest is kept.
func ExplainRecreation(cause string, m *work.Manifest, takesOver bool, err error, isImmutable bool, unread error) string {
	more := ""
	switch asks := AsksForRecreation(m); {
	case takesOver && isImmutable && asks:
		more = notAppliedBefore
	case takesOver:
		return cause
	case isImmutable && !asks && api.Recreatable(m.ID.GroupKind()):
		more = adviceToRecreate
	case unread != nil && asks:
		more = connection.CutTo("; it is not deleted to be created anew, since the rule that refused it cannot be read: "+unread.Error(), 400)
	case !isImmutable && asks && (apierrors.IsInvalid(err) || immutable.ByAdmission(err)):
		more = noRecreation
	default:
		return cause
	}
	return connection.CutTo(cause, connection.Longest-len(more)-len("… (1234567 more bytes)")) + more
}
