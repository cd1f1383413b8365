// Package hub loads the files of one commit.
//
// A Loader reads a tree of manifests and kustomizations into a Snapshot: the desired state of
// the fleet, decoded strictly, with the defaults and validation of an API server. A tree is
// either loaded as a whole or refused with all its problems. A Loader loads one commit after
// another and reads only the files that have changed.
package hub

import (
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/walk"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
	"github.com/gitfleet/gitfleet/placement/window"
)

// A Commit is the commit of a snapshot.
type Commit struct {
	Hash   string
	Author string
	// Signer is whose signature was verified; empty if signatures are not asked for.
	Signer  string `json:",omitempty"`
	Subject string
	Time    time.Time `json:",omitzero"`
	// Message is the whole message, with trailers.
	Message string
}

// A RemoteBase is a repository that a kustomization refers to.
type RemoteBase = build.RemoteBase

// A RemoteChart is a chart of a registry or a chart repository that an object or a kustomization asks for.
type RemoteChart = build.RemoteChart

// An Exclusion is a directory or a file of the commit that is no part of the hub.
type Exclusion = walk.Exclusion

// A Snapshot is the hub at one commit. It is immutable and may be used concurrently.
type Snapshot struct {
	Commit Commit
	// Objects are the objects that may be placed, sorted by ID and unique.
	Objects []*api.Object
	// Placements are the placements of both kinds, sorted by key.
	Placements []*Placement
	// Clusters are sorted by name.
	Clusters []*Cluster
	// ClusterOverrides and Overrides are sorted by namespace and name.
	ClusterOverrides []*ClusterOverride
	Overrides        []*Override
	// ClusterVars are sorted by name.
	ClusterVars []*ClusterVars
	// Runs are the staged update runs, sorted by namespace and name.
	Runs []*StagedRun
	// Evictions and Budgets are sorted by name.
	Evictions []*Eviction
	Budgets   []*Budget
	// Signed are the commits that last changed the files of approval requests and whose signatures were verified, by path. They
	// are set by who loads the commit; nil if signatures are not asked for.
	Signed map[string]Commit
	// RunHistory has the histories of staged update runs, by the IDs of their manifests. It is set by who loads the commit, while it is not
	// recorded in which commits the runs appeared. RunHistoryErr is why it could not be read.
	RunHistory    map[api.ID]RunHistory
	RunHistoryErr error
	// Windows are sorted by name.
	Windows []*Window
	// Gates are sorted by name.
	Gates []*Gate
	// Staged are the manifests of staged update strategies, runs and approval requests, sorted by ID.
	Staged []*StagedManifest
	// Variables are what variables in objects stand for.
	Variables *api.Variables
	// Namespaced has the kinds that the commit's CustomResourceDefinitions declare, and whether
	// they are namespaced.
	Namespaced map[api.GroupKind]bool
	// Sources are the sorted files of each built kustomization, by kustomization file.
	Sources map[string][]string
	// Unused are the sorted kustomization files of components and bases that no kustomization uses
	// and that are therefore not built.
	Unused []string
	// Excluded are the directories and files, of those below the configured path, that are no part of the hub. What is
	// below one of them is not listed.
	Excluded []Exclusion
	// UnusedOverlays are the sorted directories that overlays could build, and that are for no cluster of the commit.
	UnusedOverlays []string
	// Uses are the indexes by which patches of kustomizations address items of lists.
	Uses []listitem.Use
	// Bases are the remote bases of the kustomizations, sorted.
	Bases []RemoteBase
	// Charts are the charts of registries and chart repositories, sorted.
	Charts []RemoteChart
	// Unreadable are the encrypted documents that cannot be decrypted, and of which nothing says which objects they have.
	Unreadable []api.Origin
	// Warnings do not refuse the commit; some of them are Failures.
	Warnings problem.List
}

// Object returns the object of Objects with an ID; nil if there is none.
func (s *Snapshot) Object(id api.ID) *api.Object {
	i, found := slices.BinarySearchFunc(s.Objects, id, func(o *api.Object, id api.ID) int { return o.ID.Compare(id) })
	if !found {
		return nil
	}
	return s.Objects[i]
}

// OverrideField returns the position of a field of a declared override; that of the override if the line of the field is not known. The
// name of a ClusterResourceOverride has no namespace. It is zero if there is no such override.
func (s *Snapshot) OverrideField(name api.NamespacedName, field string) api.Origin {
	for _, o := range s.ClusterOverrides {
		if name == (api.NamespacedName{Name: o.Name}) {
			return o.Lines.At(o.Origin, field)
		}
	}
	for _, o := range s.Overrides {
		if name == (api.NamespacedName{Namespace: o.Namespace, Name: o.Name}) {
			return o.Lines.At(o.Origin, field)
		}
	}
	return api.Origin{}
}

// JobNamespaces are the namespaces in which gates run Jobs for a placement, sorted.
func (s *Snapshot) JobNamespaces(key api.PlacementKey) (namespaces []string) {
	for _, run := range s.Runs {
		for _, gate := range run.Gates {
			if run.Placement == key && gate.Job != nil {
				namespaces = append(namespaces, gate.Job.Namespace)
			}
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// A LoadError says that a commit is invalid. Other errors of Load mean that the commit could
// not be read.
type LoadError struct {
	// Problems are all problems, including warnings, in order.
	Problems problem.List
	// Bases are the remote bases of the kustomizations that were read.
	Bases []RemoteBase
	// Charts are the charts of registries and chart repositories that objects ask for.
	Charts []RemoteChart
	// Internal says that loading the commit panicked.
	Internal bool
}

// Error lists the problems, one per line, and marks warnings.
func (e *LoadError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Marked()
	}
	return strings.Join(lines, "\n")
}

// Missing returns the remote bases and charts that a commit needs and has locked, and that were not in the cache when it was loaded,
// from the results of Load.
func Missing(s *Snapshot, err error) (bases []RemoteBase, charts []RemoteChart) {
	if bad, is := errors.AsType[*LoadError](err); is {
		bases, charts = bad.Bases, bad.Charts
	} else if s != nil {
		bases, charts = s.Bases, s.Charts
	}
	bases = slices.DeleteFunc(slices.Clone(bases), func(b RemoteBase) bool { return !b.Missing })
	charts = slices.DeleteFunc(slices.Clone(charts), func(c RemoteChart) bool { return !c.Missing })
	return bases, charts
}

// A Placement is a ClusterResourcePlacement or a ResourcePlacement with defaults.
type Placement struct {
	Key         api.PlacementKey
	Labels      map[string]string
	Annotations map[string]string
	Spec        api.PlacementSpec
	Origin      api.Origin
	Lines       Lines
	// SpecHash is the hash of the canonical spec. It determines the generation.
	SpecHash string
}

// A Cluster is a declared member cluster.
type Cluster struct {
	*api.MemberCluster
	Origin api.Origin
	Hashes
}

// Lines are the lines of the fields of a declared object that later problems may be about, such as spec.resourceSelectors[0].
type Lines map[string]int

// At returns the position of a field of the object at o; o itself if the line of the field is not known.
func (l Lines) At(o api.Origin, field string) api.Origin {
	if line, known := l[field]; known {
		o.Line = line
	}
	return o
}

// Hashes are the hashes of a declared object: Hash of all of it, SpecHash of its spec.
type Hashes struct{ Hash, SpecHash string }

// A ClusterOverride is a declared ClusterResourceOverride.
type ClusterOverride struct {
	*api.ClusterResourceOverride
	Origin api.Origin
	Lines  Lines
	Hashes
}

// An Override is a declared ResourceOverride.
type Override struct {
	*api.ResourceOverride
	Origin api.Origin
	Lines  Lines
	Hashes
}

// An Eviction is a declared ClusterResourcePlacementEviction.
type Eviction struct {
	*api.ClusterResourcePlacementEviction
	Origin api.Origin
	Hashes
}

// A Budget is a declared ClusterResourcePlacementDisruptionBudget.
type Budget struct {
	*api.ClusterResourcePlacementDisruptionBudget
	Origin api.Origin
	Hashes
}

// A Window is a declared RolloutWindow.
type Window struct {
	*api.RolloutWindow
	Origin api.Origin
	Hashes
	// Compiled says when it is open.
	Compiled *window.Window
}

// A Gate is a declared RolloutGate.
type Gate struct {
	*api.RolloutGate
	Origin api.Origin
	Hashes
}

// ClusterVars are the declared values of variables.
type ClusterVars struct {
	*api.ClusterVars
	Origin api.Origin
}

// A StagedManifest is a declared strategy or run of staged updates, or an approval request.
type StagedManifest struct {
	ID api.ID
	metav1.ObjectMeta
	// Spec is a *api.StagedUpdateStrategySpec, *api.StagedUpdateRunSpec or *api.ApprovalRequestSpec, with defaults.
	Spec   any
	Origin api.Origin
	Hashes
}

// A StagedRun is a declared ClusterStagedUpdateRun or StagedUpdateRun, with what it refers to.
type StagedRun struct {
	// Name is empty if a placement asks for a run for each of its contents, with api.StagedUpdateStrategyAnnotation. Approved
	// are then the names of all approval requests of its scope that are for no declared run.
	Name      string
	Placement api.PlacementKey
	Automatic bool
	State     api.UpdateRunState
	// Strategy is the name of its strategy.
	Strategy string
	// Index is the number of its content; empty if it is that of the commit in which the run appears.
	Index string
	// Stages are those of its strategy, and Unmatched and OnFailure the strategy's annotations of these names.
	Stages               []api.StageConfig
	Unmatched, OnFailure string
	// UnreachablePerStage and UnreachablePerRun are the strategy's api.MaxUnreachablePerStageAnnotation and api.MaxUnreachablePerRunAnnotation.
	UnreachablePerStage, UnreachablePerRun string
	// FailedPerStage and FailedPerRun are its api.MaxFailedPerStageAnnotation and api.MaxFailedPerRunAnnotation.
	FailedPerStage, FailedPerRun string
	// ByReview are the stages that a review of the pull request approves.
	ByReview []string
	// Gates are those that the stages name.
	Gates map[string]*api.RolloutGateSpec
	// Approved are the names of the approval requests for it that the commit has, sorted, and Requests their manifests.
	Approved []string
	Requests []*StagedManifest
	Origin   api.Origin
	// Manifest is nil if the run is automatic.
	Manifest *StagedManifest
}

// A RunHistory has the commits in which a staged update run appeared and was started. A commit is zero if it is too old to be found, or if the file
// that the run came from does not have a run of its name.
type RunHistory struct{ Appeared, Started Commit }
