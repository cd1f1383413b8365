package api

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterVars are values of variables for clusters. KubeFleet does not have the kind.
type ClusterVars struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the values.
	Spec ClusterVarsSpec `json:"spec"`
}

// A ClusterVarsSpec has the values of variables.
type ClusterVarsSpec struct {
	// Vars are the values for all clusters, by the name of the variable.
	Vars map[string]string `json:"vars,omitempty"`
	// Clusters are values for some clusters. A later entry takes precedence over an earlier one, and
	// all take precedence over Vars.
	Clusters []ClusterVarsRule `json:"clusters,omitempty"`
}

// A ClusterVarsRule has the values of variables for some clusters: those that it names, and those
// that its selector matches.
type ClusterVarsRule struct {
	// Names are names of clusters.
	Names []string `json:"names,omitempty"`
	// LabelSelector matches the labels of clusters.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// Vars are the values.
	Vars map[string]string `json:"vars"`
}

// LargestVariable is the maximum size of the value of a variable, in bytes.
const LargestVariable = 64 << 10

// Names are the sorted names of all variables.
func (s *ClusterVarsSpec) Names() []string {
	names := slices.Collect(maps.Keys(s.Vars))
	for _, rule := range s.Clusters {
		names = slices.AppendSeq(names, maps.Keys(rule.Vars))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Variables are what variables stand for at a commit. They are immutable.
type Variables struct {
	// Properties are the declared properties of the clusters, by the cluster's name.
	Properties map[string]map[string]string
	// Vars are sorted by name, and no two have the same variable.
	Vars []*ClusterVars
	// Hash identifies all of them.
	Hash string
}

// Equal reports whether both stand for the same; nil is none.
func (v *Variables) Equal(o *Variables) bool {
	return v == o || v != nil && o != nil && v.Hash == o.Hash
}
