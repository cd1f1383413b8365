// Package hub loads the files of one commit.
//
// A Loader reads a tree of manifests and kustomizations into a Snapshot: the desired state of
// the fleet, decoded strictly, with the defaults and validation of an API server. A tree is
// either loaded as a whole or refused with all its problems. A Loader loads one commit after
// another and reads only the files that have changed.
package hub

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
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

// A Placement is a ClusterResourcePlacement or a ResourcePlacement with defaults.
type Placement struct {
	Key         api.PlacementKey
	Labels      map[string]string
	Annotations map[string]string
	Spec        api.PlacementSpec
	Origin      api.Origin
	// SpecHash is the hash of the canonical spec. It determines the generation.
	SpecHash string
}

// A Cluster is a declared member cluster.
type Cluster struct {
	*api.MemberCluster
	Origin api.Origin
	Hashes
}

// Hashes are the hashes of a declared object: Hash of all of it, SpecHash of its spec.
type Hashes struct{ Hash, SpecHash string }

// A ClusterOverride is a declared ClusterResourceOverride.
type ClusterOverride struct {
	*api.ClusterResourceOverride
	Origin api.Origin
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

// RunsInFile describes the staged update runs that the content of a file has, by kind and name: for which placements they are and, as a second part
// with the suffix Started, whether they may begin.
func RunsInFile(path string, content []byte) map[string]string {
	out := map[string]string{}
	document.Read(path, content, Limits{}.WithDefaults(), math.MaxInt64, func(r *document.Report, value any) {
		eachObject(r, value, "%s", func(_ *document.Report, gvk schema.GroupVersionKind, object map[string]any) {
			if gvk.Group != api.PlacementGroup || !strings.HasSuffix(gvk.Kind, "StagedUpdateRun") {
				return
			}
			u := unstructured.Unstructured{Object: object}
			state, _, _ := unstructured.NestedString(object, "spec", "state")
			placement, _, _ := unstructured.NestedString(object, "spec", "placementName")
			name, of := gvk.Kind+" "+u.GetName(), u.GetNamespace()+"/"+placement
			out[name] += of + "\n"
			out[name+Started] += fmt.Sprintln(of, state != "" && state != string(api.RunInitialize))
		})
	})
	return out
}

// Started is the suffix of parts of RunsInFile.
const Started = " started"

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

// An Override is a declared ResourceOverride.
type Override struct {
	*api.ResourceOverride
	Origin api.Origin
	Hashes
}

// panicked returns the error for a commit whose loading panicked. It is refused, so that nobody who can push ends the daemon that
// way. The cache is emptied, because the load may have left it incomplete. Problems are published, also to pull requests, so that
// only a log gets the value of the panic if there is one.
func (l *Loader) panicked(commit Commit, fault any) *LoadError {
	l.cache, l.overlays = map[cacheKey]*parsed{}, map[*item]*knownOverlay{}
	value, message := l.plain.scrub(fmt.Sprint(fault)), "internal error of gitfleet; see its log, and revert the commit meanwhile"
	if l.opts.LogPanic != nil {
		l.opts.LogPanic(commit, value, string(debug.Stack()))
	} else {
		message = fmt.Sprintf("internal error of gitfleet: %s; report that, and revert the commit meanwhile", value)
	}
	return &LoadError{Internal: true, Problems: problem.List{{Severity: problem.Error, Message: message}}}
}
