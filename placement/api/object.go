package api

import (
	"cmp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An EnvelopeType is the kind of an envelope.
type EnvelopeType string

// The envelope types.
const (
	ConfigMapEnvelopeType       EnvelopeType = "ConfigMap"
	ClusterResourceEnvelopeType EnvelopeType = "ClusterResourceEnvelope"
	ResourceEnvelopeType        EnvelopeType = "ResourceEnvelope"
	ClusterOverlayType          EnvelopeType = "ClusterOverlay"
	OverlayType                 EnvelopeType = "Overlay"
	ClusterHelmChartType        EnvelopeType = "ClusterHelmChart"
	HelmChartType               EnvelopeType = "HelmChart"
)

// An EnvelopeIdentifier identifies an envelope.
type EnvelopeIdentifier struct {
	// Name is the name of the envelope.
	Name string `json:"name"`
	// Namespace is the namespace of the envelope; empty for a cluster-scoped one.
	Namespace string `json:"namespace,omitempty"`
	// Type is ConfigMap, ClusterResourceEnvelope, ResourceEnvelope, ClusterOverlay, Overlay, ClusterHelmChart or HelmChart.
	Type EnvelopeType `json:"type,omitempty"`
}

// An Object is an object of the repository that can be placed. It is immutable and shared.
// +k8s:openapi-gen=false
type Object struct {
	ID ID
	// Content is the manifest without the fields that only a server sets.
	Content *unstructured.Unstructured
	// Hash is the [HashOf] the content with HashKey. That of an overlay or a chart
	// identifies what it has for all clusters as well.
	Hash string
	// HashKey is nil, unless the repository has values of the object in encrypted form only.
	HashKey []byte
	// CiphertextFault is why what is encrypted in the object was not decrypted, if that is not for want of a key.
	CiphertextFault string
	Origin          Origin
	// Release identifies the chart of a kustomization that the object is from; empty for other objects.
	Release string
	// Numbers are the paths of the fields that must be whole numbers and are written as a variable.
	Numbers []NumberField
	// Variable is where the first text with a variable is, unless an annotation of the object says what becomes of it; nil if there is none.
	Variable *FieldPosition
	// Substituted says that variables were replaced when the object was built for a cluster, so that none are any more.
	Substituted bool
	// Overlay is what an overlay or a chart has for each cluster; nil for other objects.
	Overlay *BuiltOverlay
}

// InNamespace returns the object in another namespace, or in none.
func (o *Object) InNamespace(namespace string) *Object {
	moved := *o
	moved.ID.Namespace, moved.Content = namespace, o.Content.DeepCopy()
	moved.Content.SetNamespace(namespace)
	moved.Hash, _ = HashOf(moved.Content.Object, o.HashKey) // the object was hashed before, so that this cannot fail
	return &moved
}

// A NumberField is the path of a field that must be a whole number. With OrText it may be another text as well.
type NumberField struct {
	Path   []string
	OrText bool
}

// A FieldPosition is a field of an object, and its line in the file of the object.
type FieldPosition struct {
	Field string
	Line  int
}

// Identifier returns the object's identifier in a status.
func (o *Object) Identifier() ResourceIdentifier {
	return ResourceIdentifier{
		Group: o.ID.Group, Version: o.Content.GroupVersionKind().Version, Kind: o.ID.Kind,
		Namespace: o.ID.Namespace, Name: o.ID.Name,
	}
}

// An Origin is a position in the repository.
// +k8s:openapi-gen=false
type Origin struct {
	// Path is slash-separated and relative to the repository's root.
	Path string
	// Line counts from 1; zero if it is not known.
	Line int
	// Document counts the YAML documents of the file from 1.
	Document int
	// Kustomization is the file of the kustomization, or the Chart.yaml of the chart, that was built;
	// empty for a plain manifest.
	Kustomization string
}

// String returns path:line, or the path alone if the line is not known.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Path
	}
	return o.Path + ":" + strconv.Itoa(o.Line)
}

// A PlacementKey identifies a placement of either kind. It is comparable.
// +k8s:openapi-gen=false
type PlacementKey struct {
	// Namespace is empty for a ClusterResourcePlacement and never empty for a
	// ResourcePlacement.
	Namespace, Name string
}

// String returns crp/NAME or rp/NAMESPACE/NAME.
func (k PlacementKey) String() string {
	if k.Namespace == "" {
		return "crp/" + k.Name
	}
	return "rp/" + k.Namespace + "/" + k.Name
}

// Compare orders keys by namespace and name.
func (k PlacementKey) Compare(o PlacementKey) int {
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Kind returns the kind of the placement.
func (k PlacementKey) Kind() string {
	if k.Namespace == "" {
		return "ClusterResourcePlacement"
	}
	return "ResourcePlacement"
}

// A GroupKind is a kind without a version.
type GroupKind = schema.GroupKind

// An ID identifies an object, regardless of the version of its manifest. It is comparable, and
// the zero ID identifies nothing.
// +k8s:openapi-gen=false
type ID struct {
	Group, Kind, Namespace, Name string
}

// IDOf returns the ID of an object.
func IDOf(o *unstructured.Unstructured) ID {
	gvk := o.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// GroupKind returns the kind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// String returns Kind.group/namespace/name without the parts that are empty.
func (id ID) String() string {
	parts := []string{id.GroupKind().String()}
	if id.Namespace != "" {
		parts = append(parts, id.Namespace)
	}
	return strings.Join(append(parts, id.Name), "/")
}

// Compare orders IDs by group, kind, namespace and name.
func (id ID) Compare(o ID) int {
	return cmp.Or(strings.Compare(id.Group, o.Group), strings.Compare(id.Kind, o.Kind),
		strings.Compare(id.Namespace, o.Namespace), strings.Compare(id.Name, o.Name))
}

// neverRecreated are the kinds whose deletion deletes more than the object itself.
var neverRecreated = map[GroupKind]bool{
	{Kind: "Namespace"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Kind: "PersistentVolumeClaim"}:                                   true,
	{Kind: "PersistentVolume"}:                                        true,
}

// Recreatable reports whether objects of a kind may have a RecreateAnnotation: not those whose
// deletion deletes more than the object itself.
func Recreatable(kind GroupKind) bool { return !neverRecreated[kind] }

// A BuiltOverlay is what an overlay or a chart has for the clusters of a commit. It is immutable.
// +k8s:openapi-gen=false
type BuiltOverlay struct {
	// Spec has the defaults set, and At is the position of its path or paths.
	Spec OverlaySpec
	At   Origin
	// Hub is the directory that the paths are relative to.
	Hub string
	// Properties are the declared properties of the clusters of the commit, by the cluster's name.
	Properties map[string]map[string]string
	// Builds are the results by directory: those of every existing directory that a path may mean, also
	// if no cluster of the commit uses it. Those of a chart are by the inputs of the rendering.
	Builds map[string]*OverlayBuild
	// Dirs are the directories that can be built, sorted; none for a chart.
	Dirs []string
	// PerCluster are the keys of the builds of a directory by cluster, if variables in it have values of the
	// clusters of the commit. The build of any other directory has its name as key.
	PerCluster map[string]map[string]string
	// Chart says which build of a chart is for which cluster; nil for an overlay.
	Chart map[string]ChartChoice
	// Selectors identify what decides which clusters have which values of a chart.
	Selectors string
	// ReservedNamespaces are reserved namespaces that the objects may be in.
	ReservedNamespaces []string
}

// An OverlayBuild is the result of building one directory, or of rendering a chart with some values.
// +k8s:openapi-gen=false
type OverlayBuild struct {
	// File is the kustomization file, or the Chart.yaml.
	File string
	// Objects are sorted by ID.
	Objects []*Object
	// Hash identifies the content.
	Hash string
	// Err says why there are no objects; empty if they could be built.
	Err string
}

// A ResourceIdentifier identifies an object of the repository.
type ResourceIdentifier struct {
	// Group is the API group; empty for core kinds.
	Group string `json:"group,omitempty"`
	// Version is the API version.
	Version string `json:"version"`
	// Kind is the kind.
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Namespace is the namespace of the object; empty for a cluster-scoped one.
	Namespace string `json:"namespace,omitempty"`
	// Envelope is the envelope that wraps the object, if there is one.
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}
