// Package kubeapi serves the hub as a Kubernetes API: placements, overrides, envelopes, staged updates, member clusters
// with their live status, the placed manifests, and events. It is read-only, except that the status of an approval
// request may be written to approve a stage.
//
// Publish puts a report into a store, and requests are served from there. A catalog has the served
// kinds: the built-in ones and those of the manifests in the commit in force.
//
// To serve another kind: add its type to placement/api, its columns to printer, and an entry to
// builtIn. A kind of the report needs a field of status.Report and a Replace in Publish. One that Git
// declares needs an entry in api.ManifestKinds and, if its objects are not among those of a Snapshot, a
// source in catalog.manifests. Then run go generate, and test/reading with -update.
package kubeapi

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Config configures the API.
type Config struct {
	// Store has the objects; only the API writes to it.
	Store *store.Store
	// Authorizer authorizes requests; nil allows all.
	Authorizer authorizer.Authorizer
	// Approve carries out the approvals that clients write; nil refuses them. Local returns why a request of a user, whose name is
	// empty without authentication, may not write; empty if it may.
	Approve Approve
	Local   func(req *http.Request, by string) (code int, why string)
	// ApprovalsInGit says that stages of update runs are approved by commits only, so that no refusal suggests another way.
	ApprovalsInGit bool
}

// An API serves Kubernetes clients. It is safe for concurrent use, except Publish, which one
// goroutine may call.
type API struct {
	store   *store.Store
	server  *genericapiserver.GenericAPIServer
	codecs  codecs
	may     authorizer.Authorizer // nil: everything is allowed
	approve Approve
	local   func(req *http.Request, by string) (code int, why string)
	inGit   bool // approvals are commits
	catalog atomic.Pointer[catalog]
	// ready says that there was a report with a commit in force. Before that, an empty list
	// would be wrong.
	ready atomic.Bool
	// described is the OpenAPI description of the catalog.
	described atomic.Pointer[description]

	// head is the last published snapshot, and events are the last published events, which eventObjects are made from.
	// While they are the same, everything derived from them is.
	head         *hub.Snapshot
	events       []status.Event
	eventObjects []eventObject
	// made are the sources of the published objects about placements.
	made map[any]store.Source
	// published counts the reports.
	published int
	// space is reused by Publish for its lists.
	space []store.Source
	// source is used in refusals of writes, to say what to change instead.
	source atomic.Pointer[status.Source]
}

// The roots of the API's paths.
var paths = []string{"/api", "/apis", "/openapi", "/version"}

// Paths returns the patterns of the API.
func Paths() []string {
	var out []string
	for _, p := range paths {
		out = append(out, p, p+"/")
	}
	return out
}

// Serves reports whether a path belongs to the API.
func Serves(path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

// effective reports that version to clients, since the library's own is empty.
type effective struct{ compatibility.EffectiveVersion }

// Info implements compatibility.EffectiveVersion.
func (effective) Info() *version.Info {
	major, minor, _ := strings.Cut(kubernetes, ".")
	return &version.Info{
		Major: major, Minor: minor, GitVersion: "v" + kubernetes + ".0+gitfleet", GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// authenticated returns the user whom the guard has authenticated.
func authenticated(req *http.Request) (*authenticator.Response, bool, error) {
	u, found := request.UserFrom(req.Context())
	if !found {
		u = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	}
	return &authenticator.Response{User: u}, true, nil
}

// New returns an API without objects.
func New(cfg Config) (*API, error) {
	a := &API{store: cfg.Store, codecs: newCodecs(), may: cfg.Authorizer, approve: cfg.Approve, local: cfg.Local, inGit: cfg.ApprovalsInGit, made: map[any]store.Source{}}
	c := genericapiserver.NewConfig(a.codecs.CodecFactory)
	c.ExternalAddress = "localhost:443" // needed only by Complete
	c.LoopbackClientConfig = &rest.Config{}
	c.EffectiveVersion = effective{compatibility.NewEffectiveVersionFromString(kubernetes, "", "")}
	c.Authentication.Authenticator = authenticator.RequestFunc(authenticated)
	if c.Authorization.Authorizer = cfg.Authorizer; cfg.Authorizer == nil {
		c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	}
	c.EnableProfiling, c.EnableMetrics, c.EnableIndex = false, false, false
	c.SkipOpenAPIInstallation = true
	server, err := c.Complete(nil).New("gitfleet", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("kubernetes api: %w", err)
	}
	a.server = server
	a.route()
	a.setCatalog(newCatalog(nil))
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, req *http.Request) { a.server.Handler.ServeHTTP(w, req) }

// Publish publishes a report. Unchanged objects are only compared by pointer, and it does not wait
// for readers.
func (a *API) Publish(r *status.Report) {
	a.source.Store(&r.Source)
	if r.InForce != a.head && r.InForce != nil {
		a.declare(r)
		a.head = r.InForce
	}
	a.publishPlacements(r)
	a.store.Replace(memberClusters.storeKey(), sources(&a.space, r.Clusters))
	publishBoth(a, r.UpdateRuns, clusterRuns, runs)
	publishBoth(a, r.ApprovalRequests, clusterApprovals, approvals)
	a.store.Replace(evictions.storeKey(), sources(&a.space, r.Evictions))
	if !ledger.Identical(a.events, r.Events) {
		a.eventObjects = eventObjects(r.Events, a.eventObjects)
		core, other := eventSources(a.eventObjects)
		a.store.Replace(coreEvents.storeKey(), core)
		a.store.Replace(otherEvents.storeKey(), other)
		a.events = r.Events
	}
	if r.InForce != nil {
		a.ready.Store(true)
	}
}

// publishBoth publishes objects of two kinds: those without a namespace, and those with one.
func publishBoth[T any, P typed[T]](a *API, all []P, cluster, namespaced *kind) {
	var first, second []P
	for _, o := range all {
		if o.GetObjectMeta().GetNamespace() == "" {
			first = append(first, o)
		} else {
			second = append(second, o)
		}
	}
	a.store.Replace(cluster.storeKey(), sources(&a.space, first))
	a.store.Replace(namespaced.storeKey(), sources(&a.space, second))
}

// declare puts the objects of the head into the store.
func (a *API) declare(r *status.Report) {
	next := newCatalog(r.InForce)
	before := a.catalog.Load()
	manifests := next.manifests(r.InForce, r.Declared)
	for _, k := range next.kinds {
		if k.declared {
			a.store.Replace(k.storeKey(), manifests[k.storeKey()])
		}
	}
	for _, k := range before.kinds {
		if k.declared && next.byResource[k.storeKey()] == nil {
			a.store.Replace(k.storeKey(), nil)
		}
	}
	if !before.equal(next) {
		a.setCatalog(next)
	}
}

// setCatalog publishes a catalog.
func (a *API) setCatalog(c *catalog) {
	var before []string
	if old := a.catalog.Swap(c); old != nil {
		before = old.groups()
	}
	a.described.Store(newDescription(c))
	a.discover(before, c)
}

// placementSources returns the sorted sources of objects about placements. What an object says of clusters is made from this
// report from now on, also if it was published before.
func placementSources[T any, P typed[T]](a *API, r *status.Report, objects iter.Seq[P], of func(*metav1.ObjectMeta) api.PlacementKey, make func(*status.OnDemand) P) []store.Source {
	out := a.space[:0]
	for o := range objects {
		source := a.made[o]
		if source == nil {
			source = placed[T, P]{reported[T, P]{o}, &onDemand{}, make}
			a.made[o] = source
		}
		p := source.(placed[T, P])
		p.Store(r.OnDemand(of(p.meta())))
		p.report = a.published
		out = append(out, source)
	}
	a.space = out
	if !slices.IsSortedFunc(out, store.Compare) {
		slices.SortFunc(out, store.Compare)
	}
	return out
}

// publishPlacements publishes the placements, and their statuses in namespaces.
func (a *API) publishPlacements(r *status.Report) {
	a.published++
	named := func(m *metav1.ObjectMeta) api.PlacementKey { return api.PlacementKey{Name: m.Name} }
	inNamespace := func(m *metav1.ObjectMeta) api.PlacementKey {
		return api.PlacementKey{Namespace: m.Namespace, Name: m.Name}
	}
	objects := 0
	replace := func(key schema.GroupVersionResource, sources []store.Source) {
		objects += len(sources)
		a.store.Replace(key, sources)
	}
	replace(clusterPlacements.storeKey(), placementSources(a, r, r.EachClusterResourcePlacement(), named, (*status.OnDemand).ClusterResourcePlacement))
	replace(placements.storeKey(), placementSources(a, r, r.EachResourcePlacement(), inNamespace, (*status.OnDemand).ResourcePlacement))
	replace(placementStatuses.storeKey(), placementSources(a, r, r.EachPlacementStatus(), named, (*status.OnDemand).PlacementStatus))
	if len(a.made) > objects {
		maps.DeleteFunc(a.made, func(_ any, s store.Source) bool { return s.(interface{ in() int }).in() != a.published })
	}
}
