package kubeapi

import (
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// route installs the routes of the generic server.
func (a *API) route() {
	mux := a.server.Handler.NonGoRestfulMux
	mux.Handle("/api", http.HandlerFunc(a.serveLegacy))
	mux.Handle("/openapi/v3", http.HandlerFunc(a.serveOpenAPI))
	mux.HandlePrefix("/openapi/", http.HandlerFunc(a.serveOpenAPI))
	mux.HandlePrefix("/api/", http.HandlerFunc(a.serveResource))
	mux.HandlePrefix("/apis/", http.HandlerFunc(a.serveResource))
}

// minWatch is the minimum duration of a watch without a timeout; the library makes it up to
// twice as long.
const minWatch = 30 * time.Minute

// serveResource serves objects, and the discovery of groups and versions.
func (a *API) serveResource(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok {
		a.fail(w, req, apierrors.NewInternalError(errNoInfo))
		return
	}
	c := a.catalog.Load()
	if !info.IsResourceRequest {
		a.serveDiscovery(c, info, w, req)
		return
	}
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	k := c.byResource[gvr]
	if k == nil || !k.namespaced && info.Namespace != "" && k.name != "Namespace" {
		a.fail(w, req, notServed(http.StatusNotFound, info, "the hub has no such resource"))
		return
	}
	s := &storage{a.store, k, info.APIVersion}
	switch {
	case k.name == "SelfSubjectAccessReview" && info.Verb == "create":
		a.review(c, w, req)
	case k.verbs != nil:
		a.fail(w, req, apierrors.NewMethodNotSupported(gvr.GroupResource(), info.Verb))
	case k.approves(info.Subresource, info.Verb):
		a.decide(s, info, w, req)
	case !slices.Contains(readVerbs, info.Verb):
		a.refuse(s, info, w, req)
	case info.Subresource != "" && info.Subresource != "status":
		a.fail(w, req, apierrors.NewNotFound(gvr.GroupResource(), info.Name+"/"+info.Subresource))
	case !a.ready.Load() && k.name != "Event":
		a.fail(w, req, notServed(http.StatusServiceUnavailable, info, "no commit is in force yet"))
	case info.Verb == "get":
		handlers.GetResource(s, a.scope(s))(w, req)
	default:
		handlers.ListResource(s, s, a.scope(s), info.Verb == "watch", minWatch)(w, req)
	}
}
