package work

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An OverrideError says which override cannot be applied to which object. The cluster's
// Overridden condition is False, and it keeps what it holds.
type OverrideError struct {
	// ClusterOverride is set for a ClusterResourceOverride, otherwise Override.
	ClusterOverride string
	Override        api.NamespacedName
	Object          api.ID
	// Envelope is the envelope of the object; nil if there is none.
	Envelope *api.EnvelopeIdentifier
	Err      error
}

// newOverrideError returns the error of candidate c for m. The cause is masked if the override
// selects a Secret, whatever object it failed on.
func (v *variant) newOverrideError(c *candidate, m *Manifest, err error) *OverrideError {
	e := &OverrideError{Object: m.ID, Envelope: m.Envelope, Err: err}
	if c.namespace == "" {
		e.ClusterOverride = c.name
	} else {
		e.Override = c.id()
	}
	secret := func(i int) bool { return v.base.Manifests[i].ID.GroupKind() == api.GroupKind{Kind: "Secret"} }
	if _, ok := errors.AsType[unclosedError](err); ok && slices.ContainsFunc(c.selects, secret) {
		e.Err = unclosedError{"(hidden)"}
	}
	return e
}

// Error returns KubeFleet's text, as in the Overridden condition after "Failed to apply the
// override rules on the resources: ".
func (e *OverrideError) Error() string {
	object := fmt.Sprintf("%s %q", cmp.Or(e.Object.Kind, "Unknown"), e.Object.Name)
	if e.Object.Namespace != "" {
		object += fmt.Sprintf(" in namespace %q", e.Object.Namespace)
	}
	kind, name := "ClusterResourceOverrideSnapshot", e.ClusterOverride
	if name == "" {
		kind, name = "ResourceOverrideSnapshot", e.Override.Name
	}
	text := fmt.Sprintf("%s %q failed to apply on %s: %s", kind, name, object, e.Err)
	if e.Envelope != nil {
		text = fmt.Sprintf("failed to apply overrides to %s from envelope %s: %s", object, objectName(e.Envelope.Namespace, e.Envelope.Name), text)
	}
	return text
}

// Unwrap returns the cause.
func (e *OverrideError) Unwrap() error { return e.Err }

// An EnvelopeError has the problems of a placement's envelopes. No cluster gets the content:
// WorkSynchronized is False, and each keeps what it holds.
type EnvelopeError struct {
	// Problems are all problems, by envelope and key.
	Problems []error
	// Overlays says that the problems are only those of what overlays and variables are for the cluster, so that other
	// clusters may get the content.
	Overlays bool
}

// Error returns the problems in one line, as in the WorkSynchronized condition after "Failed to
// synchronize the work to the latest: ".
func (e *EnvelopeError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the problems.
func (e *EnvelopeError) Unwrap() []error { return e.Problems }
