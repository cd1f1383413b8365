package diff

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An Owner is the owner of a live object according to its marker: the label with the fleet's
// name, and the annotation with the placement.
type Owner string

// The owners. Owner references do not matter; see Case.CoOwned.
const (
	// Foreign has no marker: nobody who uses gitfleet owns it.
	Foreign Owner = "foreign"
	// Ours has the marker of this fleet and this placement.
	Ours Owner = "ours"
	// OtherPlacement has the marker of another placement of this fleet.
	OtherPlacement Owner = "other placement"
	// OtherFleet has the marker of another fleet.
	OtherFleet Owner = "other fleet"
)

// OwnerOf reads the owner of a live object from its marker; metadata is enough. A marker of
// this fleet whose placement no longer exists is ignored. gone reports that, and may be nil.
func OwnerOf(live metav1.Object, fleet string, placement api.PlacementKey, gone func(placement string) bool) Owner {
	marked := live.GetLabels()[api.ManagedByLabel]
	holder := live.GetAnnotations()[api.PlacementAnnotation]
	switch {
	case marked == "":
		return Foreign
	case marked != fleet:
		return OtherFleet
	case holder == placement.String():
		return Ours
	case holder == "" || gone != nil && gone(holder):
		return Foreign
	default:
		return OtherPlacement
	}
}

// Owners lists the other owners of a live object for messages: its owner references, and the
// placement in another marker.
func Owners(live metav1.Object, fleet string, placement api.PlacementKey) string {
	var owners []string
	for _, r := range live.GetOwnerReferences() {
		owners = append(owners, fmt.Sprintf("{APIVersion:%s Kind:%s Name:%s UID:%s}", r.APIVersion, r.Kind, r.Name, r.UID))
	}
	switch holder := live.GetAnnotations()[api.PlacementAnnotation]; OwnerOf(live, fleet, placement, nil) {
	case OtherPlacement:
		owners = append(owners, fmt.Sprintf("{Placement:%s}", holder))
	case OtherFleet:
		owners = append(owners, fmt.Sprintf("{Fleet:%s Placement:%s}", live.GetLabels()[api.ManagedByLabel], holder))
	}
	return "[" + strings.Join(owners, " ") + "]"
}
