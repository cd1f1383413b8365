package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// AcceptMetadata requests only the metadata of the result, which is cheaper for both sides.
const AcceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// readOnce saves the server a second decoding that looks for duplicate keys, which the encoder
// never writes. Unknown fields are still rejected.
const readOnce = metav1.FieldValidationIgnore

// Patch applies one object and returns the metadata of the result.
func (c *Conn) Patch(ctx context.Context, r Resource, id api.ID, body []byte, force bool) (o *metav1.PartialObjectMetadata, err error) {
	_, err = c.apply(ctx, r, id, body, force, false, func(raw []byte) error {
		o, err = decodeStored(raw, r, id)
		return err
	})
	return o, err
}

// ApplyWhole applies one object and returns the result, and whether the object was created.
func (c *Conn) ApplyWhole(ctx context.Context, r Resource, id api.ID, body []byte, force bool) (o *Applied, created bool, err error) {
	created, err = c.apply(ctx, r, id, body, force, true, func(raw []byte) error {
		o, err = decodeApplied(raw, r, id)
		return err
	})
	return o, created, err
}

// ApplyAs applies an object, or a part of it, under another field manager than ours, and returns
// the result. It overrides no other manager: if one has another value, the error is Conflict.
func (c *Conn) ApplyAs(ctx context.Context, r Resource, id api.ID, body []byte, manager string) (*unstructured.Unstructured, error) {
	raw, _, err := c.write(ctx, c.REST().Patch(types.ApplyPatchType).AbsPath(r.Path(id)...).Param("fieldManager", manager).Body(escaped(body)))
	if err != nil {
		return nil, err
	}
	return decodeObject(raw, r, id)
}

// escaped returns JSON with escapes in place of the characters that YAML does not have, or reads as line breaks: an API server reads
// what is applied as YAML. It refuses the others ("control characters are not allowed"), and a line break in a text becomes a space.
func escaped(body []byte) []byte {
	forbidden := func(r rune) bool {
		return r >= 0x7F && r <= 0x9F || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
	}
	if !slices.ContainsFunc(body, func(b byte) bool { return b >= 0x7F }) {
		return body // as most are
	}
	out := make([]byte, 0, len(body)+64)
	for rest := body; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if forbidden(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, rest[:size]...)
		}
		rest = rest[size:]
	}
	return out
}

func applyRequest(patch *rest.Request, r Resource, id api.ID, body []byte, force bool) *rest.Request {
	return patch.AbsPath(r.Path(id)...).Param("fieldManager", api.FieldManager).
		Param("force", strconv.FormatBool(force)).Param("fieldValidation", readOnce).Body(escaped(body))
}

// Create creates an object and returns the metadata of the result. If an object of that name
// exists, the error is AlreadyExists.
func (c *Conn) Create(ctx context.Context, r Resource, id api.ID, body []byte) (*metav1.PartialObjectMetadata, error) {
	raw, _, err := c.write(ctx, jsonRequest(c.REST().Post(), body).AbsPath(r.collection(id)...).Param("fieldManager", api.FieldManager))
	if err != nil {
		return nil, err
	}
	return decodeStored(raw, r, id)
}

// jsonRequest adds a body to a request, and asks for the metadata of the result.
func jsonRequest(request *rest.Request, body []byte) *rest.Request {
	return request.SetHeader("Content-Type", "application/json").SetHeader("Accept", AcceptMetadata).Body(body)
}

// Send patches an object with another patch type than apply.
func (c *Conn) Send(ctx context.Context, r Resource, id api.ID, typ types.PatchType, body []byte) error {
	raw, _, err := c.write(ctx, c.REST().Patch(typ).AbsPath(r.Path(id)...).
		Param("fieldManager", api.FieldManager).SetHeader("Accept", AcceptMetadata).Body(body))
	if err != nil {
		return err
	}
	_, err = decodeMetadata(raw, r, id)
	return err
}

// DryRun returns the object that an apply would produce.
func (c *Conn) DryRun(ctx context.Context, r Resource, id api.ID, body []byte) (*unstructured.Unstructured, error) {
	raw, _, err := c.send(ctx, applyRequest(c.Bulk().Patch(types.ApplyPatchType), r, id, body, true).Param("dryRun", metav1.DryRunAll))
	if err != nil {
		return nil, err
	}
	return decodeObject(raw, r, id)
}

// DryRunCreate has the server try to create an object, and stores nothing. That there is one of
// that name is no error: a server finds that last, after validation and admission.
func (c *Conn) DryRunCreate(ctx context.Context, r Resource, id api.ID, body []byte) error {
	_, _, err := c.send(ctx, jsonRequest(c.Bulk().Post(), body).AbsPath(r.collection(id)...).
		Param("fieldManager", api.FieldManager).Param("fieldValidation", readOnce).Param("dryRun", metav1.DryRunAll))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// dryRunName is the name of objects that exist only in a dry run.
const dryRunName = "gitfleet-dry-run"

// DryRunNew returns the object that a server would create under another name, and stores nothing.
func (c *Conn) DryRunNew(ctx context.Context, r Resource, id api.ID, body []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	o.SetName(dryRunName)
	body, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	id.Name = dryRunName
	raw, _, err := c.send(ctx, jsonRequest(c.Bulk().Post(), body).AbsPath(r.collection(id)...).SetHeader("Accept", "application/json").
		Param("fieldManager", api.FieldManager).Param("fieldValidation", readOnce).Param("dryRun", metav1.DryRunAll))
	if err != nil {
		return nil, err
	}
	return decodeObject(raw, r, id)
}

// Read returns the live object; nil if it does not exist. That its resource is not served is an
// error.
func (c *Conn) Read(ctx context.Context, r Resource, id api.ID) (*unstructured.Unstructured, error) {
	raw, _, err := c.send(ctx, c.Bulk().Get().AbsPath(r.Path(id)...))
	if noObject(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeObject(raw, r, id)
}

// Replace writes a whole object under another field manager than ours, and reports whether the
// object existed.
func (c *Conn) Replace(ctx context.Context, r Resource, id api.ID, body []byte, manager string) (there bool, err error) {
	raw, _, err := c.write(ctx, jsonRequest(c.Bulk().Put(), body).AbsPath(r.Path(id)...).Param("fieldManager", manager))
	if noObject(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = decodeMetadata(raw, r, id)
	return err == nil, err
}

// write is send for a request that may change an object.
func (c *Conn) write(ctx context.Context, r *rest.Request) (raw []byte, code int, err error) {
	raw, code, err = c.send(ctx, r)
	faults.At("written")
	return raw, code, err
}

// send sends a request, and returns the response and its status code. An error is the result of
// RecordResult.
func (c *Conn) send(ctx context.Context, r *rest.Request) (raw []byte, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	raw, err = Answer(r.Do(ctx).StatusCode(&code))
	return raw, code, c.RecordResult(err)
}

// Answer returns the body of a result. Its error is the decoded error of the server; Raw alone
// does not decode it.
func Answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, inOrder(err)
	}
	return r.Raw()
}

// inOrder sorts what an API server lists in a message, one problem a line and in no order, so that the
// same problems give the same message.
func inOrder(err error) error {
	const listed = "errors:\n"
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	before, list, found := strings.Cut(status.ErrStatus.Message, listed)
	if !found {
		return err
	}
	lines := strings.Split(list, "\n")
	slices.Sort(lines)
	status.ErrStatus.Message = before + listed + strings.Join(lines, "\n")
	return err
}

// A DeleteResult is the result of a deletion request.
type DeleteResult int

const (
	// AlreadyGone: the object did not exist, or another object has its name.
	AlreadyGone DeleteResult = iota
	// Deleted: the object is gone.
	Deleted
	// DeletionPending: the object is terminating.
	DeletionPending
)

// Delete deletes an object; if uid is not empty, only the object with that UID.
func (c *Conn) Delete(ctx context.Context, r Resource, id api.ID, uid types.UID, policy metav1.DeletionPropagation) (DeleteResult, error) {
	result, err := c.requestDeletion(ctx, r, id, uid, policy)
	if uid == "" || !apierrors.IsConflict(err) {
		return result, err
	}
	// Either another object has the name now, or the server refuses the deletion for another
	// reason.
	found, readErr := c.Read(ctx, r, id)
	if readErr == nil && (found == nil || found.GetUID() != uid) {
		return AlreadyGone, nil
	}
	return AlreadyGone, err
}

func (c *Conn) requestDeletion(ctx context.Context, r Resource, id api.ID, uid types.UID, policy metav1.DeletionPropagation) (DeleteResult, error) {
	opts := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &policy,
	}
	if uid != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	body, err := json.Marshal(opts)
	if err != nil {
		return AlreadyGone, err
	}
	raw, _, err := c.write(ctx, c.REST().Delete().AbsPath(r.Path(id)...).SetHeader("Content-Type", "application/json").Body(body))
	if noObject(err) {
		return AlreadyGone, nil
	}
	if err != nil {
		return AlreadyGone, err
	}
	// The response is a Status if the object is gone, and the object if it is not.
	var gone metav1.Status
	if json.Unmarshal(raw, &gone) == nil && gone.Kind == "Status" && gone.Status == metav1.StatusSuccess {
		return Deleted, nil
	}
	left, err := decodeMetadata(raw, r, id)
	switch {
	case err != nil:
		return AlreadyGone, err
	case left.DeletionTimestamp != nil:
		return DeletionPending, nil
	}
	return Deleted, nil
}

// RecordResult counts consecutive requests without a response, and returns the error without
// secrets.
func (c *Conn) RecordResult(err error) error {
	c.RecordRefusal(err)
	if err == nil || Answered(err) {
		c.silent.Store(0)
		return err
	}
	if IsExceeded(err) {
		c.silent.Store(0)
		return Plain(err)
	}
	c.silent.Add(1)
	return &unreachableError{Plain(err)}
}
