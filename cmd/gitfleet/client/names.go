package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Names requests the names of placements and clusters from the daemon.
func (c *Client) Names(ctx context.Context) (n server.Names, err error) {
	err = c.Get(ctx, "/names", nil, &n)
	return n, err
}

// Placement returns the full name of a placement, crp/NAME or rp/NAMESPACE/NAME. It sends a
// request only for a partial name.
func (c *Client) Placement(ctx context.Context, text string) (string, error) {
	if key, err := api.ParsePlacement(text); err == nil {
		return key.String(), nil
	}
	known, err := c.Names(ctx)
	if err != nil {
		return "", err
	}
	return lookup.Placement(text, known.Placements)
}

// A Subject is a placement or a member cluster; everything if both are empty.
type Subject struct{ Placement, Cluster string }

// String returns the name with its kind.
func (s Subject) String() string {
	if s.Cluster != "" {
		return "cluster/" + s.Cluster
	}
	return s.Placement
}

// Subject returns the placement or member cluster for KIND/NAME or NAME. It sends a request
// only in the second case.
func (c *Client) Subject(ctx context.Context, text string) (Subject, error) {
	if key, err := api.ParsePlacement(text); err == nil {
		return Subject{Placement: key.String()}, nil
	}
	if kind, name, ok := strings.Cut(text, "/"); ok && api.NamesClusters(kind) {
		return Subject{Cluster: name}, nil
	}
	known, err := c.Names(ctx)
	if err != nil {
		return Subject{}, err
	}
	isCluster := lookup.Name("cluster", text, known.Clusters) == nil
	placement, err := lookup.Placement(text, known.Placements)
	var unknown *status.UnknownError
	switch {
	case isCluster && err == nil:
		return Subject{}, fmt.Errorf("%s can be %s or cluster/%s: write one of them", text, placement, text)
	case isCluster:
		return Subject{Cluster: text}, nil
	case errors.As(err, &unknown):
		exist := known.Placements
		for _, name := range known.Clusters {
			exist = append(exist, "cluster/"+name)
		}
		return Subject{}, &status.UnknownError{What: "placement or cluster", Name: text, Exist: exist}
	}
	return Subject{Placement: placement}, err
}

// OrderSubject returns the subject of an order in the form that the daemon expects: a
// placement, a cluster, or KIND/NAME of an object with its namespace.
func (c *Client) OrderSubject(ctx context.Context, text, namespace string) (name, of string, err error) {
	kind, _, slash := strings.Cut(text, "/")
	_, isPlacement := api.NamesPlacements(kind)
	if !slash || isPlacement || api.NamesClusters(kind) {
		s, err := c.Subject(ctx, text)
		return s.String(), namespace, err
	}
	object, err := api.ParseObject(text, namespace)
	return object.Kind + "/" + object.Name, object.Namespace, err
}

// IsUnknownName reports whether an error is about an unknown name.
func IsUnknownName(err error) bool {
	var unknown *status.UnknownError
	var answer *ResponseError
	return errors.As(err, &unknown) || errors.As(err, &answer) && answer.isUnknownName()
}
