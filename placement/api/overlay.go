package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// An Overlay is an envelope whose content is built for the cluster that gets it: a kustomization
// of the repository that has objects of the Overlay's namespace only.
type Overlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is built.
	Spec OverlaySpec `json:"spec"`
}

// A ClusterOverlay is an envelope whose content is built for the cluster that gets it: a
// kustomization of the repository with objects of any namespace, or of none. Reserved namespaces have to be listed.
type ClusterOverlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is built.
	Spec OverlaySpec `json:"spec"`
}

// An OverlaySpec says which kustomization is built for a cluster.
type OverlaySpec struct {
	// Path is the directory of the kustomization, relative to the directory that is the hub. In it
	// ${cluster.name}, ${cluster.labels.KEY} and ${cluster.properties.KEY} stand for the name, a
	// label and a declared property of the cluster, and ${...:-TEXT} for TEXT if the cluster has no
	// such label or property. * stands for any part of a name: all directories that match are built.
	Path string `json:"path,omitempty"`
	// Paths are used instead of Path: the first directory that exists is built, with * the first for
	// each of the names in its place.
	Paths []string `json:"paths,omitempty"`
	// Parts are used instead of Path and Paths: a cluster gets what each of them means for it.
	Parts []OverlayPart `json:"parts,omitempty"`
	// Except are directories that a path with * does not mean, and all below them.
	Except []string `json:"except,omitempty"`
	// WhenMissing says what a cluster gets for which no directory exists.
	WhenMissing WhenMissing `json:"whenMissing,omitempty"`
	// Namespace is the namespace of namespaced objects that have none. Of an Overlay it is always
	// its own.
	Namespace string `json:"namespace,omitempty"`
	// ReservedNamespaces are reserved namespaces that objects of a ClusterOverlay may be in, such as
	// kube-system.
	ReservedNamespaces []string `json:"reservedNamespaces,omitempty"`
	// PostBuild has variables such as ${domain:=example.com} replaced in what is built, as Flux does for
	// spec.postBuild of a Kustomization. Without it nothing is replaced.
	PostBuild *PostBuild `json:"postBuild,omitempty"`
}

// A PostBuild sets the variables that are replaced in the built objects, as postBuild of a Flux Kustomization does.
type PostBuild struct {
	// Substitute are values by the names of the variables. In a value ${cluster.name},
	// ${cluster.labels.KEY}, ${cluster.properties.KEY} and ${vars.NAME} stand for those of the cluster.
	Substitute map[string]string `json:"substitute,omitempty"`
	// SubstituteFrom are ClusterVars, whose values for the cluster are used as well. A later one takes
	// precedence over an earlier one, and Substitute over all.
	SubstituteFrom []PostBuildSource `json:"substituteFrom,omitempty"`
}

// A PostBuildSource is an object with values of variables.
type PostBuildSource struct {
	// Kind is ClusterVars.
	Kind string `json:"kind,omitempty"`
	// Name is that of the ClusterVars.
	Name string `json:"name"`
}

// An OverlayPart has a path, or paths of which the first that exists is built.
type OverlayPart struct {
	// Path is a directory, as that of an overlay.
	Path string `json:"path,omitempty"`
	// Paths are directories, as those of an overlay.
	Paths []string `json:"paths,omitempty"`
}

// All returns Path, or else Paths.
func (p *OverlayPart) All() []string {
	if p.Path != "" {
		return []string{p.Path}
	}
	return p.Paths
}

// AllParts returns the parts; one if the overlay has only Path or Paths.
func (s *OverlaySpec) AllParts() []OverlayPart {
	if s.Path == "" && s.Paths == nil {
		return s.Parts
	}
	return []OverlayPart{{Path: s.Path, Paths: s.Paths}}
}

// All returns the paths of all parts.
func (s *OverlaySpec) All() (all []string) {
	for _, p := range s.AllParts() {
		all = append(all, p.All()...)
	}
	return all
}

// WhenMissing says what a cluster gets for which an overlay has no directory.
type WhenMissing string

// With WhenMissingFail, the default, the content of the cluster cannot be rendered, so that it keeps what
// it has. With WhenMissingIgnore the overlay has nothing for the cluster.
const (
	WhenMissingFail   WhenMissing = "Fail"
	WhenMissingIgnore WhenMissing = "Ignore"
)

// Has reports whether a directory can be built.
func (o *BuiltOverlay) Has(dir string) bool { return o.Builds[dir] != nil || o.PerCluster[dir] != nil }

// BuildFor returns the key of the build of a directory for a cluster; false if the directory has variables that have no values for it,
// since it is no cluster of the commit.
func (o *BuiltOverlay) BuildFor(dir, cluster string) (key string, known bool) {
	keys, varies := o.PerCluster[dir]
	if !varies {
		return dir, true
	}
	key, known = keys[cluster]
	return key, known
}

// A ChartChoice is what a chart has for one cluster.
// +k8s:openapi-gen=false
type ChartChoice struct {
	// Build is the key of a build. Err says why there is none, without a position; empty if there is one.
	Build, Err string
}
