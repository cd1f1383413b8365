package member

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// An inventory lists the objects that one placement owns on this cluster, and the revision that
// it has reached. It is stored on the cluster itself, as ConfigMaps in our namespace, so that
// it survives the loss of everything else. It decides what may be deleted.
type inventory struct {
	Placement api.PlacementKey   `json:"placement"`
	Revision  placement.Revision `json:"revision"`
	// Abandon says that the objects stay when the placement is deleted.
	Abandon bool `json:"abandon,omitempty"`
	// Adopted says that a user adopted the inventory from another fleet, and that it still has
	// objects which are not in the repository.
	Adopted bool   `json:"adopted,omitempty"`
	Items   []item `json:"items"`

	// parts is the number of ConfigMaps of the last write.
	parts int
	// written is the digest of the inventory on the cluster; empty if it may not be there.
	written string
	// owner is the owner in the ConfigMaps on the cluster.
	owner ledger.Owner
	items items
	// unwritten limits the log lines about failed writes.
	unwritten retry.LogLimiter
}

// An item is an object that we have applied, or may have.
type item struct {
	Group     string `json:"g,omitempty"`
	Version   string `json:"v"`
	Kind      string `json:"k"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
	// Hash is the hash of the content that was applied last; empty if the object was only
	// announced.
	Hash string `json:"h,omitempty"`
	// Managed is the hash of our managedFields entry after the last apply.
	Managed string `json:"m,omitempty"`
	// Others identifies the fields that others owned when the object was accepted with their
	// values; see observed.Object.Foreign. It is empty if we own all applied fields, since
	// Managed then shows every change.
	Others string    `json:"o,omitempty"`
	UID    types.UID `json:"u,omitempty"`
	// Commit is the commit that last changed the object.
	Commit string `json:"c,omitempty"`
}

func (i *item) id() api.ID {
	return api.ID{Group: i.Group, Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
}

func (i *item) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: i.Group, Version: i.Version, Kind: i.Kind}
}

const (
	// inventoryLabel numbers the parts of an inventory from 0.
	inventoryLabel = "gitfleet.dev/inventory"
	inventoryKey   = "inventory"
	digestKey      = "gitfleet.dev/inventory-digest"
	partsKey       = "gitfleet.dev/inventory-parts"
)

// partSize keeps a ConfigMap with its base64 data below the 1 MiB that an API server accepts.
// Only tests change it.
var partSize = 700 << 10

var (
	configMaps = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}
	namespaces = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Namespaced: false}
)

// inventoryName returns the name of the first part. It begins with the fleet and the placement
// as far as they fit, and ends with a hash that makes it unique.
func inventoryName(fleet string, p api.PlacementKey) string {
	sum := sha256.Sum256([]byte(fleet + "\x00" + p.String()))
	readable := strings.ToLower(strings.ReplaceAll(p.String(), "/", "-"))
	return "inventory-" + readable[:min(len(readable), 150)] + "-" + hex.EncodeToString(sum[:5])
}

func partName(name string, part int) string {
	if part == 0 {
		return name
	}
	return name + "." + strconv.Itoa(part)
}

// gzipWriters are shared by all sessions, since a writer is large and an inventory is packed
// after every change. Better compression of hashes, which are most of the content, is not worth
// the time.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("member: " + err.Error()) // the level is valid
	}
	return w
}}

// pack returns the inventory's bytes and their digest. Equal inventories give
// equal bytes.
func (inv *inventory) pack() (raw []byte, digest string, err error) {
	inv.Items = inv.Items[:0]
	for it := range inv.items.all() {
		inv.Items = append(inv.Items, it)
	}
	slices.SortFunc(inv.Items, func(a, b item) int { return cmp.Or(a.id().Compare(b.id()), strings.Compare(a.Version, b.Version)) })
	var buf bytes.Buffer
	zip := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(zip)
	zip.Reset(&buf)
	if err := json.NewEncoder(zip).Encode(inv); err != nil {
		return nil, "", err
	}
	inv.Items = nil
	if err := zip.Close(); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(buf.Bytes())
	return buf.Bytes(), hex.EncodeToString(sum[:8]), nil
}

func unpack(raw []byte) (*inventory, error) {
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(zip, 256<<20))
	if err != nil {
		return nil, err
	}
	inv := &inventory{items: items{}}
	if err := json.Unmarshal(plain, inv); err != nil {
		return nil, err
	}
	for _, it := range inv.Items {
		inv.items.put(it)
	}
	inv.Items = nil
	return inv, nil
}

// save writes an inventory, unless the cluster already has it.
func (s *session) save(ctx context.Context, inv *inventory) error {
	s.adoptInventory(inv)
	raw, digest, err := inv.pack()
	if err != nil {
		return fmt.Errorf("write inventory of %s: %w", inv.Placement, err)
	}
	if digest == inv.written && inv.owner == s.owner() {
		return nil
	}
	if err := s.ensureClaim(ctx); err != nil {
		return fmt.Errorf("write inventory of %s: %w", inv.Placement, err)
	}
	name := inventoryName(s.cfg.Fleet, inv.Placement)
	parts := max(1, (len(raw)+partSize-1)/partSize)
	// The first part has the digest of the whole and is written last. So the digest of an
	// interrupted write does not match, and that inventory is not used.
	for part := parts - 1; part >= 0; part-- {
		chunk := raw[part*partSize : min(len(raw), (part+1)*partSize)]
		if err := s.savePart(ctx, partName(name, part), inv.Placement, part, chunk, digest, parts); err != nil {
			return fmt.Errorf("write inventory of %s: %w", inv.Placement, err)
		}
	}
	for part := parts; part < inv.parts; part++ {
		if err := s.dropPart(ctx, partName(name, part)); err != nil {
			return fmt.Errorf("shorten inventory of %s: %w", inv.Placement, err)
		}
	}
	inv.parts, inv.written, inv.owner = parts, digest, s.owner()
	return nil
}

func (s *session) savePart(ctx context.Context, name string, p api.PlacementKey, n int, chunk []byte, digest string, parts int) error {
	annotations := map[string]any{
		api.PlacementAnnotation: p.String(), digestKey: digest, partsKey: strconv.Itoa(parts),
	}
	s.fleetAnnotations(annotations)
	o := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": name, "namespace": api.Namespace,
			"labels":      map[string]any{api.ManagedByLabel: s.cfg.Fleet, inventoryLabel: strconv.Itoa(n)},
			"annotations": annotations,
		},
		"binaryData": map[string]any{inventoryKey: base64.StdEncoding.EncodeToString(chunk)},
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	id := inventoryID(name)
	var m *metav1.PartialObjectMetadata
	err = s.withNamespace(ctx, func() (err error) {
		m, err = s.conn.Patch(ctx, configMaps, id, body, true)
		return err
	})
	if err != nil {
		return err
	}
	l := observed.Of(m)
	s.live.Put(id, l)
	s.parts.Put(id, part{placement: p, managed: l.Managed, version: l.Version})
	return nil
}

// A part is one ConfigMap of an inventory, as it was last written.
type part struct {
	placement api.PlacementKey
	managed   string
	version   uint64
}

func inventoryID(name string) api.ID {
	return api.ID{Kind: "ConfigMap", Namespace: api.Namespace, Name: name}
}

// ownNamespace is the Namespace that inventories are in.
var ownNamespace = api.ID{Kind: "Namespace", Name: api.Namespace}

// createOwnNamespace creates our namespace, once, if the cluster did not have it when the
// session began: a server waits before it refuses a write to a missing namespace.
func (s *session) createOwnNamespace(ctx context.Context) error {
	if !s.housed && s.health.Namespaces != nil && !slices.Contains(s.health.Namespaces, api.Namespace) {
		if err := s.ensureNamespace(ctx); err != nil {
			return err
		}
	}
	s.housed = true
	return nil
}

// withNamespace calls do, which writes to our namespace. If the namespace is missing, it
// creates it and calls do again.
func (s *session) withNamespace(ctx context.Context, do func() error) error {
	if err := s.createOwnNamespace(ctx); err != nil {
		return err
	}
	err := do()
	if connection.NotFound(err) {
		if err = s.ensureNamespace(ctx); err == nil {
			err = do()
		}
	}
	return err
}

func (s *session) ensureNamespace(ctx context.Context) error {
	body := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + api.Namespace + `"}}`)
	_, err := s.conn.Patch(ctx, namespaces, ownNamespace, body, true)
	return err
}

func (s *session) dropPart(ctx context.Context, name string) error {
	id := inventoryID(name)
	s.parts.Drop(id)
	s.live.Drop(id)
	_, err := s.conn.Delete(ctx, configMaps, id, "", metav1.DeletePropagationBackground)
	return err
}

// dropInventory removes an empty inventory.
func (s *session) dropInventory(ctx context.Context, inv *inventory) error {
	name := inventoryName(s.cfg.Fleet, inv.Placement)
	for part := max(1, inv.parts) - 1; part >= 0; part-- {
		if err := s.dropPart(ctx, partName(name, part)); err != nil {
			return fmt.Errorf("remove inventory of %s: %w", inv.Placement, err)
		}
	}
	inv.written, inv.parts = "", 0
	return nil
}

// restoreInventories writes inventories again that others have changed or deleted.
func (s *session) restoreInventories(ctx context.Context, touched map[api.ID]bool) {
	for id := range touched {
		p := s.parts.Of(id)
		if p == nil {
			continue
		}
		if id == claimID(s.cfg.Fleet) {
			if l := s.live.Of(id); l == nil || l.Version > p.version {
				s.restoreClaim(ctx)
			}
			continue
		}
		if l := s.live.Of(id); l != nil && (l.Managed == p.managed && !s.suspects[id] || l.Terminating) {
			continue
		}
		delete(s.suspects, id)
		inv := s.inv[p.placement]
		if inv == nil {
			continue
		}
		if s.resting(p.placement) {
			inv.written = "" // it is written again once the failure is over
			continue
		}
		s.cfg.Log.Warn("inventory was changed by somebody else; putting it back", "cluster", s.cfg.Name, "object", id.String())
		inv.written = ""
		if err := s.save(ctx, inv); err != nil {
			s.cfg.Log.Warn("inventory not written", "cluster", s.cfg.Name, "placement", p.placement.String(), "err", err)
		}
	}
}

// inventoried returns the objects that the inventories list.
func (s *session) inventoried() map[api.ID]bool {
	ids := make(map[api.ID]bool, len(s.wanted))
	for _, inv := range s.inv {
		for id := range inv.items.IDs() {
			ids[id] = true
		}
	}
	return ids
}

// definitionEstablished records that a definition was established, or that an established one
// has changed. The definition's name ends with its group.
func (s *session) definitionEstablished(definition api.ID) {
	if s.established == nil {
		s.established = map[string]bool{}
	}
	_, group, _ := strings.Cut(definition.Name, ".")
	s.established[group] = true
}

// inventories reads the inventories on the cluster. One that cannot be decoded is reported and
// not changed, and nothing is deleted because of it.
func (s *session) inventories(ctx context.Context) error {
	list, err := s.listInventories(ctx)
	if err != nil {
		return fmt.Errorf("read inventories: %w", err)
	}
	chunks := map[string]*unstructured.Unstructured{}
	for i := range list {
		chunks[list[i].GetName()] = &list[i]
	}
	s.damaged, s.claim = nil, nil
	owners := []ledger.Owner{}
	if o := chunks[claimID(s.cfg.Fleet).Name]; o != nil {
		s.setClaim(o)
		owners = append(owners, s.claim.owner)
	}
	for i := range list {
		first := &list[i]
		parts, err := partsOf(first)
		if err != nil || first.GetLabels()[inventoryLabel] != "0" {
			continue
		}
		inv, err := join(first.GetName(), parts, chunks)
		if err != nil {
			s.cfg.Log.Error("inventory is damaged; nothing it held will be deleted until it is written anew",
				"cluster", s.cfg.Name, "object", first.GetName(), "err", err)
			s.damaged = append(s.damaged, s.ownerOf(first.GetAnnotations(), ""))
			continue
		}
		inv.owner = s.ownerOf(first.GetAnnotations(), inv.Revision.Commit)
		owners = append(owners, inv.owner)
		inv.written = first.GetAnnotations()[digestKey]
		s.inv[inv.Placement] = inv
		for n := range parts {
			o := chunks[partName(first.GetName(), n)]
			l := observed.Of(o)
			s.live.Put(inventoryID(o.GetName()), l)
			s.parts.Put(inventoryID(o.GetName()), part{placement: inv.Placement, managed: l.Managed, version: l.Version})
		}
	}
	s.owners = ownersOf(append(owners, s.damaged...))
	return nil
}

func (s *session) listInventories(ctx context.Context) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	opts := metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + s.cfg.Fleet + "," + inventoryLabel, Limit: 100}
	for {
		page, err := s.conn.WholePage(ctx, configMaps, api.Namespace, &opts)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return out, nil
		}
	}
}

// partsOf returns the number of ConfigMaps of an inventory, given the first one.
func partsOf(first *unstructured.Unstructured) (int, error) {
	return strconv.Atoi(first.GetAnnotations()[partsKey])
}

func join(name string, parts int, chunks map[string]*unstructured.Unstructured) (*inventory, error) {
	var raw []byte
	for n := range parts {
		o := chunks[partName(name, n)]
		if o == nil {
			return nil, fmt.Errorf("part %d of %d is missing", n+1, parts)
		}
		text, _, _ := unstructured.NestedString(o.Object, "binaryData", inventoryKey)
		chunk, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", n+1, err)
		}
		raw = append(raw, chunk...)
	}
	sum := sha256.Sum256(raw)
	if want := chunks[name].GetAnnotations()[digestKey]; hex.EncodeToString(sum[:8]) != want {
		return nil, fmt.Errorf("its digest is not %s", want)
	}
	inv, err := unpack(raw)
	if err != nil {
		return nil, err
	}
	inv.parts = parts
	return inv, nil
}
