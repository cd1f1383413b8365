package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// claimPart is the value of label on a claim.
const claimPart = "claim"

// errClaimed is the error of writes to a cluster that another has claimed, see ClaimedByOther.
var errClaimed = errors.New("another fleet of the same name, or another member, has claimed the cluster")

// claimID returns the ID of the claim of a fleet name.
func claimID(fleet string) api.ID {
	return fleetConfigMap("claim-", fleet)
}

// ensureClaim makes sure that this fleet has the claim before an inventory is written. It
// creates a missing claim, and takes over that of an adopted fleet. If another fleet has the
// claim, ClaimedByOther reports true from then on and the error is errClaimed.
func (st *Store) ensureClaim(ctx context.Context) error {
	switch {
	case st.membership.ID == "":
		return nil
	case st.ClaimedByOther():
		return errClaimed
	case st.hasClaim():
		return nil
	}
	var err error
	for range 2 {
		err = st.writeClaim(ctx)
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !connection.NotFound(err) {
			return err
		}
		// Another daemon was faster, or the response to an earlier request was lost.
		if err := st.readClaim(ctx); err != nil {
			return err
		}
		switch {
		case st.ClaimedByOther():
			return errClaimed
		case st.hasClaim():
			return nil
		}
	}
	return err
}

// hasClaim reports whether the claim on the cluster is known to name this fleet.
func (st *Store) hasClaim() bool {
	return st.claim != nil && st.claim.owner == st.membership.owner() && st.claim.member == st.cfg.Cluster
}

// RenameClaim writes the name of this member into the claim if that has a former name of it.
func (st *Store) RenameClaim(ctx context.Context) error {
	if by := st.Claimant(); by == "" || by == st.cfg.Cluster {
		return nil
	}
	return st.ensureClaim(ctx)
}

// writeClaim creates the claim, or replaces the version that was read.
func (st *Store) writeClaim(ctx context.Context) error {
	id := claimID(st.cfg.Fleet)
	annotations := map[string]any{api.MemberAnnotation: st.cfg.Cluster}
	st.membership.annotate(annotations)
	metadata := map[string]any{
		"name": id.Name, "namespace": id.Namespace,
		"labels":      map[string]any{api.ManagedByLabel: st.cfg.Fleet, label: claimPart},
		"annotations": annotations,
	}
	if st.claim != nil {
		metadata["resourceVersion"] = st.claim.version
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
	if err != nil {
		return err
	}
	var written *metav1.PartialObjectMetadata
	err = st.withNamespace(ctx, func() (err error) {
		if st.claim == nil {
			written, err = st.conn.Create(ctx, ConfigMaps, id, body)
		} else {
			written, err = st.conn.Patch(ctx, ConfigMaps, id, body, true)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("claim the cluster: %w", err)
	}
	st.setClaim(written)
	return nil
}

// readClaim reads the claim from the cluster.
func (st *Store) readClaim(ctx context.Context) error {
	found, err := st.conn.Read(ctx, ConfigMaps, claimID(st.cfg.Fleet))
	if err != nil {
		return fmt.Errorf("read the claim to the cluster: %w", err)
	}
	if st.claim = nil; found != nil {
		st.setClaim(found)
		st.owners = sortedOwners(append(slices.Clone(st.owners), st.claim.owner))
	}
	return nil
}

// setClaim records the claim in a response of the server.
func (st *Store) setClaim(o metav1.Object) {
	st.claim = &claim{owner: st.ownerOf(o.GetAnnotations(), ""), member: o.GetAnnotations()[api.MemberAnnotation], uid: o.GetUID(), version: o.GetResourceVersion()}
	st.put(api.PlacementKey{}, o)
}

// ClaimChanged reports whether an object is the claim, and somebody has changed or deleted it
// since it was last read or written; isClaim alone says that it is the claim.
func (st *Store) ClaimChanged(id api.ID) (isClaim, changed bool) {
	p := st.parts.Of(id)
	if p == nil || id != claimID(st.cfg.Fleet) {
		return false, false
	}
	l := st.cfg.Live.Of(id)
	return true, l == nil || l.Version > p.version
}

// RestoreClaim reads the claim again and, if there are inventories, writes it unless it is as it
// should be.
func (st *Store) RestoreClaim(ctx context.Context, inventories int) error {
	if err := st.readClaim(ctx); err != nil || inventories == 0 {
		return err
	}
	return st.ensureClaim(ctx)
}

// DeleteClaim deletes the claim, unless it has changed since it was read.
func (st *Store) DeleteClaim(ctx context.Context) error {
	if st.claim == nil {
		return nil
	}
	id := claimID(st.cfg.Fleet)
	if _, err := st.conn.Delete(ctx, ConfigMaps, id, st.claim.uid, metav1.DeletePropagationBackground); err != nil {
		return fmt.Errorf("give up the claim to the cluster: %w", err)
	}
	st.claim = nil
	st.drop(id)
	return nil
}
