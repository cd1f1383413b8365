package member

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// acceptMetadata requests only the metadata of the result, which is less work for both sides.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// readOnce saves the server a second decoding for duplicate keys: what the encoder writes has
// none. Unknown fields are rejected nevertheless.
const readOnce = metav1.FieldValidationIgnore

// patch applies one object and returns the metadata of the result.
func (s *session) patch(ctx context.Context, r resource, id api.ID, body []byte, force bool) (*metav1.PartialObjectMetadata, error) {
	raw, _, err := s.put(ctx, r, id, body, force, acceptMetadata)
	if err != nil {
		return nil, err
	}
	m, err := decodeMetadata(raw, r, id)
	if err != nil {
		return nil, err
	}
	return m, storedUID(m)
}

// applyWhole applies one object and returns the result, and whether the object was created.
func (s *session) applyWhole(ctx context.Context, r resource, id api.ID, body []byte, force bool) (o *unstructured.Unstructured, created bool, err error) {
	raw, created, err := s.put(ctx, r, id, body, force, "application/json")
	if err != nil {
		return nil, false, err
	}
	if o, err = decodeObject(raw, r, id); err != nil {
		return nil, false, err
	}
	return o, created, storedUID(o)
}

// put applies one object and returns the server's answer, and whether the object was created.
func (s *session) put(ctx context.Context, r resource, id api.ID, body []byte, force bool, accept string) (raw []byte, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	client := s.conn().rest
	if len(body) > largeBody {
		client = s.conn().bulk
	}
	result := client.Patch(types.ApplyPatchType).
		AbsPath(r.path(id)...).
		Param("fieldManager", api.FieldManager).
		Param("force", strconv.FormatBool(force)).
		Param("fieldValidation", readOnce).
		SetHeader("Accept", accept).
		Body(body).
		Do(ctx)
	faults.At("written")
	var code int
	raw, err = answer(result.StatusCode(&code))
	return raw, code == http.StatusCreated, s.heard(err)
}

// create creates an object and returns the metadata of the result. If there is one of that
// name, the error is AlreadyExists.
func (s *session) create(ctx context.Context, r resource, id api.ID, body []byte) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	path := r.path(id)
	raw, err := answer(s.conn().rest.Post().AbsPath(path[:len(path)-1]...).
		Param("fieldManager", api.FieldManager).SetHeader("Content-Type", "application/json").SetHeader("Accept", acceptMetadata).Body(body).Do(ctx))
	faults.At("written")
	if err := s.heard(err); err != nil {
		return nil, err
	}
	m, err := decodeMetadata(raw, r, id)
	if err != nil {
		return nil, err
	}
	return m, storedUID(m)
}

// send patches an object other than by an apply.
func (s *session) send(ctx context.Context, r resource, id api.ID, typ types.PatchType, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	raw, err := answer(s.conn().rest.Patch(typ).AbsPath(r.path(id)...).
		Param("fieldManager", api.FieldManager).SetHeader("Accept", acceptMetadata).Body(body).Do(ctx))
	faults.At("written")
	if err := s.heard(err); err != nil {
		return err
	}
	_, err = decodeMetadata(raw, r, id)
	return err
}

// answer returns the body of a result. Its error is that of the server, which Raw alone does
// not decode.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// dryRun returns the object that an apply would produce.
func (s *session) dryRun(ctx context.Context, r resource, id api.ID, body []byte) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	raw, err := answer(s.conn().bulk.Patch(types.ApplyPatchType).
		AbsPath(r.path(id)...).
		Param("fieldManager", api.FieldManager).
		Param("force", "true").
		Param("fieldValidation", readOnce).
		Param("dryRun", metav1.DryRunAll).
		Body(body).
		Do(ctx))
	return s.object(raw, err, r, id)
}

// read returns the live object; nil if it does not exist.
func (s *session) read(ctx context.Context, r resource, id api.ID) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	raw, err := answer(s.conn().bulk.Get().AbsPath(r.path(id)...).Do(ctx))
	if apierrors.IsNotFound(err) {
		return nil, s.heard(nil)
	}
	return s.object(raw, err, r, id)
}

func (s *session) object(raw []byte, err error, r resource, id api.ID) (*unstructured.Unstructured, error) {
	if err := s.heard(err); err != nil {
		return nil, err
	}
	o, err := decodeObject(raw, r, id)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// A deleteResult is the result of a deletion request.
type deleteResult int

const (
	// alreadyGone: the object did not exist, or another one has its name.
	alreadyGone deleteResult = iota
	// deletedNow: the object is gone.
	deletedNow
	// deletionPending: the object is terminating.
	deletionPending
)

// delete deletes an object; if uid is not empty, only the object with that UID.
func (s *session) delete(ctx context.Context, r resource, id api.ID, uid types.UID, policy metav1.DeletionPropagation) (deleteResult, error) {
	result, err := s.requestDeletion(ctx, r, id, uid, policy)
	if uid == "" || !apierrors.IsConflict(err) {
		return result, err
	}
	// Either another object has the name now, or somebody objects to the deletion.
	found, readErr := s.read(ctx, r, id)
	if readErr == nil && (found == nil || found.GetUID() != uid) {
		return alreadyGone, nil
	}
	return alreadyGone, err
}

func (s *session) requestDeletion(ctx context.Context, r resource, id api.ID, uid types.UID, policy metav1.DeletionPropagation) (deleteResult, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	opts := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &policy,
	}
	if uid != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	body, err := json.Marshal(opts)
	if err != nil {
		return alreadyGone, err
	}
	raw, err := answer(s.conn().rest.Delete().AbsPath(r.path(id)...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	faults.At("written")
	if notFound(err) {
		return alreadyGone, s.heard(nil)
	}
	if err := s.heard(err); err != nil {
		return alreadyGone, err
	}
	// The answer is a Status if the object is gone, and the object if it is not.
	var gone metav1.Status
	if json.Unmarshal(raw, &gone) == nil && gone.Kind == "Status" && gone.Status == metav1.StatusSuccess {
		return deletedNow, nil
	}
	left, err := decodeMetadata(raw, r, id)
	switch {
	case err != nil:
		return alreadyGone, err
	case left.DeletionTimestamp != nil:
		return deletionPending, nil
	}
	return deletedNow, nil
}

// heard counts consecutive requests that the server did not answer, and returns the error
// without secrets.
func (s *session) heard(err error) error {
	s.access.refused(err)
	if err == nil || answered(err) {
		s.silent.Store(0)
		return err
	}
	var tooLarge *tooLargeError
	if errors.As(err, &tooLarge) {
		s.silent.Store(0)
		return tooLarge
	}
	s.silent.Add(1)
	return &unreachableError{plain(err)}
}

// An unreachableError says why a request got no answer: the connection was refused, was broken
// or timed out.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return "the cluster is unreachable: " + e.err.Error() }

func (e *unreachableError) Unwrap() error { return e.err }

func isUnreachable(err error) bool {
	var unreachable *unreachableError
	return errors.As(err, &unreachable)
}

// answered reports whether an error is an answer of the server.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// plain returns the error of a failed connection without the URL, which is long and of no use
// in a status.
func plain(err error) error {
	var dial *net.OpError
	var u *url.Error
	var tooLarge *tooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return tooLarge
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

func notFound(err error) bool { return apierrors.IsNotFound(err) }

// retryAfter returns how long the server asks to wait; zero if it does not.
func retryAfter(err error) time.Duration {
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		return time.Duration(s) * time.Second
	}
	return 0
}

// forbiddenByNamespace reports whether an error means that the namespace is missing or
// terminating: it passes once the namespace exists again.
func forbiddenByNamespace(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating") ||
		apierrors.IsNotFound(err) && strings.HasPrefix(err.Error(), "namespaces ")
}
