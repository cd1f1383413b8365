package connection

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/faults"
)

// readOnce saves the server a second decoding that looks for duplicate keys, which the encoder
// never writes. Unknown fields are still rejected.
const readOnce = metav1.FieldValidationIgnore

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
