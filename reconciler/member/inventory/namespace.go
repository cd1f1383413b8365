package inventory

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

var namespaces = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Namespaced: false}

// Namespace is the Namespace that inventories are in.
var Namespace = api.ID{Kind: "Namespace", Name: api.Namespace}

// SetNamespaces tells the store which namespaces the cluster has; nil if that is not known.
func (st *Store) SetNamespaces(names []string) {
	st.noNamespace = names != nil && !slices.Contains(names, api.Namespace)
}

// ForgetNamespace makes the next write create our namespace if it is known to be missing.
func (st *Store) ForgetNamespace() { st.namespaceMade = false }

// createNamespace creates our namespace, once, if the cluster is known not to have it: a server
// waits before it refuses a write to a missing namespace.
func (st *Store) createNamespace(ctx context.Context) error {
	if !st.namespaceMade && st.noNamespace {
		if err := applyNamespace(ctx, st.conn); err != nil {
			return err
		}
	}
	st.namespaceMade = true
	return nil
}

// withNamespace calls do, which writes to our namespace. If the namespace is missing, it
// creates it and calls do again.
func (st *Store) withNamespace(ctx context.Context, do func() error) error {
	if err := st.createNamespace(ctx); err != nil {
		return err
	}
	return inNamespace(ctx, st.conn, do)
}

// inNamespace calls do again if our namespace was missing, which it creates.
func inNamespace(ctx context.Context, conn *connection.Conn, do func() error) error {
	err := do()
	if connection.NotFound(err) {
		if err = applyNamespace(ctx, conn); err == nil {
			err = do()
		}
	}
	return err
}

func applyNamespace(ctx context.Context, conn *connection.Conn) error {
	body := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + api.Namespace + `"}}`)
	_, err := conn.Patch(ctx, namespaces, Namespace, body, true)
	return err
}
