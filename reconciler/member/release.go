package member

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// release removes our label, our annotations and our entry in managedFields from an object, and
// leaves the rest. If somebody changes the object meanwhile, it tries again. released is false
// if the object is gone, or another object has its name.
func (s *session) release(ctx context.Context, res connection.Resource, st stale) (released bool, err error) {
	id := st.item.ID()
	found, err := s.conn.Read(ctx, res, id)
	if err != nil || found == nil || found.GetUID() != st.item.UID {
		return false, err
	}
	labels, notes := found.GetLabels(), found.GetAnnotations()
	delete(labels, api.ManagedByLabel)
	for _, name := range []string{api.PlacementAnnotation, api.SourceAnnotation, api.CommitAnnotation, api.PathAnnotation} {
		delete(notes, name)
	}
	found.SetLabels(labels)
	found.SetAnnotations(notes)
	found.SetManagedFields(slices.DeleteFunc(found.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == api.FieldManager
	}))
	body, err := json.Marshal(found.Object)
	if err != nil {
		return false, err
	}
	return s.conn.Replace(ctx, res, id, body, "gitfleet-release")
}
