// Package unlisted finds objects that a fleet has applied to a cluster and that its inventories may not
// list, because the inventories were lost or are those of an earlier time.
package unlisted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
)

// An Object is an object that was applied for a placement.
type Object struct {
	Placement api.PlacementKey
	Item      inventory.Item
}

// Find lists the objects of every kind that have the label of a fleet and fields that our field manager
// has applied. The label alone shows nothing, since controllers copy labels to what they create. Kinds
// that may not be listed, or that the API server does not answer for at the moment, are left out and named
// by the error, and likewise up to maxExceeded kinds whose lists exceed the budget of a member. With an
// error of connection.IsExceeded there is no result; with any other one, what was found is valid. again says
// that another try may find more. timeout bounds the discovery.
func Find(ctx context.Context, conn *connection.Conn, fleet string, timeout time.Duration) (out []Object, again bool, err error) {
	kinds, err := listable(ctx, conn, timeout)
	if connection.IsExceeded(err) {
		return nil, true, err
	}
	problems := []error{err}
	again = err != nil
	exceeded := 0
	for _, k := range kinds {
		found, err := find(ctx, conn, k, fleet)
		out = append(out, found...)
		if connection.IsExceeded(err) && exceeded < maxExceeded {
			exceeded++
			err = errors.New(connection.Plain(err).Error()) // such a kind is no reason to give the member up
		}
		if err != nil && !connection.NotFound(err) {
			problems = append(problems, fmt.Errorf("list %s: %w", k.gvr.GroupResource(), connection.Plain(err)))
			again = again || !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err)
		}
		if len(out) > connection.MaxKeptItems {
			err = connection.Exceeded(connection.MaxKeptItems, "objects that no inventory lists")
		}
		if connection.IsExceeded(err) {
			return nil, true, err
		}
		if ctx.Err() != nil {
			return nil, true, ctx.Err()
		}
	}
	return out, again, errors.Join(problems...)
}

// maxExceeded is the maximum number of kinds whose lists may exceed the budget: a server may serve one kind
// badly, such as an aggregated API, but reading many endless lists would take forever.
const maxExceeded = 3

// A kind is one that can be listed, in the version that the server prefers.
type kind struct {
	gvk schema.GroupVersionKind
	gvr schema.GroupVersionResource
}

func listable(ctx context.Context, conn *connection.Conn, timeout time.Duration) ([]kind, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	lists, err := conn.PreferredResources(ctx)
	var out []kind
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range l.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				out = append(out, kind{gv.WithKind(r.Kind), gv.WithResource(r.Name)})
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("discover kinds: %w", connection.Plain(err))
	}
	return out, err
}

func find(ctx context.Context, conn *connection.Conn, k kind, fleet string) ([]Object, error) {
	var out []Object
	at := connection.Listing{ListOptions: metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + fleet, Limit: 500}, Kept: true}
	for {
		page, err := conn.Page(ctx, k.gvr, "", &at.ListOptions)
		if err != nil {
			return out, err
		}
		for i := range page.Items {
			o := &page.Items[i]
			p, err := api.ParsePlacement(o.GetAnnotations()[api.PlacementAnnotation])
			if err != nil || o.Namespace == api.Namespace || max(len(o.Name), len(o.Namespace), len(o.UID)) > connection.MaxName || diff.ApplyHash(o.ManagedFields, api.FieldManager) == "" {
				continue
			}
			if err := at.Keep(len(o.Name) + len(o.Namespace) + len(o.UID) + len(p.String())); err != nil {
				return out, err
			}
			out = append(out, Object{p, inventory.Item{Group: k.gvk.Group, Version: k.gvk.Version, Kind: k.gvk.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}})
		}
		if more, err := at.Next(page, len(page.Items)); !more {
			return out, err
		}
	}
}
