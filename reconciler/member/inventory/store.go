package inventory

import (
	"context"
	"encoding/json"
	"log/slog"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
	// Live are the objects that are known on the cluster. Record records one of the store's ConfigMaps among them, as the server has
	// it; nil if it is gone.
	Live   observed.View
	Record func(id api.ID, l *observed.Object)
	// Serials are the highest serial numbers of inventories that are known. The store changes them; nil
	// means that none are known.
	Serials *Serials
	Log     *slog.Logger
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
		cfg.Serials = &Serials{}
	}
	return &Store{conn: conn, membership: membership{m}, cfg: cfg}
}

// A claim is a ConfigMap on the cluster that records which fleet uses a fleet name there. Its
// name is derived from the fleet name. If two fleets of the same name start on an empty cluster
// at the same time, both find no inventory. But only one of them can create the claim, and the
// other one then writes nothing. It also names the member, since a cluster may be declared under two
// names.
//
// The claim has the labels of inventories, so that one list request reads both.
type claim struct {
	owner protocol.Owner
	// member is the member as which the fleet holds the cluster; empty in claims of older versions.
	member string
	uid    types.UID
	// version is the resourceVersion of the claim that was read.
	version string
}

// A bundle is a ConfigMap with the inventories of several placements, which are written at once. A cluster that joins
// a fleet of a hundred placements thus needs one request for their inventories.
//
// Of each inventory it has the serial number, and it counts for the placement as long as there is no ConfigMap of the
// inventory alone with the same number or a higher one. An inventory that changes alone later gets a ConfigMap of its own,
// and stays there. The bundle is deleted when nothing in it counts, and has nothing of a placement whose inventory is
// deleted, since that would begin to count again. It has the labels of inventories, so that one list request reads both.
type bundle struct {
	// counting are the inventories in the ConfigMap that count.
	counting List
	// others are further placements that the ConfigMap has, or may have, of which that does not count.
	others map[api.PlacementKey]bool
	// digest is that of the ConfigMap as it was last read or written; empty if it is not known.
	digest string
	// damaged says that the ConfigMap could not be read. The next inventory that may be bundled then replaces it.
	damaged bool
}

// has reports whether the ConfigMap has, or may have, something of a placement.
func (b *bundle) has(p api.PlacementKey) bool { return b.others[p] || b.counting.Of(p) != nil }

// addOther records that the ConfigMap has something of a placement that does not count.
func (b *bundle) addOther(p api.PlacementKey) {
	b.counting.Drop(p)
	if b.others == nil {
		b.others = map[api.PlacementKey]bool{}
	}
	b.others[p] = true
}

// An announced is what an announcement has of a placement: items of an inventory, which has them in memory already.
type announced struct {
	inv    *Inventory
	serial uint64
}

// encoded returns the entry of the placement with some items.
func (a announced) encoded(items []Item) encoded {
	return encoded{Placement: a.inv.Placement(), Revision: a.inv.Revision(), Abandon: a.inv.Abandon, Items: items, Serial: a.serial}
}

func logDamaged(st *Store, o metav1.Object, err error) {
	st.cfg.Log.Error("inventory is damaged; nothing it held will be deleted until it is written anew",
		"cluster", st.cfg.Cluster, "object", o.GetName(), "err", err)
}

// nextSerial returns the serial number of the next write of an inventory: one that no earlier write has used, including those
// that failed.
func nextSerial(st *Store, p api.PlacementKey) uint64 {
	damaged, _ := damagedSerial(st, p)
	return max(st.cfg.Serials.Of(p), st.attempted.Of(p), damaged) + 1
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
	inv.serial = serial
	st.cfg.Serials.set(inv.Placement(), serial)
	if st.attempted.drop(inv.Placement()); len(st.attempted) == 0 {
		st.attempted = nil // so that its memory is free
	}
}

// SetBack returns the placements whose inventory was deleted, or is an earlier one than the last that
// was written, as of the last Load. They are sorted.
func (st *Store) SetBack() []api.PlacementKey { return st.setBack }

// encodeConfigMap returns a ConfigMap to apply, with the owner in its annotations. part is the value of label on it.
func encodeConfigMap(st *Store, name, part string, annotations map[string]any, data []byte) ([]byte, error) {
	st.membership.annotate(annotations)
	return json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": name, "namespace": api.Namespace,
			"labels":      map[string]any{api.ManagedByLabel: st.cfg.Fleet, label: part},
			"annotations": annotations,
		},
		"binaryData": map[string][]byte{dataKey: data},
	})
}

// put records a ConfigMap as the server has it.
func (st *Store) put(p api.PlacementKey, o metav1.Object) {
	id, l := configMapID(o.GetName()), observed.Of(o)
	st.cfg.Record(id, l)
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
	st.cfg.Record(id, nil)
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

// Forget drops the serial number of an inventory that was deleted and of which nothing is left on the
// cluster, so that it counts as missing no longer.
func Forget(st *Store, p api.PlacementKey) {
	st.cfg.Serials.drop(p)
	delete(st.alone, nameOf(st.cfg.Fleet, p))
}
