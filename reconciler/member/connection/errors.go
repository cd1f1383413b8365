package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithoutPort returns the text of an error without the local port, which is different each
// time.
func WithoutPort(err error) string {
	var of *net.OpError
	if errors.As(err, &of) && of.Addr != nil {
		return of.Op + " " + of.Addr.String() + ": " + of.Err.Error()
	}
	return err.Error()
}

// RefusalReason returns the status reason in the server's response, whose message may be
// different each time; empty if no server responded.
func RefusalReason(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	status := answer.Status()
	var text strings.Builder
	fmt.Fprint(&text, status.Code, " ", status.Reason)
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			text.WriteString(" " + string(c.Type) + " " + c.Field)
		}
	}
	return text.String()
}

// Longest is the maximum length in bytes of the result of Cut.
const Longest = 4 << 10

// Cut shortens a text that is too long for a status.
func Cut(text string) string { return CutTo(text, Longest) }

// CutTo keeps the first n bytes of a text.
func CutTo(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + fmt.Sprintf("… (%d more bytes)", len(text)-n)
}

// An unreachableError says why a request got no response: the connection was refused, broke or
// timed out.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return "the cluster is unreachable: " + e.err.Error() }

func (e *unreachableError) Unwrap() error { return e.err }

// Unreachable returns an error for a request that got no response.
func Unreachable(why error) error { return &unreachableError{why} }

// IsUnreachable reports whether a request got no response.
func IsUnreachable(err error) bool {
	var unreachable *unreachableError
	return errors.As(err, &unreachable)
}

// An exceededError says which limit a member has exceeded.
type exceededError struct {
	limit string
	// answer says that one answer has exceeded it, of which the rest is not read.
	answer bool
}

func (e *exceededError) Error() string { return "the API server answered with more than " + e.limit }

// Exceeded returns the error of a member that has exceeded a limit, of which what is the unit.
func Exceeded(limit int, what string) error {
	return &exceededError{limit: fmt.Sprintf("%d %s", limit, what)}
}

// IsExceeded reports whether an error says that a member has exceeded its budget.
func IsExceeded(err error) bool {
	_, ok := errors.AsType[*exceededError](err)
	return ok
}

// Answered reports whether an error is a response of the server.
func Answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// Plain returns the error of a failed connection without the URL, which is long and not helpful
// in a status.
func Plain(err error) error {
	var dial *net.OpError
	var u *url.Error
	var exceeded *exceededError
	switch {
	case errors.As(err, &exceeded):
		return exceeded
	case errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	case errors.As(err, &dial):
		return dial
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errClosed
	case errors.As(err, &u):
		return u.Err
	}
	return err
}

var (
	errTimeout = errors.New("the API server did not answer in time")
	errClosed  = errors.New("the connection was closed before the answer was complete")
)

// NotFound reports whether the API server answered that there is no such object, or that it does not
// serve the resource.
func NotFound(err error) bool { return apierrors.IsNotFound(err) }

// Unserved reports whether the API server answered that it does not serve the resource, as for a
// version that a CustomResourceDefinition no longer has. Its objects may still be there, and be
// served in another version.
func Unserved(err error) bool {
	return NotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// noObject reports whether there is no such object of a resource that is served.
func noObject(err error) bool { return NotFound(err) && !Unserved(err) }

// IsStale reports whether the API server refused a write because the object has another
// resourceVersion than the request.
func IsStale(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// RetryAfter returns the delay that the server asks for; zero if it does not.
func RetryAfter(err error) time.Duration {
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		return time.Duration(s) * time.Second
	}
	return 0
}

// schemaCause is the cause of a refusal because of the schema of a kind.
const schemaCause metav1.CauseType = "RefusedBySchema"

// RefusedBySchema reports whether the API server refused to apply a manifest because the schema of its kind does not allow it.
func RefusedBySchema(err error) bool { return apierrors.HasStatusCause(err, schemaCause) }

// ForbiddenByNamespace reports whether a request was refused because its namespace is missing
// or terminating. It will succeed once the namespace exists again.
func ForbiddenByNamespace(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating") ||
		apierrors.IsNotFound(err) && strings.HasPrefix(err.Error(), "namespaces ")
}
