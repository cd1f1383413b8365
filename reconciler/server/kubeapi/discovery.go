package kubeapi

import (
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// resources returns the discovery of a group version.
func (c *catalog) resources(gv schema.GroupVersion) []metav1.APIResource {
	var out []metav1.APIResource
	for _, k := range c.of(gv) {
		out = append(out, k.discovered(gv.Version))
		if k.approvals {
			status := k.discovered(gv.Version)
			status.Name, status.SingularName, status.ShortNames, status.Categories = k.plural+"/status", "", nil, nil
			status.Verbs = append(metav1.Verbs{"get"}, writeVerbs...)
			out = append(out, status)
		}
	}
	return out
}

func (c *catalog) group(name string) metav1.APIGroup {
	g := metav1.APIGroup{Name: name}
	for _, v := range c.versions(name) {
		gv := schema.GroupVersion{Group: name, Version: v}
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

// aggregated returns the aggregated discovery of a group.
func (c *catalog) aggregated(name string) apidiscoveryv2.APIGroupDiscovery {
	g := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, v := range c.versions(name) {
		d := apidiscoveryv2.APIVersionDiscovery{Version: v, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, r := range c.resources(schema.GroupVersion{Group: name, Version: v}) {
			scope := apidiscoveryv2.ScopeCluster
			if r.Namespaced {
				scope = apidiscoveryv2.ScopeNamespace
			}
			kind := &metav1.GroupVersionKind{Group: name, Version: v, Kind: r.Kind}
			if _, subresource, found := strings.Cut(r.Name, "/"); found {
				of := &d.Resources[len(d.Resources)-1]
				of.Subresources = append(of.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: subresource, ResponseKind: kind, Verbs: r.Verbs})
				continue
			}
			d.Resources = append(d.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: r.Name, SingularResource: r.SingularName, Scope: scope, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
				ResponseKind: kind,
			})
		}
		g.Versions = append(g.Versions, d)
	}
	return g
}

// discover publishes the discovery of a catalog, and removes that of groups which it does not
// have.
func (a *API) discover(before []string, c *catalog) {
	var core, named []apidiscoveryv2.APIGroupDiscovery
	names := c.groups()
	for _, g := range before {
		if !slices.Contains(names, g) {
			a.server.DiscoveryGroupManager.RemoveGroup(g)
		}
	}
	for _, name := range names {
		if name == "" {
			core = append(core, c.aggregated(name))
			continue
		}
		a.server.DiscoveryGroupManager.AddGroup(c.group(name))
		named = append(named, c.aggregated(name))
	}
	a.server.AggregatedDiscoveryGroupManager.SetGroups(named)
	// The version with all fields is preferred, although its name does not sort as the newest.
	for _, g := range named {
		for i, v := range g.Versions {
			a.server.AggregatedDiscoveryGroupManager.SetGroupVersionPriority(metav1.GroupVersion{Group: g.Name, Version: v.Version}, 1000, 100-i)
		}
	}
	a.server.AggregatedLegacyDiscoveryGroupManager.SetGroups(core)
}

// serveLegacy serves the versions of the core group.
func (a *API) serveLegacy(w http.ResponseWriter, req *http.Request) {
	manager := a.server.AggregatedLegacyDiscoveryGroupManager
	plain := discovery.NewLegacyRootAPIHandler(discovery.DefaultAddresses{}, a.codecs.CodecFactory, "/api")
	aggregated.WrapAggregatedDiscoveryToHandler(plain, manager, manager).ServeHTTP(w, req)
}

// serveDiscovery serves the versions of a group, and the resources of a version.
func (a *API) serveDiscovery(c *catalog, info *request.RequestInfo, w http.ResponseWriter, req *http.Request) {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if path[0] == "api" {
		path = append([]string{"apis", ""}, path[1:]...)
	}
	switch group := path[1]; {
	case len(path) == 2 && c.first(group) != nil:
		discovery.NewAPIGroupHandler(a.codecs.CodecFactory, c.group(group)).ServeHTTP(w, req)
	case len(path) == 3 && slices.Contains(c.versions(group), path[2]):
		gv := schema.GroupVersion{Group: group, Version: path[2]}
		resources := discovery.APIResourceListerFunc(func() []metav1.APIResource { return c.resources(gv) })
		discovery.NewAPIVersionHandler(a.codecs.CodecFactory, gv, resources).ServeHTTP(w, req)
	default:
		a.fail(w, req, notServed(http.StatusNotFound, info, "the hub has nothing at "+req.URL.Path))
	}
}
