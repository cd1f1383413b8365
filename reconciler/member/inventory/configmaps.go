package inventory

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

const (
	// label is the number of the part of an inventory, from 0, or the kind of any other ConfigMap: claim, announcement or bundle.
	label     = "gitfleet.dev/inventory"
	dataKey   = "inventory"
	digestKey = "gitfleet.dev/inventory-digest"
	partsKey  = "gitfleet.dev/inventory-parts"
	serialKey = "gitfleet.dev/inventory-serial"
)

// partSize keeps a ConfigMap with its base64 data below the 1 MiB that an API server accepts.
// Only tests change it.
var partSize = 700 << 10

// ConfigMaps are the objects that inventories are stored in.
var ConfigMaps = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}

// FirstPart returns the ID of the first ConfigMap of the inventory of a placement, which is
// written last.
func FirstPart(fleet string, p api.PlacementKey) api.ID { return configMapID(nameOf(fleet, p)) }

// nameOf returns the name of the first part. It begins with the placement as far as that fits,
// and ends with a hash that makes it unique.
func nameOf(fleet string, p api.PlacementKey) string {
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

// fleetConfigMap returns the ID of a ConfigMap of which each fleet name has one.
func fleetConfigMap(prefix, fleet string) api.ID {
	sum := sha256.Sum256([]byte(fleet))
	return configMapID(prefix + hex.EncodeToString(sum[:8]))
}

func configMapID(name string) api.ID {
	return api.ID{Kind: "ConfigMap", Namespace: api.Namespace, Name: name}
}

// A part is one ConfigMap of an inventory, as it was last written.
type part struct {
	of      unique.Handle[partOf]
	version uint64
}

// A partOf is what the parts of the inventories of a placement have in common on many clusters.
type partOf struct {
	placement api.PlacementKey
	managed   string
}

// join returns the inventory that some ConfigMaps hold, given the first of them, and all by name.
func join(first *unstructured.Unstructured, chunks map[string]*unstructured.Unstructured, left *unpacking) (*Inventory, error) {
	name := first.GetName()
	parts, err := strconv.Atoi(first.GetAnnotations()[partsKey])
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", partsKey, err)
	}
	var raw []byte
	for n := range parts {
		o := chunks[partName(name, n)]
		if o == nil {
			return nil, fmt.Errorf("part %d of %d is missing", n+1, parts)
		}
		text, _, _ := unstructured.NestedString(o.Object, "binaryData", dataKey)
		chunk, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", n+1, err)
		}
		raw = append(raw, chunk...)
	}
	sum := digestOf(raw)
	if want := first.GetAnnotations()[digestKey]; sum.String() != want {
		return nil, fmt.Errorf("its digest is not %s", want)
	}
	inv, err := left.unpack(raw)
	if err != nil {
		return nil, err
	}
	inv.parts, inv.written = int32(parts), sum
	return inv, nil
}

// keepChunk counts a ConfigMap that is kept while the inventories are read.
func keepChunk(at *connection.Listing, o *unstructured.Unstructured) error {
	text, _, _ := unstructured.NestedString(o.Object, "binaryData", dataKey)
	return at.Keep(len(o.GetName()) + len(text))
}

// listIn decodes a ConfigMap of several placements.
func listIn(o *unstructured.Unstructured, left *unpacking) ([]*Inventory, error) {
	text, _, _ := unstructured.NestedString(o.Object, "binaryData", dataKey)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if want := o.GetAnnotations()[digestKey]; digestOf(raw).String() != want {
		return nil, fmt.Errorf("its digest is not %s", want)
	}
	return left.unpackList(raw)
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
