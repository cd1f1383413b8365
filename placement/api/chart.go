package api

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HelmChart is an envelope whose content is rendered from a Helm chart for
// the cluster that gets it. It has objects of its own namespace only.
type HelmChart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is rendered.
	Spec ChartSpec `json:"spec"`
}

// A ClusterHelmChart is an envelope whose content is rendered from a Helm chart
// for the cluster that gets it. It may have objects of any namespace, or of none. Reserved namespaces have to be listed.
type ClusterHelmChart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is rendered.
	Spec ChartSpec `json:"spec"`
}

// A ChartSpec says which chart is rendered, and with which values.
type ChartSpec struct {
	// Chart says where the chart is.
	Chart ChartSource `json:"chart"`
	// ReleaseName is the name of the release; the default is the name of the object.
	ReleaseName string `json:"releaseName,omitempty"`
	// Namespace is the namespace of the release, and of namespaced objects that have none. Of a
	// HelmChart it is always its own.
	Namespace string `json:"namespace,omitempty"`
	// ReservedNamespaces are reserved namespaces that objects of a ClusterHelmChart may be in, such as
	// kube-system.
	ReservedNamespaces []string `json:"reservedNamespaces,omitempty"`
	// ValuesFiles are files of the repository, relative to the directory that is the hub, with the
	// variables of overlays. Each replaces values of those before it, and of the chart.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// WhenMissing says what happens if a file of values does not exist for a cluster.
	WhenMissing WhenMissing `json:"whenMissing,omitempty"`
	// Values replace those of the files.
	Values json.RawMessage `json:"values,omitempty"`
	// ValuesByCluster replace the values of some clusters. All entries that match a cluster apply, in
	// order.
	ValuesByCluster []ClusterValues `json:"valuesByCluster,omitempty"`
	// SkipCRDs leaves out the definitions in the directory crds of the chart.
	SkipCRDs bool `json:"skipCRDs,omitempty"`
	// Hooks says what happens to objects that are hooks of Helm.
	Hooks HookPolicy `json:"hooks,omitempty"`
	// Capabilities are what the chart is told of the cluster.
	Capabilities *ChartCapabilities `json:"capabilities,omitempty"`
}

// A ChartSource says where a chart is.
type ChartSource struct {
	// Path is the directory of the chart, relative to the directory that is the hub. Otherwise the
	// chart is in a Repository.
	Path string `json:"path,omitempty"`
	// Repository is oci://HOST/PATH, the part of a registry that has the chart, or the https://
	// address of a chart repository.
	Repository string `json:"repository,omitempty"`
	// Name is the name of the chart in the repository.
	Name string `json:"name,omitempty"`
	// Version is a version, or a range of versions, of which the lock file says which is used.
	Version string `json:"version,omitempty"`
}

// ClusterValues are values for some clusters.
type ClusterValues struct {
	// ClusterSelector selects clusters by their labels.
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`
	// Expression is a CEL expression over cluster, which has name, labels and properties. If there is
	// a ClusterSelector as well, both have to match.
	Expression string `json:"expression,omitempty"`
	// ValuesFiles are files as those of the chart.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// Values replace those of the files.
	Values json.RawMessage `json:"values,omitempty"`
	// Capabilities replace those of the chart.
	Capabilities *ChartCapabilities `json:"capabilities,omitempty"`
}

// ChartCapabilities are what a chart is told of a cluster.
type ChartCapabilities struct {
	// KubeVersion is the version of Kubernetes.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions are told in addition to those of Kubernetes itself, as group/version or
	// group/version/Kind.
	APIVersions []string `json:"apiVersions,omitempty"`
}

// HookPolicy says what happens to objects that are hooks of Helm.
type HookPolicy string

// With HooksRun, the default, hooks are applied before or after the other objects of the chart. With HooksFail a chart with
// such hooks cannot be rendered. With HooksIgnore its hooks are left out.
const (
	HooksRun    HookPolicy = "Run"
	HooksFail   HookPolicy = "Fail"
	HooksIgnore HookPolicy = "Ignore"
)
