package connection

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
)

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
