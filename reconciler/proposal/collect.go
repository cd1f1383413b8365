package proposal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An offer is one distinct change: the same fields of the same manifest have the same
// values on one or more clusters.
type offer struct {
	// hash identifies the change, over restarts too.
	hash   string
	id     api.ID
	origin api.Origin
	// changes are the edit, by path; paths the fields that it is for.
	changes []FileChange
	paths   []api.Difference
	// drifts are the change on each cluster, by cluster.
	drifts []*status.Drift
	// others are the clusters that have the object as it is in Git.
	others []string
}

// A verdict is what is to become of one drift that is no part of an offer.
type verdict struct {
	drift   *status.Drift
	putBack bool
	message string
}

// collect groups the held drifts of a report. What no edit of a plain manifest expresses
// is put back. The files are those of the commit in force.
func collect(r *status.Report, files fs.FS, fleet string) (offers []*offer, verdicts []verdict) {
	byHash := map[string]*offer{}
	for i := range r.Drifts {
		d := &r.Drifts[i]
		if d.State != api.DriftHeld {
			continue
		}
		o, err := offerOf(r, d, files, fleet)
		_, inGit := errors.AsType[*inGitError](err)
		switch {
		case inGit || errors.Is(err, errUnreadable):
			verdicts = append(verdicts, verdict{d, false, err.Error()})
		case err != nil:
			verdicts = append(verdicts, verdict{d, true, "put back, since it cannot be offered as a pull request: " + err.Error()})
		case byHash[o.hash] != nil:
			byHash[o.hash].drifts = append(byHash[o.hash].drifts, d)
		default:
			byHash[o.hash] = o
			offers = append(offers, o)
		}
	}
	for _, o := range offers {
		o.finish(r)
	}
	slices.SortFunc(offers, func(a, b *offer) int { return cmp.Compare(a.hash, b.hash) })
	return offers, verdicts
}

// errUnreadable is returned where the file cannot be read now.
var errUnreadable = errors.New("the file cannot be read from the commit in force")

// An inGitError is returned where the commit in force has the change.
type inGitError struct{ commit string }

func (e *inGitError) Error() string {
	return fmt.Sprintf("commit %.8s has it; left as it is until the rollout reaches the cluster", e.commit)
}

// offerOf is the offer of one drift.
func offerOf(r *status.Report, d *status.Drift, files fs.FS, fleet string) (*offer, error) {
	t := r.TraceDrift(d)
	if t == nil || r.Head == nil {
		return nil, errors.New("the object is not wanted on the cluster any more")
	}
	if err := Adoptable(t); err != nil {
		return nil, err
	}
	o := &offer{id: d.ID(), paths: d.Paths, drifts: []*status.Drift{d}}
	i, found := slices.BinarySearchFunc(r.Head.Objects, o.id, func(x *api.Object, id api.ID) int { return x.ID.Compare(id) })
	if !found {
		return nil, errors.New("the commit in force does not have the object")
	}
	o.origin = r.Head.Objects[i].Origin
	if o.origin.Kustomization != "" || o.origin.Line == 0 {
		return nil, fmt.Errorf("it is not in a plain manifest: %s", o.origin)
	}
	text, err := fs.ReadFile(files, o.origin.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	details, reversed := make([]api.PatchDetail, len(d.Paths)), make([]api.PatchDetail, len(d.Paths))
	for i, p := range d.Paths {
		details[i] = p.PatchDetail
		reversed[i] = api.PatchDetail{Path: p.Path, ValueInHub: p.ValueInMember, ValueInMember: p.ValueInHub}
	}
	changes, err := Changes(text, o.origin.Line, details)
	var edited []byte
	if err == nil {
		edited, err = Edit(text, o.origin.Line, changes)
	}
	if err != nil {
		if _, already := Changes(text, o.origin.Line, reversed); already == nil {
			return nil, &inGitError{r.Head.Commit.Hash}
		}
		return nil, fmt.Errorf("%s: %w", o.origin.Path, err)
	}
	o.changes = []FileChange{{Path: o.origin.Path, Before: text, After: edited}}
	o.hash = hashOf(fleet, o.origin.Path, o.id, details)
	return o, nil
}

// hashOf identifies a change: of which object of which file it is, and the values on
// both sides.
func hashOf(fleet, path string, id api.ID, details []api.PatchDetail) string {
	text, _ := json.Marshal([]any{fleet, path, id, details}) // strings can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// finish sorts what is known of an offer's clusters.
func (o *offer) finish(r *status.Report) {
	slices.SortFunc(o.drifts, func(a, b *status.Drift) int { return cmp.Compare(a.Cluster, b.Cluster) })
	changed := map[string]bool{}
	for _, d := range o.drifts {
		changed[d.Cluster] = true
	}
	o.others = slices.DeleteFunc(r.ClustersWith(o.id), func(name string) bool { return changed[name] })
}

// clusters are those that have the change.
func (o *offer) clusters() []string {
	var out []string
	for _, d := range o.drifts {
		out = append(out, d.Cluster)
	}
	return out
}

// first is when the object was first found to be changed on any cluster.
func (o *offer) first() time.Time {
	return slices.MinFunc(o.drifts, func(a, b *status.Drift) int { return a.FirstSeen.Compare(b.FirstSeen) }).FirstSeen
}

// resolutions gives every drift what was decided about it, by cluster.
type resolutions map[string]ledger.Resolutions

func (all resolutions) add(d *status.Drift, putBack bool, message string) {
	key, err := api.ParsePlacement(d.Placement)
	if err != nil {
		return // no report names a placement otherwise
	}
	if all[d.Cluster] == nil {
		all[d.Cluster] = ledger.Resolutions{}
	}
	all[d.Cluster][ledger.DriftKey{Placement: key, ID: d.ID()}] = ledger.Resolution{Fingerprint: ledger.Fingerprint(d.Paths), PutBack: putBack, Message: message}
}
