// Package kubeapi serves the hub as a Kubernetes API that can only be read:
// placements, overrides, envelopes, member clusters with their live status, the
// manifests that are placed, and events.
//
// Publish puts a report into a store; everything else answers from there. What
// is served, and how it is discovered, follows from a table of kinds, which the
// manifests of the commit in force add to.
package kubeapi

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

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
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Config is what the API is made of.
type Config struct {
	// Store has the objects; nobody else puts any there.
	Store *store.Store
	// Authorizer says whether somebody may ask; nil lets everybody who gets
	// here.
	Authorizer authorizer.Authorizer
}

// An API answers what a Kubernetes client asks. It is safe for concurrent use,
// but for Publish, which one goroutine may call.
type API struct {
	store   *store.Store
	server  *genericapiserver.GenericAPIServer
	codecs  codecs
	may     authorizer.Authorizer // nil: everybody may everything
	catalog atomic.Pointer[catalog]
	// ready says that there was a report with a commit in force: before that, that
	// there is nothing would be a lie.
	ready atomic.Bool
	// described is the OpenAPI of the catalog.
	described atomic.Pointer[description]

	// head is the snapshot that was last published, events the first of those
	// that were: while they are the same, so is all that is made of them.
	head   *hub.Snapshot
	events []status.Event
	// space is what Publish makes its lists in.
	space []store.Source
	// source says in a refusal where to write instead.
	source atomic.Pointer[status.Source]
}

// The paths that an API answers at, and below.
var paths = []string{"/api", "/apis", "/openapi", "/version"}

// Paths returns the patterns of all that an API answers.
func Paths() []string {
	var out []string
	for _, p := range paths {
		out = append(out, p, p+"/")
	}
	return out
}

// Serves reports whether a path is one that an API answers at.
func Serves(path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

// kubernetes is the version of Kubernetes whose API this is.
const kubernetes = "1.37"

// effective tells clients that version; the library would tell its own, which
// is none.
type effective struct{ compatibility.EffectiveVersion }

// Info implements compatibility.EffectiveVersion.
func (effective) Info() *version.Info {
	major, minor, _ := strings.Cut(kubernetes, ".")
	return &version.Info{
		Major: major, Minor: minor, GitVersion: "v" + kubernetes + ".0+gitfleet", GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// known says who asks: whoever was let in already.
func known(req *http.Request) (*authenticator.Response, bool, error) {
	u, found := request.UserFrom(req.Context())
	if !found {
		u = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	}
	return &authenticator.Response{User: u}, true, nil
}

// New returns an API that has nothing yet.
func New(cfg Config) (*API, error) {
	a := &API{store: cfg.Store, codecs: newCodecs(), may: cfg.Authorizer}
	c := genericapiserver.NewConfig(a.codecs.CodecFactory)
	c.ExternalAddress = "localhost:443" // of no use but to satisfy Complete
	c.LoopbackClientConfig = &rest.Config{}
	c.EffectiveVersion = effective{compatibility.NewEffectiveVersionFromString(kubernetes, "", "")}
	c.Authentication.Authenticator = authenticator.RequestFunc(known)
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
	a.show(newCatalog(nil))
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, req *http.Request) { a.server.Handler.ServeHTTP(w, req) }

// Publish makes a report what is served. It costs what changed since the last,
// and waits for nobody who reads.
func (a *API) Publish(r *status.Report) {
	a.source.Store(&r.Source)
	if r.Head != a.head && r.Head != nil {
		a.declare(r)
		a.head = r.Head
	}
	c := a.catalog.Load()
	a.store.Replace(c.stored(crp), sources(&a.space, r.Placements))
	a.store.Replace(c.stored(rp), sources(&a.space, r.ResourcePlacements))
	a.store.Replace(c.stored(members), sources(&a.space, r.Clusters))
	a.store.Replace(c.stored(crps), sources(&a.space, r.Statuses))
	if !same(a.events, r.Events) {
		core, other := told(r.Events)
		a.store.Replace(c.stored(coreEvents), core)
		a.store.Replace(c.stored(otherEvents), other)
		a.events = r.Events
	}
	if r.Head != nil {
		a.ready.Store(true)
	}
}

// declare puts what the commit in force has into the store.
func (a *API) declare(r *status.Report) {
	next := newCatalog(r.Head)
	before := a.catalog.Load()
	declared := next.manifests(r.Head, r.Declared)
	for _, k := range next.kinds {
		if k.declared {
			a.store.Replace(k.stored(), declared[k.stored()])
		}
	}
	for _, k := range before.kinds {
		if k.declared && next.byResource[k.stored()] == nil {
			a.store.Replace(k.stored(), nil)
		}
	}
	if !before.equal(next) {
		a.show(next)
	}
}

// show makes a catalog what is served.
func (a *API) show(c *catalog) {
	var before []string
	if old := a.catalog.Swap(c); old != nil {
		before = old.groups()
	}
	a.described.Store(newDescription(c))
	a.discover(before, c)
}
