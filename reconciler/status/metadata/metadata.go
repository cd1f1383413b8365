// Package metadata makes the metadata that Kubernetes clients expect of the objects in a report.
package metadata

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Type returns the type of an object of the hub.
func Type(group, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: group + "/v1beta1", Kind: kind}
}

// UID returns the UID of the object whose name has these parts. It is the same on every machine
// and after a restart. It is different if the object was deleted and created again, and empty
// if the time of creation is not known.
func UID(created time.Time, parts ...string) types.UID {
	if !created.IsZero() {
		parts = append(parts, created.UTC().Format(time.RFC3339Nano))
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%s\x00", p)
	}
	s := hex.EncodeToString(h.Sum(nil)[:16])
	return types.UID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:])
}

// PlacementUID returns the UID of a placement.
func PlacementUID(key api.PlacementKey, created time.Time) types.UID {
	return UID(created, key.Kind(), key.Namespace, key.Name)
}

// ClusterUID returns the UID of a MemberCluster.
func ClusterUID(name string, created time.Time) types.UID {
	return UID(created, "MemberCluster", name)
}

// ClusterID returns the ID of a MemberCluster.
func ClusterID(name string) api.ID {
	return api.ID{Group: api.ClusterGroup, Kind: "MemberCluster", Name: name}
}

// SnapshotIndex formats the index of a content, as that of a resource snapshot of KubeFleet; empty if there is none.
func SnapshotIndex(i int) string {
	if i < 0 {
		return ""
	}
	return strconv.Itoa(i)
}
