package decide

import (
	"errors"
	"fmt"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

// A Refusal is a reason not to apply an object.
type Refusal interface {
	error
	// Condition is the condition of an object that is not applied for this reason.
	Condition() diff.Condition
}

// An UnknownKindError says that the cluster does not serve the kind of the object, and why.
type UnknownKindError struct{ Err error }

func (e *UnknownKindError) Error() string { return e.Err.Error() }
func (e *UnknownKindError) Unwrap() error { return e.Err }

// Condition implements Refusal.
func (e *UnknownKindError) Condition() diff.Condition { return diff.DecodeFailed(e.Err) }

// An AwaitedKindError says that the object comes after one of a kind that the cluster does not serve yet.
type AwaitedKindError struct{ Err error }

func (e *AwaitedKindError) Error() string { return e.Err.Error() }
func (e *AwaitedKindError) Unwrap() error { return e.Err }

// Condition implements Refusal.
func (e *AwaitedKindError) Condition() diff.Condition { return diff.DecodeFailed(e.Err) }

// A NoNamespaceError says that the manifest of a namespaced object has no namespace, of which Git does not know that it needs one.
type NoNamespaceError struct {
	Kind         string
	OnlyCompared bool
}

func (e *NoNamespaceError) Error() string {
	return fmt.Sprintf("%s is namespaced on this cluster, and the object has no namespace; write metadata.namespace", api.WithArticle(e.Kind))
}

// Condition implements Refusal.
func (e *NoNamespaceError) Condition() diff.Condition {
	if e.OnlyCompared {
		return diff.ReportFailed(e)
	}
	return diff.NotTried(e)
}

// An EncryptedError says that the document of the object cannot be decrypted.
type EncryptedError struct {
	Why          string
	OnlyCompared bool
}

func (e *EncryptedError) Error() string { return e.Why }

// Condition implements Refusal.
func (e *EncryptedError) Condition() diff.Condition {
	if e.OnlyCompared {
		return diff.ReportFailed(e)
	}
	return diff.NotApplied(api.Encrypted, e.Why)
}

// A HookPendingError says what the hooks of a chart wait for.
type HookPendingError struct{ For string }

func (e *HookPendingError) Error() string { return "it waits for " + e.For }

// Condition implements Refusal.
func (e *HookPendingError) Condition() diff.Condition {
	return diff.NotApplied(api.HookPending, e.Error())
}

// A BeingDeletedError says that the object is being deleted, because of which finalizers it still exists, and why, as far as that
// is known.
type BeingDeletedError struct{ Finalizers, Why string }

func (e *BeingDeletedError) Error() string {
	message := "the object is being deleted; it is created anew once it is gone"
	if e.Finalizers != "" {
		message += " (finalizers: " + e.Finalizers + ")"
	}
	if e.Why != "" {
		message += " (" + e.Why + ")"
	}
	return message
}

// Condition implements Refusal.
func (e *BeingDeletedError) Condition() diff.Condition {
	return diff.NotApplied(api.ManifestApplyFailed, e.Error())
}

// IsTransient reports whether a refusal ends by itself, once something else has happened on the cluster.
func IsTransient(r Refusal) bool {
	var hook *HookPendingError
	var deletion *BeingDeletedError
	return errors.As(r, &hook) || errors.As(r, &deletion)
}
