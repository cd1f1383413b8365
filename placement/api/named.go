package api

import (
	"fmt"
	"slices"
	"strings"
)

var (
	placementKind         = GroupKind{Group: PlacementGroup, Kind: "ClusterResourcePlacement"}
	resourcePlacementKind = GroupKind{Group: PlacementGroup, Kind: "ResourcePlacement"}
	memberClusterKind     = GroupKind{Group: ClusterGroup, Kind: "MemberCluster"}
)

// NamesPlacements reports whether a word is a name of a kind of placement, and whether that kind
// is namespaced.
func NamesPlacements(word string) (namespaced, ok bool) {
	switch {
	case strings.EqualFold(word, "crp") || KindCalled(placementKind, word):
		return false, true
	case strings.EqualFold(word, "rp") || KindCalled(resourcePlacementKind, word):
		return true, true
	}
	return false, false
}

// NamesClusters reports whether a word is a name of the kind MemberCluster.
func NamesClusters(word string) bool {
	return slices.Contains([]string{"mc", "cluster", "clusters"}, strings.ToLower(word)) || KindCalled(memberClusterKind, word)
}

// ParsePlacement parses the name of a placement as users write it: crp/NAME or
// rp/NAMESPACE/NAME. The kind may be written in full, also with its group. It is the inverse of
// PlacementKey.String.
func ParsePlacement(text string) (PlacementKey, error) {
	kind, rest, _ := strings.Cut(text, "/")
	namespace, name, slash := strings.Cut(rest, "/")
	switch namespaced, ok := NamesPlacements(kind); {
	case ok && !namespaced && rest != "" && !slash:
		return PlacementKey{Name: rest}, nil
	case ok && namespaced && namespace != "" && name != "" && !strings.Contains(name, "/"):
		return PlacementKey{Namespace: namespace, Name: name}, nil
	}
	return PlacementKey{}, fmt.Errorf("%q names no placement; write crp/NAME, or rp/NAMESPACE/NAME", text)
}

// ClusterName returns the name of a member cluster that a user wrote as NAME, mc/NAME or
// cluster/NAME.
func ClusterName(text string) string {
	if kind, name, ok := strings.Cut(text, "/"); ok && NamesClusters(kind) {
		return name
	}
	return text
}

// An ObjectName is the name of an object as users write it, with any name of its kind, with or
// without the group.
type ObjectName struct{ Kind, Namespace, Name string }

// ParseObject parses KIND/NAME or KIND/NAMESPACE/NAME. The namespace, if it is not empty, is
// that of the object.
func ParseObject(text, namespace string) (ObjectName, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return ObjectName{}, fmt.Errorf("%q names no object; write KIND/NAME with -n NAMESPACE, or KIND/NAMESPACE/NAME", text)
	}
	o := ObjectName{parts[0], namespace, parts[len(parts)-1]}
	if len(parts) == 3 {
		if namespace != "" && namespace != parts[1] {
			return ObjectName{}, fmt.Errorf("%s is in the namespace %s, and -n says %s", text, parts[1], namespace)
		}
		o.Namespace = parts[1]
	}
	return o, nil
}

// String returns KIND/NAME or KIND/NAMESPACE/NAME.
func (o ObjectName) String() string {
	if o.Namespace == "" {
		return o.Kind + "/" + o.Name
	}
	return o.Kind + "/" + o.Namespace + "/" + o.Name
}

// Means reports whether an object has this name.
func (o ObjectName) Means(id ID) bool {
	return id.Name == o.Name && id.Namespace == o.Namespace && KindCalled(id.GroupKind(), o.Kind)
}

// ExactName returns a name that means no other object: its kind has the group, and ends with a dot if there is none.
func (id ID) ExactName() ObjectName {
	return ObjectName{id.Kind + "." + id.Group, id.Namespace, id.Name}
}

// ParseID parses the result of ID.String.
func ParseID(text string) (ID, error) {
	o, err := ParseObject(text, "")
	kind, group, _ := strings.Cut(o.Kind, ".")
	return ID{Group: group, Kind: kind, Namespace: o.Namespace, Name: o.Name}, err
}

// KindCalled reports whether a word is a name of a kind: its name, its plural or kubectl's short
// name, ignoring case, with or without .GROUP.
func KindCalled(kind GroupKind, word string) bool {
	name, group, grouped := strings.Cut(strings.ToLower(word), ".")
	if grouped && group != strings.ToLower(kind.Group) {
		return false
	}
	lower := strings.ToLower(kind.Kind)
	switch name {
	case lower, lower + "s", lower + "es", strings.TrimSuffix(lower, "y") + "ies":
		return true
	}
	return shortNames[name] == kind.Kind
}

// Plural guesses the resource of a kind that no definition and no API server has named: its plural in lower case.
func Plural(kind string) string {
	name := strings.ToLower(kind)
	ends := func(with ...string) bool {
		return slices.ContainsFunc(with, func(end string) bool { return strings.HasSuffix(name, end) })
	}
	switch {
	case ends("endpoints"):
		return name
	case ends("s", "x", "ch", "sh"):
		return name + "es"
	case ends("y") && !ends("ay", "ey", "oy", "uy"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// shortNames are kubectl's short names of the kinds that are built into Kubernetes.
var shortNames = map[string]string{
	"cj": "CronJob", "cm": "ConfigMap", "crd": "CustomResourceDefinition", "crds": "CustomResourceDefinition",
	"deploy": "Deployment", "ds": "DaemonSet", "hpa": "HorizontalPodAutoscaler", "ing": "Ingress", "limits": "LimitRange",
	"netpol": "NetworkPolicy", "ns": "Namespace", "pc": "PriorityClass", "pdb": "PodDisruptionBudget", "po": "Pod",
	"pv": "PersistentVolume", "pvc": "PersistentVolumeClaim", "quota": "ResourceQuota", "rc": "ReplicationController",
	"rs": "ReplicaSet", "sa": "ServiceAccount", "sc": "StorageClass", "sts": "StatefulSet", "svc": "Service",
}
