package member

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
)

// A claim is a ConfigMap on the cluster that records which fleet uses a fleet name there. Its
// name is derived from the fleet name. If two fleets of the same name start on an empty cluster
// at the same time, both find no inventory. But only one of them can create the claim, and the
// other one then writes nothing.
//
// The claim has the labels of inventories, so that one list request reads both.
type claim struct {
	owner ledger.Owner
	uid   types.UID
	// version is the resourceVersion of the claim that was read.
	version string
}

// claimPart is the value of inventoryLabel on a claim.
const claimPart = "claim"

// errHeld is the error of writes to a cluster that another fleet holds.
var errHeld = errors.New("another fleet of the same name holds the cluster")

// claimID returns the ID of the claim of a fleet name.
func claimID(fleet string) api.ID {
	sum := sha256.Sum256([]byte(fleet))
	return inventoryID("claim-" + hex.EncodeToString(sum[:8]))
}

// ensureClaim makes sure that this fleet has the claim before an inventory is written. It
// creates a missing claim, and takes over that of an adopted fleet. If another fleet has the
// claim, foreign reports true from then on and the error is errHeld.
func (s *session) ensureClaim(ctx context.Context) error {
	switch {
	case s.fleet.ID == "":
		return nil
	case s.foreign():
		return errHeld
	case s.claim != nil && s.claim.owner == s.owner():
		return nil
	}
	var err error
	for range 2 {
		err = s.writeClaim(ctx)
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !connection.NotFound(err) {
			return err
		}
		// Another daemon was faster, or the response to an earlier request was lost.
		if err := s.readClaim(ctx); err != nil {
			return err
		}
		switch {
		case s.foreign():
			return errHeld
		case s.claim != nil && s.claim.owner == s.owner():
			return nil
		}
	}
	return err
}

// writeClaim creates the claim, or replaces the version that was read.
func (s *session) writeClaim(ctx context.Context) error {
	id := claimID(s.cfg.Fleet)
	annotations := map[string]any{}
	s.fleetAnnotations(annotations)
	metadata := map[string]any{
		"name": id.Name, "namespace": id.Namespace,
		"labels":      map[string]any{api.ManagedByLabel: s.cfg.Fleet, inventoryLabel: claimPart},
		"annotations": annotations,
	}
	if s.claim != nil {
		metadata["resourceVersion"] = s.claim.version
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
	if err != nil {
		return err
	}
	var written *metav1.PartialObjectMetadata
	err = s.withNamespace(ctx, func() (err error) {
		if s.claim == nil {
			written, err = s.conn.Create(ctx, configMaps, id, body)
		} else {
			written, err = s.conn.Patch(ctx, configMaps, id, body, true)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("claim the cluster: %w", err)
	}
	s.setClaim(written)
	return nil
}

// readClaim reads the claim from the cluster.
func (s *session) readClaim(ctx context.Context) error {
	found, err := s.conn.Read(ctx, configMaps, claimID(s.cfg.Fleet))
	if err != nil {
		return fmt.Errorf("read the claim to the cluster: %w", err)
	}
	if s.claim = nil; found != nil {
		s.setClaim(found)
		s.owners = ownersOf(append(slices.Clone(s.owners), s.claim.owner))
	}
	return nil
}

// setClaim records the claim in a response of the server.
func (s *session) setClaim(o metav1.Object) {
	s.claim = &claim{owner: s.ownerOf(o.GetAnnotations(), ""), uid: o.GetUID(), version: o.GetResourceVersion()}
	id, l := inventoryID(o.GetName()), observed.Of(o)
	s.live.Put(id, l)
	s.parts.Put(id, part{managed: l.Managed, version: l.Version})
}

// restoreClaim writes the claim again if somebody has changed or deleted it.
func (s *session) restoreClaim(ctx context.Context) {
	err := s.readClaim(ctx)
	if err == nil && len(s.inv) > 0 {
		err = s.ensureClaim(ctx)
	}
	if err != nil {
		s.cfg.Log.Warn("claim not restored; trying again before the next inventory is written", "cluster", s.cfg.Name, "err", err)
	}
}

// dropClaim deletes the claim, unless it has changed since it was read.
func (s *session) dropClaim(ctx context.Context) error {
	if s.claim == nil {
		return nil
	}
	id := claimID(s.cfg.Fleet)
	if _, err := s.conn.Delete(ctx, configMaps, id, s.claim.uid, metav1.DeletePropagationBackground); err != nil {
		return fmt.Errorf("give up the claim to the cluster: %w", err)
	}
	s.claim = nil
	s.parts.Drop(id)
	s.live.Drop(id)
	return nil
}
