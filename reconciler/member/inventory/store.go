package inventory

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/compact"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// Config configures a store. All fields must be set except HasCommit and Serials.
type Config struct {
	// Cluster is the name of the member, Fleet the value of the managed-by label.
	Cluster, Fleet string
	// HasCommit reports whether the repository has a commit; nil means that it has every commit.
	HasCommit func(hash string) bool
	// Live are the objects that are known on the cluster. The store adds and removes its
	// ConfigMaps.
	Live *observed.Objects
	// Serials are the highest serial numbers of inventories that are known. The store changes them; nil
	// means that none are known.
	Serials Serials
	Log     *slog.Logger
}

// Serials count how many times the inventory of each placement was written. The number is on the
// cluster too, so that a lower one there shows that an earlier inventory was put back, or that the
// inventory was deleted.
type Serials map[api.PlacementKey]uint64

// compare returns the placements whose inventory on the cluster is missing or has a lower serial number
// than the last that was written, sorted. Such an inventory is written again. The numbers of all others
// are recorded.
func (s Serials) compare(all List) (setBack []api.PlacementKey) {
	for p, known := range s {
		if inv := all.Of(p); inv == nil || inv.serial < known {
			setBack = append(setBack, p)
		}
	}
	for _, inv := range all {
		if p := inv.Placement(); inv.serial < s[p] {
			inv.Invalidate()
		} else {
			s[p] = inv.serial
		}
	}
	slices.SortFunc(setBack, api.PlacementKey.Compare)
	return setBack
}

// A Store reads and writes the inventories of a fleet on one cluster. One goroutine uses it.
type Store struct {
	conn       *connection.Conn
	cfg        Config
	membership membership
	uid        string // of the connected cluster; empty if it is not known
	parts      compact.Map[part]
	// claim is the claim on the cluster; nil if none is known.
	claim *claim
	// owners are the fleets that inventories name, damaged those of inventories that cannot be
	// read.
	owners, damaged []protocol.Owner
	setBack         []api.PlacementKey
	// attempted are the serial numbers of writes that have failed, or whose result is not known yet.
	attempted Serials
	bundle    bundle
	// alone are the serial numbers in damaged ConfigMaps of single inventories, by the name of the first part. Such an inventory
	// is written into its own ConfigMap, which would otherwise stay damaged.
	alone map[string]uint64
	// announced is the announcement on the cluster, as far as it counts; nil if there is none.
	announced map[api.PlacementKey]announced
	// inAnnouncement are the placements that it has, also those for which it does not count.
	inAnnouncement map[api.PlacementKey]bool
	// counted is what the inventories of the last Load count for the memory that all clusters share, in bytes.
	counted int
	// noNamespace says that the cluster does not have our namespace, namespaceMade that it was
	// created, or existed.
	noNamespace, namespaceMade bool
}

// NewStore returns a store that writes for a membership.
func NewStore(conn *connection.Conn, m protocol.Membership, cfg Config) *Store {
	if cfg.Serials == nil {
		cfg.Serials = Serials{}
	}
	return &Store{conn: conn, membership: membership{m}, cfg: cfg, attempted: Serials{}}
}

// Load reads the inventories on the cluster. One that cannot be decoded is logged and not
// changed, and nothing is deleted because of it. A ConfigMap with the label of an inventory and
// without its annotations belongs to no fleet.
func (st *Store) Load(ctx context.Context) (all List, err error) {
	at := listingOf(st)
	defer at.Done()
	list, err := st.list(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("read inventories: %w", err)
	}
	chunks := map[string]*unstructured.Unstructured{}
	for i := range list {
		chunks[list[i].GetName()] = &list[i]
	}
	st.damaged, st.claim, st.announced, st.bundle, st.parts = nil, nil, nil, bundle{}, compact.Map[part]{}
	st.attempted, st.alone = Serials{}, map[string]uint64{}
	owners := []protocol.Owner{}
	if o := chunks[claimID(st.cfg.Fleet).Name]; o != nil {
		st.setClaim(o)
		owners = append(owners, st.claim.owner)
	}
	st.conn.Memory().Keep(int64(-st.counted)) // of the load before
	left := newUnpacking(ctx)
	left.memory = st.conn.Memory()
	defer func() { st.counted = left.counted }()
	for i := range list {
		first := &list[i]
		if first.GetLabels()[label] != "0" {
			continue
		}
		inv, err := join(first, chunks, left)
		if stop := left.stops(err); stop != nil {
			return nil, stop
		}
		if err != nil {
			logDamaged(st, first, err)
			st.alone[first.GetName()] = serialOf(first)
			owner := st.ownerOf(first.GetAnnotations(), "")
			if _, ours := first.GetAnnotations()[partsKey]; ours || owner.ID != "" {
				st.damaged = append(st.damaged, owner)
			}
			continue
		}
		owner := st.ownerOf(first.GetAnnotations(), inv.Revision().Commit)
		inv.setOwner(owner)
		inv.serial, owners = serialOf(first), append(owners, owner)
		all.Put(inv)
		for n := range int(inv.parts) {
			st.put(inv.Placement(), chunks[partName(first.GetName(), n)])
		}
		inv.applied = appliedAt(st, configMapID(first.GetName()))
	}
	bundled, err := addBundled(st, chunks, &all, left)
	if err != nil {
		return nil, err
	}
	st.owners = sorted(slices.Concat(owners, bundled, st.damaged))
	if err := addAnnounced(st, chunks[announcementID(st.cfg.Fleet).Name], &all, left); err != nil {
		return nil, err
	}
	st.setBack = st.cfg.Serials.compare(all)
	if len(st.damaged) > 0 {
		st.setBack = slices.DeleteFunc(st.setBack, func(p api.PlacementKey) bool { return all.Of(p) == nil }) // they may be damaged
	}
	return all, nil
}

func logDamaged(st *Store, o metav1.Object, err error) {
	st.cfg.Log.Error("inventory is damaged; nothing it held will be deleted until it is written anew",
		"cluster", st.cfg.Cluster, "object", o.GetName(), "err", err)
}

// SetBackSince reports whether one of the inventories of a store is missing on the cluster, or has a lower serial number than
// when it was last read or written. It reads metadata alone.
func SetBackSince(ctx context.Context, st *Store, all List) (bool, error) {
	serials, digest := map[string]uint64{}, ""
	at := connection.Listing{Kept: true, ListOptions: metav1.ListOptions{
		LabelSelector: api.ManagedByLabel + "=" + st.cfg.Fleet + "," + label + " in (0," + bundlePart + ")", Limit: 500,
	}}
	for {
		page, err := st.conn.Page(ctx, ConfigMaps.GroupVersionResource, api.Namespace, &at.ListOptions)
		if err != nil {
			return false, fmt.Errorf("read inventories: %w", err)
		}
		for i := range page.Items {
			if serials[page.Items[i].Name] = serialOf(&page.Items[i]); page.Items[i].Name == bundleID(st.cfg.Fleet).Name {
				digest = page.Items[i].Annotations[digestKey]
			}
		}
		more, err := at.Next(page, len(page.Items))
		if err != nil {
			return false, fmt.Errorf("read inventories: %w", err)
		}
		if !more {
			break
		}
	}
	for _, inv := range all {
		p := inv.Placement()
		if inv.serial > 0 && st.bundle.counting.Of(p) == nil && serials[nameOf(st.cfg.Fleet, p)] < inv.serial {
			return true, nil
		}
	}
	return len(st.bundle.counting) > 0 && (digest == "" || st.bundle.digest != "" && digest != st.bundle.digest), nil
}

// serialOf returns the serial number in the first part of an inventory; zero if that is of an older
// version.
func serialOf(first metav1.Object) uint64 {
	n, _ := strconv.ParseUint(first.GetAnnotations()[serialKey], 10, 64)
	return n
}

// serialIn returns the serial number of the inventory whose first part has a name, among ConfigMaps by name; zero if there is none.
func serialIn(chunks map[string]*unstructured.Unstructured, name string) uint64 {
	if first := chunks[name]; first != nil {
		return serialOf(first)
	}
	return 0
}

// nextSerial returns the serial number of the next write of an inventory: one that no earlier write has used, including those
// that failed.
func nextSerial(st *Store, p api.PlacementKey) uint64 {
	damaged, _ := damagedSerial(st, p)
	return max(st.cfg.Serials[p], st.attempted[p], damaged) + 1
}

// isDamaged reports whether the inventory of a placement has a ConfigMap of its own that is damaged.
func isDamaged(st *Store, p api.PlacementKey) bool {
	_, damaged := damagedSerial(st, p)
	return damaged
}

// damagedSerial returns the serial number in the damaged ConfigMap of an inventory, and whether it has one.
func damagedSerial(st *Store, p api.PlacementKey) (serial uint64, damaged bool) {
	if len(st.alone) > 0 { // to compute the name costs more than all else
		serial, damaged = st.alone[nameOf(st.cfg.Fleet, p)]
	}
	return serial, damaged
}

// wrote records the serial number of an inventory that was written.
func wrote(st *Store, inv *Inventory, serial uint64) {
	st.cfg.Serials[inv.Placement()], inv.serial = serial, serial
	if delete(st.attempted, inv.Placement()); len(st.attempted) == 0 {
		st.attempted = Serials{} // an emptied map keeps its memory
	}
}

// SetBack returns the placements whose inventory was deleted, or is an earlier one than the last that
// was written, as of the last Load. They are sorted.
func (st *Store) SetBack() []api.PlacementKey { return st.setBack }

// put records a ConfigMap as the server has it.
func (st *Store) put(p api.PlacementKey, o metav1.Object) {
	id, l := configMapID(o.GetName()), observed.Of(o)
	st.cfg.Live.Put(id, l)
	st.parts.Put(id, part{unique.Make(partOf{p, l.Managed}), l.Version})
}

// appliedAt returns when a ConfigMap was written, in seconds, as the server has it; zero if it is not known.
func appliedAt(st *Store, id api.ID) int64 {
	if l := st.cfg.Live.Of(id); l != nil {
		return l.Applied
	}
	return 0
}

// drop records that a ConfigMap is gone.
func (st *Store) drop(id api.ID) {
	st.parts.Drop(id)
	st.cfg.Live.Drop(id)
}

func listingOf(st *Store) *connection.Listing {
	return &connection.Listing{
		ListOptions: metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + st.cfg.Fleet + "," + label, Limit: 100}, Kept: true, Memory: st.conn.Memory(),
	}
}

func (st *Store) list(ctx context.Context, at *connection.Listing) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for {
		page, err := st.conn.WholePage(ctx, ConfigMaps, api.Namespace, &at.ListOptions)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if err := keepChunk(at, &page.Items[i]); err != nil {
				return nil, err
			}
		}
		out = append(out, page.Items...)
		if more, err := at.Next(page, len(page.Items)); !more {
			return out, err
		}
	}
}

// deletePart deletes one part. The part is forgotten even if the request fails: it may have been
// deleted all the same, and that must not look like a deletion by somebody else.
func (st *Store) deletePart(ctx context.Context, name string) error {
	id := configMapID(name)
	st.drop(id)
	_, err := st.conn.Delete(ctx, ConfigMaps, id, "", metav1.DeletePropagationBackground)
	return err
}

// Delete removes an empty inventory from the cluster.
func (st *Store) Delete(ctx context.Context, inv *Inventory) error {
	if err := RemoveTogether(ctx, st, inv); err != nil {
		return fmt.Errorf("remove inventory of %s: %w", inv.Placement(), err)
	}
	name := nameOf(st.cfg.Fleet, inv.Placement())
	for part := max(1, int(inv.parts)) - 1; part >= 0; part-- {
		if err := st.deletePart(ctx, partName(name, part)); err != nil {
			return fmt.Errorf("remove inventory of %s: %w", inv.Placement(), err)
		}
	}
	inv.written, inv.parts, inv.serial = 0, 0, 0
	Forget(st, inv.Placement())
	return nil
}

// Forget drops the serial number of an inventory that was deleted and of which nothing is left on the
// cluster, so that it counts as missing no longer.
func Forget(st *Store, p api.PlacementKey) {
	delete(st.cfg.Serials, p)
	delete(st.alone, nameOf(st.cfg.Fleet, p))
}

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
