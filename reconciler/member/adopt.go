package member

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
)

// body returns the body of the request that applies an object: the bytes that all clusters
// share or, if the manifest leaves fields to others, bytes made for this cluster.
func (x *executor) body(t task, commit string, saw snapshot) ([]byte, error) {
	if saw.live == nil || !leavesFields(t.manifest) && len(saw.rivals) == 0 {
		return x.encoder.encode(t.manifest, t.placement, commit)
	}
	pointers, err := diff.IgnoredFields(t.manifest.Object.Object)
	if err != nil {
		return nil, err
	}
	own := *t.manifest.Object
	own.Object = diff.Leave(own.Object, saw.live, append(pointers, paths(saw.rivals)...), api.FieldManager)
	return x.encoder.encodeUnshared(&work.Manifest{Object: &own, Envelope: t.manifest.Envelope}, t.placement, commit)
}

// clientSide are the field managers of kubectl's client-side apply.
var clientSide = sets.New("kubectl-client-side-apply", "kubectl")

// adopt takes over the fields of an object that was applied on the client before and has just
// been taken over. Otherwise kubectl would continue to own fields that the manifest no longer
// has, and they would never be removed.
func (x *executor) adopt(ctx context.Context, t task, body []byte, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(stored, clientSide, api.FieldManager)
	if err != nil || patch == nil {
		return stored, err
	}
	if err := x.conn.Send(ctx, t.res, t.manifest.ID, types.JSONPatchType, patch); err != nil {
		return nil, fmt.Errorf("take over the fields of an earlier kubectl apply: %w", err)
	}
	stored, _, err = x.conn.ApplyWhole(ctx, t.res, t.manifest.ID, body, diff.Force(x.works[t.placement].Strategy))
	return stored, err
}

func appliedByClient(entries []metav1.ManagedFieldsEntry) bool {
	for _, e := range entries {
		if e.Manager == "kubectl-client-side-apply" && e.Operation == metav1.ManagedFieldsOperationUpdate {
			return true
		}
	}
	return false
}
