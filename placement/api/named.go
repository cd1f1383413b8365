package api

import (
	"fmt"
	"strings"
)

// ParsePlacement reads how a person names a placement: crp/NAME or
// rp/NAMESPACE/NAME; the kind may be written out. It is the reverse of
// PlacementKey.String.
func ParsePlacement(text string) (PlacementKey, error) {
	kind, rest, _ := strings.Cut(text, "/")
	namespace, name, namespaced := strings.Cut(rest, "/")
	switch strings.ToLower(kind) {
	case "crp", "clusterresourceplacement", "clusterresourceplacements":
		if rest != "" && !namespaced {
			return PlacementKey{Name: rest}, nil
		}
	case "rp", "resourceplacement", "resourceplacements":
		if namespace != "" && name != "" && !strings.Contains(name, "/") {
			return PlacementKey{Namespace: namespace, Name: name}, nil
		}
	}
	return PlacementKey{}, fmt.Errorf("%q names no placement; write crp/NAME, or rp/NAMESPACE/NAME", text)
}

// KindCalled reports whether a person may mean a kind by a word: its name, its
// plural or kubectl's short name, in any case, with or without .GROUP.
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

// shortNames are kubectl's, of the kinds that Kubernetes brings along.
var shortNames = map[string]string{
	"cj": "CronJob", "cm": "ConfigMap", "crd": "CustomResourceDefinition", "crds": "CustomResourceDefinition",
	"deploy": "Deployment", "ds": "DaemonSet", "hpa": "HorizontalPodAutoscaler", "ing": "Ingress", "limits": "LimitRange",
	"netpol": "NetworkPolicy", "ns": "Namespace", "pc": "PriorityClass", "pdb": "PodDisruptionBudget", "po": "Pod",
	"pv": "PersistentVolume", "pvc": "PersistentVolumeClaim", "quota": "ResourceQuota", "rc": "ReplicationController",
	"rs": "ReplicaSet", "sa": "ServiceAccount", "sc": "StorageClass", "sts": "StatefulSet", "svc": "Service",
}
